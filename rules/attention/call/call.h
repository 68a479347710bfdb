/* SPDX-License-Identifier: Apache-2.0 */
/* One call of multi-head attention. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_CALL_H
#define SDG_RULES_ATTENTION_CALL_CALL_H

#include "rules/attention/call/band.h"
#include "rules/attention/call/descriptor.h"
#include "src/call/call.h"

typedef enum sdg_attention_kind {
  SDG_ATTENTION_FORWARD,
  SDG_ATTENTION_DATA,    /* gradients of queries, keys and values */
  SDG_ATTENTION_WEIGHTS, /* gradients of the parameters */
} sdg_attention_kind_t;

/* One call of an entry. Operands by index, -1: absent. */
typedef struct sdg_attention {
  sdg_attention_kind_t kind;
  sdg_attention_descriptor_t desc;
  int q, k, v;
  int o; /* the output, or its gradient */
  int residual;
  int dq, dk, dv, dw;
  int w;                 /* all parameters; absent if there are no parameters */
  bool same;             /* keys and values are one tensor */
  int current;           /* index of the only query to compute; < 0: all */
  sdg_windows_t windows; /* of the operand's queries; unset for WEIGHTS */
  bool adds;             /* the call adds to dw */
  const void *weights;
  size_t weight_bytes;
  void *reserve; /* NULL: inference */
  size_t reserve_bytes;
} sdg_attention_t;

/* Reads a call of multi-head attention. `out` borrows from the call. False if
 * the real function rejects the call on every rank. */
bool sdg_attention_read(const sdg_call_t *call, sdg_attention_t *out);

#endif
