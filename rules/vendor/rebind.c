// SPDX-License-Identifier: Apache-2.0
// Calls of the program's with some of the arguments replaced.
#include "rules/vendor/rebind.h"

#include <stdint.h>
#include <string.h>

#include "rules/vendor/invoke.h"

void sdg_rebind_init(const sdg_call_t *call, sdg_rebind_t *out) {
  out->call = *call;
  if (call->entry < 0) // sundog's own: its arguments have no tensors
    return;
  out->call.args = &out->args;
  memcpy(&out->args, call->args, sdg_invoke_bytes(call->entry));
}

void sdg_rebind_put(sdg_rebind_t *standin, int index, const void *descriptor,
                    void *data) {
  sdg_operand_t *operand = &standin->call.operand[index];
  char *args = (char *)&standin->args;
  operand->data = data;
  if (standin->call.entry < 0)
    return;
  if (operand->descriptor_at != SDG_NOWHERE)
    memcpy(args + operand->descriptor_at, &descriptor, sizeof descriptor);
  if (operand->data_at != SDG_NOWHERE)
    memcpy(args + operand->data_at, &data, sizeof data);
}

int sdg_rebind_invoke(const sdg_rebind_t *standin) {
  return sdg_invoke(standin->call.entry, &standin->args);
}
