/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: replaces results in host memory by those of the first rank, so
 * that decisions of the program that depend on them are the same on every rank.
 */
#ifndef SDG_RULES_VIEW_WHOLE_ROOT_BROADCAST_H
#define SDG_RULES_VIEW_WHOLE_ROOT_BROADCAST_H

#include <stddef.h>

#include "rules/file/file.h"
#include "src/base/status.h"

/* Replaces the value of `bytes` bytes that a call has returned at `result`, or
 * does nothing if that is device memory. Collective; only the thread that makes
 * tagged calls may call this. Any failure breaks the job. */
sdg_status_t sdg_root_broadcast_result(const char *entry_name, void *result,
                                       size_t bytes) SDG_MUST_CHECK;

/* The same for *io_count results of `each` bytes at `measured`, which has room
 * for `room` results. First joins the job of `rules`. */
sdg_status_t sdg_root_broadcast_measured(const char *entry_name,
                                         const sdg_rules_t *rules,
                                         int *io_count, void *measured,
                                         size_t each, int room) SDG_MUST_CHECK;

#endif
