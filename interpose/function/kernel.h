/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the program's own, captured as they are launched. */
#ifndef SDG_INTERPOSE_FUNCTION_KERNEL_H
#define SDG_INTERPOSE_FUNCTION_KERNEL_H

#include <stdbool.h>

/* Whether the rules have a [kernel] section. Reads the rules. */
bool sdg_kernel_declared(void);

/* The program launches a kernel; arguments as those of sdg_capture. True: the
 * launch was carried out or refused, and *out_result is its status. */
bool sdg_kernel_capture(int entry, const void *args, const void *caller,
                        int *out_result);

/* The program tells the runtime of a kernel. */
void sdg_kernel_register(const char *symbol);

/* At exit: writes which declared kernels were there and were launched. */
void sdg_kernel_finish(void);

/* The program makes the kernel a node of a graph. True: it is refused, because
 * nothing would split what the graph launches. */
bool sdg_kernel_node(int entry, const void *kernel, const void *caller);

/* The symbol of a kernel; NULL if the runtime does not tell it. */
const char *sdg_kernel_symbol(const void *kernel);

#endif
