/* SPDX-License-Identifier: Apache-2.0 */
/* What the names of pieces say of their order and their number. */
#ifndef SDG_TOOLS_ARRAY_NAMES_H
#define SDG_TOOLS_ARRAY_NAMES_H

#include <stdbool.h>

#include "src/base/status.h"

/* Returns true if two paths differ only in numbers, as "a/p.0.npy" and
 * "a/p.12.npy" do. */
bool names_differ_by_number(const char *a, const char *b);

/* Refuses names in the order of a shell pattern, where out.10 comes before
 * out.2. SDG_E_PIECES. */
sdg_status_t names_order_check(char *const *name, int count) SDG_MUST_CHECK;

/* Says if a name with a higher number comes before one with a lower number, or
 * if a file exists whose name is the last one with the next number. */
void names_say(char *const *name, int count);

#endif
