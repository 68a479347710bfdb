// SPDX-License-Identifier: Apache-2.0
// The arguments of a captured call by what they mean: reads them, and makes
// the call with some of them replaced.
#include "rules/vendor/argument.h"

#include <string.h>

#include "rules/vendor/gemm.h"

static const void *address(const sdg_call_t *call, uint16_t at) {
  return at ? (const char *)call->args + at - 1 : NULL;
}

static const void *argument(const sdg_call_t *call, int which) {
  return address(call, sdg_argument_row(call->entry)->argument[which]);
}

static void *pointer(const void *at) {
  void *value = NULL;
  if (at)
    memcpy(&value, at, sizeof value);
  return value;
}

bool sdg_call_is_complete(const sdg_call_t *call) {
  return call->operands == sdg_argument_row(call->entry)->operands;
}

bool sdg_call_has(const sdg_call_t *call, sdg_argument_t which) {
  return argument(call, (int)which) != NULL;
}

const void *sdg_call_scalar_at(const sdg_call_t *call,
                               sdg_scalar_argument_t which) {
  return pointer(argument(call, (int)which));
}

static const sdg_scalar_argument_t scalars[] = {
#define SDG_SCALAR(name) SDG_##name,
#include "rules/vendor/arguments.def"
};

bool sdg_call_lacks_scalar(const sdg_call_t *call) {
  const sdg_gemm_t *gemm = call->args;
  if (sdg_family_is(call->family, SDG_FAMILY_STATED))
    return !gemm->alpha || !gemm->beta;
  for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++)
    if (argument(call, (int)scalars[i]) &&
        !sdg_call_scalar_at(call, scalars[i]))
      return true;
  return false;
}

double sdg_call_scalar_value(const sdg_call_t *call, const void *scalar) {
  if (!scalar)
    return 0;
  return call->operand[0].type == SDG_TYPE_DOUBLE ? *(const double *)scalar
                                                  : *(const float *)scalar;
}

double sdg_call_scalar(const sdg_call_t *call, sdg_scalar_argument_t which) {
  return sdg_call_scalar_value(call, sdg_call_scalar_at(call, which));
}

int sdg_call_scalars(const sdg_call_t *call, double *out) {
  static const sdg_number_argument_t numbers[] = {
#define SDG_NUMBER(name) SDG_##name,
#include "rules/vendor/arguments.def"
  };
  int count = 0;
  for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++)
    if (argument(call, (int)scalars[i]))
      out[count++] = sdg_call_scalar(call, scalars[i]);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    if (argument(call, (int)numbers[i]))
      out[count++] = sdg_call_number(call, numbers[i]);
  return count;
}

void *sdg_call_pointer(const sdg_call_t *call, sdg_pointer_argument_t which) {
  return pointer(argument(call, (int)which));
}

size_t sdg_call_size(const sdg_call_t *call, sdg_size_argument_t which) {
  const size_t *at = argument(call, (int)which);
  return at ? *at : 0;
}

int sdg_call_int(const sdg_call_t *call, sdg_int_argument_t which) {
  const int *at = argument(call, (int)which);
  return at ? *at : 0;
}

double sdg_call_number(const sdg_call_t *call, sdg_number_argument_t which) {
  const double *at = argument(call, (int)which);
  return at ? *at : 0;
}

void *sdg_call_descriptor(const sdg_call_t *call, sdg_role_t role) {
  return pointer(
      address(call, sdg_argument_row(call->entry)->descriptor[role]));
}

void *sdg_call_data(const sdg_call_t *call, sdg_role_t role) {
  return pointer(address(call, sdg_argument_row(call->entry)->data[role]));
}

// ---- the call with other arguments ------------------------------------------

void sdg_rebind_init(const sdg_call_t *call, sdg_rebind_t *out) {
  out->call = call;
  if (call->entry >= 0) // sundog's own: its arguments have no tensors
    memcpy(&out->args, call->args, sdg_invoke_bytes(call->entry));
}

// `at`: an offset plus 1, as in sdg_argument_row_t; 0: no such argument.
static void put(sdg_rebind_t *rebind, uint16_t at, const void *value,
                size_t bytes) {
  if (at)
    memcpy((char *)&rebind->args + at - 1, value, bytes);
}

static void argument_put(sdg_rebind_t *rebind, int which, const void *value,
                         size_t bytes) {
  const sdg_argument_row_t *row = sdg_argument_row(rebind->call->entry);
  put(rebind, row->argument[which], value, bytes);
}

void sdg_rebind_put(sdg_rebind_t *rebind, int index, const void *descriptor,
                    void *data) {
  const sdg_operand_t *operand = &rebind->call->operand[index];
  char *args = (char *)&rebind->args;
  if (rebind->call->entry < 0)
    return;
  if (operand->descriptor_at != SDG_NOWHERE)
    memcpy(args + operand->descriptor_at, &descriptor, sizeof descriptor);
  if (operand->data_at != SDG_NOWHERE)
    memcpy(args + operand->data_at, &data, sizeof data);
}

void sdg_rebind_tensor(sdg_rebind_t *rebind, sdg_role_t role,
                       const void *descriptor, const void *data) {
  const sdg_argument_row_t *row = sdg_argument_row(rebind->call->entry);
  put(rebind, row->descriptor[role], &descriptor, sizeof descriptor);
  put(rebind, row->data[role], &data, sizeof data);
}

void sdg_rebind_scalar(sdg_rebind_t *rebind, sdg_scalar_argument_t which,
                       const void *scalar) {
  argument_put(rebind, (int)which, &scalar, sizeof scalar);
}

void sdg_rebind_pointer(sdg_rebind_t *rebind, sdg_pointer_argument_t which,
                        const void *pointer) {
  argument_put(rebind, (int)which, &pointer, sizeof pointer);
}

void sdg_rebind_size(sdg_rebind_t *rebind, sdg_size_argument_t which,
                     size_t size) {
  argument_put(rebind, (int)which, &size, sizeof size);
}

void sdg_rebind_int(sdg_rebind_t *rebind, sdg_int_argument_t which, int value) {
  argument_put(rebind, (int)which, &value, sizeof value);
}

int sdg_rebind_invoke(const sdg_rebind_t *rebind) {
  return sdg_invoke(rebind->call->entry, &rebind->args);
}
