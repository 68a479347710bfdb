/* SPDX-License-Identifier: Apache-2.0 */
/* Prints how the tagged calls of a recorded run were carried out. */
#ifndef SDG_TOOLS_RECORD_EXPLAIN_CALL_H
#define SDG_TOOLS_RECORD_EXPLAIN_CALL_H

#include <stdint.h>

#include "src/base/status.h"

/* Prints for call `number` of `rank`: the section of the rules that applied,
 * the places of its tensors, its strategy, and the reason for it. Reads the
 * files that SUNDOG_RECORD left in `folder`. `thread`: the number of the
 * program's thread. SDG_E_FILE_IO; SDG_E_USAGE if the call does not exist. */
sdg_status_t explain_call(const char *folder, int rank, int thread,
                          int64_t number) SDG_MUST_CHECK;

/* Prints the calls of `rank`, one line for all calls of an entry with the same
 * plan: the number of the first call, their count, strategy and section.
 * SDG_E_FILE_IO; SDG_E_USAGE if the thread made no call. */
sdg_status_t explain_list(const char *folder, int rank,
                          int thread) SDG_MUST_CHECK;

#endif
