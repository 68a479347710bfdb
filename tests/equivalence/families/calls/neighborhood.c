/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's neighbourhood attention. It looks up sundog's functions, like a
 * program that is not linked to sundog. */
#include <dlfcn.h>
#include <stdio.h>

#include "tests/equivalence/driver/op_case.h"
#include "src/sundog.h"

static void window_read(const op_call_t *call, sundog_neighborhood_t *how) {
  int kernel[OP_DIMS], dilation[OP_DIMS], causal[OP_DIMS];
  *how = (sundog_neighborhood_t){.dims = op_number(call, "dims", 1),
                                 .cut = op_number(call, "cut", 0),
                                 .heads = op_number(call, "c", 1),
                                 .scale = op_real(call, "scale", 0)};
  op_list(call, "kernel", kernel);
  op_list(call, "dilation", dilation);
  op_list(call, "causal", causal);
  for (int d = 0; d < how->dims; d++) {
    how->kernel[d] = kernel[d];
    how->dilation[d] = dilation[d];
    how->causal[d] = causal[d];
  }
}

static int missing(void) {
  fprintf(stderr, "op_case: sundog is not there\n");
  return OP_BAD_SCRIPT;
}

static int run_forward(op_call_t *call) {
  const op_tensor_t *q = op_tensor(call, "q"), *k = op_tensor(call, "k"),
                    *v = op_tensor(call, "v"), *o = op_tensor(call, "o");
  __typeof__(&sundog_neighborhood_attention) attention =
      (__typeof__(&sundog_neighborhood_attention))dlsym(
          RTLD_DEFAULT, "sundog_neighborhood_attention");
  sundog_neighborhood_t how;
  if (!attention)
    return missing();
  window_read(call, &how);
  return attention(call->handle, &how, q->desc, q->device, k->desc, k->device,
                   v->desc, v->device, o->desc, o->device);
}

static int run_backward(op_call_t *call) {
  const op_tensor_t *q = op_tensor(call, "q"), *k = op_tensor(call, "k"),
                    *v = op_tensor(call, "v"), *g = op_tensor(call, "do"),
                    *dq = op_tensor(call, "dq"), *dk = op_tensor(call, "dk"),
                    *dv = op_tensor(call, "dv");
  __typeof__(&sundog_neighborhood_attention_backward) backward =
      (__typeof__(&sundog_neighborhood_attention_backward))dlsym(
          RTLD_DEFAULT, "sundog_neighborhood_attention_backward");
  sundog_neighborhood_t how;
  if (!backward)
    return missing();
  window_read(call, &how);
  return backward(call->handle, &how, q->desc, q->device, k->desc, k->device,
                  v->desc, v->device, g->desc, g->device, dq->desc, dq->device,
                  dk->desc, dk->device, dv->desc, dv->device);
}

static const op_row_t rows[] = {
    {"neighborhood_forward", NULL, run_forward},
    {"neighborhood_backward", NULL, run_backward},
    {0},
};
OP_ROWS(rows)
