// SPDX-License-Identifier: Apache-2.0
// `sundog compare`: two runs side by side, before and after a change.
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/log.h"
#include "tools/command.h"
#include "tools/record/recorded.h"
#include "tools/report/facts.h"
#include "tools/report/output.h"

typedef struct compare {
  const char *path[2];
  int paths;
} compare_t;

static error_t compare_parse(int key, char *argument,
                             struct argp_state *state) {
  compare_t *compare = state->input;
  switch (key) {
  case ARGP_KEY_ARG:
    if (compare->paths == 2)
      argp_error(state, "two reports, not more");
    compare->path[compare->paths++] = argument;
    return 0;
  case ARGP_KEY_END:
    if (compare->paths < 2)
      argp_error(state, "two reports are needed");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp compare_argp = {
    .parser = compare_parse,
    .args_doc = "A B",
    .doc =
        "Compares two recorded runs, as before and after a change of rules: "
        "what moved, and what took longer. A and B are folders of `sundog "
        "run --record`, or files of `sundog report`: pages or JSON.\v"
        "  sundog run --record before -n 4 --split H --view whole -- ./solver\n"
        "  sundog run --record after -n 4 --split W --view whole -- ./solver\n"
        "  sundog compare before after"};

// What both runs have of one thing.
typedef struct pair {
  char name[RECORDED_NAME_BYTES];
  int64_t calls[2], received_bytes[2], device_ns[2], host_ns[2];
  bool there[2];
  bool by_host[2]; // some calls have no time of the device
} pair_t;

typedef struct pairs {
  int count;
  pair_t *pair; // room for all kinds of both reports; owned
} pairs_t;

static void kind_add(pairs_t *pairs, const json_t *kind, int side) {
  const char *entry = recorded_text(kind, "entry");
  pair_t *pair = pairs->pair;
  while (pair < pairs->pair + pairs->count && strcmp(pair->name, entry) != 0)
    pair++;
  if (pair == pairs->pair + pairs->count) {
    *pair = (pair_t){.there = {false}};
    snprintf(pair->name, sizeof pair->name, "%s", entry);
    pairs->count++;
  }
  int64_t device_ns = recorded_number(kind, "device_ns");
  pair->there[side] = true;
  pair->calls[side] += recorded_number(kind, "all_calls");
  pair->received_bytes[side] += recorded_number(kind, "received_bytes");
  pair->device_ns[side] += device_ns;
  pair->host_ns[side] += recorded_number(kind, "host_ns");
  pair->by_host[side] |= device_ns == 0 && recorded_number(kind, "all_calls");
}

static sdg_status_t pairs_make(json_t *const *report, pairs_t *out) {
  size_t room = 1, index;
  json_t *kind;
  for (int side = 0; side < 2; side++)
    room += json_array_size(json_object_get(report[side], "kinds"));
  *out = (pairs_t){.pair = calloc(room, sizeof(pair_t))};
  if (!out->pair)
    return sdg_fail(SDG_E_NO_MEMORY, "two reports");
  for (int side = 0; side < 2; side++)
    json_array_foreach(json_object_get(report[side], "kinds"), index, kind)
        kind_add(out, kind, side);
  return SDG_OK;
}

static void cell_set(struct libscols_line *line, size_t column,
                     const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void cell_set(struct libscols_line *line, size_t column,
                     const char *format, ...) {
  char text[64];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  scols_line_set_data(line, column, text);
}

// "+12 %"; "" if both are equal or the first is 0.
static void change_set(struct libscols_line *line, size_t column, double a,
                       double b) {
  if (a > 0 && a != b)
    cell_set(line, column, "%+.0f %%", 100 * (b - a) / a);
}

static struct libscols_table *table_make(const char *const *columns,
                                         int count) {
  struct libscols_table *table = scols_new_table();
  for (int c = 0; c < count; c++)
    scols_table_new_column(table, columns[c], 0, c ? SCOLS_FL_RIGHT : 0);
  return table;
}

static void row_add(struct libscols_table *table, const char *name,
                    const char *format, double a, double b) {
  struct libscols_line *line = scols_table_new_line(table, NULL);
  char text[2][64];
  if (!line)
    return;
  const double value[2] = {a, b};
  scols_line_set_data(line, 0, name);
  for (size_t side = 0; side < 2; side++) {
    // A count, of bytes or ranks, seconds or per cent.
    if (strcmp(format, "count") == 0)
      snprintf(text[side], sizeof text[side], "%.0f", value[side]);
    else if (strcmp(format, "seconds") == 0)
      snprintf(text[side], sizeof text[side], "%.3f", value[side]);
    else
      snprintf(text[side], sizeof text[side], "%.0f %%", 100 * value[side]);
    scols_line_set_data(line, 1 + side, text[side]);
  }
  if (strcmp(format, "share") != 0)
    change_set(line, 3, a, b);
}

// On average, of the ranks that have times of their streams, if any have.
static double wait_share(const json_t *report) {
  size_t index;
  json_t *rank;
  int all = 0, timed = 0;
  double sum = 0, timed_sum = 0;
  json_array_foreach(json_object_get(report, "ranks"), index, rank) {
    double share = json_number_value(json_object_get(rank, "wait_share"));
    bool has_times = json_integer_value(json_object_get(rank, "device_ns")) > 0;
    all++;
    sum += share;
    timed += has_times;
    timed_sum += has_times ? share : 0;
  }
  return timed ? timed_sum / timed : all ? sum / all : 0;
}

static double ranks_sum(const json_t *report, const char *name) {
  size_t index;
  json_t *rank;
  double sum = 0;
  json_array_foreach(json_object_get(report, "ranks"), index, rank) sum +=
      (double)recorded_number(rank, name);
  return sum;
}

static void whole_print(json_t *const *report) {
  static const char *const columns[] = {"", "A", "B", "CHANGE"};
  static const char *const causes[] = {
      "halo", "attention", "product", "gather", "parameters", "redistribution"};
  struct libscols_table *table = table_make(columns, 4);
  const json_t *facts[2], *received[2];
  for (int side = 0; side < 2; side++) {
    facts[side] = json_object_get(report[side], "facts");
    received[side] = json_object_get(report[side], "received");
  }
  row_add(table, "ranks", "count", (double)recorded_number(facts[0], "ranks"),
          (double)recorded_number(facts[1], "ranks"));
  row_add(table, "seconds", "seconds",
          json_number_value(json_object_get(facts[0], "seconds")),
          json_number_value(json_object_get(facts[1], "seconds")));
  row_add(table, "waiting", "share", wait_share(report[0]),
          wait_share(report[1]));
  row_add(table, "received bytes", "count",
          ranks_sum(report[0], "received_bytes"),
          ranks_sum(report[1], "received_bytes"));
  for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
    char name[64];
    double a = (double)recorded_number(received[0], causes[i]),
           b = (double)recorded_number(received[1], causes[i]);
    snprintf(name, sizeof name, "  %s", causes[i]);
    if (a > 0 || b > 0)
      row_add(table, name, "count", a, b);
  }
  row_add(table, "sums' bytes", "count", ranks_sum(report[0], "sum_bytes"),
          ranks_sum(report[1], "sum_bytes"));
  scols_print_table(table);
  scols_unref_table(table);
}

// One clock for all calls of an entry: the device's, or that of the host, which
// does not tell how long the device took.
static int64_t time_ns(const pair_t *pair, size_t side) {
  return pair->by_host[side] ? pair->host_ns[side] : pair->device_ns[side];
}

static void times_set(struct libscols_line *line, const pair_t *pair) {
  for (size_t side = 0; side < 2; side++)
    if (pair->there[side])
      cell_set(line, 5 + side, "%.2f%s", (double)time_ns(pair, side) / 1e6,
               pair->by_host[side] ? " host" : "");
  if (pair->there[0] && pair->there[1] && pair->by_host[0] == pair->by_host[1])
    change_set(line, 7, (double)time_ns(pair, 0), (double)time_ns(pair, 1));
}

static void kinds_print(const pairs_t *pairs) {
  static const char *const columns[] = {"CALL",    "CALLS A", "CALLS B",
                                        "BYTES A", "BYTES B", "MS A",
                                        "MS B",    "CHANGE"};
  struct libscols_table *table = table_make(columns, 8);
  for (int i = 0; i < pairs->count; i++) {
    const pair_t *pair = &pairs->pair[i];
    struct libscols_line *line = scols_table_new_line(table, NULL);
    if (!line)
      continue;
    scols_line_set_data(line, 0, pair->name);
    for (size_t side = 0; side < 2; side++) {
      if (!pair->there[side])
        continue;
      cell_set(line, 1 + side, "%" PRId64, pair->calls[side]);
      cell_set(line, 3 + side, "%" PRId64, pair->received_bytes[side]);
    }
    times_set(line, pair);
  }
  printf("\n");
  scols_print_table(table);
  scols_unref_table(table);
}

// ---- runs that do not compare ----------------------------------------------

// A damaged report may have anything in place of a word.
static const char *word_at(const json_t *words, size_t index) {
  const char *word = json_string_value(json_array_get(words, index));
  return word ? word : "?";
}

static char *words_join(const json_t *words) {
  size_t count = json_array_size(words), bytes = 1;
  for (size_t i = 0; i < count; i++)
    bytes += strlen(word_at(words, i)) + 1;
  char *text = calloc(1, bytes), *at = text;
  for (size_t i = 0; i < count && text; i++)
    at = stpcpy(stpcpy(at, i ? " " : ""), word_at(words, i));
  return text;
}

static const char *program_of(const json_t *facts) {
  const char *path =
      json_string_value(json_array_get(json_object_get(facts, "command"), 0));
  const char *slash = path ? strrchr(path, '/') : NULL;
  return slash ? slash + 1 : path ? path : "";
}

static void commands_check(const compare_t *compare, json_t *const *facts) {
  const char *a = compare->path[0], *b = compare->path[1];
  const json_t *words[2] = {json_object_get(facts[0], "command"),
                            json_object_get(facts[1], "command")};
  if (strcmp(program_of(facts[0]), program_of(facts[1])) != 0) {
    sdg_log("%s and %s are of different programs: %s and %s", a, b,
            program_of(facts[0]), program_of(facts[1]));
  } else if (!json_equal(words[0], words[1])) {
    char *text[2] = {words_join(words[0]), words_join(words[1])};
    sdg_log("%s and %s are of different command lines: bytes and times compare "
            "only if both did the same work: %s; %s",
            a, b, text[0] ? text[0] : "", text[1] ? text[1] : "");
    free(text[0]);
    free(text[1]);
  }
}

// Says what else changed than what is to be compared.
static void differences_print(const compare_t *compare, json_t *const *report) {
  const char *a = compare->path[0], *b = compare->path[1];
  json_t *facts[2];
  for (int side = 0; side < 2; side++) {
    facts[side] = json_object_get(report[side], "facts");
    facts_faults_print(compare->path[side],
                       json_object_get(facts[side], "faults"));
  }
  commands_check(compare, facts);
  if (recorded_number(facts[0], "ranks") != recorded_number(facts[1], "ranks"))
    sdg_log("%s and %s are of %d and %d ranks", a, b,
            (int)recorded_number(facts[0], "ranks"),
            (int)recorded_number(facts[1], "ranks"));
  if (!json_equal(json_object_get(facts[0], "hosts"),
                  json_object_get(facts[1], "hosts")))
    sdg_log("%s and %s ran on different machines: times do not compare", a, b);
  if (strcmp(recorded_text(facts[0], "version"),
             recorded_text(facts[1], "version")) != 0)
    sdg_log("%s and %s were recorded by sundog %s and %s", a, b,
            recorded_text(facts[0], "version"),
            recorded_text(facts[1], "version"));
}

int command_compare(int argc, char **argv) {
  compare_t compare = {.paths = 0};
  json_t *report[2] = {NULL, NULL};
  pairs_t pairs = {.count = 0};
  argp_parse(&compare_argp, argc, argv, 0, NULL, &compare);
  sdg_status_t status = output_load(compare.path[0], &report[0]);
  if (status == SDG_OK)
    status = output_load(compare.path[1], &report[1]);
  if (status == SDG_OK)
    status = pairs_make(report, &pairs);
  if (status == SDG_OK) {
    scols_init_debug(0);
    differences_print(&compare, report);
    whole_print(report);
    kinds_print(&pairs);
  }
  free(pairs.pair);
  json_decref(report[0]);
  json_decref(report[1]);
  return command_exit(status);
}
