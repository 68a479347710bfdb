/* SPDX-License-Identifier: Apache-2.0 */
/* Gives equal bytes equal numbers, for things without a descriptor. Inside
 * rules/ only. */
#ifndef SDG_RULES_VENDOR_INTERN_H
#define SDG_RULES_VENDOR_INTERN_H

#include <stddef.h>
#include <stdint.h>

/* The number of these bytes, used in place of a descriptor's generation: from 1
 * to 2^48, never that of other bytes. The table is bounded: the least recently
 * used bytes are forgotten, and get a new number if they occur again. 0 if
 * memory is short. Any thread may call this. */
uint64_t sdg_intern(const void *bytes, size_t count);

#endif
