// SPDX-License-Identifier: Apache-2.0
// Calls the function on the pieces of a plan.
#include <cuda_runtime_api.h>
#include <string.h>

#include "rules/function/maker.h"
#include "rules/memory/memory.h"
#include "src/base/vendor.h"

static void number_write(sdg_number_t number, int64_t value, void *at) {
  memcpy(at, &value, (size_t)number.bytes); // little endian
}

// What the function's arguments become.
typedef struct arguments {
  void *value[SDG_ARGUMENTS_MAX];
  int64_t number[SDG_ARGUMENTS_MAX];
  void *address[SDG_ARGUMENTS_MAX];
} arguments_t;

static void arguments_make(const sdg_function_piece_t *piece,
                           const sdg_call_t *call, const sdg_exec_t *exec,
                           arguments_t *out) {
  const sdg_function_call_t *c = sdg_function_call_of(call);
  const sdg_function_t *function = c->function;
  memcpy(out->value, c->value,
         (size_t)function->arguments * sizeof *out->value);
  for (int a = 0; a < function->arguments; a++) {
    const sdg_argument_t *argument = &function->argument[a];
    bool size = piece->changed >> a & 1;
    if (!size && !piece->offset[a])
      continue;
    number_write(argument->number[0],
                 size ? piece->integer[a] : c->integer[a] + piece->offset[a],
                 &out->number[a]);
    out->address[a] = &out->number[a];
    out->value[a] = argument->by_reference ? (void *)&out->address[a]
                                           : (void *)&out->number[a];
  }
  for (int i = 0; i < call->operands; i++) {
    int a = function->tensor[sdg_function_tensor_of(function, i)].argument;
    if (sdg_function_is_result(function, sdg_function_tensor_of(function, i)) ||
        function->tensor[sdg_function_tensor_of(function, i)].has_ghosts)
      continue;
    out->address[a] = sdg_exec_address(exec, piece->slab[i]);
    out->value[a] = &out->address[a];
  }
}

static int wait_for(const sdg_exec_t *exec) {
  return (int)sdg_vendor_get()->cudaStreamSynchronize(exec->stream);
}

// A function on the host must not begin before the copies that it reads, and
// those that save what it overwrites.
static int piece_call(const sdg_function_state_t *state, int index,
                      const sdg_call_t *call, const sdg_exec_t *exec) {
  const sdg_function_call_t *c = sdg_function_call_of(call);
  arguments_t arguments;
  int failed = c->function->on_host ? wait_for(exec) : 0;
  if (failed)
    return failed;
  arguments_make(&state->piece[index], call, exec, &arguments);
  sdg_memory_lend(c->function->name);
  c->invoke(c, arguments.value, index == 0);
  sdg_memory_take_back();
  return 0;
}

int sdg_function_run(void *user, int index, const sdg_call_t *call,
                     const sdg_exec_t *exec) {
  const sdg_function_state_t *state = user;
  switch (index) {
  case SDG_FUNCTION_WAIT:
    return wait_for(exec);
  case SDG_FUNCTION_UPLOAD:
  case SDG_FUNCTION_DOWNLOAD:
    return sdg_function_results_copy(state, call, exec,
                                     index == SDG_FUNCTION_UPLOAD);
  default:
    return piece_call(state, index - SDG_FUNCTION_CALL, call, exec);
  }
}
