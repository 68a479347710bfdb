/* SPDX-License-Identifier: Apache-2.0 */
/* Random operation graphs for the planners: a convolution of any kind, with
 * pointwise operations before and behind it, and sums at its end; and graphs
 * that no engine takes. */
#ifndef SDG_TESTS_HOST_PLANNER_DRAW_H
#define SDG_TESTS_HOST_PLANNER_DRAW_H

#include "tests/host/cudnn/compute/made.h"

/* A seed gives the same graph on every machine. Its tensors have no memory. The
 * caller destroys it by made_destroy(). */
void planner_draw(made_t *m, uint64_t seed);

#endif
