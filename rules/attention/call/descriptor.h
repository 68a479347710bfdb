/* SPDX-License-Identifier: Apache-2.0 */
/* Attention descriptors: reads the program's and creates others. Inside rules/
 * only. */
#ifndef SDG_RULES_ATTENTION_CALL_DESCRIPTOR_H
#define SDG_RULES_ATTENTION_CALL_DESCRIPTOR_H

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/base/status.h"
#include "src/call/call.h"

/* The values of cudnnSetAttnDescriptor. */
typedef struct sdg_attention_descriptor {
  unsigned mode;
  int heads;
  double scale;
  cudnnDataType_t type, compute;
  cudnnMathType_t math;
  cudnnDropoutDescriptor_t dropout, post_dropout; /* may be NULL */
  int q_size, k_size, v_size;
  int q_projected, k_projected, v_projected, o_projected; /* 0: absent */
  int q_time, k_time, batch, beam;                        /* limits */
} sdg_attention_descriptor_t;

/* Reads the values of a cudnnAttnDescriptor_t. False, without a report, if it
 * is NULL or the vendor's library cannot read it. */
bool sdg_attention_descriptor_get(const void *descriptor,
                                  sdg_attention_descriptor_t *out);
/* Creates a descriptor with these values. The caller destroys it.
 * SDG_E_VENDOR_CALL if the vendor's library refuses the values. */
sdg_status_t
sdg_attention_descriptor_create(const sdg_attention_descriptor_t *values,
                                cudnnAttnDescriptor_t *out) SDG_MUST_CHECK;

/* Whether attention with these values applies dropout in training. */
bool sdg_attention_descriptor_drops(cudnnHandle_t handle,
                                    const sdg_attention_descriptor_t *values);

/* Formats the values that are equal on every rank: all except the limits. */
void sdg_attention_descriptor_format(const sdg_attention_descriptor_t *values,
                                     char *out, size_t out_bytes);

typedef struct sdg_attention_room {
  size_t weight_bytes, work_bytes, reserve_bytes;
} sdg_attention_room_t;
/* The sizes in bytes that the vendor's library reports for these values.
 * SDG_E_VENDOR_CALL if it reports an error. */
sdg_status_t
sdg_attention_descriptor_room(cudnnHandle_t handle,
                              const sdg_attention_descriptor_t *values,
                              sdg_attention_room_t *out) SDG_MUST_CHECK;

/* Fill type, extents and strides of an operand from operand->descriptor, an
 * attention descriptor. _limits: the largest keys that it permits, time x batch
 * x beam x vector. _parameters: all parameters as one vector, 1 x 1 x 1 x
 * their number. False if the vendor's library cannot read the descriptor. */
bool sdg_attention_descriptor_limits(sdg_operand_t *operand);
bool sdg_attention_descriptor_parameters(sdg_operand_t *operand,
                                         cudnnHandle_t handle);

#endif
