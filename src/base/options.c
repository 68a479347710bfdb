// SPDX-License-Identifier: Apache-2.0
// Reads the options from the environment, and keeps their faults for the first
// call on tensors.
#include "src/base/options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/hash.h"
#include "src/base/words.h"

enum { VALUE_MAX = 4096, POOL_BYTES = 16384, FAULT_BYTES = 1024 };

typedef enum kind {
  KIND_TEXT,
  KIND_SECRET,
  KIND_PATH,
  KIND_COUNT,
  KIND_SECONDS,
  KIND_BOOL,
  KIND_CHOICE,
  KIND_COST,
} kind_t;

static const struct row {
  sdg_option_info_t info;
  kind_t kind;
  size_t offset; // offset of the member in sdg_options_t
} rows[SDG_OPTION_COUNT] = {
#define SDG_OPTION(name, field, type, words, fallback, owner, paragraph)       \
  {{"SUNDOG_" #name, #type, words, fallback, #owner, paragraph},               \
   KIND_##type,                                                                \
   offsetof(sdg_options_t, field)},
#include "src/base/options.def"
#undef SDG_OPTION
};

// Only sdg_options_load() writes this, before any thread exists.
static sdg_options_t options;
static char pool[POOL_BYTES]; // the texts of `options`
static size_t pool_used;
static sdg_status_t fault_status;
static char fault_text[FAULT_BYTES];

__attribute__((format(printf, 2, 3))) static void
fault_keep(sdg_status_t status, const char *format, ...) {
  if (fault_status != SDG_OK)
    return;
  fault_status = status;
  va_list args;
  va_start(args, format);
  vsnprintf(fault_text, sizeof fault_text, format, args);
  va_end(args);
}

// Copies a text for the life of the process: programs overwrite their
// environment (process titles).
static const char *pool_copy(const char *text) {
  size_t bytes = strlen(text) + 1;
  if (bytes == 1)
    return "";
  if (bytes > VALUE_MAX || bytes > POOL_BYTES - pool_used)
    return NULL;
  char *copy = pool + pool_used;
  pool_used += bytes;
  return memcpy(copy, text, bytes);
}

// Writes "auto|repair|extend" as "auto, repair, extend".
static const char *words_show(const char *words, char *out, size_t out_bytes) {
  size_t n = 0;
  if (*words == '|')
    words++;
  for (; *words && n + 3 < out_bytes; words++) {
    if (*words == '|') {
      out[n++] = ',';
      out[n++] = ' ';
    } else {
      out[n++] = *words;
    }
  }
  out[n] = '\0';
  return out;
}

static bool bool_parse(const char *text, bool *out) {
  static const char *const yes[] = {"yes", "1", "true", "on"};
  static const char *const no[] = {"no", "0", "false", "off"};
  for (int i = 0; i < 4; i++) {
    if (strcasecmp(text, yes[i]) == 0)
      return *out = true, true;
    if (strcasecmp(text, no[i]) == 0)
      return *out = false, true;
  }
  return false;
}

static bool count_parse(const char *text, int *out) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno || end == text || *end || value < 0 || value > INT_MAX)
    return false;
  *out = (int)value;
  return true;
}

static bool seconds_parse(const char *text, double *out) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !isfinite(value) || value <= 0)
    return false;
  *out = value;
  return true;
}

// Reads one number from `*at` on: digits, a point, an exponent.
static bool number_parse(const char **at, double *out) {
  char *end;
  if (strspn(*at, "0123456789.") == 0)
    return false; // no blanks, signs, or words as "inf"
  *out = strtod(*at, &end);
  bool plain = !memchr(*at, 'x', (size_t)(end - *at)) &&
               !memchr(*at, 'X', (size_t)(end - *at));
  *at = end;
  return plain && isfinite(*out);
}

// "BYTES,LAUNCH,STRIP", and ",RUN", which is 0 if left out.
static bool cost_parse(const char *text, sdg_cost_t *out) {
  sdg_cost_t cost = {.run_bytes = 0};
  if (!number_parse(&text, &cost.copy_bytes_s) || *text++ != ',' ||
      !number_parse(&text, &cost.launch_us) || *text++ != ',' ||
      !number_parse(&text, &cost.strip_us) || cost.copy_bytes_s <= 0)
    return false;
  if (*text && (*text++ != ',' || !number_parse(&text, &cost.run_bytes)))
    return false;
  if (*text)
    return false;
  *out = cost;
  return true;
}

// Sets the row's member from `text`; on a fault, keeps it and returns false.
static bool value_set(const struct row *row, const char *text) {
  void *member = (char *)&options + row->offset;
  const char *name = row->info.variable;
  char list[128];
  switch (row->kind) {
  case KIND_TEXT:
  case KIND_SECRET:
  case KIND_PATH: {
    const char *copy = pool_copy(text);
    if (!copy) {
      fault_keep(SDG_E_OPTION_VALUE, "%s is too long (%zu bytes, at most %d)",
                 name, strlen(text), VALUE_MAX - 1);
      return false;
    }
    *(const char **)member = copy;
    return true;
  }
  case KIND_COUNT:
    if (*text == '\0')
      return *(int *)member = -1, true;
    if (count_parse(text, member))
      return true;
    fault_keep(SDG_E_OPTION_VALUE, "%s=%s is not a whole number from 0 up",
               name, text);
    return false;
  case KIND_SECONDS:
    if (seconds_parse(text, member))
      return true;
    fault_keep(SDG_E_OPTION_VALUE, "%s=%s is not a number of seconds above 0",
               name, text);
    return false;
  case KIND_BOOL:
    if (bool_parse(text, member))
      return true;
    fault_keep(SDG_E_OPTION_VALUE, "%s=%s is neither yes nor no", name, text);
    return false;
  case KIND_CHOICE: {
    int index = sdg_word_index(row->info.words, text, strlen(text));
    if (index >= 0)
      return *(int *)member = index, true;
    fault_keep(SDG_E_OPTION_VALUE, "%s=%s: it takes %s", name, text,
               words_show(row->info.words, list, sizeof list));
    return false;
  }
  case KIND_COST:
    if (*text == '\0')
      return *(sdg_cost_t *)member = (sdg_cost_t){.copy_bytes_s = 0}, true;
    if (cost_parse(text, member))
      return true;
    fault_keep(SDG_E_OPTION_VALUE,
               "%s=%s is not BYTES,LAUNCH,STRIP,RUN: bytes copied in a second, "
               "above 0, microseconds of a launch and of a strip's "
               "convolution, and bytes of a run, as in 1.3e12,5,42,64",
               name, text);
    return false;
  }
  return false;
}

// Returns the row of the variable that "NAME=value" begins with; NULL if the
// table has no such variable.
static const struct row *row_find(const char *assignment, size_t name_bytes) {
  for (int i = 0; i < SDG_OPTION_COUNT; i++)
    if (strlen(rows[i].info.variable) == name_bytes &&
        memcmp(rows[i].info.variable, assignment, name_bytes) == 0)
      return &rows[i];
  return NULL;
}

static void unknown_keep(const char *assignment, size_t name_bytes) {
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)name_bytes, assignment);
  const char *all[SDG_OPTION_COUNT];
  for (int i = 0; i < SDG_OPTION_COUNT; i++)
    all[i] = rows[i].info.variable;
  fault_keep(SDG_E_OPTION_UNKNOWN, "%s; nearest: %s", name,
             sdg_word_nearest(name, all, SDG_OPTION_COUNT));
}

static bool is_set(sdg_option_t option) {
  return options.origin[option] != SDG_ORIGIN_DEFAULT;
}

// The options that say how something is split. Two of them fit "replicated",
// too: the mesh says how many ranks there are, and either view is true where
// each rank has all of every tensor.
static const struct {
  sdg_option_t option;
  bool fits_replicated;
} dependent[] = {
    {SDG_OPTION_MESH, true},          {SDG_OPTION_VIEW, true},
    {SDG_OPTION_PARTS, false},        {SDG_OPTION_STRATEGY, false},
    {SDG_OPTION_WRAP, false},         {SDG_OPTION_WINDOW, false},
    {SDG_OPTION_PIECE_VALUES, false},
};

// Checks conditions between several options.
static void together_check(void) {
  bool rules = is_set(SDG_OPTION_RULES), split = is_set(SDG_OPTION_SPLIT);
  bool replicated = split && sdg_options_replicated(&options);
  if (rules || (split && !replicated))
    options.asked = true;
  if (rules && split)
    fault_keep(SDG_E_OPTION_CONFLICT,
               "SUNDOG_RULES and SUNDOG_SPLIT exclude each other");
  for (size_t i = 0; i < sizeof dependent / sizeof *dependent; i++) {
    sdg_option_t option = dependent[i].option;
    if (rules || (split && !replicated) || !is_set(option) ||
        (replicated && dependent[i].fits_replicated))
      continue;
    options.asked = true;
    fault_keep(SDG_E_OPTION_CONFLICT,
               replicated ? "%s is set but SUNDOG_SPLIT=replicated splits "
                            "nothing: unset one of them"
                          : "%s is set but nothing is split: SUNDOG_SPLIT or "
                            "SUNDOG_RULES is missing",
               rows[option].info.variable);
  }
  if (options.parameters == SDG_PARAMETERS_RANK0 &&
      options.compare == SDG_COMPARING_OFF)
    fault_keep(SDG_E_OPTION_CONFLICT,
               "SUNDOG_PARAMETERS=rank0 copies values that differ, but "
               "SUNDOG_COMPARE=off compares none");
  if (is_set(SDG_OPTION_RANK) != is_set(SDG_OPTION_SIZE))
    fault_keep(SDG_E_OPTION_CONFLICT, "%s is set without %s",
               is_set(SDG_OPTION_RANK) ? "SUNDOG_RANK" : "SUNDOG_SIZE",
               is_set(SDG_OPTION_RANK) ? "SUNDOG_SIZE" : "SUNDOG_RANK");
  else if (is_set(SDG_OPTION_RANK) && options.rank >= options.size)
    fault_keep(SDG_E_OPTION_CONFLICT,
               "SUNDOG_RANK=%d is not below SUNDOG_SIZE=%d", options.rank,
               options.size);
}

static void defaults_set(void) {
  memset(&options, 0, sizeof options);
  pool_used = 0;
  fault_status = SDG_OK;
  fault_text[0] = '\0';
  for (int i = 0; i < SDG_OPTION_COUNT; i++)
    value_set(&rows[i], rows[i].info.fallback);
}

uint32_t sdg_option_mark(const char *value) {
  uint64_t hash = sdg_hash_text(SDG_HASH_SEED, value);
  return (uint32_t)(hash ^ (hash >> 32));
}

const char *sdg_origin_name(sdg_origin_t origin) {
  static const char *const names[SDG_ORIGIN_COUNT] = {
      [SDG_ORIGIN_DEFAULT] = "default",
      [SDG_ORIGIN_ENVIRONMENT] = "environment",
      [SDG_ORIGIN_ARGUMENT] = "argument",
      [SDG_ORIGIN_COMMAND] = "command",
  };
  return names[origin];
}

// Corrects the origin of an option that the environment has because a command
// put it there. The last word about an option counts.
static void origin_note(const struct row *row, const char *value) {
  const char *name = row->info.variable + strlen("SUNDOG_");
  size_t bytes = strlen(name);
  for (const char *at = options.origins; *at;) {
    size_t length = strcspn(at, " ");
    if (length == bytes + 9 && memcmp(at, name, bytes) == 0 &&
        strchr("=+", at[bytes]))
      options.origin[row - rows] =
          strtoul(at + bytes + 1, NULL, 16) != sdg_option_mark(value)
              ? SDG_ORIGIN_ENVIRONMENT
          : at[bytes] == '=' ? SDG_ORIGIN_ARGUMENT
                             : SDG_ORIGIN_COMMAND;
    at += length + strspn(at + length, " ");
  }
}

// Returns the table's row of NAME=value; NULL if it has none, or no value.
static const struct row *assigned(const char *assignment,
                                  const char **out_value) {
  size_t name_bytes = strcspn(assignment, "=");
  *out_value = assignment + name_bytes + 1;
  return assignment[name_bytes] && **out_value
             ? row_find(assignment, name_bytes)
             : NULL;
}

static void origins_note(char *const *environment) {
  for (; *options.origins && *environment; environment++) {
    const char *value;
    const struct row *row = assigned(*environment, &value);
    if (row)
      origin_note(row, value);
  }
}

sdg_status_t sdg_options_load(char *const *environment) {
  char *const *all = environment;
  defaults_set();
  for (; environment && *environment; environment++) {
    const char *assignment = *environment;
    if (strncmp(assignment, "SUNDOG_", 7) != 0)
      continue;
    size_t name_bytes = strcspn(assignment, "=");
    if (assignment[name_bytes] == '\0')
      continue; // not an assignment
    const struct row *row = row_find(assignment, name_bytes);
    if (!row) {
      options.asked = true;
      unknown_keep(assignment, name_bytes);
      continue;
    }
    const char *value = assignment + name_bytes + 1;
    // Also for an option with a fault, so that a split that was asked for
    // wrongly still counts as asked for.
    if (*value) {
      options.origin[row - rows] = SDG_ORIGIN_ENVIRONMENT;
      value_set(row, value);
    }
  }
  if (all)
    origins_note(all);
  together_check();
  // The pieces of many ranks in one process: nothing is split.
  if (is_set(SDG_OPTION_CUTS))
    options.asked = false;
  options.observing = is_set(SDG_OPTION_TRACE) || is_set(SDG_OPTION_RECORD) ||
                      is_set(SDG_OPTION_VALUES) || is_set(SDG_OPTION_INSPECT);
  return fault_status;
}

const sdg_options_t *sdg_options_get(void) {
  // Before the first load (unit tests of other modules) the defaults apply.
  if (!options.rules)
    defaults_set();
  return &options;
}

sdg_status_t sdg_options_fault(void) {
  if (fault_status == SDG_OK)
    return SDG_OK;
  return sdg_fail(fault_status, "%s", fault_text);
}

const char *sdg_options_fault_text(void) {
  return fault_text;
}

bool sdg_options_asked(const sdg_options_t *of) {
  return of->asked;
}

bool sdg_options_replicated(const sdg_options_t *of) {
  return strcmp(of->split, "replicated") == 0;
}

const sdg_option_info_t *sdg_option_at(unsigned index) {
  return index < SDG_OPTION_COUNT ? &rows[index].info : NULL;
}

sdg_comparing_t sdg_options_comparing(void) {
  const sdg_options_t *set = sdg_options_get();
  return set->check ? SDG_COMPARING_ALWAYS : (sdg_comparing_t)set->compare;
}
