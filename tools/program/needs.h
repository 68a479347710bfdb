/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the host device's sets of libraries a program wants. */
#ifndef SDG_TOOLS_PROGRAM_NEEDS_H
#define SDG_TOOLS_PROGRAM_NEEDS_H

#include <stdbool.h>

/* True if the program that `name` would start, or a library of its, needs the
 * libraries of CUDA 12, and nothing needs those of 13. Says nothing; false for
 * a script and for what cannot be read. */
bool needs_twelve(const char *name);

#endif
