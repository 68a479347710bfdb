/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's functions behind the entries, wherever and whenever the process
 * loaded them. */
#ifndef SDG_INTERPOSE_REAL_H
#define SDG_INTERPOSE_REAL_H

#include <stdbool.h>

#include "src/vendor.h"

/* The real function of an entry, NULL while its library is not loaded. Never
 * loads one. The library that holds it stays loaded for ever after. */
void *sdg_real_find(int entry);

/* Finder for the tables of vendor functions (src/vendor.h): like sdg_real_find,
 * and loads the CUDA runtime and NCCL where the process has none. */
void *sdg_real_function(sdg_library_t library, const char *name);

/* The program was given `address` of the vendor's library for this entry by
 * dlsym. Returns true if a call to it is one that sundog would intercept: the
 * address is the entry's real function, or the same function exported by
 * another library of the same installation. The first one seen becomes the
 * real function. */
bool sdg_real_record(int entry, void *address);

/* True if `address` lies in the code of a libcudnn* library. */
bool sdg_real_is_vendor_code(const void *address);

/* Vendor libraries may have been loaded since the code ranges were last
 * looked up. */
void sdg_real_expect_library(void);

#endif
