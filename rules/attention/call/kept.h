/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: how the ranks shared the attention that filled a reserve space.
 * Its gradients must be shared in the same way. Only the thread that makes
 * tagged calls may use this. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_KEPT_H
#define SDG_RULES_ATTENTION_CALL_KEPT_H

#include "rules/attention/call/band.h"
#include "src/base/status.h"
#include "src/geometry/placement.h"

/* How a forward call was shared. */
typedef struct sdg_attention_kept {
  sdg_windows_t windows; /* of all queries; owned */
  sdg_placement_t rows;  /* of the queries */
  uint64_t lengths;      /* a hash of the sequences' lengths */
  uint64_t hash;         /* of windows, rows and lengths */
} sdg_attention_kept_t;

/* Records how the forward call with this reserve space was shared. Copies
 * windows and rows. SDG_E_NO_MEMORY. */
sdg_status_t sdg_attention_kept_put(const void *reserve,
                                    const sdg_windows_t *windows,
                                    const sdg_placement_t *rows,
                                    uint64_t lengths) SDG_MUST_CHECK;
/* Records that the forward call with this reserve space was not shared. */
void sdg_attention_kept_drop(const void *reserve);
/* What the last forward call with this reserve space recorded; NULL if it was
 * not shared. Borrowed until the next put. */
const sdg_attention_kept_t *sdg_attention_kept_find(const void *reserve);

#endif
