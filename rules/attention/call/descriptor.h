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

/* False if the vendor's library cannot read it; nothing is reported. */
bool sdg_attention_descriptor_get(const void *descriptor,
                                  sdg_attention_descriptor_t *out);
/* Creates a descriptor with these values. The caller destroys it.
 * SDG_E_VENDOR_CALL. */
sdg_status_t
sdg_attention_descriptor_create(const sdg_attention_descriptor_t *values,
                                cudnnAttnDescriptor_t *out) SDG_MUST_CHECK;

/* Whether it applies dropout in training. */
bool sdg_attention_descriptor_drops(cudnnHandle_t handle,
                                    const sdg_attention_descriptor_t *values);

/* Formats the values that are equal on every rank: all except the limits. */
void sdg_attention_descriptor_format(const sdg_attention_descriptor_t *values,
                                     char *out, size_t out_bytes);

typedef struct sdg_attention_room {
  size_t weight_bytes, work_bytes, reserve_bytes;
} sdg_attention_room_t;
/* The sizes in bytes that the vendor's library reports for these values.
 * SDG_E_VENDOR_CALL. */
sdg_status_t
sdg_attention_descriptor_room(cudnnHandle_t handle,
                              const sdg_attention_descriptor_t *values,
                              sdg_attention_room_t *out) SDG_MUST_CHECK;

/* Fill the operand's extents from operand->descriptor, like sdg_sequence_get.
 * _limits: the limits of the keys. _parameters: all parameters as one
 * vector. */
bool sdg_attention_descriptor_limits(sdg_operand_t *operand);
bool sdg_attention_descriptor_parameters(sdg_operand_t *operand,
                                         cudnnHandle_t handle);

#endif
