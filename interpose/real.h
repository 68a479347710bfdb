/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's functions behind the entries, wherever and whenever the process
 * loaded them. */
#ifndef SDG_INTERPOSE_REAL_H
#define SDG_INTERPOSE_REAL_H

#include <stdbool.h>

#include "src/base/vendor.h"

/* The real function of an entry; NULL while its library is not loaded. Loads no
 * library. Keeps the library that holds the function loaded forever. */
void *sdg_real_find(int entry);

/* Finds functions for the tables of vendor functions (src/base/vendor.h). Like
 * sdg_real_find, but loads the CUDA runtime and NCCL if the process has not
 * loaded them. */
void *sdg_real_function(sdg_library_t library, const char *name);

/* dlsym returned `address` to the program for this entry. True if sundog
 * intercepts calls to it: it is a function of the vendor's library, in the
 * installation that the process uses (the first one seen). If the entry's real
 * function was unknown, it is this one from now on. */
bool sdg_real_record(int entry, void *address);

/* Call this in the child after a fork. */
void sdg_real_after_fork(void);

#endif
