/* SPDX-License-Identifier: Apache-2.0 */
/* A call of a function of the program's own, as an op's call. */
#ifndef SDG_RULES_FUNCTION_CALL_H
#define SDG_RULES_FUNCTION_CALL_H

#include "rules/file/function/function.h"
#include "src/call/call.h"

/* One invocation while it lasts; call->args. */
typedef struct sdg_function_call {
  const sdg_function_t *function;
  /* value[i] points to argument i as the program gave it: a number, a struct,
   * or an address. */
  void *const *value;
  const void *stream; /* of a kernel's launch */
  /* Of arguments that are integers, whether given by address or not; others are
   * 0. */
  int64_t integer[SDG_ARGUMENTS_MAX];
  /* Calls the function with other arguments. keeps: what it returns becomes
   * what the program's call returns. */
  void (*invoke)(const struct sdg_function_call *call, void *const *value,
                 bool keeps);
  void *user; /* of invoke */
  /* Room for what it returns: an integer or address of 8 bytes, or a floating
   * number. */
  void *returned;
} sdg_function_call_t;

static inline const sdg_function_call_t *
sdg_function_call_of(const sdg_call_t *call) {
  return call->args;
}

/* Whether a call with these arguments was found to be untagged before, and
 * concerns sundog no more. Only sizes and addresses of tensors need a value. */
bool sdg_function_passes(const sdg_function_t *function, void *const *value);

/* Reads the integers among the arguments, and makes the operands: first the
 * tensor that sections match, then the others. Fails with SDG_E_FUNCTION if an
 * extent or a stride is not positive, or an address is NULL. */
sdg_status_t sdg_function_call_init(sdg_function_call_t *io_function,
                                    sdg_call_t *out) SDG_MUST_CHECK;

/* out_integer[i]: argument i, if it is an integer; else 0. SDG_E_FUNCTION if
 * its address is NULL. */
sdg_status_t sdg_function_integers(const sdg_function_t *function,
                                   void *const *value,
                                   int64_t *out_integer) SDG_MUST_CHECK;

/* The tensor of an operand. */
int sdg_function_tensor_of(const sdg_function_t *function, int operand);
/* Operand 0's tensor: the first input that has most dimensions, or else the
 * first output. */
int sdg_function_lead(const sdg_function_t *function);
/* The index of a tensor's dimension in its operand, where dimensions are N C
 * (D) H W. */
int sdg_function_dim(const sdg_function_t *function, sdg_dim_t dim);
/* The dimension of a tensor that is dimension `d` of its operand; -1: the
 * tensor does not have it. */
int sdg_function_extent_at(const sdg_function_t *function, int tensor, int d);
/* An output at the address of an input; -1: none lies there. */
int sdg_function_alias(const sdg_call_t *call);
bool sdg_function_is_result(const sdg_function_t *function, int tensor);
/* Whether numbers over all elements are combined over the ranks. */
bool sdg_function_has_results(const sdg_function_t *function);
/* The integer at an address. */
int64_t sdg_function_integer(sdg_number_t number, const void *at);
/* The vendor's name of a type; where it has none, that of one as large: such
 * elements are only moved. */
sdg_type_t sdg_function_type(sdg_number_t element);

#endif
