/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of a command that waits for a program: descriptors, and a process
 * that cleans up. */
#ifndef SDG_TOOLS_LAUNCH_GUARD_H
#define SDG_TOOLS_LAUNCH_GUARD_H

#include <stddef.h>
#include <sys/types.h>

#include "src/base/status.h"

/* Opens /dev/null as standard input and output, and closes all other
 * descriptors except standard error and the `count` that are `kept`. So a
 * reader of the child's output sees its end when the child closes it, even
 * while this process lives. */
void guard_close(const int *kept, int count);

/* Starts a process that makes a folder (folder_create) and removes it if this
 * process is killed. It has its own process group, so that a signal to this
 * one's group does not end both. */
sdg_status_t guard_start(char *out_folder, size_t bytes,
                         pid_t *out_guard) SDG_MUST_CHECK;
/* Ends the guard; the folder stays. */
void guard_end(pid_t guard);

#endif
