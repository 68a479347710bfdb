/* SPDX-License-Identifier: Apache-2.0 */
/* The attention that one rank computes: a sub-call of the vendor's function
 * with its own descriptors, windows and lengths. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_APPLY_H
#define SDG_RULES_ATTENTION_CALL_APPLY_H

#include "rules/attention/call/call.h"
#include "rules/kit/subcall.h"

/* Operands in memory, as packed sequences (rules/vendor/sequence.h). */
typedef struct sdg_attention_apply {
  sdg_attention_kind_t kind;
  sdg_attention_descriptor_t desc; /* the program's; limits are raised as
                                    * needed */
  sdg_subcall_tensor_t q, k, v, o;
  const sdg_subcall_tensor_t *residual; /* FORWARD; or NULL */
  sdg_subcall_tensor_t dq, dk, dv;      /* DATA */
  sdg_subcall_tensor_t dw;              /* WEIGHTS */
  bool adds;
  /* For each query: its first key, and the one after its last, as indices into
   * k. NULL for WEIGHTS, which uses those of the forward call. Copied. */
  const int *lo, *hi;
  /* Lengths of the sequences of q and o, and of k and v, in elements, at least
   * 1 each; NULL: all sequences are full. Copied. */
  const int *q_length, *k_length;
  /* True: all tensors are the plan's, and the sub-call uses neither the
   * program's parameters nor its reserve space. In training `reserve` is a slab
   * for the reserve space, otherwise -1. */
  bool apart;
  int reserve;
} sdg_attention_apply_t;

/* Adds a slab for the reserve space of a descriptor with these values. */
sdg_status_t sdg_attention_apply_reserve(sdg_plan_t *plan,
                                         const sdg_attention_descriptor_t *desc,
                                         int *out_slab) SDG_MUST_CHECK;

/* Adds the sub-call. It uses the program's reserve space, if the call has one.
 * SDG_E_ATTENTION_RESERVE if that is too small. */
sdg_status_t
sdg_attention_apply_add(sdg_plan_t *plan, const sdg_call_t *call,
                        const sdg_attention_apply_t *sub) SDG_MUST_CHECK;

#endif
