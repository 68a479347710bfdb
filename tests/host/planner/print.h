/* SPDX-License-Identifier: Apache-2.0 */
/* Prints random operation graphs, a line each: what the host device says of it
 * ("taken", or the rule that it breaks), a tab, and the graph as a plan's JSON.
 */
#ifndef SDG_TESTS_HOST_PLANNER_PRINT_H
#define SDG_TESTS_HOST_PLANNER_PRINT_H

#include "tests/host/cudnn/compute/made.h"

typedef void planner_draw_t(made_t *m, uint64_t seed);

/* A program's main: PROGRAM SEED COUNT draws COUNT graphs. Returns its status.
 */
int planner_print(int argc, char **argv, planner_draw_t *draw);

#endif
