/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers the last entry whose result may differ between ranks that run the
 * same program. If one rank leaves while others continue, messages name that
 * entry as a possible cause. Any thread. */
#ifndef SDG_SRC_CONTROL_PARTED_H
#define SDG_SRC_CONTROL_PARTED_H

#include <stddef.h>

/* Notes that `entry`, a string constant, returned a value of this rank's
 * piece; each rank's value may differ. */
void sdg_parted_note(const char *entry);
/* Writes "; cublas... gives each rank ..."; "" if no entry was noted. */
void sdg_parted_format(char *out, size_t out_bytes);

#endif
