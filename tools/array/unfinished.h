/* SPDX-License-Identifier: Apache-2.0 */
/* Array files that a command is about to write: no failure and no signal leaves
 * a half-written one behind, and none takes the place of a file that was read.
 */
#ifndef SDG_TOOLS_ARRAY_UNFINISHED_H
#define SDG_TOOLS_ARRAY_UNFINISHED_H

#include "tools/array/npy.h"

enum { UNFINISHED_MAX = 1024 };

/* From now on a signal that ends the process removes what is not committed
 * first. */
void unfinished_guard(void);

/* sdg_npy_create, _commit and _close of arrays that signals are to remove. At
 * most UNFINISHED_MAX at a time. */
sdg_status_t unfinished_create(const char *path, bool raw,
                               const sdg_npy_header_t *like, int dims,
                               const int64_t *extent,
                               sdg_npy_t *out_npy) SDG_MUST_CHECK;
sdg_status_t unfinished_commit(sdg_npy_t *npy) SDG_MUST_CHECK;
void unfinished_close(sdg_npy_t *npy);

/* SDG_E_OVERWRITE if `path` names the file that `input` was opened by: by its
 * device and inode, whatever links and spelling lead there, or by its name,
 * where a file system makes up inodes. `input` may have been closed since. */
sdg_status_t unfinished_check(const char *path,
                              const char *input) SDG_MUST_CHECK;

#endif
