/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries that a program needs, and theirs. Selects the host device's set
 * of libraries for a program. */
#ifndef SDG_TOOLS_PROGRAM_NEEDS_H
#define SDG_TOOLS_PROGRAM_NEEDS_H

#include <stdbool.h>

/* Returns true if the program `name` or one of its libraries needs the
 * libraries of CUDA 12, and none needs those of CUDA 13. Returns false for a
 * script, and for a file that cannot be read. Prints nothing. */
bool needs_twelve(const char *name);

/* Asks the dynamic linker which libraries it would load for the program at
 * `path`, without running it: calls `take` for each line of its answer, as
 * "\tlibcudart.so.12 => not found". Not for programs that are static or
 * privileged. */
void needs_ask(const char *path, void (*take)(const char *line, void *user),
               void *user);

#endif
