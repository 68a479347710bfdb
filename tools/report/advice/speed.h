/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the ranks compute, from the times of equal work. */
#ifndef SDG_TOOLS_REPORT_ADVICE_SPEED_H
#define SDG_TOOLS_REPORT_ADVICE_SPEED_H

#include "tools/report/advice/cut.h"

typedef struct speed {
  int64_t calls; /* of each rank, that are compared */
  /* Indexed like recorded_t.rank. Times: medians, times the number of calls. */
  double took_ns[SDG_RANKS_MAX];
  /* How many times as long as most ranks this one takes for an element: 1,
   * unless the difference is beyond noise. */
  double factor[SDG_RANKS_MAX];
  int slow; /* ranks whose factor is above 1 */
  int fast; /* below 1 */
} speed_t;

/* Compares the times of the real function in calls of the same kind: same
 * entry, section, window and whole extents. A rank stands out if it takes
 * longer for the same work than more than half of the others: by a fifth (on
 * the host device, a half), in the median of all calls and, by a bit less, in
 * each quarter of the run and in the first decile, and so that the times of its
 * middle calls do not overlap theirs. Ranks whose pieces differ by more than a
 * factor of two are not compared with each other: a small piece may take longer
 * for an element because of what each call costs, and a large one because of
 * caches. Returns false if too few calls have times. */
bool speed_find(const cut_t *cut, speed_t *out);

#endif
