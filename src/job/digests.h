/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the ranks have the same values of a call's operands: numbers made of
 * them (src/exchange/tensor_digest.h), exchanged and compared. */
#ifndef SDG_SRC_JOB_DIGESTS_H
#define SDG_SRC_JOB_DIGESTS_H

#include <stddef.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/mesh.h"

typedef enum sdg_digests_state {
  SDG_DIGESTS_READ,
  SDG_DIGESTS_CAPTURING, /* a graph is recorded: nothing can be read now */
  SDG_DIGESTS_BUSY,      /* the stream stands still */
} sdg_digests_state_t;

/* What one rank says. */
typedef struct sdg_digests {
  int state;
  unsigned read; /* bit i: it has a number of operand i */
  uint64_t of[SDG_OPERANDS_MAX];
} sdg_digests_t;

/* Every rank's, in the order of sdg_job_group(), to every rank; `out` has room
 * for as many. Collective over the group. SDG_E_DIVERGED, which breaks the job;
 * those of sdg_control_exchange. Adds to *io_wait_ns. */
sdg_status_t sdg_digests_exchange(const char *entry_name,
                                  const sdg_digests_t *mine, sdg_digests_t *out,
                                  int64_t *io_wait_ns) SDG_MUST_CHECK;

/* The first state of the ranks that is not READ, or READ. */
sdg_digests_state_t sdg_digests_state(const sdg_digests_t *all);

/* The index in the group of a rank that has other values of an operand than the
 * first rank with which it shares all coordinates of the mesh but those along
 * `axes`; -1: there is none. The same on every rank. */
int sdg_digests_differ(const sdg_digests_t *all, int operand, sdg_axes_t axes);
/* Who of that rank's ranks has what: "rank 2 <one> ranks 0, 1, 3". */
void sdg_digests_format(const sdg_digests_t *all, int operand, sdg_axes_t axes,
                        int index, const char *one, const char *many, char *out,
                        size_t out_bytes);

#endif
