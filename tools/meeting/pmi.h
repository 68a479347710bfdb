/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the launcher's PMI (version 1): lines of text at the socket PMI_FD, over
 * which the program can be a client afterwards. Source: "PMI: A Scalable
 * Parallel Process-Management Interface", and MPICH's hydra. */
#ifndef SDG_TOOLS_MEETING_PMI_H
#define SDG_TOOLS_MEETING_PMI_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/status.h"

/* If `publish` is not NULL, publishes it; one rank must. Waits until all ranks
 * have called this, then writes what was published to `out`. Blanks within the
 * text are allowed, commas and '=' are not; if the launcher has no room for all
 * words, the last ones are left out. `fd`: PMI_FD. The launcher now
 * expects that somebody leaves before the rank's end, the program or this
 * process. SDG_E_PMIX; SDG_E_JOIN_TIMEOUT if not all ranks called this. */
sdg_status_t pmi_meet(int fd, const char *publish, double timeout_s, char *out,
                      size_t bytes) SDG_MUST_CHECK;

/* Ends this rank's use of the PMI, with the rank's exit status: the launcher
 * ends the job if it is not 0, which needs no pmi_meet() before. A rank that
 * ends without this, hydra takes for a failed one, too, but does not always end
 * the ranks on other machines. */
void pmi_end(int fd, int status);

#endif
