/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the program's kernels, and a report of those that it launched
 * although no kernel can run. */
#ifndef SDG_SRC_HOST_CUDART_DEVICE_KERNEL_H
#define SDG_SRC_HOST_CUDART_DEVICE_KERNEL_H

#include <driver_types.h>
#include <stdbool.h>
#include <vector_types.h>

#pragma GCC visibility push(hidden)

/* Called before the program registers its device code, when the environment is
 * still the one that `sundog run` set. */
void host_kernel_begin(void);

/* `name` is the kernel's symbol and must stay valid. */
void host_kernel_register(const void *function, const char *name);

bool host_kernel_known(const void *function);
/* Its symbol; NULL if it was never registered. */
const char *host_kernel_name(const void *function);

/* The program's function that does on the CPU what a kernel does on a GPU. */
typedef void host_twin_t(dim3 grid, dim3 block, void **args);

/* The twin of a kernel: the function that the kernel's library, or the program,
 * exports under the kernel's name with __host behind it. In C++ that is the
 * function with such an identifier, the same namespaces, the same arguments of
 * the template and the parameters of host_twin_t; for kernels that are no
 * templates also a function of C with such an identifier. NULL: none is found.
 */
host_twin_t *host_kernel_twin(const void *function);

/* Prints once per kernel that it was not launched, and writes
 * <SUNDOG_REPORT>/unlaunched-PID with the kernel's name, which makes `sundog
 * run` fail. NULL and functions that were never registered have no name. */
void host_kernel_refuse(const void *function);

#pragma GCC visibility pop

#endif
