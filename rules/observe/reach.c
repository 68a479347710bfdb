// SPDX-License-Identifier: Apache-2.0
// Searches for elements beyond a function's reach that change its results.
#include "rules/observe/reach.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "rules/observe/trial.h"
#include "rules/observe/values.h"
#include "src/base/options.h"
#include "src/observe/event_file.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t tried; // calls

// Trials are slow, and later calls of a function are often like its first.
enum { CALLS_OF_EACH = 8 };
static struct {
  const sdg_function_t *function;
  int calls;
} each[SDG_SECTIONS_MAX];

static sdg_event_file_t findings = {
    SDG_EVENT_FILE("the reach of functions", SDG_EVENT_CREATE, "reach-%r")};

// What is found about one dimension.
typedef struct finding {
  int d;
  sdg_dim_t dim;
  int64_t extent, rows;
  int64_t most;           // no distance is so large
  int64_t before, behind; // the reach
  int64_t row, far;  // beyond the reach: a change so far away was seen in `row`
  int input, output; // operands; -1: no change beyond the reach
  int64_t near;      // the largest distance at which any change was seen; -1
} finding_t;

// ---- the search ------------------------------------------------------------

// Whether changes at `from` and farther, to all inputs or one, are seen in the
// row; `beyond`: only those beyond the reach. *io_output: where.
static bool sees(sdg_trial_t *trial, const finding_t *of, int64_t row,
                 int64_t from, bool beyond, int input, bool *out_seen,
                 int *io_output) {
  const sdg_function_t *function = trial->function->function;
  sdg_trial_change_t change = {.d = of->d,
                               .row = row,
                               .from = from,
                               .before = beyond ? of->before : -1,
                               .behind = beyond ? of->behind : -1,
                               .wraps =
                                   function->border[of->dim] == SDG_BORDER_WRAP,
                               .input = input};
  int output = -1;
  for (change.way = 0; change.way < SDG_TRIAL_WAYS && output < 0; change.way++)
    if (!sdg_trial_run(trial, &change, &output))
      return false;
  *out_seen = output >= 0;
  if (output >= 0)
    *io_output = output;
  return true;
}

// The largest distance from which on changes are seen: at `lo` they are, at
// `hi` they are not.
static bool farthest(sdg_trial_t *trial, const finding_t *of, int64_t row,
                     bool beyond, int64_t lo, int64_t hi, int64_t *out) {
  bool seen;
  int output = -1;
  while (hi - lo > 1) {
    int64_t middle = lo + (hi - lo) / 2;
    if (!sees(trial, of, row, middle, beyond, -1, &seen, &output))
      return false;
    if (seen)
      lo = middle;
    else
      hi = middle;
  }
  *out = lo;
  return true;
}

// The reach is too small: finds how far this row sees, and which input.
static bool disprove(sdg_trial_t *trial, finding_t *io, int64_t row) {
  bool seen = false;
  io->row = row;
  if (!farthest(trial, io, row, true, 1, io->most, &io->far))
    return false;
  for (int i = 0; i < trial->call->operands && !seen; i++) {
    if (!sdg_trial_changes(trial, i, io->d))
      continue;
    if (!sees(trial, io, row, io->far, true, i, &seen, &io->output))
      return false;
    if (seen || io->input < 0) // several inputs may be seen only together
      io->input = i;
  }
  return true;
}

static bool row_try(sdg_trial_t *trial, finding_t *io, int64_t row) {
  bool seen;
  int64_t far = 0, reach = sdg_max64(io->before, io->behind);
  if (!sees(trial, io, row, 1, true, -1, &seen, &io->output))
    return false;
  io->rows++;
  if (seen)
    return disprove(trial, io, row);
  if (io->near < reach && io->near < io->extent - 1) {
    int output;
    if (!sees(trial, io, row, io->near + 1, false, -1, &seen, &output))
      return false;
    if (seen && !farthest(trial, io, row, false, io->near + 1, reach + 1, &far))
      return false;
    if (seen)
      io->near = far;
  }
  return true;
}

// The first rows, inner ones, and the last.
static bool rows_try(sdg_trial_t *trial, finding_t *io) {
  const int64_t n = io->extent;
  const int64_t rows[] = {n / 2, 0, n - 1, 1, n - 2, n / 4, n / 2 + 1};
  for (size_t i = 0; i < sizeof rows / sizeof *rows && io->input < 0; i++) {
    bool again = rows[i] < 0 || rows[i] >= n;
    for (size_t k = 0; k < i; k++)
      again |= rows[k] == rows[i];
    if (again || !sdg_trial_finite(trial, io->d, rows[i]))
      continue;
    if (!row_try(trial, io, rows[i]))
      return false;
  }
  return true;
}

// ---- the record ------------------------------------------------------------

static void line_write(const char *line) {
  sdg_event_append(&findings, sdg_options_get()->values, line, strlen(line));
}

static void skip_write(const char *function, const char *dim, const char *why) {
  char line[512];
  snprintf(line, sizeof line,
           "{\"function\":\"%s\",\"dim\":\"%s\",\"why\":\"%s\"}\n", function,
           dim, why);
  for (char *c = line; *c; c++)
    if (*c == '\\')
      *c = '/';
  line_write(line);
}

static const char *name_of(const sdg_trial_t *trial, int operand) {
  const sdg_function_t *function = trial->function->function;
  int tensor = sdg_function_tensor_of(function, operand);
  return operand < 0
             ? ""
             : function->argument[function->tensor[tensor].argument].name;
}

static void finding_write(const sdg_trial_t *trial, const finding_t *of) {
  char line[1024];
  snprintf(line, sizeof line,
           "{\"function\":\"%s\",\"dim\":\"%s\",\"before\":%" PRId64
           ",\"behind\":%" PRId64 ",\"extent\":%" PRId64 ",\"rows\":%" PRId64
           ",\"near\":%" PRId64 ",\"row\":%" PRId64 ",\"far\":%" PRId64
           ",\"input\":\"%s\",\"output\":\"%s\"}\n",
           trial->function->function->name, sdg_dim_name(of->dim), of->before,
           of->behind, of->extent, of->rows, of->near, of->row, of->far,
           name_of(trial, of->input),
           of->input < 0 ? "" : name_of(trial, of->output));
  line_write(line);
}

static void dim_try(sdg_trial_t *trial, int d, sdg_dim_t dim) {
  const sdg_function_t *function = trial->function->function;
  finding_t finding = {.d = d,
                       .dim = dim,
                       .extent = sdg_trial_extent(trial, 0, d),
                       .before = function->sees[dim].before,
                       .behind = function->sees[dim].behind,
                       .input = -1,
                       .output = -1,
                       .near = -1};
  const char *why = NULL;
  bool inputs = false, wraps = function->border[dim] == SDG_BORDER_WRAP;
  int64_t least = wraps ? finding.before + finding.behind
                        : sdg_min64(finding.before, finding.behind);
  for (int i = 0; i < trial->call->operands; i++) {
    inputs |= sdg_trial_changes(trial, i, d);
    finding.most = sdg_max64(finding.most, trial->operand[i].extent[d]);
  }
  if (!inputs)
    why = "no input is of a floating type and has this dimension";
  else if (finding.extent - 1 <= least)
    why = "the call's extent is within the reach";
  else if (!rows_try(trial, &finding))
    why = trial->why;
  else if (finding.rows == 0)
    why = "no result is a finite number";
  if (why)
    skip_write(function->name, sdg_dim_name(dim), why);
  else
    finding_write(trial, &finding);
}

static void call_try(const sdg_call_t *call) {
  const sdg_function_t *function = sdg_function_call_of(call)->function;
  static sdg_trial_t trial; // under the lock
  bool good = sdg_trial_init(call, &trial);
  for (int dim = 0; dim < SDG_DIM_COUNT; dim++) {
    int d = sdg_dim_index(SDG_FAMILY_FUNCTION, (sdg_dim_t)dim,
                          call->operand[0].dims);
    int tensor = sdg_function_tensor_of(function, 0);
    if (d < 0 || function->reach[dim] < 0 ||
        sdg_function_extent_at(function, tensor, d) < 0)
      continue;
    if (good)
      dim_try(&trial, d, (sdg_dim_t)dim);
    else
      skip_write(function->name, sdg_dim_name((sdg_dim_t)dim), trial.why);
  }
  sdg_trial_fini(&trial);
}

static bool again_wanted(const sdg_function_t *function) {
  int i = 0;
  while (i < SDG_SECTIONS_MAX && each[i].function &&
         each[i].function != function)
    i++;
  if (i == SDG_SECTIONS_MAX || each[i].calls == CALLS_OF_EACH)
    return false;
  each[i].function = function;
  each[i].calls++;
  return true;
}

void sdg_reach_try(const sdg_call_t *call) {
  const sdg_function_t *function = sdg_function_call_of(call)->function;
  if (!sdg_values_wanted() || !function->pure)
    return;
  // A call of another thread meanwhile is not tried.
  if (pthread_mutex_trylock(&lock) != 0)
    return;
  if (tried < sdg_options_get()->values_calls && again_wanted(function)) {
    tried++;
    call_try(call);
  }
  pthread_mutex_unlock(&lock);
}

void sdg_reach_drop(void) {
  // Another thread of the parent may have held the lock.
  pthread_mutex_init(&lock, NULL);
  tried = INT64_MAX;
  sdg_event_drop(&findings);
}
