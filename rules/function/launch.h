/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of kernels as calls of functions: which section is about a kernel,
 * and the grid on a piece. */
#ifndef SDG_RULES_FUNCTION_LAUNCH_H
#define SDG_RULES_FUNCTION_LAUNCH_H

#include "rules/file/function/function.h"

/* The section that is about the kernel with this symbol: the index in `rules`
 * of the first that matches; -1: none does. */
int sdg_kernel_find(const sdg_rules_t *rules, const char *symbol);

/* The grid with which a kernel works on a piece. integer, piece[i]: argument i
 * of the program's launch and of the one on the piece, if it is an integer.
 * io_grid: the program's blocks in x, y and z become those of the piece.
 * SDG_E_KERNEL_GRID if the program's are not what the section says. */
sdg_status_t sdg_kernel_grid(const sdg_function_t *kernel,
                             const int64_t *integer, const int64_t *piece,
                             unsigned *io_grid) SDG_MUST_CHECK;

/* The bytes that argument `index` takes among a kernel's parameters. */
size_t sdg_kernel_argument_bytes(const sdg_function_t *kernel, int index);

/* Fails with SDG_E_KERNEL_UNKNOWN if the symbol tells that the kernel has other
 * parameters than the section: their number, which of them are addresses, types
 * of numbers and of tensors. Symbols of C tell nothing. */
sdg_status_t sdg_kernel_compare(const sdg_function_t *kernel,
                                const char *symbol) SDG_MUST_CHECK;

#endif
