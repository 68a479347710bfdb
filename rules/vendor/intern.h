/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for what has no descriptor: equal bytes have equal numbers. Inside
 * rules/ only. */
#ifndef SDG_RULES_VENDOR_INTERN_H
#define SDG_RULES_VENDOR_INTERN_H

#include <stddef.h>
#include <stdint.h>

/* The number of these bytes, as a generation is one of a descriptor: above 0,
 * at most 2^48, never that of other bytes. Of many different ones the least
 * recently used are forgotten and get another number when they come again. 0
 * without memory. Any thread. */
uint64_t sdg_intern(const void *bytes, size_t count);

#endif
