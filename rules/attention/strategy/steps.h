/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of a rank's queries to the keys and values that come to them.
 * Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_STRATEGY_STEPS_H
#define SDG_RULES_ATTENTION_STRATEGY_STEPS_H

#include "rules/attention/call/maker.h"

/* All steps of the call, on a plan of sdg_subcalls_open(). */
sdg_status_t sdg_attention_maker_steps(sdg_attention_maker_t *m) SDG_MUST_CHECK;

#endif
