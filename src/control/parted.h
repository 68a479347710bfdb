/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks that do the same may have decided otherwise by: for messages of a
 * rank that left while others went on. Any thread. */
#ifndef SDG_SRC_CONTROL_PARTED_H
#define SDG_SRC_CONTROL_PARTED_H

#include <stddef.h>

/* This rank, and so the others, got a value of its own piece by `entry`, a
 * string constant. */
void sdg_parted_note(const char *entry);
/* "; cublas... gives each rank ..."; "" if there was none. */
void sdg_parted_format(char *out, size_t out_bytes);

#endif
