/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's sundog_redistribute(), looked up like in a program that is not
 * linked to sundog. */
#include <dlfcn.h>

#include "tests/equivalence/driver/op_case.h"
#include "src/sundog.h"

/* Without sundog the rank has all of the tensor, so only the layout changes. */
static int run_redistribute(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y");
  __typeof__(&sundog_redistribute) redistribute =
      (__typeof__(&sundog_redistribute))dlsym(RTLD_DEFAULT,
                                              "sundog_redistribute");
  if (redistribute)
    OP_TRY(redistribute(call->handle, x->desc, op_text(call, "from", ""),
                        x->device, y->desc, op_text(call, "to", ""),
                        y->device));
  else
    OP_TRY(cudnnTransformTensor(
        call->handle, op_scalar(call, "alpha", 1, x->type), x->desc, x->device,
        op_scalar(call, "beta", 0, x->type), y->desc, y->device));
  return 0;
}

static const op_row_t rows[] = {{"redistribute", NULL, run_redistribute},
                                {NULL, NULL, NULL}};
OP_ROWS(rows)
