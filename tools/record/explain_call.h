/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the tagged calls of a run that was recorded. */
#ifndef SDG_TOOLS_RECORD_EXPLAIN_CALL_H
#define SDG_TOOLS_RECORD_EXPLAIN_CALL_H

#include <stdint.h>

#include "src/base/status.h"

/* Prints which section of the rules applied to call `number` of `rank`, where
 * its tensors are, by which strategy it was carried out, and why; as recorded
 * in `folder` by SUNDOG_RECORD. `thread`: which of the program's threads.
 * SDG_E_FILE_IO; SDG_E_USAGE if there is no such call. */
sdg_status_t explain_call(const char *folder, int rank, int thread,
                          int64_t number) SDG_MUST_CHECK;

/* Prints the calls of `rank`, one line for those of an entry that were carried
 * out in the same way: the number of the first, how many they are, strategy and
 * section. SDG_E_FILE_IO; SDG_E_USAGE if the thread has none. */
sdg_status_t explain_list(const char *folder, int rank,
                          int thread) SDG_MUST_CHECK;

#endif
