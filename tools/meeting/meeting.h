/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a launcher find each other: at the place that the user gave,
 * in a private folder of their one machine, or by the launcher's PMIx or
 * PMI. */
#ifndef SDG_TOOLS_MEETING_MEETING_H
#define SDG_TOOLS_MEETING_MEETING_H

#include <stdbool.h>

#include "src/base/status.h"

typedef enum meeting_way {
  MEETING_ALONE,  /* one rank */
  MEETING_GIVEN,  /* SUNDOG_RENDEZVOUS */
  MEETING_FOLDER, /* a socket in a private folder */
  MEETING_PMIX,   /* rank 0's address and a secret, by PMIx */
  MEETING_PMI,    /* the same, by PMI */
} meeting_way_t;

/* Finds the way from the environment alone. SDG_E_RENDEZVOUS if the ranks are
 * on several machines and neither the user nor the launcher carries a place;
 * SDG_E_RANK_UNKNOWN. */
sdg_status_t meeting_way_find(meeting_way_t *out_way) SDG_MUST_CHECK;

typedef struct meeting {
  int rank, size, local_rank;
  int port;       /* a socket that keeps the port of rank 0; -1: none */
  int pmi;        /* PMI_FD, set on failure too: if the program does not use it,
                     pmi_end() has to be called. -1: none */
  bool pmi_asked; /* the rank has met by it, so pmi_end() is called for status
                     0 too */
} meeting_t;

/* Returns true if PMIx has to be asked for the number of ranks, because the
 * launcher's variables do not hold it. */
bool meeting_size_is_hidden(void);

/* Meets by PMIx or PMI: every rank of the launcher has to call this. Sets
 * SUNDOG_RENDEZVOUS and SUNDOG_SECRET for the program unless the user has set
 * the former, and what lets the program itself be a client. `helper`: path of
 * sundog-pmix. SDG_E_PMIX, SDG_E_JOIN_TIMEOUT, SDG_E_RANK_UNKNOWN. */
sdg_status_t meeting_hold(meeting_way_t way, const char *helper,
                          meeting_t *out_meeting) SDG_MUST_CHECK;

#endif
