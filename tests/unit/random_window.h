/* SPDX-License-Identifier: Apache-2.0 */
/* Random windows and parts. */
#ifndef SDG_TESTS_UNIT_RANDOM_WINDOW_H
#define SDG_TESTS_UNIT_RANDOM_WINDOW_H

#include "rules/window/window.h"
#include "tests/unit/random.h"

enum {
  CASES = 100000, /* of one dimension; about 4.5 ranks each */
  RANKS = 27,
};

static inline sdg_window_t random_window(int64_t kernel_max) {
  sdg_window_t w = {
      .kernel = random_in(1, kernel_max),
      .stride = random_in(1, 5),
      .dilation = random_in(1, 4),
  };
  w.pad = random_in(0, 2) ? random_in(0, w.kernel * w.dilation)
                          : w.dilation * (w.kernel - 1) / 2;
  return w;
}

static inline sdg_part_t random_part(int64_t extent, int pieces) {
  int64_t sizes[RANKS];
  sdg_part_t part;
  random_sizes(extent, pieces, sizes);
  REQUIRE(sdg_part_from_sizes(pieces, sizes, &part) == SDG_OK);
  return part;
}

/* Returns how many outputs fit, by trying. */
static inline int64_t outputs_naive(const sdg_window_t *w, int64_t n) {
  int64_t count = 0;
  while (count * w->stride - w->pad + (w->kernel - 1) * w->dilation <
         n + w->pad)
    count++;
  return count;
}

#endif
