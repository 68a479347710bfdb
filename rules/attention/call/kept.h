/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: how the ranks shared the attention that filled a reserve space,
 * of which the gradients then have to be shared alike. Of the one thread that
 * makes tagged calls. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_KEPT_H
#define SDG_RULES_ATTENTION_CALL_KEPT_H

#include "rules/attention/call/band.h"
#include "src/base/status.h"
#include "src/geometry/placement.h"

typedef struct sdg_attention_kept {
  sdg_windows_t windows; /* of all queries; owned */
  sdg_placement_t rows;  /* of the queries */
  uint64_t lengths;      /* a number for those of the sequences */
  uint64_t hash;         /* of all of it */
} sdg_attention_kept_t;

/* A forward call was shared; everything is copied. */
sdg_status_t sdg_attention_kept_put(const void *reserve,
                                    const sdg_windows_t *windows,
                                    const sdg_placement_t *rows,
                                    uint64_t lengths) SDG_MUST_CHECK;
/* A forward call was not. */
void sdg_attention_kept_drop(const void *reserve);
/* NULL: the last forward call with this reserve space was not shared. Borrowed
 * until the next put. */
const sdg_attention_kept_t *sdg_attention_kept_find(const void *reserve);

#endif
