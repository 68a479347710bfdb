// SPDX-License-Identifier: Apache-2.0
// Solves the section's expressions for the extents of a piece.
#include "rules/function/fit.h"

#include <string.h>

static sdg_status_t fixed_fail(const sdg_function_t *function, int tensor,
                               sdg_dim_t dim, int64_t wanted) {
  return sdg_fail(
      SDG_E_FUNCTION_PIECE,
      "%s: no integer argument makes %s of '%s' %lld; its extent has to name "
      "one argument, and be linear in it",
      function->name, sdg_dim_name(dim),
      function->argument[function->tensor[tensor].argument].name,
      (long long)wanted);
}

// Sets the argument that the extent names. An argument that was set already
// must be right.
static sdg_status_t extent_fit(const sdg_function_t *function, int tensor,
                               int i, int64_t wanted, bool *io_set,
                               int64_t *io_integer) {
  const sdg_expression_t *extent = &function->tensor[tensor].extent[i];
  sdg_dim_t dim = function->tensor[tensor].dim[i];
  int64_t value;
  int argument = sdg_expression_argument(extent);
  if (sdg_expression_value(extent, io_integer, &value) && value == wanted) {
    if (argument >= 0)
      io_set[argument] = true;
    return SDG_OK;
  }
  if (argument < 0 || io_set[argument] ||
      !sdg_expression_solve(extent, wanted, argument, io_integer))
    return fixed_fail(function, tensor, dim, wanted);
  io_set[argument] = true;
  return SDG_OK;
}

sdg_status_t sdg_function_fit(const sdg_function_call_t *call,
                              const sdg_box_t *piece, int64_t *io_integer) {
  const sdg_function_t *function = call->function;
  bool set[SDG_ARGUMENTS_MAX] = {false};
  memcpy(io_integer, call->integer, sizeof call->integer);
  for (int t = 0; t < function->tensors; t++)
    for (int i = 0; i < function->tensor[t].dims; i++) {
      int d = sdg_function_dim(function, function->tensor[t].dim[i]);
      int64_t wanted = sdg_box_length(piece, d) +
                       function->tensor[t].ghost[i].before +
                       function->tensor[t].ghost[i].behind;
      if (!sdg_function_is_result(function, t))
        SDG_TRY(extent_fit(function, t, i, wanted, set, io_integer));
    }
  return SDG_OK;
}

sdg_status_t sdg_function_strides(const sdg_function_t *function, int tensor,
                                  const sdg_box_t *piece,
                                  const int64_t *integer, int64_t *out_stride) {
  const sdg_function_tensor_t *t = &function->tensor[tensor];
  int64_t packed = 1;
  for (int d = 0; d < SDG_DIMS_MAX; d++)
    out_stride[d] = 1;
  for (int i = t->dims - 1; i >= 0; i--) {
    int d = sdg_function_dim(function, t->dim[i]);
    out_stride[d] = packed;
    packed *= sdg_box_length(piece, d);
    if (t->strided &&
        (!sdg_expression_value(&t->stride[i], integer, &out_stride[d]) ||
         out_stride[d] < 1))
      return fixed_fail(function, tensor, t->dim[i], packed);
  }
  // A dimension lies outside all whose strides are smaller.
  for (int i = 0; i < t->dims && t->strided; i++) {
    int d = sdg_function_dim(function, t->dim[i]);
    int64_t inside = 0;
    for (int k = 0; k < t->dims; k++) {
      int e = sdg_function_dim(function, t->dim[k]);
      if (out_stride[e] < out_stride[d] ||
          (out_stride[e] == out_stride[d] && k != i && e > d))
        inside += out_stride[e] * (sdg_box_length(piece, e) - 1);
    }
    if (sdg_box_length(piece, d) > 1 && inside >= out_stride[d])
      return sdg_fail(
          SDG_E_FUNCTION_PIECE,
          "%s: the strides of '%s' leave no room for the rows around a piece: "
          "%lld of %s would be %lld elements apart",
          function->name, function->argument[t->argument].name,
          (long long)sdg_box_length(piece, d), sdg_dim_name(t->dim[i]),
          (long long)out_stride[d]);
  }
  return SDG_OK;
}
