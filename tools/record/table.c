// SPDX-License-Identifier: Apache-2.0
// Prints the table of `sundog run -v`.
#include "tools/record/table.h"

#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 80, RULE_BYTES = 16 + 1, TOGETHER = 3 };

// A column of numbers: a field of the row, and its format.
typedef struct column {
  char name[SDG_AXIS_NAME_MAX + 16];
  size_t offset; // offset of the int64_t in table_row_t
  double unit;
  const char *format;
  bool always; // printed even if it is 0 in all rows
} column_t;

#define MEGA 1e6
#define GIGA 1e9

static int64_t value_of(const table_row_t *row, const column_t *column) {
  return *(const int64_t *)((const char *)row + column->offset);
}

static int64_t sum_of(const call_table_t *table, const column_t *column) {
  int64_t sum = 0;
  for (int i = 0; i < table->rows; i++)
    sum += value_of(&table->row[i], column);
  return sum;
}

static void number_set(struct libscols_line *line, size_t cell,
                       const column_t *column, int64_t value) {
  char text[64];
  snprintf(text, sizeof text, column->format, (double)value / column->unit);
  scols_line_set_data(line, cell, text);
}

// Returns whether some column of the row is always printed or not 0.
static bool row_shows(const table_row_t *row, const column_t *columns,
                      int count) {
  for (int c = 0; c < count; c++)
    if (columns[c].always || value_of(row, &columns[c]) != 0)
      return true;
  return false;
}

// Prints the rows by rule, entry and optionally strategy, with these columns,
// and a last row of sums.
static void part_print(const call_table_t *table, bool with_strategy,
                       const column_t *columns, int count) {
  struct libscols_table *out = scols_new_table();
  if (!out)
    return;
  scols_table_set_stream(out, stderr);
  scols_table_set_termforce(out, SCOLS_TERMFORCE_ALWAYS);
  scols_table_set_termwidth(out, WIDTH);
  scols_table_new_column(out, "RULE", 0, 0);
  scols_table_new_column(out, "ENTRY", 0, SCOLS_FL_TRUNC);
  if (with_strategy)
    scols_table_new_column(out, "STRATEGY", 0, 0);
  for (int c = 0; c < count; c++)
    if (columns[c].always || sum_of(table, &columns[c]) != 0)
      scols_table_new_column(out, columns[c].name, 0, SCOLS_FL_RIGHT);
  for (int i = 0; i <= table->rows; i++) {
    const table_row_t *row = i < table->rows ? &table->row[i] : NULL;
    if (row && !row_shows(row, columns, count))
      continue;
    struct libscols_line *line = scols_table_new_line(out, NULL);
    if (!line)
      break;
    size_t cell = 2;
    char rule[RULE_BYTES];
    snprintf(rule, sizeof rule, "%s", row ? row->rule : "total");
    scols_line_set_data(line, 0, rule);
    scols_line_set_data(line, 1, row ? row->entry : "");
    if (with_strategy)
      scols_line_set_data(line, cell++, row ? row->strategy : "");
    for (int c = 0; c < count; c++) {
      int64_t sum = sum_of(table, &columns[c]);
      if (columns[c].always || sum != 0)
        number_set(line, cell++, &columns[c],
                   row ? value_of(row, &columns[c]) : sum);
    }
  }
  scols_print_table(out);
  scols_unref_table(out);
}

static void calls_print(const call_table_t *table) {
  // Megabytes with six decimals are exact to the byte.
  static const column_t columns[] = {
      {"CALLS", offsetof(table_row_t, count), 1, "%.0f", true},
      {"HALO MB", offsetof(table_row_t, halo_bytes), MEGA, "%.6f", true},
      {"WAIT s", offsetof(table_row_t, wait_ns), GIGA, "%.3f", true},
  };
  fprintf(
      stderr,
      "sundog: %" PRId64 " tagged calls of all ranks. CALLS are those of one "
      "rank, WAIT is\nthat of the rank that waited longest, MB are what all "
      "ranks received:\n",
      table->matched);
  part_print(table, true, columns, sizeof columns / sizeof *columns);
}

// With one axis, its bytes are all halos and sums.
static void sums_print(const call_table_t *table) {
  column_t columns[1 + SDG_AXES_MAX] = {
      {"SUMS MB", offsetof(table_row_t, sum_bytes), MEGA, "%.6f", false}};
  int count = 1;
  for (int i = 0; table->axes > 1 && i < table->axes; i++) {
    columns[count] = (column_t){.offset = offsetof(table_row_t, axis_bytes) +
                                          (size_t)i * sizeof(int64_t),
                                .unit = MEGA,
                                .format = "%.6f"};
    snprintf(columns[count].name, sizeof columns[count].name, "%s MB",
             table->axis[i]);
    count++;
  }
  int64_t shown = 0;
  for (int c = 0; c < count; c++)
    shown += sum_of(table, &columns[c]);
  if (shown == 0)
    return;
  fprintf(stderr, count == 1 ? "sundog: results of sums over ranks:\n"
                             : "sundog: results of sums over ranks; halos and "
                               "sums along each axis:\n");
  // Names of axes may be long, so only TOGETHER columns fit in a line.
  for (int c = 0; c < count; c += TOGETHER)
    part_print(table, false, columns + c,
               count - c < TOGETHER ? count - c : TOGETHER);
}

static void copies_print(const call_table_t *table) {
  column_t columns[SDG_COPY_COUNT];
  int64_t copied = 0;
  for (int i = 0; i < SDG_COPY_COUNT; i++) {
    columns[i] = (column_t){.offset = offsetof(table_row_t, copied_bytes) +
                                      (size_t)i * sizeof(int64_t),
                            .unit = MEGA,
                            .format = "%.6f"};
    snprintf(columns[i].name, sizeof columns[i].name, "%s MB",
             sdg_copy_kind_name((sdg_copy_kind_t)i));
    copied += sum_of(table, &columns[i]);
  }
  if (copied == 0)
    return;
  fprintf(
      stderr,
      "sundog: copies in device memory, of halos, strips and whole pieces:\n");
  part_print(table, false, columns, SDG_COPY_COUNT);
}

void call_table_print(const call_table_t *table) {
  scols_init_debug(0);
  calls_print(table);
  sums_print(table);
  copies_print(table);
  if (table->compared > 0)
    fprintf(stderr,
            "sundog: values compared before %" PRId64
            " calls: %.6f MB of a rank read in %.6f s\n",
            table->compared, (double)table->compared_bytes / MEGA,
            (double)table->compared_ns / GIGA);
}

void call_table_free(call_table_t *table) {
  for (int i = 0; i < table->rows; i++) {
    free(table->row[i].rule);
    free(table->row[i].entry);
    free(table->row[i].strategy);
  }
  free(table->row);
}
