/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the object of the program's functions (src/call/functions.h). */
#ifndef SDG_TOOLS_PROGRAM_FUNCTIONS_H
#define SDG_TOOLS_PROGRAM_FUNCTIONS_H

#include <stdbool.h>

#include "src/base/status.h"

/* Writes a shared library to `path` that defines these functions as jumps
 * through slots, for this processor. `watched`: for `sundog inspect`.
 * SDG_E_FOLDER. */
sdg_status_t functions_write(const char *path, const char *const *names,
                             int count, bool watched) SDG_MUST_CHECK;

#endif
