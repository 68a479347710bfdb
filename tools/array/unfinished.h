/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Array files that a command is writing. No failure and no signal leaves a
 * half-written file behind, and no output replaces an input.
 * */
#ifndef SDG_TOOLS_ARRAY_UNFINISHED_H
#define SDG_TOOLS_ARRAY_UNFINISHED_H

#include "tools/array/npy.h"

enum { UNFINISHED_MAX = 1024 };

/* From now on, a signal that ends the process first removes all files that are
 * not committed. */
void unfinished_guard(void);

/* Like sdg_npy_create, _commit and _close, for arrays that a signal must
 * remove. At most UNFINISHED_MAX are open at a time. */
sdg_status_t unfinished_create(const char *path, bool raw,
                               const sdg_npy_header_t *like, int dims,
                               const int64_t *extent,
                               sdg_npy_t *out_npy) SDG_MUST_CHECK;
sdg_status_t unfinished_commit(sdg_npy_t *npy) SDG_MUST_CHECK;
void unfinished_close(sdg_npy_t *npy);

/* Returns SDG_E_OVERWRITE if `path` is the file of `input`: they have the same
 * device and inode, through whatever links and spelling, or the same name (some
 * file systems invent inodes). `input` may have been closed since. */
sdg_status_t unfinished_check(const char *path,
                              const char *input) SDG_MUST_CHECK;

#endif
