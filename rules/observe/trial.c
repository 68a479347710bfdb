// SPDX-License-Identifier: Apache-2.0
// Copies a function's tensors, and calls the function on the copies.
#include "rules/observe/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/setup.h"
#include "rules/observe/number.h"
#include "rules/vendor/vendor.h"
#include "src/base/hash.h"
#include "src/base/vendor.h"

// Functions that work on blocks may read a little behind the last element.
enum { SLACK_BYTES = 4096 };

// ---- elements --------------------------------------------------------------

static const sdg_function_tensor_t *tensor_of(const sdg_trial_t *trial,
                                              int operand) {
  const sdg_function_t *function = trial->function->function;
  return &function->tensor[sdg_function_tensor_of(function, operand)];
}

static bool is_result(const sdg_trial_t *trial, int operand) {
  return trial->operand[operand].role == SDG_ROLE_RESULT;
}

int64_t sdg_trial_extent(const sdg_trial_t *trial, int operand, int d) {
  int64_t ghosts =
      trial->ghost[operand][d].before + trial->ghost[operand][d].behind;
  return trial->operand[operand].extent[d] - ghosts;
}

// Whether the operand has dimension `d`, as long as the first one.
static bool has_dim(const sdg_trial_t *trial, int operand, int d) {
  const sdg_function_t *function = trial->function->function;
  int tensor = sdg_function_tensor_of(function, operand);
  return sdg_function_extent_at(function, tensor, d) >= 0 &&
         sdg_trial_extent(trial, operand, d) == sdg_trial_extent(trial, 0, d);
}

// Ghosts are elements like others. The operands of the shard view leave them
// out.
static void operand_open(sdg_trial_t *io, int operand) {
  const sdg_function_t *function = io->function->function;
  int tensor = sdg_function_tensor_of(function, operand);
  io->operand[operand] = io->call->operand[operand];
  for (int d = 0; d < io->operand[operand].dims; d++) {
    int at = sdg_function_extent_at(function, tensor, d);
    if (at < 0)
      continue;
    io->ghost[operand][d].before = function->tensor[tensor].ghost[at].before;
    io->ghost[operand][d].behind = function->tensor[tensor].ghost[at].behind;
    if (!sdg_setup_is_whole())
      io->operand[operand].extent[d] +=
          io->ghost[operand][d].before + io->ghost[operand][d].behind;
  }
}

static bool is_number(const sdg_trial_t *trial, int operand) {
  return sdg_number_floats(tensor_of(trial, operand)->element);
}

// The next index in row-major order; false behind the last.
static bool index_next(const sdg_operand_t *operand, int64_t *io_index) {
  for (int d = operand->dims - 1; d >= 0; d--) {
    if (++io_index[d] < operand->extent[d])
      return true;
    io_index[d] = 0;
  }
  return false;
}

static size_t byte_of(const sdg_operand_t *operand, const int64_t *index) {
  int64_t at = 0;
  for (int d = 0; d < operand->dims; d++)
    at += index[d] * operand->stride[d];
  return (size_t)at * (size_t)operand->elem_bytes;
}

// The range of an operand's finite elements: changed elements stay in it, so
// that what has to be positive, as a density, stays so.
static void range_find(const sdg_operand_t *operand, sdg_number_t type,
                       sdg_trial_memory_t *io) {
  int64_t index[SDG_DIMS_MAX] = {0};
  io->lo = HUGE_VAL, io->hi = -HUGE_VAL;
  do {
    double x = sdg_number_read(type, io->before + byte_of(operand, index));
    if (x - x == 0 && x < io->lo)
      io->lo = x;
    if (x - x == 0 && x > io->hi)
      io->hi = x;
  } while (index_next(operand, index));
  if (io->hi < io->lo)
    io->lo = 0, io->hi = 1;
  if (io->hi > io->lo)
    return;
  double width = io->lo == 0 ? 1 : (io->lo < 0 ? -io->lo : io->lo) / 2;
  io->lo -= width, io->hi += width;
}

// ---- copies ----------------------------------------------------------------

static bool failed(sdg_trial_t *trial, const char *why) {
  snprintf(trial->why, sizeof trial->why, "%s", why);
  return false;
}

static bool cuda_good(sdg_trial_t *trial, cudaError_t got, const char *what) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (got == cudaSuccess)
    return true;
  (void)cuda->cudaGetLastError(); // the error is not the program's
  snprintf(trial->why, sizeof trial->why, "%s: %s", what,
           cuda->cudaGetErrorString(got));
  return false;
}

static bool copy_wait(sdg_trial_t *trial, void *to, const void *from,
                      size_t bytes) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  cudaError_t got =
      cuda->cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, trial->stream);
  if (got == cudaSuccess)
    got = cuda->cudaStreamSynchronize(trial->stream);
  return cuda_good(trial, got, "a copy of its tensors");
}

// The operand that shares memory with this one: all of it, or -1 for a part.
static int twin_of(const sdg_trial_t *trial, int operand) {
  const sdg_operand_t *of = trial->operand;
  uintptr_t at = (uintptr_t)of[operand].data;
  for (int i = 0; i < operand; i++) {
    uintptr_t other = (uintptr_t)of[i].data;
    if (at == other && trial->memory[i].bytes == trial->memory[operand].bytes)
      return trial->memory[i].twin;
    if (at < other + trial->memory[i].bytes &&
        other < at + trial->memory[operand].bytes)
      return -1;
  }
  return operand;
}

static bool memory_allocate(sdg_trial_t *trial, int operand) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  const sdg_operand_t *of = &trial->operand[operand];
  sdg_trial_memory_t *memory = &trial->memory[operand];
  size_t bytes = memory->bytes + SLACK_BYTES;
  struct cudaPointerAttributes is = {.type = cudaMemoryTypeUnregistered};
  if (cuda->cudaPointerGetAttributes(&is, of->data) != cudaSuccess)
    (void)cuda->cudaGetLastError(); // the error is not the program's
  memory->before = malloc(memory->bytes);
  memory->given = malloc(memory->bytes);
  memory->after = malloc(memory->bytes);
  memory->first = malloc(memory->bytes);
  if (!memory->before || !memory->given || !memory->after || !memory->first)
    return failed(trial, "no memory for copies of its tensors");
  memory->on_host = is.type == cudaMemoryTypeUnregistered;
  if (memory->on_host && !is_result(trial, operand))
    return failed(trial, "a tensor is not in memory of the CUDA runtime");
  if (memory->on_host) {
    memory->copy = calloc(1, bytes);
    return memory->copy || failed(trial, "no memory for its result");
  }
  return cuda_good(
      trial,
      is.type == cudaMemoryTypeDevice
          ? cuda->cudaMalloc(&memory->copy, bytes)
          : cuda->cudaMallocManaged(&memory->copy, bytes, cudaMemAttachGlobal),
      "memory for copies of its tensors");
}

static bool memory_open(sdg_trial_t *trial, int operand) {
  const sdg_operand_t *of = &trial->operand[operand];
  sdg_trial_memory_t *memory = &trial->memory[operand];
  int64_t last = 0;
  for (int d = 0; d < of->dims; d++)
    last += (of->extent[d] - 1) * of->stride[d];
  memory->bytes = (size_t)(last + 1) * (size_t)of->elem_bytes;
  memory->twin = twin_of(trial, operand);
  if (memory->twin < 0)
    return failed(trial, "two of its tensors overlap");
  if (memory->twin != operand)
    return true;
  if (!memory_allocate(trial, operand) ||
      !copy_wait(trial, memory->before, of->data, memory->bytes))
    return false;
  if (is_number(trial, operand) && !is_result(trial, operand))
    range_find(of, tensor_of(trial, operand)->element, memory);
  return true;
}

// ---- calls -----------------------------------------------------------------

// Calls the function on what is given.
static bool invoke(sdg_trial_t *trial) {
  const sdg_function_call_t *c = trial->function;
  void *value[SDG_ARGUMENTS_MAX], *address[SDG_ARGUMENTS_MAX];
  memcpy(value, c->value, (size_t)c->function->arguments * sizeof *value);
  for (int i = 0; i < trial->call->operands; i++) {
    const sdg_trial_memory_t *memory = &trial->memory[trial->memory[i].twin];
    int a = tensor_of(trial, i)->argument;
    address[a] = memory->copy;
    value[a] = &address[a];
    if (trial->memory[i].twin == i &&
        !copy_wait(trial, memory->copy, memory->given, memory->bytes))
      return false;
  }
  c->invoke(c, value, false);
  trial->calls++;
  if (!cuda_good(trial, sdg_vendor_get()->cudaStreamSynchronize(trial->stream),
                 "a call on copies of its tensors"))
    return false;
  for (int i = 0; i < trial->call->operands; i++) {
    const sdg_trial_memory_t *memory = &trial->memory[i];
    if (memory->twin == i &&
        !copy_wait(trial, memory->after, memory->copy, memory->bytes))
      return false;
  }
  return true;
}

static void given_reset(sdg_trial_t *trial) {
  for (int i = 0; i < trial->call->operands; i++)
    if (trial->memory[i].twin == i)
      memcpy(trial->memory[i].given, trial->memory[i].before,
             trial->memory[i].bytes);
}

static bool repeats(sdg_trial_t *trial) {
  for (int time = 0; time < 2; time++) {
    given_reset(trial);
    if (!invoke(trial))
      return false;
    for (int i = 0; i < trial->call->operands; i++) {
      sdg_trial_memory_t *memory = &trial->memory[i];
      if (memory->twin != i)
        continue;
      if (time == 0)
        memcpy(memory->first, memory->after, memory->bytes);
      else if (memcmp(memory->first, memory->after, memory->bytes) != 0)
        return failed(trial, "two equal calls have different results");
    }
  }
  return true;
}

bool sdg_trial_init(const sdg_call_t *call, sdg_trial_t *out_trial) {
  bool capturing = false;
  *out_trial =
      (sdg_trial_t){.call = call, .function = sdg_function_call_of(call)};
  if (!sdg_vendor_get() ||
      sdg_stream_state(call, &out_trial->stream, &capturing) != SDG_OK)
    return failed(out_trial, "the CUDA runtime is not there");
  if (capturing)
    return failed(out_trial, "its stream is being captured");
  for (int i = 0; i < call->operands; i++) {
    operand_open(out_trial, i);
    if (!memory_open(out_trial, i))
      return false;
  }
  return repeats(out_trial);
}

void sdg_trial_fini(sdg_trial_t *trial) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  for (int i = 0; i < trial->call->operands; i++) {
    sdg_trial_memory_t *memory = &trial->memory[i];
    if (memory->on_host)
      free(memory->copy);
    else if (memory->copy)
      (void)cuda->cudaFree(memory->copy);
    free(memory->before);
    free(memory->given);
    free(memory->after);
    free(memory->first);
  }
}

// ---- changes ---------------------------------------------------------------

bool sdg_trial_changes(const sdg_trial_t *trial, int operand, int d) {
  const sdg_operand_t *of = &trial->operand[operand];
  return (!of->is_output || of->is_updated) && !is_result(trial, operand) &&
         is_number(trial, operand) && has_dim(trial, operand, d);
}

// Whether an element is to change that is so many before the row, and so many
// behind it; below 0: it is on the other side.
static bool is_changed(const sdg_trial_change_t *change, int64_t before,
                       int64_t behind) {
  int64_t apart =
      before < 0 || (behind >= 0 && behind < before) ? behind : before;
  bool seen = (before >= 0 && before <= change->before) ||
              (behind >= 0 && behind <= change->behind);
  return apart >= change->from && !seen;
}

static bool index_changes(const sdg_trial_change_t *change, int64_t extent,
                          int64_t index) {
  int64_t before = change->row - index, behind = index - change->row;
  if (change->wraps) {
    before = (before % extent + extent) % extent;
    behind = (behind % extent + extent) % extent;
  }
  return is_changed(change, before, behind);
}

// A value in the range of the others, unlike the old one.
static double value_for(const sdg_trial_memory_t *memory, int way,
                        uint64_t random, double old) {
  double part = (double)(random >> 11) / (double)(UINT64_C(1) << 53);
  double quarter = memory->hi / 4 - memory->lo / 4; // cannot overflow
  double value =
      way == 0 ? memory->hi - part * quarter : memory->lo + part * quarter;
  return value == old ? memory->lo / 2 + memory->hi / 2 : value;
}

static void operand_change(sdg_trial_t *trial, const sdg_trial_change_t *change,
                           int operand) {
  const sdg_operand_t *of = &trial->operand[operand];
  const sdg_trial_memory_t *memory =
      &trial->memory[trial->memory[operand].twin];
  int64_t index[SDG_DIMS_MAX] = {0};
  uint64_t number = 0;
  sdg_number_t type = tensor_of(trial, operand)->element;
  do {
    number++;
    if (!index_changes(change, sdg_trial_extent(trial, operand, change->d),
                       index[change->d] -
                           trial->ghost[operand][change->d].before))
      continue;
    char *at = memory->given + byte_of(of, index);
    uint64_t random = sdg_hash_bytes(SDG_HASH_SEED, &number, sizeof number);
    double old = sdg_number_read(type, at);
    sdg_number_write(type, value_for(memory, change->way, random, old), at);
  } while (index_next(of, index));
}

static bool differs(const sdg_trial_t *trial, int operand, int d, int64_t row) {
  const sdg_operand_t *of = &trial->operand[operand];
  const sdg_trial_memory_t *memory =
      &trial->memory[trial->memory[operand].twin];
  int64_t index[SDG_DIMS_MAX] = {0};
  int64_t at_row = row + trial->ghost[operand][d].before;
  do {
    size_t at = byte_of(of, index);
    if (index[d] == at_row && memcmp(memory->first + at, memory->after + at,
                                     (size_t)of->elem_bytes) != 0)
      return true;
  } while (index_next(of, index));
  return false;
}

bool sdg_trial_run(sdg_trial_t *trial, const sdg_trial_change_t *change,
                   int *out_output) {
  *out_output = -1;
  given_reset(trial);
  for (int i = 0; i < trial->call->operands; i++)
    if (sdg_trial_changes(trial, i, change->d) &&
        (change->input < 0 || change->input == i))
      operand_change(trial, change, i);
  if (!invoke(trial))
    return false;
  for (int i = 0; i < trial->call->operands && *out_output < 0; i++)
    if (trial->operand[i].is_output && !is_result(trial, i) &&
        has_dim(trial, i, change->d) &&
        differs(trial, i, change->d, change->row))
      *out_output = i;
  return true;
}

bool sdg_trial_finite(const sdg_trial_t *trial, int d, int64_t row) {
  for (int i = 0; i < trial->call->operands; i++) {
    const sdg_operand_t *of = &trial->operand[i];
    const char *first = trial->memory[trial->memory[i].twin].first;
    int64_t index[SDG_DIMS_MAX] = {0};
    if (!of->is_output || is_result(trial, i) || !has_dim(trial, i, d))
      continue;
    if (!is_number(trial, i))
      return true;
    do {
      double x = sdg_number_read(tensor_of(trial, i)->element,
                                 first + byte_of(of, index));
      if (index[d] == row + trial->ghost[i][d].before && x - x == 0)
        return true;
    } while (index_next(of, index));
  }
  return false;
}
