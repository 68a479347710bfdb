/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the program's kernels, and a report of those that it launched
 * although no kernel can run. */
#ifndef SDG_SRC_HOST_CUDART_DEVICE_KERNEL_H
#define SDG_SRC_HOST_CUDART_DEVICE_KERNEL_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Called before the program registers its device code, when the environment is
 * still the one that `sundog run` set. */
void host_kernel_begin(void);

/* `name` is the kernel's symbol and must stay valid. */
void host_kernel_register(const void *function, const char *name);

bool host_kernel_known(const void *function);

/* Prints once per kernel that it was not launched, and writes
 * <SUNDOG_REPORT>/unlaunched-PID with the kernel's name, which makes `sundog
 * run` fail. NULL and functions that were never registered have no name. */
void host_kernel_refuse(const void *function);

#pragma GCC visibility pop

#endif
