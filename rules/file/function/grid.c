// SPDX-License-Identifier: Apache-2.0
// Reads what of a kernel's launch follows the extents of its tensors.
#include <stdio.h>
#include <string.h>

#include "rules/file/function/function.h"

static const char *const words[SDG_GRID_DIMS + 1] = {"x", "y", "z", "loop"};

// "planes rows": the kernel goes over them itself.
static sdg_status_t loop_parse(const sdg_location_t *location, sdg_word_t text,
                               sdg_function_t *io) {
  char names[196];
  const char *rest = names;
  sdg_word_t name;
  snprintf(names, sizeof names, "%.*s", text.length, text.at);
  while (sdg_word_next(&rest, " \t", &name)) {
    int argument = sdg_argument_find_integer(io, name);
    if (argument < 0)
      return sdg_location_fail(location, SDG_E_RULES_WORD,
                               "'%.*s' is not the name of an argument that is "
                               "an integer",
                               name.length, name.at);
    io->grid.looped |= 1u << argument;
  }
  return SDG_OK;
}

static sdg_status_t item_parse(const sdg_location_t *location, sdg_word_t item,
                               sdg_function_t *io) {
  const char *colon = memchr(item.at, ':', (size_t)item.length);
  sdg_word_t name = {item.at, colon ? (int)(colon - item.at) : 0}, value = item;
  while (name.length > 0 && name.at[name.length - 1] == ' ')
    name.length--;
  if (colon)
    value = (sdg_word_t){colon + 1, (int)(item.at + item.length - colon) - 1};
  for (int d = 0; d <= SDG_GRID_DIMS && colon; d++) {
    if (!sdg_word_is(name, words[d]))
      continue;
    if (d == SDG_GRID_DIMS)
      return loop_parse(location, value, io);
    if (io->grid.said[d])
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "dimension %s of the grid is given twice",
                               words[d]);
    io->grid.said[d] = true;
    return sdg_expression_parse(location, value, sdg_argument_find_integer, io,
                                &io->grid.blocks[d]);
  }
  return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                           "'%.*s': write 'y: rows / 8' for a dimension x, y "
                           "or z of the grid, or 'loop: rows'",
                           item.length, item.at);
}

sdg_status_t sdg_grid_parse(const sdg_location_t *location, const char *text,
                            sdg_function_t *io) {
  sdg_word_t item;
  while (sdg_word_next(&text, ",", &item))
    SDG_TRY(item_parse(location, item, io));
  return SDG_OK;
}

bool sdg_grid_follows(const sdg_grid_t *grid, int argument) {
  bool found = grid->looped >> argument & 1;
  for (int d = 0; d < SDG_GRID_DIMS && !found; d++)
    found = grid->said[d] && sdg_expression_names(&grid->blocks[d], argument);
  return found;
}

int sdg_grid_unsaid(const sdg_function_t *function, sdg_dim_t dim) {
  for (int t = 0; t < function->tensors; t++)
    for (int i = 0; i < function->tensor[t].dims; i++) {
      int argument = sdg_expression_argument(&function->tensor[t].extent[i]);
      if (function->tensor[t].dim[i] == dim && argument >= 0 &&
          !sdg_grid_follows(&function->grid, argument))
        return argument;
    }
  return -1;
}

sdg_status_t sdg_grid_check_split(const sdg_location_t *location,
                                  const sdg_function_t *function,
                                  const char *section, sdg_dim_t dim) {
  int argument = sdg_grid_unsaid(function, dim);
  if (argument < 0)
    return SDG_OK;
  const char *name = function->argument[argument].name;
  return sdg_location_fail(
      location, SDG_E_RULES_VALUE,
      "section '%s' splits %s, and `grid` of kernel '%s' does not say how the "
      "launch follows '%s': write 'grid = y: %s / 8', or 'grid = loop: %s' if "
      "the kernel covers any number with every grid",
      section, sdg_dim_name(dim), function->name, name, name, name);
}
