// SPDX-License-Identifier: Apache-2.0
// Whether a function can be split along a dimension, by what its section says.
#include "rules/file/function/function.h"

static int extent_at(const sdg_function_t *function, int tensor,
                     sdg_dim_t dim) {
  for (int i = 0; i < function->tensor[tensor].dims; i++)
    if (function->tensor[tensor].dim[i] == dim)
      return i;
  return -1;
}

static const sdg_argument_t *argument_of(const sdg_function_t *function,
                                         int tensor) {
  return &function->argument[function->tensor[tensor].argument];
}

static bool is_result(const sdg_function_t *function, int tensor) {
  for (int r = 0; r < function->results; r++)
    if (function->result[r].tensor == tensor)
      return true;
  return false;
}

// An extent such as rows + 2: pieces with two elements more than their rows
// would count them as rows.
static sdg_status_t extent_check(const sdg_location_t *location,
                                 const sdg_function_t *function,
                                 const char *section, int tensor, int i) {
  static const int64_t none[SDG_ARGUMENTS_MAX];
  const sdg_function_tensor_t *t = &function->tensor[tensor];
  int64_t more;
  if (t->ghosts_said || sdg_expression_argument(&t->extent[i]) == -1 ||
      !sdg_expression_value(&t->extent[i], none, &more) || more == 0)
    return SDG_OK;
  return sdg_location_fail(
      location, SDG_E_RULES_VALUE,
      "function '%s': '%s' has %lld elements of %s beside what its argument "
      "says, and section '%s' splits %s. Write 'ghosts [...]' behind its "
      "extents: how many on each side are copies of a neighbour's (of rows + "
      "2: 1; of the faces of cells, rows + 1: 0:1), or 0 if all are its own",
      function->name, argument_of(function, tensor)->name, (long long)more,
      sdg_dim_name(t->dim[i]), section, sdg_dim_name(t->dim[i]));
}

// What has no rows cannot be written by ranks that have other rows, unless
// each of them sees all.
static sdg_status_t written_check(const sdg_location_t *location,
                                  const sdg_function_t *function,
                                  const char *section, int tensor,
                                  sdg_dim_t dim) {
  const sdg_argument_t *argument = argument_of(function, tensor);
  if (argument->use == SDG_ARGUMENT_IN || is_result(function, tensor) ||
      function->reach[dim] == SDG_REACH_ALL)
    return SDG_OK;
  return sdg_location_fail(
      location, SDG_E_RULES_VALUE,
      "function '%s' writes '%s', which has no %s, and section '%s' splits %s: "
      "each rank would write what its own piece gives. Write %s:all in "
      "`reach`, "
      "or `result` if it is a sum, mean, largest or smallest",
      function->name, argument->name, sdg_dim_name(dim), section,
      sdg_dim_name(dim), sdg_dim_name(dim));
}

static sdg_status_t few_fail(const sdg_location_t *location,
                             const sdg_function_t *function,
                             const char *section, int tensor, sdg_dim_t dim) {
  return sdg_location_fail(
      location, SDG_E_RULES_VALUE,
      "function '%s' sees further in %s, which section '%s' splits, than '%s' "
      "has ghosts. If it sees '%s' at its own place only, write 'ghosts' with "
      "0 "
      "for %s; if it sees one side only, write 'reach = %s:0:1'",
      function->name, sdg_dim_name(dim), section,
      argument_of(function, tensor)->name, argument_of(function, tensor)->name,
      sdg_dim_name(dim), sdg_dim_name(dim));
}

// Ghosts are filled in the program's own memory, so that what the function
// reads needs room for all that it sees. Otherwise it would take the end of a
// piece for the end of the domain.
static sdg_status_t ghosts_check(const sdg_location_t *location,
                                 const sdg_function_t *function,
                                 const char *section, int tensor,
                                 sdg_dim_t dim) {
  const sdg_function_tensor_t *t = &function->tensor[tensor];
  const sdg_argument_t *argument = argument_of(function, tensor);
  int i = extent_at(function, tensor, dim);
  if (t->has_ghosts && sdg_function_ghosts(function, dim) == 0)
    return sdg_location_fail(
        location, SDG_E_RULES_VALUE,
        "function '%s' has a reach in %s, which section '%s' splits, and its "
        "tensors have ghosts in other dimensions only: they need them in %s, "
        "too",
        function->name, sdg_dim_name(dim), section, sdg_dim_name(dim));
  if (sdg_function_ghosts(function, dim) == 0 || i < 0 ||
      argument->use == SDG_ARGUMENT_OUT)
    return SDG_OK;
  if (t->ghosts_said && t->ghost[i].before == 0 && t->ghost[i].behind == 0)
    return SDG_OK; // it is seen at its own place
  if (function->reach[dim] == SDG_REACH_ALL ||
      function->sees[dim].before > t->ghost[i].before ||
      function->sees[dim].behind > t->ghost[i].behind)
    return few_fail(location, function, section, tensor, dim);
  return argument->use == SDG_ARGUMENT_INOUT && !function->copies
             ? sdg_location_fail(
                   location, SDG_E_RULES_VALUE,
                   "function '%s' reads ghosts of '%s' in %s, and writes it: "
                   "what it has overwritten already would decide. Write 'copy "
                   "= yes' if it sees old values only",
                   function->name, argument->name, sdg_dim_name(dim))
             : SDG_OK;
}

// A function that gets the elements around a piece in other memory.
static sdg_status_t copies_check(const sdg_location_t *location,
                                 const sdg_function_t *function,
                                 const char *section, sdg_dim_t dim) {
  bool updates = false;
  for (int t = 0; t < function->tensors; t++)
    updates |= argument_of(function, t)->use == SDG_ARGUMENT_INOUT;
  if (function->results > 0 || function->returned.number.bytes)
    return sdg_location_fail(
        location, SDG_E_RULES_VALUE,
        "function '%s' has a result over all elements and a reach in %s, "
        "which section '%s' splits: the elements around a piece would count "
        "twice",
        function->name, sdg_dim_name(dim), section);
  return !updates || function->copies
             ? SDG_OK
             : sdg_location_fail(
                   location, SDG_E_RULES_VALUE,
                   "function '%s' has an inout argument and a reach in %s, "
                   "which section '%s' splits: what it has overwritten already "
                   "would decide. Write 'copy = yes' if it may work on a copy "
                   "with other elements around it",
                   function->name, sdg_dim_name(dim), section);
}

// Elements in front of the first one are those of the other end, and the
// offset of a piece that begins there is negative.
static sdg_status_t offsets_check(const sdg_location_t *location,
                                  const sdg_function_t *function,
                                  sdg_dim_t dim) {
  for (int o = 0; o < function->offsets; o++) {
    const sdg_argument_t *argument =
        &function->argument[function->offset[o].argument];
    if (function->offset[o].dim == dim && argument->number[0].kind == 'u' &&
        function->border[dim] == SDG_BORDER_WRAP &&
        function->reach[dim] != SDG_REACH_ALL)
      return sdg_location_fail(
          location, SDG_E_RULES_VALUE,
          "function '%s': the offset '%s' is unsigned, and a piece of %s, "
          "which "
          "wraps, begins with elements of the other end, in front of 0",
          function->name, argument->name, sdg_dim_name(dim));
  }
  return SDG_OK;
}

static sdg_status_t reach_check(const sdg_location_t *location,
                                const sdg_function_t *function,
                                const char *section, sdg_view_t view,
                                sdg_dim_t dim) {
  if (function->reach[dim] == SDG_REACH_UNSAID)
    return sdg_location_fail(
        location, SDG_E_RULES_VALUE,
        "section '%s' splits %s, and `reach` of function '%s' does not say %s",
        section, sdg_dim_name(dim), function->name, sdg_dim_name(dim));
  if (function->reach[dim] == 0)
    return SDG_OK;
  if (sdg_function_ghosts(function, dim) == 0)
    SDG_TRY(offsets_check(location, function, dim));
  if (function->is_kernel)
    SDG_TRY(sdg_grid_check_split(location, function, section, dim));
  for (int t = 0; t < function->tensors && view != SDG_VIEW_WHOLE; t++)
    SDG_TRY(ghosts_check(location, function, section, t, dim));
  return sdg_function_ghosts(function, dim) > 0
             ? SDG_OK
             : copies_check(location, function, section, dim);
}

sdg_status_t sdg_function_check_split(const sdg_location_t *location,
                                      const sdg_function_t *function,
                                      const char *section, sdg_view_t view,
                                      sdg_dim_t dim) {
  bool has = false;
  for (int t = 0; t < function->tensors; t++)
    has |= extent_at(function, t, dim) >= 0;
  if (!has)
    return SDG_OK;
  // In the whole view a tensor is as long as on one rank.
  for (int t = 0; t < function->tensors && view != SDG_VIEW_WHOLE; t++) {
    int i = extent_at(function, t, dim);
    if (i >= 0)
      SDG_TRY(extent_check(location, function, section, t, i));
    else
      SDG_TRY(written_check(location, function, section, t, dim));
  }
  return reach_check(location, function, section, view, dim);
}
