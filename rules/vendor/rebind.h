/* SPDX-License-Identifier: Apache-2.0 */
/* The program's call with other tensors and arguments in place of its own.
 * Inside rules/ only. */
#ifndef SDG_RULES_VENDOR_REBIND_H
#define SDG_RULES_VENDOR_REBIND_H

#include "rules/vendor/argument.h"

/* A copy of a call's arguments. The call must live longer than the copy. */
typedef struct sdg_rebind {
  const sdg_call_t *call;
  sdg_args_t args;
} sdg_rebind_t;

void sdg_rebind_init(const sdg_call_t *call, sdg_rebind_t *out);
/* Each replaces one argument, or does nothing if the entry has no such
 * argument. _put: the descriptor and the memory of operand `index`; _tensor:
 * the same by role. */
void sdg_rebind_put(sdg_rebind_t *rebind, int index, const void *descriptor,
                    void *data);
void sdg_rebind_tensor(sdg_rebind_t *rebind, sdg_role_t role,
                       const void *descriptor, const void *data);
void sdg_rebind_scalar(sdg_rebind_t *rebind, sdg_scalar_argument_t which,
                       const void *scalar);
void sdg_rebind_pointer(sdg_rebind_t *rebind, sdg_pointer_argument_t which,
                        const void *pointer);
void sdg_rebind_size(sdg_rebind_t *rebind, sdg_size_argument_t which,
                     size_t size);
void sdg_rebind_int(sdg_rebind_t *rebind, sdg_int_argument_t which, int value);
/* Calls the real function; returns the vendor's status. */
int sdg_rebind_invoke(const sdg_rebind_t *rebind);

#endif
