/* SPDX-License-Identifier: Apache-2.0 */
/* The code of the libcudnn* libraries. Calls from there are not the program's.
 */
#ifndef SDG_INTERPOSE_RANGES_H
#define SDG_INTERPOSE_RANGES_H

#include <stdbool.h>

/* True if `address` lies in the code of a libcudnn* library. Takes a few
 * nanoseconds, except in the first call after sdg_ranges_expect(). */
bool sdg_ranges_hold(const void *address);

/* Such libraries may have been loaded since the last call. */
void sdg_ranges_expect(void);

/* True if the file name of this path is that of a libcudnn* library. */
bool sdg_ranges_is_cudnn(const char *path);

#endif
