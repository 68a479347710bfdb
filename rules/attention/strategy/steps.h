/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of a rank's queries to keys and values that the rank fetches.
 * Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_STRATEGY_STEPS_H
#define SDG_RULES_ATTENTION_STRATEGY_STEPS_H

#include "rules/attention/call/maker.h"

/* Adds all steps of the call to a plan opened by sdg_subcalls_open(). */
sdg_status_t sdg_attention_maker_steps(sdg_attention_maker_t *m) SDG_MUST_CHECK;

#endif
