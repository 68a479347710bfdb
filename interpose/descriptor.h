/* SPDX-License-Identifier: Apache-2.0 */
/* The program's descriptors, as its calls create, set and destroy them. */
#ifndef SDG_INTERPOSE_DESCRIPTOR_H
#define SDG_INTERPOSE_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>

/* `caller` created or set a descriptor, or is about to destroy it. Descriptors
 * that cuDNN uses inside are not recorded. */
void sdg_descriptor_touch(const void *descriptor, const void *caller);
void sdg_descriptor_forget(const void *descriptor, const void *caller);

/* `caller` is about to set a descriptor of `count` sequences. In the shard view
 * some may be empty. Returns the lengths to set instead, which the caller
 * frees; NULL: the program's own. */
int *sdg_descriptor_lengths(int dims, const int *extent, size_t count,
                            const int *length, const void *caller);
/* The descriptor was set, with other lengths. False if memory is short. */
bool sdg_descriptor_said(const void *descriptor, const int *length,
                         size_t count);
/* `caller` set a descriptor, by `numbers` numbers and a list whose elements
 * after the first `listed`, and after SDG_SAID_LIST_MAX, are not read. They are
 * stored for the rules. False if memory is short. */
enum { SDG_SAID_NUMBERS_MAX = 8, SDG_SAID_LIST_MAX = 8 };
bool sdg_descriptor_say(const void *descriptor, int numbers, const int *number,
                        int listed, const int *list, const void *caller);

#endif
