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
  bool adds; /* WEIGHTS: the results are added to the numbers in dw */
  /* For each query: its first key, and the one after its last, as indices into
   * k. NULL for WEIGHTS, which uses those of the forward call. Copied. */
  const int *lo, *hi;
  /* Lengths of the sequences of q and o, and of k and v, in elements, at least
   * 1 each; NULL: all sequences are full. Copied. */
  const int *q_length, *k_length;
  /* True: all tensors are slabs of the plan, and the sub-call uses neither the
   * program's parameters nor its reserve space. Then `reserve` is the slab that
   * serves as reserve space in training, and -1 for inference. */
  bool apart;
  int reserve;
} sdg_attention_apply_t;

/* Adds to the plan a slab that is large enough for the reserve space of a
 * descriptor with these values. SDG_E_VENDOR_CALL if the vendor's library does
 * not tell the size. */
sdg_status_t sdg_attention_apply_reserve(sdg_plan_t *plan,
                                         const sdg_attention_descriptor_t *desc,
                                         int *out_slab) SDG_MUST_CHECK;

/* Adds the sub-call to the plan. Unless `apart` is true, it uses the reserve
 * space of the program's call, if that has one. SDG_E_ATTENTION_RESERVE if that
 * reserve space is too small. */
sdg_status_t
sdg_attention_apply_add(sdg_plan_t *plan, const sdg_call_t *call,
                        const sdg_attention_apply_t *sub) SDG_MUST_CHECK;

#endif
