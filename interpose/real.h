/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's functions behind the entries, wherever and whenever the process
 * loaded them. */
#ifndef SDG_INTERPOSE_REAL_H
#define SDG_INTERPOSE_REAL_H

#include <stdbool.h>

#include "src/base/vendor.h"

/* The real function of an entry, NULL while its library is not loaded. Never
 * loads one. The library that holds it stays loaded for ever after. */
void *sdg_real_find(int entry);

/* Finder for the tables of vendor functions (src/base/vendor.h): like
 * sdg_real_find, and loads the CUDA runtime and NCCL where the process has
 * none. */
void *sdg_real_function(sdg_library_t library, const char *name);

/* The program was given `address` for this entry by dlsym. Returns true if a
 * call to it is one that sundog intercepts: it is a function of the vendor's
 * library, and of the installation that the process uses, the first one seen.
 * Where the entry's real function is not known yet, it is this one. */
bool sdg_real_record(int entry, void *address);

/* In the child of a fork. */
void sdg_real_after_fork(void);

#endif
