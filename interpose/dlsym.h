/* SPDX-License-Identifier: Apache-2.0 */
/* The next dlsym and dlvsym behind the ones that libsundog.so exports. */
#ifndef SDG_INTERPOSE_DLSYM_H
#define SDG_INTERPOSE_DLSYM_H

/* dlsym(3), unhooked. With RTLD_NEXT the caller must not tail-call it. */
void *sdg_dlsym_real(void *handle, const char *name);

/* Called by the exported dlsym and dlvsym with their caller's address. Not
 * NULL: the result. NULL: jump on to the next dlsym, with the caller's stack as
 * it was, since that one looks at the return address. */
void *sdg_dlsym_hook(void *handle, const char *name, const void *caller);
void *sdg_dlvsym_hook(void *handle, const char *name, const char *version,
                      const void *caller);

#endif
