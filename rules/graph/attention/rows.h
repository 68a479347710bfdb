/* SPDX-License-Identifier: Apache-2.0 */
/* Pointwise ops on rows of numbers, as a graph of cuDNN that is one kernel.
 * Inside rules/graph only.
 *
 * All tensors have the same rows. They are packed: cuDNN 9.19 takes pointwise
 * ops of three dimensions row-major, and of four as NHWC only. */
#ifndef SDG_RULES_GRAPH_ATTENTION_ROWS_H
#define SDG_RULES_GRAPH_ATTENTION_ROWS_H

#include <cudnn.h>

#include "rules/kit/subcall.h"

typedef struct sdg_rows_tensor {
  sdg_type_t type;
  bool column;   /* one number for each row */
  int slab;      /* -1: between two ops only, in float */
  sdg_box_t box; /* packed in its slab */
  bool by_value; /* a number for all, in float: `value` */
  float value;
} sdg_rows_tensor_t;

/* y = mode(x, b), computed in float; b -1: none. Indexes of tensors. */
typedef struct sdg_rows_op {
  cudnnPointwiseMode_t mode;
  int x, b, y;
} sdg_rows_op_t;

enum { SDG_ROWS_TENSORS = 16, SDG_ROWS_OPS = 12 };
typedef struct sdg_rows {
  int64_t rows, columns;
  int tensors, ops;
  sdg_rows_tensor_t tensor[SDG_ROWS_TENSORS];
  sdg_rows_op_t op[SDG_ROWS_OPS];
} sdg_rows_t;

/* Adds the step that computes them. A tensor may be read and written: each
 * element is read before it is written. *io_refusal becomes cuDNN's status if
 * no engine takes them. SDG_E_NO_MEMORY. */
sdg_status_t sdg_rows_add(sdg_plan_t *plan, const sdg_call_t *call,
                          const sdg_rows_t *rows,
                          int *io_refusal) SDG_MUST_CHECK;

#endif
