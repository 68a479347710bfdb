/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether the ranks have the same values of a call's operands, by
 * exchanging and comparing digests (src/exchange/tensor_digest.h). */
#ifndef SDG_SRC_JOB_DIGESTS_H
#define SDG_SRC_JOB_DIGESTS_H

#include <stddef.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/mesh.h"

typedef enum sdg_digests_state {
  SDG_DIGESTS_READ,
  /* A graph is being captured: nothing can be read now. */
  SDG_DIGESTS_CAPTURING,
  SDG_DIGESTS_BUSY, /* the stream does not progress */
} sdg_digests_state_t;

/* The digests of one rank. */
typedef struct sdg_digests {
  int state;
  unsigned read; /* bit i: of[i] is the digest of operand i */
  uint64_t of[SDG_OPERANDS_MAX];
} sdg_digests_t;

/* Sends every rank's digests to every rank, in the order of sdg_job_group();
 * `out` has room for one entry per rank. Collective over the group.
 * SDG_E_DIVERGED, which breaks the job; the errors of sdg_control_exchange.
 * Adds to *io_wait_ns. */
sdg_status_t sdg_digests_exchange(const char *entry_name,
                                  const sdg_digests_t *mine, sdg_digests_t *out,
                                  int64_t *io_wait_ns) SDG_MUST_CHECK;

/* Returns the first rank's state that is not READ; READ if all ranks are
 * READ. */
sdg_digests_state_t sdg_digests_state(const sdg_digests_t *all);

/* Compares ranks that share all mesh coordinates except those along `axes`.
 * Returns the group index of a rank whose operand differs from that of the
 * first such rank; -1 if none differs. The same on every rank. */
int sdg_digests_differ(const sdg_digests_t *all, int operand, sdg_axes_t axes);
/* Lists which of the ranks compared with rank `index` have which value: "rank
 * 2 <one> ranks 0, 1, 3". */
void sdg_digests_format(const sdg_digests_t *all, int operand, sdg_axes_t axes,
                        int index, const char *one, const char *many, char *out,
                        size_t out_bytes);

#endif
