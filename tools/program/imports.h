/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that a program and its own libraries call in each other. */
#ifndef SDG_TOOLS_PROGRAM_IMPORTS_H
#define SDG_TOOLS_PROGRAM_IMPORTS_H

#include "src/base/status.h"

/* Lists functions that the program `name` or a library of it imports from
 * another library, where neither is the system's, NVIDIA's or MPI's. Leaves out
 * what cannot be replaced by a jump: data, functions that choose their code as
 * they are loaded, hidden ones, and names that several files define. Only
 * libraries that the program is linked to are looked at. *out_names: owned, and
 * so is each name; *out_more: how many are left out beyond `most`. Empty for a
 * script. SDG_E_NO_MEMORY. */
sdg_status_t imports_find(const char *name, int most, char ***out_names,
                          int *out_count, int *out_more) SDG_MUST_CHECK;

#endif
