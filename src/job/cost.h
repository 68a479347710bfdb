/* SPDX-License-Identifier: Apache-2.0 */
/* What work costs the devices of the job's ranks. All ranks of a group use the
 * same numbers, so that they choose alike what they compare with them. */
#ifndef SDG_SRC_JOB_COST_H
#define SDG_SRC_JOB_COST_H

#include <stdbool.h>

#include "src/base/options.h"
#include "src/base/status.h"

/* The row of cost.def for a device. */
sdg_cost_t sdg_cost_of(int major, int minor, int bus_bits);

/* Finds this rank's numbers, SUNDOG_COST or the row of the thread's current
 * device, unless an earlier call has. Call it before an agreement.
 * SDG_E_LIBRARY_MISSING, SDG_E_CUDA. */
sdg_status_t sdg_cost_prepare(void) SDG_MUST_CHECK;
/* This rank's numbers; zeros before sdg_cost_prepare. */
sdg_cost_t sdg_cost_mine(void);

/* True for numbers that a rank may have sent: all 0, or those of a device. */
bool sdg_cost_sound(const sdg_cost_t *cost);
/* The slowest of both in every number, and the longer run; zeros if either is.
 * H100 and A100: 0.7e12 bytes, 5 us, 42 us, 64 bytes. */
sdg_cost_t sdg_cost_slowest(const sdg_cost_t *a, const sdg_cost_t *b);

/* Keeps the numbers of the group, which every agreement yields anew. */
void sdg_cost_settle(const sdg_cost_t *cost);
/* The group's numbers; zeros before its first agreement. Thread-safe. */
sdg_cost_t sdg_cost_agreed(void);

#endif
