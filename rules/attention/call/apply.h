/* SPDX-License-Identifier: Apache-2.0 */
/* The attention that one rank computes: a call of the vendor's function with
 * descriptors, windows and lengths of its own. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_APPLY_H
#define SDG_RULES_ATTENTION_CALL_APPLY_H

#include "rules/attention/call/call.h"
#include "rules/kit/subcall.h"

/* Operands in memory, as sequences that are packed (rules/vendor/sequence.h).
 */
typedef struct sdg_attention_apply {
  sdg_attention_kind_t kind;
  sdg_attention_descriptor_t desc; /* the program's; limits grow as is needed */
  sdg_subcall_tensor_t q, k, v, o;
  const sdg_subcall_tensor_t *residual; /* FORWARD; or NULL */
  sdg_subcall_tensor_t dq, dk, dv;      /* DATA */
  sdg_subcall_tensor_t dw;              /* WEIGHTS */
  bool adds;
  /* Of each query: the first key, and the one after the last, by index of k;
   * NULL for WEIGHTS, which takes those of the forward call. Copied. */
  const int *lo, *hi;
  /* Lengths of the sequences of q and o, and of k and v, at least 1 each; NULL:
   * all are full. Copied. */
  const int *q_length, *k_length;
  /* Tensors of the plan, and none of the program's parameters and reserve
   * space: in training `reserve` is a slab for that, else -1. */
  bool apart;
  int reserve;
} sdg_attention_apply_t;

/* Adds such a slab, for calls of a descriptor with these values. */
sdg_status_t sdg_attention_apply_reserve(sdg_plan_t *plan,
                                         const sdg_attention_descriptor_t *desc,
                                         int *out_slab) SDG_MUST_CHECK;

/* The sub-call works in the program's reserve space, if the call has one.
 * SDG_E_ATTENTION_RESERVE where that is too small. */
sdg_status_t
sdg_attention_apply_add(sdg_plan_t *plan, const sdg_call_t *call,
                        const sdg_attention_apply_t *sub) SDG_MUST_CHECK;

#endif
