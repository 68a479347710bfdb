// SPDX-License-Identifier: Apache-2.0
// Kernels by their names, and their grids.
#include "rules/function/launch.h"

#include <fnmatch.h>
#include <limits.h>

#include "src/call/symbol.h"

int sdg_kernel_find(const sdg_rules_t *rules, const char *symbol) {
  char name[1024];
  sdg_symbol_t parts;
  bool read = sdg_symbol_read(symbol, name, sizeof name, &parts);
  for (int f = 0; f < rules->functions; f++) {
    const sdg_function_t *kernel = &rules->function[f];
    if (kernel->is_kernel && (fnmatch(kernel->symbol, symbol, 0) == 0 ||
                              (read && fnmatch(kernel->symbol, name, 0) == 0)))
      return f;
  }
  return -1;
}

static sdg_status_t grid_fail(const sdg_function_t *kernel, int d,
                              unsigned blocks, int64_t value) {
  return sdg_fail(SDG_E_KERNEL_GRID,
                  "%s: the program's grid has %u blocks in %c, and `grid` says "
                  "%lld",
                  kernel->name, blocks, "xyz"[d], (long long)value);
}

sdg_status_t sdg_kernel_grid(const sdg_function_t *kernel,
                             const int64_t *integer, const int64_t *piece,
                             unsigned *io_grid) {
  for (int a = 0; a < kernel->arguments; a++)
    if (kernel->argument[a].is_size && integer[a] != piece[a] &&
        !sdg_grid_follows(&kernel->grid, a))
      return sdg_fail(SDG_E_KERNEL_GRID,
                      "%s: `grid` does not say how the launch follows '%s', "
                      "which is %lld on a piece",
                      kernel->name, kernel->argument[a].name,
                      (long long)piece[a]);
  for (int d = 0; d < SDG_GRID_DIMS; d++) {
    const sdg_expression_t *blocks = &kernel->grid.blocks[d];
    int64_t up = -1, down = -1, on_piece = -1;
    if (!kernel->grid.said[d])
      continue;
    bool ceiling = sdg_expression_ceiling(blocks, integer, &up) &&
                   up == (int64_t)io_grid[d];
    if (!ceiling && (!sdg_expression_value(blocks, integer, &down) ||
                     down != (int64_t)io_grid[d]))
      return grid_fail(kernel, d, io_grid[d], up);
    bool known = ceiling ? sdg_expression_ceiling(blocks, piece, &on_piece)
                         : sdg_expression_value(blocks, piece, &on_piece);
    if (!known || on_piece < 1 || on_piece > INT_MAX)
      return sdg_fail(SDG_E_KERNEL_GRID,
                      "%s: `grid` gives no number of blocks in %c for a piece "
                      "with the rows around it",
                      kernel->name, "xyz"[d]);
    io_grid[d] = (unsigned)on_piece;
  }
  return SDG_OK;
}

size_t sdg_kernel_argument_bytes(const sdg_function_t *kernel, int index) {
  const sdg_argument_t *argument = &kernel->argument[index];
  return argument->use == SDG_ARGUMENT_NUMBER
             ? sdg_argument_offset(argument,
                                   argument->members ? argument->members : 1)
             : sizeof(void *);
}

// ---- parameters ------------------------------------------------------------

static sdg_status_t argument_fail(const sdg_function_t *kernel, int index,
                                  const char *symbol) {
  return sdg_fail(SDG_E_KERNEL_UNKNOWN,
                  "%s: '%s' is not what parameter %d of the kernel %s is",
                  kernel->name, kernel->argument[index].name, index + 1,
                  symbol);
}

static bool is_alike(sdg_number_t said, const sdg_parameter_t *is) {
  bool floating = said.kind != 'i' && said.kind != 'u';
  return !is->kind ||
         (is->bytes == said.bytes && (is->kind == 'f') == floating);
}

static bool argument_fits(const sdg_function_t *kernel, int index,
                          const sdg_parameter_t *is) {
  const sdg_argument_t *argument = &kernel->argument[index];
  if (!is->is_known)
    return true;
  if ((argument->use != SDG_ARGUMENT_NUMBER) != is->is_address)
    return false;
  if (argument->use == SDG_ARGUMENT_NUMBER)
    return argument->members == 0 && is_alike(argument->number[0], is);
  return argument->tensor < 0 ||
         is_alike(kernel->tensor[argument->tensor].element, is);
}

sdg_status_t sdg_kernel_compare(const sdg_function_t *kernel,
                                const char *symbol) {
  enum { PARAMETERS_MAX = 2 * SDG_ARGUMENTS_MAX };
  char name[1024];
  sdg_symbol_t parts;
  sdg_parameter_t parameter[PARAMETERS_MAX];
  if (!sdg_symbol_read(symbol, name, sizeof name, &parts))
    return SDG_OK;
  int count = sdg_symbol_parameters(&parts, PARAMETERS_MAX, parameter);
  if (count < 0)
    return SDG_OK;
  if (count != kernel->arguments)
    return sdg_fail(SDG_E_KERNEL_UNKNOWN,
                    "%s: the section has %d arguments, and the kernel %s has "
                    "%d",
                    kernel->name, kernel->arguments, symbol, count);
  for (int a = 0; a < count; a++)
    if (!argument_fits(kernel, a, &parameter[a]))
      return argument_fail(kernel, a, symbol);
  return SDG_OK;
}
