// SPDX-License-Identifier: Apache-2.0
// Compares the numbers of a record with the largest that a run can have.
#include "tools/record/bounds.h"

#include "src/geometry/box.h"

// The largest sum over a rank: JSON readers are exact to 2^53, and sums over
// SDG_RANKS_MAX = 2^10 ranks fit in 64 bits.
static const int64_t SUM_MOST = INT64_C(1) << 52;
// Clocks in ns: 36 years after a start, and the year 2043.
static const int64_t MONOTONIC_MOST = INT64_C(1) << 60,
                     REALTIME_MOST = INT64_C(1) << 61;
// With windows of less than 2^24 elements (formula.c), indices are below 2^62.
static const int64_t EXTENT_MOST = INT64_C(1) << 36;
enum { ELEMENT_BYTES_MOST = 64, THREADS_MOST = 1 << 20 };

// A member that is missing is 0.
static bool is_within(const json_t *object, const char *name, int64_t most) {
  const json_t *member = json_object_get(object, name);
  int64_t number = (int64_t)json_integer_value(member);
  return (!member || json_is_integer(member)) && number >= 0 && number <= most;
}

static bool are_within(const json_t *object, const char *const *name, int names,
                       int64_t most) {
  for (int i = 0; i < names; i++)
    if (!is_within(object, name[i], most))
      return false;
  return true;
}

static bool is_list(const json_t *list, bool (*fits)(const json_t *item)) {
  size_t index;
  json_t *item;
  json_array_foreach(list, index, item) {
    if (!fits(item))
      return false;
  }
  return json_is_array(list);
}

static bool is_text(const json_t *item) {
  return json_is_string(item);
}

static bool is_axis(const json_t *item) {
  return json_is_string(json_object_get(item, "axis")) &&
         is_within(item, "ranks", SDG_RANKS_MAX);
}

static bool is_option(const json_t *item) {
  return json_is_string(json_object_get(item, "name")) &&
         json_is_string(json_object_get(item, "value"));
}

bool bounds_facts(const json_t *facts) {
  return is_list(json_object_get(facts, "command"), is_text) &&
         is_list(json_object_get(facts, "mesh"), is_axis) &&
         is_list(json_object_get(facts, "options"), is_option) &&
         is_within(facts, "monotonic_ns", MONOTONIC_MOST) &&
         is_within(facts, "realtime_ns", REALTIME_MOST) &&
         is_within(facts, "pid", INT32_MAX) &&
         is_within(facts, "size", SDG_RANKS_MAX);
}

// An operand with a placement has lists of equal lengths.
static bool is_operand(const json_t *operand) {
  static const char *const names[] = {"first", "own", "names"};
  const json_t *whole = json_object_get(operand, "whole");
  size_t dims = json_array_size(whole);
  double bytes = (double)recorded_number(operand, "bytes");
  if (!json_is_object(operand) ||
      !is_within(operand, "bytes", ELEMENT_BYTES_MOST))
    return false;
  for (int i = 0; i < 3 && whole; i++)
    if (json_array_size(json_object_get(operand, names[i])) != dims)
      return false;
  if (whole && (dims == 0 || dims > SDG_DIMS_MAX ||
                !is_list(json_object_get(operand, "names"), is_text)))
    return false;
  for (size_t d = 0; d < dims; d++) {
    int64_t all = (int64_t)json_integer_value(json_array_get(whole, d));
    int64_t part[2];
    for (int i = 0; i < 2; i++)
      part[i] = (int64_t)json_integer_value(
          json_array_get(json_object_get(operand, names[i]), d));
    bytes *= (double)all;
    if (all < 0 || all > EXTENT_MOST || part[0] < 0 || part[0] > all ||
        part[1] < 0 || part[1] > all - part[0])
      return false;
  }
  return bytes <= (double)SUM_MOST;
}

static bool is_message(const json_t *message) {
  return is_within(message, "bytes", SUM_MOST) &&
         is_within(message, "rank", SDG_RANKS_MAX - 1);
}

bool bounds_plan(const json_t *line) {
  const json_t *messages = json_object_get(line, "messages");
  return is_list(json_object_get(line, "operands"), is_operand) &&
         (!messages || is_list(messages, is_message)) &&
         is_within(line, "plan", INT32_MAX) &&
         is_within(line, "line", INT32_MAX);
}

bool bounds_call(const json_t *line) {
  static const char *const sums[] = {"call",     "took",   "agreed",
                                     "received", "summed", "copied"};
  return are_within(line, sums, 6, SUM_MOST) &&
         is_within(line, "at", MONOTONIC_MOST) &&
         is_within(line, "by", INT32_MAX) &&
         is_within(line, "thread", THREADS_MOST);
}

bool bounds_phase(const recorded_phase_t *phase) {
  return phase->phase >= 0 && phase->phase < SDG_PHASE_COUNT &&
         phase->at_ns >= 0 && phase->at_ns <= MONOTONIC_MOST &&
         phase->took_ns >= 0 && phase->took_ns <= SUM_MOST &&
         phase->call >= 0 && phase->call <= SUM_MOST;
}

// The sums of rows: count, halo_bytes, sum_bytes, wait_ns, and copies by kind.
static double rows_sum(const json_t *totals, bool *io_within) {
  static const char *const sums[] = {"count", "halo_bytes", "sum_bytes",
                                     "wait_ns"};
  double sum = 0;
  size_t index;
  json_t *row, *copied;
  const char *kind;
  json_array_foreach(json_object_get(totals, "calls"), index, row) {
    *io_within &= are_within(row, sums, 4, SUM_MOST);
    for (int i = 0; i < 4; i++)
      sum += (double)recorded_number(row, sums[i]);
    json_t *copies = json_object_get(row, "copies");
    json_object_foreach(copies, kind, copied) {
      *io_within &= is_within(copies, kind, SUM_MOST);
      sum += (double)recorded_number(copies, kind);
    }
  }
  return sum;
}

bool bounds_totals(const json_t *totals) {
  static const char *const names[] = {"scratch_bytes", "refused", "in_full",
                                      "matched"};
  bool within = json_is_object(totals);
  return rows_sum(totals, &within) <= (double)SUM_MOST && within &&
         are_within(totals, names, 4, SUM_MOST) &&
         is_within(json_object_get(totals, "compared"), "bytes", SUM_MOST);
}

// The bytes of a plan's operands, messages and halo.
static double plan_bytes(const recorded_plan_t *plan) {
  double sum = (double)plan->formula_bytes;
  size_t index, d;
  json_t *item, *extent;
  json_array_foreach(json_object_get(plan->line, "messages"), index, item)
      sum += (double)recorded_number(item, "bytes");
  json_array_foreach(json_object_get(plan->line, "operands"), index, item) {
    double bytes = (double)recorded_number(item, "bytes");
    json_array_foreach(json_object_get(item, "whole"), d, extent) bytes *=
        (double)json_integer_value(extent);
    sum += bytes;
  }
  return sum;
}

bool bounds_rank(const recorded_rank_t *rank) {
  double took = 0, bytes = 0, phases = 0, plans = 0;
  for (int i = 0; i < rank->calls; i++) {
    const recorded_call_t *call = &rank->call[i];
    took += (double)call->took_ns + (double)call->agreed_ns +
            (double)call->device_took_ns + (double)call->wait_ns;
    bytes += (double)call->received_bytes + (double)call->sum_bytes +
             (double)call->copied_bytes;
  }
  for (int i = 0; i < rank->phases; i++)
    phases += (double)rank->phase[i].took_ns;
  for (int i = 0; i < rank->plans; i++)
    plans += plan_bytes(&rank->plan[i]) * (double)(rank->plan[i].calls + 1);
  return took + phases <= (double)SUM_MOST && bytes <= (double)SUM_MOST &&
         plans <= (double)SUM_MOST;
}
