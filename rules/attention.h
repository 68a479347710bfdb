/* SPDX-License-Identifier: Apache-2.0 */
/* Multi-head attention on split sequences: its calls. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_H
#define SDG_RULES_ATTENTION_H

#include "rules/attndesc.h"
#include "rules/band.h"
#include "rules/rule.h"

typedef enum sdg_attention_kind {
  SDG_ATTENTION_FORWARD,
  SDG_ATTENTION_DATA,    /* gradients of queries, keys and values */
  SDG_ATTENTION_WEIGHTS, /* of the parameters */
} sdg_attention_kind_t;

/* One call of an entry. Operands by index, -1: absent. */
typedef struct sdg_attention {
  sdg_attention_kind_t kind;
  sdg_attndesc_t desc;
  int q, k, v;
  int o; /* the output, or its gradient */
  int residual;
  int dq, dk, dv, dw;
  int w;                 /* all parameters; absent where there are none */
  bool same;             /* keys and values are one tensor */
  int current;           /* the one query that is computed; negative: all */
  sdg_windows_t windows; /* of the operand's queries; none of WEIGHTS */
  bool adds;             /* to dw */
  const void *weights;
  size_t weight_bytes;
  void *reserve; /* NULL: inference */
  size_t reserve_bytes;
} sdg_attention_t;

/* False where the real function refuses the call as it is, on every rank. */
bool sdg_attention_read(const sdg_call_t *call, sdg_attention_t *out);

struct sdg_meet;
/* See meet() of sdg_rule_t. */
sdg_status_t sdg_attention_meet(const sdg_call_t *call, struct sdg_meet *meet,
                                int lead) SDG_MUST_CHECK;
/* See answer(), plan() and share() of sdg_rule_t. */
sdg_status_t sdg_attention_answer(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  int *out_vendor) SDG_MUST_CHECK;
sdg_status_t sdg_attention_plan(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_attention_share(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* See note() of sdg_rule_t. */
sdg_status_t sdg_attention_note(const sdg_call_t *call,
                                const sdg_plan_t *plan) SDG_MUST_CHECK;

#endif
