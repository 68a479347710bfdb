/* SPDX-License-Identifier: Apache-2.0 */
/* The program's call with other tensors in the place of its own. Inside rules/
 * only. */
#ifndef SDG_RULES_VENDOR_REBIND_H
#define SDG_RULES_VENDOR_REBIND_H

#include "rules/vendor/args.h"
#include "src/call/call.h"

/* A copy of a call that has its arguments beside it: not to be moved. */
typedef struct sdg_rebind {
  sdg_call_t call;
  sdg_args_t args;
} sdg_rebind_t;

void sdg_rebind_init(const sdg_call_t *call, sdg_rebind_t *out);
/* Gives the copy's arguments this descriptor and this data of operand `index`,
 * where they have members for them. */
void sdg_rebind_put(sdg_rebind_t *standin, int index, const void *descriptor,
                    void *data);
/* The vendor's status of the call. */
int sdg_rebind_invoke(const sdg_rebind_t *standin);

#endif
