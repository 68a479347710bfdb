/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: what a call gives a program in host memory becomes what it gave
 * the first rank, so that programs decide by it alike on every rank. */
#ifndef SDG_RULES_VIEW_WHOLE_ROOT_BROADCAST_H
#define SDG_RULES_VIEW_WHOLE_ROOT_BROADCAST_H

#include <stddef.h>

#include "rules/file/file.h"
#include "src/base/status.h"

/* A call has returned a value through a pointer: nothing is done if that is to
 * device memory. Collective, for the thread that makes tagged calls; any
 * failure breaks the job. */
sdg_status_t sdg_root_broadcast_result(const char *entry_name, void *result,
                                       size_t bytes) SDG_MUST_CHECK;

/* A call has measured *io_count things and put `each` bytes of each one into
 * `measured`, which has room for `room`. Joins the job of `rules`; then as
 * above. */
sdg_status_t sdg_root_broadcast_measured(const char *entry_name,
                                         const sdg_rules_t *rules,
                                         int *io_count, void *measured,
                                         size_t each, int room) SDG_MUST_CHECK;

#endif
