/* SPDX-License-Identifier: Apache-2.0 */
/* The private folder of a run: rendezvous, reports, links. */
#ifndef SDG_TOOLS_LAUNCH_FOLDER_H
#define SDG_TOOLS_LAUNCH_FOLDER_H

#include <stddef.h>

#include "src/base/status.h"

/* Makes a folder of mode 0700 with a name short enough for a socket in it and
 * without characters at which the loader splits, in $XDG_RUNTIME_DIR, $TMPDIR
 * or /tmp. */
sdg_status_t folder_create(char *out_path, size_t bytes) SDG_MUST_CHECK;

/* Removes it with everything in it; no fault if it is gone. */
void folder_remove(const char *path);

#endif
