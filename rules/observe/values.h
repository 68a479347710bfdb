/* SPDX-License-Identifier: Apache-2.0 */
/* SUNDOG_VALUES: the outputs of a process's first calls of cuDNN and products
 * of matrices, for `sundog verify --calls`. Of the first thread that makes
 * calls. A matrix has three dimensions there, the first of them the batch. */
#ifndef SDG_RULES_OBSERVE_VALUES_H
#define SDG_RULES_OBSERVE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/place/op.h"

/* What precedes the elements, dense and row-major, of one output. */
typedef struct sdg_values_head {
  uint64_t magic;
  uint64_t bytes;  /* of the elements */
  int64_t ordinal; /* of the call among all calls with tensors, from 1 */
  int64_t call;    /* the number that messages have; 0 where there are none */
  int32_t operand; /* its place in the call: several may have one role */
  int32_t role, type, dims, elem_bytes;
  int32_t unused;                             /* 0 */
  int64_t lo[SDG_DIMS_MAX], hi[SDG_DIMS_MAX]; /* global indices */
  char entry[80];
} sdg_values_head_t;
#define SDG_VALUES_MAGIC UINT64_C(0x7364672d76616c32) /* "sdg-val2" */

/* True if the option is set. */
bool sdg_values_wanted(void);

/* The same for this call: what is redistributed has no one place to compare. */
bool sdg_values_wanted_of(const sdg_call_t *call);

/* Counts a call that is not a query. */
void sdg_values_begin(const sdg_call_t *call);
/* Where the outputs of calls with this tagging lie; owned by the caller, NULL
 * if nothing is kept. */
sdg_box_t *sdg_values_boxes(const sdg_call_t *call,
                            const sdg_tagging_t *tagging);
/* The outputs of the call that was begun are to be kept when it is done;
 * `boxes` NULL: they are whole tensors. */
void sdg_values_expect(const sdg_call_t *call, const sdg_box_t *boxes);
bool sdg_values_expected(void);
/* It is done: reads its outputs, waiting for the device, and writes them to
 * <SUNDOG_VALUES>/values-RANK. */
void sdg_values_take(void);
/* It failed. */
void sdg_values_forget(void);
/* In the child of a fork: nothing is kept. No allocation, no wait. */
void sdg_values_drop(void);

/* The device is about to be reset. */
void sdg_values_reset(void);

#endif
