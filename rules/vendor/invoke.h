/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's functions by the number of their entry, called with a struct of
 * arguments; generated from interpose/entries.def.
 * Inside rules/ only. */
#ifndef SDG_RULES_VENDOR_INVOKE_H
#define SDG_RULES_VENDOR_INVOKE_H

#include <stddef.h>

#include "rules/vendor/args.h"

/* Of an op's struct of arguments; 0 for what is no op. */
size_t sdg_invoke_bytes(int entry);
/* The vendor's status; CUDNN_STATUS_NOT_SUPPORTED for an op or a query that
 * entries.def does not say is "called". */
int sdg_invoke(int entry, const sdg_args_t *args);

#endif
