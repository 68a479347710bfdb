// SPDX-License-Identifier: Apache-2.0
// Makes the program's calls with some of the arguments replaced.
#include "rules/vendor/rebind.h"

#include <string.h>

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
