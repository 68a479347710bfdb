/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the program's libraries that work on device memory: a list for
 * people, and drafts of their [function] sections. */
#ifndef SDG_TOOLS_DRAFT_FUNCTION_H
#define SDG_TOOLS_DRAFT_FUNCTION_H

#include <stdio.h>

#include "tools/record/calls.h"

/* Prints each function, and which of its arguments were addresses or extents.
 */
void functions_print(const calls_t *calls);

/* Writes a section for each function. What cannot be seen is a ?, which readers
 * of the file refuse. */
void functions_write_sections(FILE *file, const calls_t *calls);

#endif
