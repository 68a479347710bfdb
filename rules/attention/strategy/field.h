/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges vectors between two layouts: all heads of a rank's own rows, and
 * some heads of whole sequences. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_STRATEGY_FIELD_H
#define SDG_RULES_ATTENTION_STRATEGY_FIELD_H

#include "rules/attention/call/maker.h"
#include "rules/kit/fetch.h"
#include "rules/kit/subcall.h"

/* One tensor in both layouts. */
typedef struct sdg_attention_field {
  int64_t each;              /* elements of a head's vector */
  sdg_subcall_tensor_t flat; /* rows x elements of all heads x 1 x 1 */
  sdg_subcall_tensor_t held; /* time, batch x beam x heads, 1, element */
  int rows, spread; /* slabs: the memory of `flat` and of `held`, each with
                     * dimensions time, batch, beam, head, element */
  sdg_placement_t by_rows, by_heads; /* owned */
  sdg_box_t *need_rows, *need_heads; /* need of each rank of the group; owned */
  sdg_fetch_t fetch;
} sdg_attention_field_t;

/* Adds scratch of `type`, float or double, for vectors of `each` elements per
 * head, one for each row of operand `like`. The caller calls
 * sdg_attention_field_fini, also after a failure. */
sdg_status_t
sdg_attention_field_init(sdg_attention_maker_t *m, int like, int64_t each,
                         sdg_type_t type,
                         sdg_attention_field_t *out) SDG_MUST_CHECK;
void sdg_attention_field_fini(sdg_attention_field_t *field);

/* Adds one exchange of all these fields to the plan, after all earlier steps:
 * from rows to heads if `to_heads`, otherwise from heads to rows. */
sdg_status_t sdg_attention_field_exchange(sdg_attention_maker_t *m,
                                          sdg_attention_field_t *const *field,
                                          int fields,
                                          bool to_heads) SDG_MUST_CHECK;

#endif
