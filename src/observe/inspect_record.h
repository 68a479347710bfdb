/* SPDX-License-Identifier: Apache-2.0 */
/* SUNDOG_INSPECT: distinct lines, and how often each came, in a file per
 * process. */
#ifndef SDG_SRC_OBSERVE_INSPECT_RECORD_H
#define SDG_SRC_OBSERVE_INSPECT_RECORD_H

#include <stdbool.h>

/* True if the option is set. */
bool sdg_inspect_record_wanted(void);

/* Counts `text`, a JSON object, and writes it to <SUNDOG_INSPECT>/calls-PID at
 * once if it is new, so that a process that ends badly leaves it; after 12288
 * of them {"dropped":true}. Any thread. */
void sdg_inspect_record_count(const char *text);

/* At exit: writes {"counts":[...]}, in the order of the lines, and
 * {"libraries":[...]}, the files of NVIDIA's libraries in this process. */
void sdg_inspect_record_finish(void);
/* In the child of a fork: the record is the parent's. No allocation, no
 * wait. */
void sdg_inspect_record_drop(void);

#endif
