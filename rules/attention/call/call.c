// SPDX-License-Identifier: Apache-2.0
// Reads a call of multi-head attention from the arguments of its entry.
#include "rules/attention/call/call.h"

#include <string.h>

#include "rules/vendor/argument.h"
#include "rules/vendor/sequence.h"

static sdg_attention_kind_t kind_of(const sdg_call_t *call) {
  switch (call->entry) {
  case SDG_ENTRY_cudnnMultiHeadAttnForward:
    return SDG_ATTENTION_FORWARD;
  case SDG_ENTRY_cudnnMultiHeadAttnBackwardData:
    return SDG_ATTENTION_DATA;
  default:
    return SDG_ATTENTION_WEIGHTS;
  }
}

static int *index_of(sdg_attention_t *a, sdg_role_t role) {
  switch (role) {
  case SDG_ROLE_Q:
    return &a->q;
  case SDG_ROLE_K:
    return &a->k;
  case SDG_ROLE_V:
    return &a->v;
  case SDG_ROLE_O:
  case SDG_ROLE_DO:
    return &a->o;
  case SDG_ROLE_Z:
    return &a->residual;
  case SDG_ROLE_DQ:
    return &a->dq;
  case SDG_ROLE_DK:
    return &a->dk;
  case SDG_ROLE_DV:
    return &a->dv;
  case SDG_ROLE_W:
    return &a->w;
  default:
    return &a->dw;
  }
}

static bool one_tensor(const sdg_operand_t *a, const sdg_operand_t *b) {
  return a->data == b->data &&
         memcmp(a->extent, b->extent, sizeof a->extent) == 0 &&
         memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

bool sdg_attention_read(const sdg_call_t *call, sdg_attention_t *out) {
  sdg_attention_t a = {
      .kind = kind_of(call),
      .current = -1,
      .windows = {.lo = sdg_call_pointer(call, SDG_WINDOW_LO),
                  .hi = sdg_call_pointer(call, SDG_WINDOW_HI)},
      .adds = sdg_call_has(call, SDG_ARGUMENT_ADDS) &&
              sdg_call_int(call, SDG_ADDS) == CUDNN_WGRAD_MODE_ADD,
      .weights = sdg_call_data(call, SDG_ROLE_W),
      .weight_bytes = sdg_call_size(call, SDG_WEIGHT_BYTES),
      .reserve = sdg_call_pointer(call, SDG_RESERVE),
      .reserve_bytes = sdg_call_size(call, SDG_RESERVE_BYTES),
  };
  if (sdg_call_has(call, SDG_ARGUMENT_CURRENT))
    a.current = sdg_call_int(call, SDG_CURRENT);
  a.q = a.k = a.v = a.o = a.residual = a.dq = a.dk = a.dv = a.dw = a.w = -1;
  bool data = a.kind == SDG_ATTENTION_DATA;
  bool weights = a.kind == SDG_ATTENTION_WEIGHTS;
  for (int i = 0; i < call->operands; i++)
    *index_of(&a, call->operand[i].role) = i;
  if (!sdg_attention_descriptor_get(call->op_descriptor, &a.desc) || a.q < 0 ||
      a.k < 0 || a.v < 0 || a.o < 0 ||
      (data && (a.dq < 0 || a.dk < 0 || a.dv < 0)) ||
      (weights && (a.dw < 0 || !call->operand[a.dw].data)) ||
      (!weights && (!a.windows.lo || !a.windows.hi)) ||
      (a.kind != SDG_ATTENTION_FORWARD && !a.reserve))
    return false;
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].type != (sdg_type_t)a.desc.type)
      return false;
  a.windows.count = call->operand[a.q].extent[SDG_SEQUENCE_TIME];
  a.same = one_tensor(&call->operand[a.k], &call->operand[a.v]);
  *out = a;
  return true;
}
