/* SPDX-License-Identifier: Apache-2.0 */
/* What a work-alike says about a function that it exports and refuses. */
#ifndef SDG_SRC_HOST_EXPORTS_UNSUPPORTED_H
#define SDG_SRC_HOST_EXPORTS_UNSUPPORTED_H

/* One line on stderr at the first call with this *said (static storage,
 * initially 0); any thread. */
__attribute__((visibility("hidden"))) void host_unsupported(const char *name,
                                                            _Atomic int *said);

#endif
