/* SPDX-License-Identifier: Apache-2.0 */
/* SUNDOG_RECORD: what a rank's process is, for the report of a run. */
#ifndef SDG_SRC_OBSERVE_RUN_FACTS_H
#define SDG_SRC_OBSERVE_RUN_FACTS_H

#include <stdio.h>

/* Writes a JSON object: rank, size, host, process; the program's words and its
 * folder; the version of sundog; the mesh; the options that are set, without
 * secrets; the text of the rules; and the time by both clocks of the host. Call
 * it once this process has joined. */
void sdg_run_facts_write(FILE *to);

#endif
