/* SPDX-License-Identifier: Apache-2.0 */
/* The dlsym and dlvsym that follow libsundog.so in the search order. */
#ifndef SDG_INTERPOSE_DLSYM_H
#define SDG_INTERPOSE_DLSYM_H

/* dlsym(3), unhooked. With RTLD_NEXT the caller must not tail-call it. */
void *sdg_dlsym_real(void *handle, const char *name);

/* The exported dlsym and dlvsym call this with their caller's address. Not
 * NULL: the result. NULL: jump to the next dlsym with an unchanged stack,
 * because that function reads the return address. */
void *sdg_dlsym_hook(void *handle, const char *name, const void *caller);
void *sdg_dlvsym_hook(void *handle, const char *name, const char *version,
                      const void *caller);

#endif
