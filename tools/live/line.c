// SPDX-License-Identifier: Apache-2.0
// Composes the line from what is known of the ranks.
#include "tools/live/line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/geometry/mesh.h"
#include "tools/launch/collect.h"

static const double GAP = 0.1;   // of the time; less is no difference
static const double SAME = 0.03; // of a rate, too

typedef struct line {
  char *text;
  size_t room, used;
  bool full; // something did not fit
} line_t;

// Appends a part. The first one that does not fit ends the line, but is cut if
// the line would be empty.
__attribute__((format(printf, 2, 3))) static void
part_add(line_t *line, const char *format, ...) {
  char part[LINE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  int bytes = vsnprintf(part, sizeof part, format, arguments);
  va_end(arguments);
  if (line->full || bytes < 0)
    return;
  line->full = (size_t)bytes > line->room - line->used;
  if (line->full && line->used > 0)
    return;
  snprintf(line->text + line->used, line->room - line->used + 1, "%s", part);
  line->used = strlen(line->text);
}

// "rank 2", "ranks 0-2, 5" or "all 4 ranks"; the caller frees it. NULL: no
// memory.
static char *who(const bool *is, int size) {
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  if (!out)
    return NULL;
  collect_who(out, is, size);
  return fclose(out) == 0 ? text : NULL;
}

static void who_add(line_t *line, const char *before, const bool *is, int size,
                    const char *after) {
  char *text = who(is, size);
  if (text)
    part_add(line, "%s%s%s", before, text, after);
  free(text);
}

static int count_of(const rates_t *rates, presence_t presence, bool *out_is) {
  int count = 0;
  for (int r = 0; r < rates->size; r++) {
    out_is[r] = rates->rank[r].presence == presence;
    count += out_is[r];
  }
  return count;
}

// ---- numbers ----------------------------------------------------------------

// Three digits, as in 0.12, 1.23, 12.3, 123, 1234.
static void number_write(double number, char *out, size_t bytes) {
  int places = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  snprintf(out, bytes, "%.*f", number < 0.005 ? 0 : places, number);
}

// "750-812", or one number if both are nearly the same: ranks in step are never
// seen at the same call.
static void range_write(double least, double most, char *out, size_t bytes) {
  char low[32], high[32];
  bool same = most - least <= SAME * most;
  number_write(same ? (least + most) / 2 : least, low, sizeof low);
  number_write(most, high, sizeof high);
  if (same)
    snprintf(out, bytes, "%s", low);
  else
    snprintf(out, bytes, "%s-%s", low, high);
}

static void time_add(line_t *line, double seconds) {
  int64_t s = (int64_t)seconds;
  if (s >= 3600)
    part_add(line, ", %" PRId64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60),
             (int)(s % 60));
  else
    part_add(line, ", %d:%02d", (int)(s / 60), (int)(s % 60));
}

// ---- the slowest ranks ------------------------------------------------------

static int double_compare(const void *a, const void *b) {
  double first = *(const double *)a, second = *(const double *)b;
  return (first > second) - (first < second);
}

int line_slowest(const rates_t *rates, bool *out_is) {
  double part[SDG_RANKS_MAX], widest = 0, below = -1;
  int here = 0, count = 0;
  for (int r = 0; r < rates->size; r++)
    if (rates->rank[r].presence == PRESENCE_HERE)
      part[here++] = rates->rank[r].waits_part;
  qsort(part, (size_t)here, sizeof *part, double_compare);
  // The widest gap in the lower half parts those that are waited for from those
  // that wait.
  for (int i = 1; i <= here / 2; i++)
    if (part[i] - part[i - 1] > widest) {
      widest = part[i] - part[i - 1];
      below = part[i - 1];
    }
  for (int r = 0; r < rates->size; r++) {
    out_is[r] = widest >= GAP && rates->rank[r].presence == PRESENCE_HERE &&
                rates->rank[r].waits_part <= below;
    count += out_is[r];
  }
  return count;
}

// ---- kinds of lines ---------------------------------------------------------

// Some ranks have come, and wait for the others.
static void joining_write(line_t *line, const rates_t *rates, int come) {
  bool is[SDG_RANKS_MAX];
  part_add(line, "sundog: %d of %d ranks have joined", come, rates->size);
  int absent = count_of(rates, PRESENCE_ABSENT, is);
  if (absent)
    who_add(line, ", ", is, rates->size,
            absent == 1 ? " has not" : " have not");
  int ended = count_of(rates, PRESENCE_ENDED, is);
  if (ended)
    who_add(line, ", ", is, rates->size,
            ended == 1 ? " has ended" : " have ended");
}

static void rates_write(line_t *line, const rates_t *rates, int here) {
  double least = -1, most = 0, low = 2, high = 0;
  bool is[SDG_RANKS_MAX];
  char text[80];
  for (int r = 0; r < rates->size; r++) {
    const rank_rates_t *rank = &rates->rank[r];
    if (rank->presence != PRESENCE_HERE)
      continue;
    least = least < 0 || rank->calls_s < least ? rank->calls_s : least;
    most = rank->calls_s > most ? rank->calls_s : most;
    low = rank->waits_part < low ? rank->waits_part : low;
    high = rank->waits_part > high ? rank->waits_part : high;
  }
  if (here < rates->size)
    part_add(line, "sundog: %d of %d ranks", here, rates->size);
  else
    part_add(line, "sundog: %d rank%s", here, here == 1 ? "" : "s");
  range_write(least, most, text, sizeof text);
  part_add(line, " x %s calls/s", text);
  if (rates->size > 1) {
    int slowest = line_slowest(rates, is);
    int first = (int)(100 * low + 0.5), last = (int)(100 * high + 0.5);
    if (first == last)
      part_add(line, ", waiting %d%%", first);
    else
      part_add(line, ", waiting %d-%d%%", first, last);
    if (slowest)
      who_add(line, ", slowest ", is, rates->size, "");
    number_write(rates->bytes_s / 1e6, text, sizeof text);
    part_add(line, ", %s MB/s", text);
  }
}

// The ranks here that do not wait (`waits` false) or do, and have reached the
// lowest number among these. Returns the first of them; -1: there is none.
static int place_find(const rates_t *rates, bool waits, bool *out_is,
                      int *out_count) {
  int first = -1;
  for (int r = 0; r < rates->size; r++) {
    const rank_rates_t *rank = &rates->rank[r];
    bool fits = rank->presence == PRESENCE_HERE && rank->waits == waits;
    if (fits && (first < 0 || rank->number < rates->rank[first].number))
      first = r;
  }
  *out_count = 0;
  for (int r = 0; r < rates->size; r++) {
    const rank_rates_t *rank = &rates->rank[r];
    out_is[r] = first >= 0 && rank->presence == PRESENCE_HERE &&
                rank->waits == waits &&
                rank->number == rates->rank[first].number;
    *out_count += out_is[r];
  }
  return first;
}

// Nothing moves: which ranks are waited for, and where.
static void still_write(line_t *line, const rates_t *rates) {
  bool is[SDG_RANKS_MAX];
  int stopped = 0;
  part_add(line, "sundog: no call for %.0f s", rates->still_s);
  for (int r = 0; r < rates->size; r++) {
    is[r] = rates->rank[r].stopped;
    stopped += is[r];
  }
  if (stopped)
    who_add(line, ", ", is, rates->size,
            stopped == 1 ? " is stopped by a signal"
                         : " are stopped by a signal");
  for (int waits = 0; waits < 2; waits++) {
    int count, first = place_find(rates, waits, is, &count);
    if (first < 0)
      continue;
    const rank_rates_t *rank = &rates->rank[first];
    who_add(line, ", ", is, rates->size,
            waits        ? count == 1 ? " waits at" : " wait at"
            : count == 1 ? " is busy since"
                         : " are busy since");
    part_add(line, " call %" PRIu64, rank->number);
    part_add(line, " %s", rank->name);
  }
}

void line_write(const rates_t *rates, double elapsed_s, int width,
                char out[LINE_BYTES]) {
  bool is[SDG_RANKS_MAX];
  line_t line = {.text = out};
  out[0] = '\0';
  if (width <= 0)
    return;
  line.room = width < LINE_BYTES ? (size_t)width : LINE_BYTES - 1;
  int here = count_of(rates, PRESENCE_HERE, is);
  int coming = count_of(rates, PRESENCE_COMING, is);
  int ended = count_of(rates, PRESENCE_ENDED, is);
  if (coming || (here && !rates->known))
    joining_write(&line, rates, here + coming);
  else if (here && rates->still_s >= LINE_STILL_S)
    still_write(&line, rates);
  else if (here)
    rates_write(&line, rates, here);
  else if (ended)
    part_add(&line, "sundog: %d of %d ranks have ended", ended, rates->size);
  else
    part_add(&line, "sundog: no rank has made a tagged call yet");
  time_add(&line, elapsed_s);
}
