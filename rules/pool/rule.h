/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling on split tensors: plans and queries. Inside rules/ only. */
#ifndef SDG_RULES_POOL_RULE_H
#define SDG_RULES_POOL_RULE_H

#include <cudnn.h>

#include "rules/place/op.h"
#include "rules/window/op.h"

/* The pooling descriptor's values. */
typedef struct sdg_pool_parameters {
  int spatial; /* dimensions, 1..SDG_DIMS_MAX - 2 */
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
  int window[SDG_DIMS_MAX], pad[SDG_DIMS_MAX], stride[SDG_DIMS_MAX];
} sdg_pool_parameters_t;
/* SDG_E_ARGUMENT if the vendor's library rejects the descriptor. */
sdg_status_t sdg_pool_parameters(const void *descriptor,
                                 sdg_pool_parameters_t *out) SDG_MUST_CHECK;

/* Creates a descriptor with these values, but with the padding `pad`, which has
 * `spatial` elements. The caller destroys it with sdg_pool_descriptor_destroy.
 * SDG_E_VENDOR_CALL if the vendor's library refuses the values. */
sdg_status_t sdg_pool_descriptor(const sdg_pool_parameters_t *parameters,
                                 const int *pad,
                                 cudnnPoolingDescriptor_t *out) SDG_MUST_CHECK;
/* Destroys such a descriptor; usable as op_destroy() of sub-calls. */
void sdg_pool_descriptor_destroy(void *descriptor);

/* One call, as one rank sees it. */
typedef struct sdg_pool {
  sdg_pool_parameters_t parameters;
  int x, y, dy, dx; /* operand indices, -1 if the entry has none */
  /* True: windows cover the split dimensions. In these, parameters and spec
   * have the full extent, and `local` has the extent of this rank's piece. */
  bool global;
  int local[SDG_DIMS_MAX];
  sdg_window_spec_t spec;
  sdg_window_op_t op;
} sdg_pool_t;

/* Fills operands, parameters and spec. SDG_E_ARGUMENT if an operand is missing,
 * or window, stride or padding are not valid. */
sdg_status_t sdg_pool_read(const sdg_call_t *call,
                           sdg_pool_t *out) SDG_MUST_CHECK;

/* Shard view: windows and strides for agreements (sdg_op_t). See
 * rules/pool/global.c. */
int sdg_pool_sizes(const sdg_call_t *call, int64_t *out);
/* A window is global if it has no padding and is, on every rank, as large as
 * the rank's piece in every split dimension. If all pieces are equal,
 * `window =` of the section decides, SDG_E_WINDOW without it. SDG_E_DISAGREE if
 * windows differ otherwise. */
sdg_status_t sdg_pool_reach(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            const sdg_pool_t *pool,
                            bool *out_global) SDG_MUST_CHECK;
/* Whole view: whether the windows cover every split dimension. */
bool sdg_pool_fills(const sdg_call_t *call, const sdg_tagging_t *tagging,
                    const sdg_pool_t *pool);
/* Makes the windows of `pool`, which sdg_pool_read() has filled, global. */
void sdg_pool_globalize(const sdg_tagging_t *tagging, sdg_pool_t *pool);
/* Gives the outputs of global windows (y, dy) the placement in which every rank
 * has their one element. Otherwise the ranks' elements would count as pieces of
 * an output with as many elements as ranks. SDG_E_OUTPUT_EXTENT if such an
 * output has another extent than 1 on some rank. */
sdg_status_t sdg_pool_place(const sdg_call_t *call,
                            sdg_tagging_t *tagging) SDG_MUST_CHECK;

/* Colocates the other of x and y with `lead` (rules/place/colocate.h). */
sdg_status_t sdg_pool_colocate(struct sdg_colocation *colocation,
                               const sdg_pool_t *pool, int lead) SDG_MUST_CHECK;

/* Fills all of `out`; the caller calls sdg_pool_fini. Depends only on what the
 * ranks agreed on, so it fails on all ranks or on none: SDG_E_ARGUMENT, and the
 * errors of sdg_pool_reach and sdg_window_op_init. */
sdg_status_t sdg_pool_init(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_pool_t *out) SDG_MUST_CHECK;
/* Whole view: fills `out` like sdg_pool_init. *out_can is that of
 * sdg_window_op_init_whole. */
sdg_status_t sdg_pool_init_whole(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging, sdg_pool_t *out,
                                 bool *out_can) SDG_MUST_CHECK;
void sdg_pool_fini(sdg_pool_t *pool);

/* See sdg_op_t: the parts of the op for cudnnPoolingForward. */
sdg_op_plan_t sdg_pool_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_pool_share SDG_MUST_CHECK;
/* Global windows. _can: whether ranks can pool their pieces and then the
 * pieces' results; otherwise every rank needs all of x. _plan: the plan. */
bool sdg_pool_global_can(const sdg_pool_t *pool, const sdg_tagging_t *tagging);
sdg_status_t sdg_pool_global_plan(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  const sdg_pool_t *pool,
                                  sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
