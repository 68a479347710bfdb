/* SPDX-License-Identifier: Apache-2.0 */
/* SUNDOG_VALUES: the outputs of a process's first calls of cuDNN and products
 * of matrices, for `sundog verify --calls`. Records the first thread that makes
 * calls. A matrix has three dimensions here; the first is the batch. */
#ifndef SDG_RULES_OBSERVE_VALUES_H
#define SDG_RULES_OBSERVE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/place/op.h"

/* The header of one output; its elements follow, dense and row-major. */
typedef struct sdg_values_head {
  uint64_t magic;
  uint64_t bytes;  /* of the elements */
  int64_t ordinal; /* the call's number among all calls with tensors, from 1 */
  int64_t call;    /* the number used in messages; 0 if it has none */
  int32_t
      operand; /* its index in the call, because several may have one role */
  int32_t role, type, dims, elem_bytes;
  int32_t unused;                             /* 0 */
  int64_t lo[SDG_DIMS_MAX], hi[SDG_DIMS_MAX]; /* global indices */
  char entry[80];
} sdg_values_head_t;
#define SDG_VALUES_MAGIC UINT64_C(0x7364672d76616c32) /* "sdg-val2" */

/* True if the option is set. */
bool sdg_values_wanted(void);

/* The same for this call; false for redistributions, whose result has no single
 * place. */
bool sdg_values_wanted_of(const sdg_call_t *call);

/* Counts a call that is not a query. */
void sdg_values_begin(const sdg_call_t *call);
/* Where the outputs of calls with this tagging lie; owned by the caller, NULL
 * if nothing is recorded. */
sdg_box_t *sdg_values_boxes(const sdg_call_t *call,
                            const sdg_tagging_t *tagging);
/* The outputs of the call that was begun are to be recorded when it ends. Those
 * of functions are not: the run on one rank does not capture functions.
 * `boxes` NULL: they are whole tensors. */
void sdg_values_expect(const sdg_call_t *call, const sdg_box_t *boxes);
bool sdg_values_expected(void);
/* The call has ended: reads its outputs, which waits for the device, and writes
 * them to <SUNDOG_VALUES>/values-RANK. */
void sdg_values_take(void);
/* The call failed. */
void sdg_values_forget(void);
/* In a forked child: records nothing. Allocates nothing and does not wait. */
void sdg_values_drop(void);

/* The device is about to be reset. */
void sdg_values_reset(void);

#endif
