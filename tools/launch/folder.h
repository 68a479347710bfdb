/* SPDX-License-Identifier: Apache-2.0 */
/* The private folder of a run: rendezvous, reports, links. */
#ifndef SDG_TOOLS_LAUNCH_FOLDER_H
#define SDG_TOOLS_LAUNCH_FOLDER_H

#include <stddef.h>

#include "src/base/status.h"

/* Makes a folder of mode 0700 in $XDG_RUNTIME_DIR, $TMPDIR or /tmp. Its path is
 * short enough for a socket, and has no space or colon, because the loader
 * splits lists there. */
sdg_status_t folder_create(char *out_path, size_t bytes) SDG_MUST_CHECK;

/* Removes the folder with everything in it. It may be gone already. */
void folder_remove(const char *path);

#endif
