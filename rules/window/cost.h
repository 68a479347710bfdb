/* SPDX-License-Identifier: Apache-2.0 */
/* What repair and extend cost, by a model of three numbers (src/job/cost.h).
 * Repair makes further sub-calls, of strips, and copies little; extend copies
 * the rank's piece. Both send the same messages. That these travel while repair
 * computes is left out: a convolution fills a GPU, so that they hardly do.
 * Inside rules/ only.
 *
 * Example: 64 channels of half numbers, 256 rows of 1024 columns for each rank
 * of an H100, window 3: extend copies 258 rows, 34 MB, in 5 + 26 us; repair
 * makes one more convolution and two copies, 42 + 2 * 5 us. */
#ifndef SDG_RULES_WINDOW_COST_H
#define SDG_RULES_WINDOW_COST_H

#include "rules/window/op.h"
#include "src/job/cost.h"

/* What a rank does for a call. */
typedef struct sdg_window_work {
  int calls;     /* sub-calls of the vendor's library */
  int copies;    /* calls that copy */
  int64_t bytes; /* what they copy */
} sdg_window_work_t;

/* Calls that copy `count` boxes like `box` from or to a tensor that covers
 * `all` with strides like `like`: one for all, if each is one run in memory, as
 * rows in NHWC with one image are; otherwise one for each. Only the part of the
 * box inside `all` counts; 0 if it is empty. */
int sdg_window_copies(const sdg_box_t *box, const sdg_box_t *all,
                      const int64_t *like, int count);

/* In microseconds; `call_us`: a sub-call. */
double sdg_window_work_us(const sdg_window_work_t *work, const sdg_cost_t *cost,
                          double call_us);

/* Counts the work of the rank whose geometry `op` is, with extend or without.
 * False if the rank can compute nothing in place. SDG_E_NO_MEMORY. */
typedef sdg_status_t (*sdg_window_weigh_t)(const void *user,
                                           const sdg_window_op_t *op,
                                           bool extend, sdg_window_work_t *out,
                                           bool *out_can) SDG_MUST_CHECK;

/* Sets op->price if the section leaves the choice to `auto`: what the slowest
 * rank of the tagging needs. Made of agreed numbers only, so it is the same on
 * every rank. A sub-call costs a strip's convolution if every output sees all
 * channels, otherwise a launch. */
sdg_status_t sdg_window_op_weigh(const sdg_tagging_t *tagging,
                                 const sdg_window_spec_t *spec,
                                 sdg_window_weigh_t weigh, const void *user,
                                 sdg_window_op_t *op) SDG_MUST_CHECK;
/* The same for ops that compute y from x, whose strips overwrite. */
sdg_status_t sdg_window_op_weigh_forward(const sdg_call_t *call,
                                         const sdg_tagging_t *tagging,
                                         const sdg_window_spec_t *spec,
                                         sdg_window_op_t *op) SDG_MUST_CHECK;

#endif
