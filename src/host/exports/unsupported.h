/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the use of a function that a work-alike exports and refuses. */
#ifndef SDG_SRC_HOST_EXPORTS_UNSUPPORTED_H
#define SDG_SRC_HOST_EXPORTS_UNSUPPORTED_H

/* Prints one line on stderr at the first call with this *said (static storage,
 * initially 0). Any thread may call it. */
__attribute__((visibility("hidden"))) void host_unsupported(const char *name,
                                                            _Atomic int *said);

#endif
