// SPDX-License-Identifier: Apache-2.0
// Sums up the arguments of each watched function.
#include "rules/observe/arguments.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/call/functions.h"
#include "src/observe/inspect_record.h"

enum {
  TENSORS_MAX = 1024,
  FUNCTIONS_MAX = SDG_WATCHED_MAX + SDG_ARGUMENTS_KERNELS
};

// A tensor of a recorded call.
typedef struct tensor {
  uintptr_t at;
  size_t bytes;
  sdg_type_t type;
  int dims;
  int64_t extent[SDG_DIMS_MAX];
} tensor_t;

// What was seen at one place of the arguments.
typedef struct place {
  int64_t device; // calls with an address in device memory
  size_t room;    // from the first of these to the end of its allocation
  bool has_tensor;
  tensor_t tensor; // that it lies in
  bool changes;    // the integer is not the same in all calls
  int32_t value;
  bool wide;   // some call had more than an integer of 32 bits
  bool varies; // it is no address of an integer that is the same in all calls
  int32_t behind; // this integer
} place_t;

typedef struct function {
  const char *name;
  const char *types; // of a kernel's arguments; NULL: it is no kernel
  char library[SDG_ARGUMENTS_LIBRARY_BYTES];
  const _Atomic(uint64_t) *calls;
  int64_t noted; // calls with an address in device memory
  int registers, count;
  place_t place[SDG_ARGUMENTS_SEEN];
} function_t;

static struct {
  pthread_mutex_t lock;
  function_t *function[FUNCTIONS_MAX]; // owned
  int tensors, next;
  tensor_t tensor[TENSORS_MAX];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

void sdg_arguments_name(unsigned index, const char *name, const char *library,
                        const _Atomic(uint64_t) *calls) {
  if (index >= FUNCTIONS_MAX)
    return;
  pthread_mutex_lock(&all.lock);
  if (!all.function[index])
    all.function[index] = calloc(1, sizeof *all.function[index]);
  function_t *function = all.function[index];
  if (function) {
    function->name = name;
    function->calls = calls;
    snprintf(function->library, sizeof function->library, "%s", library);
  }
  pthread_mutex_unlock(&all.lock);
}

void sdg_arguments_types(unsigned index, const char *types) {
  pthread_mutex_lock(&all.lock);
  if (index < FUNCTIONS_MAX && all.function[index])
    all.function[index]->types = types;
  pthread_mutex_unlock(&all.lock);
}

void sdg_arguments_tensor(const sdg_operand_t *operand) {
  tensor_t tensor = {.at = (uintptr_t)operand->data,
                     .type = operand->type,
                     .dims = operand->dims};
  int64_t last = 0;
  for (int d = 0; d < operand->dims; d++) {
    tensor.extent[d] = operand->extent[d];
    last += (operand->extent[d] - 1) * operand->stride[d];
  }
  tensor.bytes = (size_t)(last + 1) * (size_t)operand->elem_bytes;
  if (!operand->data || !operand->elem_bytes ||
      operand->kind != SDG_OPERAND_TENSOR)
    return;
  pthread_mutex_lock(&all.lock);
  int at = 0;
  while (at < all.tensors && all.tensor[at].at != tensor.at)
    at++;
  if (at == TENSORS_MAX)
    at = all.next++ % TENSORS_MAX;
  else if (at == all.tensors)
    all.tensors++;
  all.tensor[at] = tensor;
  pthread_mutex_unlock(&all.lock);
}

static void tensor_find(uintptr_t at, place_t *io) {
  for (int t = 0; t < all.tensors; t++)
    if (at >= all.tensor[t].at && at < all.tensor[t].at + all.tensor[t].bytes) {
      io->has_tensor = true;
      io->tensor = all.tensor[t];
    }
}

// One of the values that a call has at this place.
static void place_note(place_t *io, const sdg_arguments_t *arguments, int index,
                       bool device, size_t room, bool first) {
  uint64_t value = arguments->value[index];
  int32_t behind = 0;
  if (device) {
    io->room = io->device++ ? io->room : room;
    if (!io->has_tensor)
      tensor_find((uintptr_t)value, io);
    return;
  }
  bool refers = arguments->read(value, &behind);
  io->changes |= !first && io->value != (int32_t)value;
  io->value = (int32_t)value;
  io->wide |= (int64_t)value != (int32_t)value && value > UINT32_MAX;
  io->varies |= !refers || (!first && io->behind != behind);
  io->behind = behind;
}

void sdg_arguments_note(unsigned index, const sdg_arguments_t *arguments) {
  size_t room[SDG_ARGUMENTS_SEEN];
  bool device[SDG_ARGUMENTS_SEEN], any = false;
  for (int i = 0; i < arguments->count; i++) {
    device[i] = arguments->room(arguments->value[i], &room[i]);
    any |= device[i];
  }
  pthread_mutex_lock(&all.lock);
  function_t *function = index < FUNCTIONS_MAX ? all.function[index] : NULL;
  any |= function && function->types;
  for (int i = 0; function && any && i < arguments->count; i++)
    place_note(&function->place[i], arguments, i, device[i], room[i],
               function->noted == 0);
  if (function && any) {
    function->noted++;
    function->registers = arguments->registers;
    if (function->count == 0 || arguments->count < function->count)
      function->count = arguments->count;
  }
  pthread_mutex_unlock(&all.lock);
}

// ---- lines -----------------------------------------------------------------

static void place_put(sdg_inspect_text_t *text, const place_t *place,
                      int64_t noted) {
  sdg_inspect_put(text, "{\"device\":%" PRId64, place->device);
  if (place->device)
    sdg_inspect_put(text, ",\"room\":%zu", place->room);
  if (place->device < noted && !place->changes)
    sdg_inspect_put(text, ",\"value\":%" PRId32, place->value);
  if (place->wide)
    sdg_inspect_put(text, ",\"wide\":true");
  if (place->device < noted && !place->varies)
    sdg_inspect_put(text, ",\"behind\":%" PRId32, place->behind);
  if (place->has_tensor) {
    sdg_inspect_put(text, ",\"type\":%d,\"extent\":[", place->tensor.type);
    for (int d = 0; d < place->tensor.dims; d++)
      sdg_inspect_put(text, "%s%" PRId64, d ? "," : "",
                      place->tensor.extent[d]);
    sdg_inspect_put(text, "]");
  }
  sdg_inspect_put(text, "}");
}

static void function_write(const function_t *function) {
  sdg_inspect_text_t text = {.used = 0};
  sdg_inspect_put(&text,
                  "{\"function\":\"%s\",\"library\":\"%s\",\"calls\":%" PRIu64
                  ",\"noted\":%" PRId64 ",\"registers\":%d,\"places\":[",
                  function->name, function->library,
                  atomic_load(function->calls), function->noted,
                  function->registers);
  for (int i = 0; i < function->count; i++) {
    sdg_inspect_put(&text, "%s", i ? "," : "");
    place_put(&text, &function->place[i], function->noted);
  }
  sdg_inspect_put(&text, "]");
  if (function->types)
    sdg_inspect_put(&text, ",\"types\":\"%s\"", function->types);
  sdg_inspect_put(&text, "}\n");
  sdg_inspect_record_line(text.bytes);
}

void sdg_arguments_finish(void) {
  pthread_mutex_lock(&all.lock);
  for (int i = 0; i < FUNCTIONS_MAX; i++)
    if (all.function[i] && all.function[i]->noted > 0)
      function_write(all.function[i]);
  pthread_mutex_unlock(&all.lock);
}

void sdg_arguments_drop(void) {
  // Another thread of the parent may have held the lock.
  pthread_mutex_init(&all.lock, NULL);
  for (int i = 0; i < FUNCTIONS_MAX; i++)
    if (all.function[i])
      all.function[i]->noted = 0;
}
