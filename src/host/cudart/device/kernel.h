/* SPDX-License-Identifier: Apache-2.0 */
/* The program's kernels by name, and word of those that it launched in vain. */
#ifndef SDG_SRC_HOST_CUDART_DEVICE_KERNEL_H
#define SDG_SRC_HOST_CUDART_DEVICE_KERNEL_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* The program's device code is about to be registered: its environment is still
 * what `sundog run` gave it. */
void host_kernel_begin(void);

/* `name` is the kernel's symbol and stays where it is. */
void host_kernel_register(const void *function, const char *name);

bool host_kernel_known(const void *function);

/* Says once for each kernel on stderr that it was not launched, and leaves word
 * for `sundog run`, which fails: <SUNDOG_REPORT>/unlaunched-PID, the kernel's
 * name. NULL and what was never registered are kernels without a name. */
void host_kernel_refuse(const void *function);

#pragma GCC visibility pop

#endif
