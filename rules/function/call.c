// SPDX-License-Identifier: Apache-2.0
// Operands of a call, from its arguments and the function's section.
#include "rules/function/call.h"

#include <cudnn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/setup.h"
#include "rules/place/label.h"
#include "src/base/hash.h"
#include "src/call/tag.h"
#include "src/geometry/hint.h"

// ---- dimensions ------------------------------------------------------------

// Five dimensions if a tensor has D, else four.
static int dims_of(const sdg_function_t *function) {
  for (int t = 0; t < function->tensors; t++)
    for (int d = 0; d < function->tensor[t].dims; d++)
      if (function->tensor[t].dim[d] == SDG_DIM_D)
        return 5;
  return 4;
}

int sdg_function_dim(const sdg_function_t *function, sdg_dim_t dim) {
  return sdg_dim_index(SDG_FAMILY_FUNCTION, dim, dims_of(function));
}

int sdg_function_extent_at(const sdg_function_t *function, int tensor, int d) {
  const sdg_function_tensor_t *t = &function->tensor[tensor];
  for (int i = 0; i < t->dims; i++)
    if (sdg_function_dim(function, t->dim[i]) == d)
      return i;
  return -1;
}

bool sdg_function_is_result(const sdg_function_t *function, int tensor) {
  for (int r = 0; r < function->results; r++)
    if (function->result[r].tensor == tensor)
      return true;
  return false;
}

bool sdg_function_has_results(const sdg_function_t *function) {
  return function->results > 0 || function->returned.number.bytes > 0;
}

// ---- tensors and operands --------------------------------------------------

static bool is_input(const sdg_function_t *function, int tensor) {
  return function->argument[function->tensor[tensor].argument].use ==
         SDG_ARGUMENT_IN;
}

int sdg_function_lead(const sdg_function_t *function) {
  int lead = 0;
  for (int t = 1; t < function->tensors; t++) {
    int more = function->tensor[t].dims - function->tensor[lead].dims;
    if (more > 0 ||
        (more == 0 && is_input(function, t) && !is_input(function, lead)))
      lead = t;
  }
  return lead;
}

// The lead comes first; the others keep their order.
int sdg_function_tensor_of(const sdg_function_t *function, int operand) {
  int lead = sdg_function_lead(function);
  return operand == 0 ? lead : operand <= lead ? operand - 1 : operand;
}

static sdg_role_t role_of(const sdg_function_t *function, int tensor) {
  if (sdg_function_is_result(function, tensor))
    return SDG_ROLE_RESULT;
  if (tensor != sdg_function_lead(function))
    return SDG_ROLE_FIELD;
  return is_input(function, tensor) ? SDG_ROLE_X : SDG_ROLE_Y;
}

sdg_type_t sdg_function_type(sdg_number_t element) {
  switch (element.kind) {
  case 'h':
    return CUDNN_DATA_HALF;
  case 'b':
    return CUDNN_DATA_BFLOAT16;
  case 'f':
    return element.bytes == 8 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  default:
    return element.bytes == 8   ? CUDNN_DATA_INT64
           : element.bytes == 4 ? CUDNN_DATA_INT32
           : element.bytes == 2 ? CUDNN_DATA_HALF
                                : CUDNN_DATA_INT8;
  }
}

// ---- what calls with equal integers have in common -------------------------

// The tensors of such calls; never freed, because descriptors are keys of the
// tag table.
typedef struct shape {
  struct shape *next;
  const sdg_function_t *function;
  uint64_t hash;
  int64_t integer[SDG_ARGUMENTS_MAX];
  sdg_operand_t operand[SDG_OPERANDS_MAX];
  size_t bytes[SDG_OPERANDS_MAX]; // from its first element to its last
  char key[SDG_OPERANDS_MAX];     // their addresses are the descriptors
} shape_t;

enum { BUCKETS = 256 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of writers
static _Atomic(shape_t *) buckets[BUCKETS];

static sdg_status_t not_positive(const sdg_function_t *function, int tensor,
                                 const char *what, int64_t value) {
  return sdg_fail(SDG_E_FUNCTION, "%s: %s of '%s' is %lld", function->name,
                  what,
                  function->argument[function->tensor[tensor].argument].name,
                  (long long)value);
}

// Extents and strides by the section's expressions.
static sdg_status_t layout_read(const sdg_function_t *function, int tensor,
                                const int64_t *integer, sdg_operand_t *io) {
  const sdg_function_tensor_t *t = &function->tensor[tensor];
  int64_t packed = 1;
  for (int d = 0; d < io->dims; d++) {
    io->extent[d] = io->stride[d] = 1;
    if (sdg_function_extent_at(function, tensor, d) < 0)
      io->absent |= 1u << d;
  }
  if (t->dims == 0)
    io->extent[io->dims - 1] = t->count;
  for (int i = t->dims - 1; i >= 0; i--) {
    int d = sdg_function_dim(function, t->dim[i]);
    int64_t extent = 0, stride = packed;
    if (!sdg_expression_value(&t->extent[i], integer, &extent) || extent < 1)
      return not_positive(function, tensor, "an extent", extent);
    if (t->strided &&
        (!sdg_expression_value(&t->stride[i], integer, &stride) || stride < 1))
      return not_positive(function, tensor, "a stride", stride);
    if (__builtin_mul_overflow(packed, extent, &packed))
      return not_positive(function, tensor, "the number of elements", 0);
    // In the whole view every rank has the tensor of one rank.
    if (!sdg_setup_is_whole())
      extent -= t->ghost[i].before + t->ghost[i].behind;
    io->extent[d] = extent;
    if (io->extent[d] < 1)
      return not_positive(function, tensor, "an extent without its ghosts",
                          io->extent[d]);
    io->stride[d] = stride;
  }
  return SDG_OK;
}

static sdg_status_t shape_fill(shape_t *shape) {
  const sdg_function_t *function = shape->function;
  for (int i = 0; i < function->tensors; i++) {
    int tensor = sdg_function_tensor_of(function, i);
    const sdg_function_tensor_t *t = &function->tensor[tensor];
    sdg_argument_use_t use = function->argument[t->argument].use;
    sdg_operand_t *operand = &shape->operand[i];
    *operand = (sdg_operand_t){
        .role = role_of(function, tensor),
        .is_output = use != SDG_ARGUMENT_IN,
        .is_updated = use == SDG_ARGUMENT_INOUT,
        .kind = SDG_OPERAND_TENSOR,
        .descriptor = &shape->key[i],
        .descriptor_at = SDG_NOWHERE,
        .data_at = SDG_NOWHERE,
        .type = sdg_function_type(t->element),
        .elem_bytes = t->element.bytes,
        .dims = dims_of(function),
    };
    SDG_TRY(layout_read(function, tensor, shape->integer, operand));
    shape->bytes[i] = sdg_operand_access(operand, true, true).width;
  }
  for (int i = 0; i < function->tensors; i++)
    sdg_tag_touch(shape->operand[i].descriptor);
  return SDG_OK;
}

static uint64_t hash_of(const sdg_function_t *function,
                        const int64_t *integer) {
  uint64_t hash = sdg_hash_word(SDG_HASH_SEED, (uint64_t)(uintptr_t)function);
  for (int a = 0; a < function->arguments; a++)
    if (integer[a])
      hash = sdg_hash_word(hash, (uint64_t)integer[a]);
  return hash;
}

static shape_t *shape_find(const sdg_function_t *function, uint64_t hash,
                           const int64_t *integer) {
  shape_t *shape =
      atomic_load_explicit(&buckets[hash % BUCKETS], memory_order_acquire);
  while (shape && (shape->hash != hash || shape->function != function ||
                   memcmp(shape->integer, integer,
                          (size_t)function->arguments * sizeof *integer) != 0))
    shape = shape->next;
  return shape;
}

static sdg_status_t shape_add(const sdg_function_t *function, uint64_t hash,
                              const int64_t *integer, shape_t **out) {
  _Atomic(shape_t *) *bucket = &buckets[hash % BUCKETS];
  shape_t *made;
  SDG_TRY(SDG_ALLOCATE(made, 1, "tensors of %s", function->name));
  made->function = function;
  made->hash = hash;
  memcpy(made->integer, integer, sizeof made->integer);
  sdg_status_t status = shape_fill(made);
  if (status != SDG_OK) {
    free(made);
    return status;
  }
  made->next = atomic_load_explicit(bucket, memory_order_relaxed);
  atomic_store_explicit(bucket, made, memory_order_release);
  *out = made;
  return SDG_OK;
}

static sdg_status_t shape_get(const sdg_function_t *function,
                              const int64_t *integer, shape_t **out) {
  uint64_t hash = hash_of(function, integer);
  sdg_status_t status = SDG_OK;
  *out = shape_find(function, hash, integer);
  if (*out)
    return SDG_OK;
  pthread_mutex_lock(&lock);
  *out = shape_find(function, hash, integer);
  if (!*out)
    status = shape_add(function, hash, integer, out);
  pthread_mutex_unlock(&lock);
  return status;
}

// ---- calls -----------------------------------------------------------------

int64_t sdg_function_integer(sdg_number_t number, const void *at) {
  uint64_t bits = 0;
  memcpy(&bits, at, (size_t)number.bytes); // little endian
  int unused = 64 - 8 * number.bytes;
  return number.kind == 'i' ? (int64_t)(bits << unused) >> unused
                            : (int64_t)bits;
}

static bool is_integer(const sdg_argument_t *argument) {
  return argument->use == SDG_ARGUMENT_NUMBER && argument->members == 0 &&
         argument->number[0].kind != 'f';
}

// The value of argument `a`, an integer. False if its address is NULL.
static bool integer_get(const sdg_argument_t *argument, const void *value,
                        int64_t *out) {
  const void *at = value;
  if (argument->by_reference)
    memcpy(&at, value, sizeof at);
  if (at)
    *out = sdg_function_integer(argument->number[0], at);
  return at != NULL;
}

// Whether nothing is known of what lies at the tensors, so that it does not
// matter that the call reads or writes it.
static bool is_unknown(const shape_t *shape, void *const *value) {
  const sdg_function_t *function = shape->function;
  const void *at[SDG_OPERANDS_MAX];
  if (!sdg_hint_any())
    return true;
  for (int i = 0; i < function->tensors; i++) {
    const sdg_function_tensor_t *t =
        &function->tensor[sdg_function_tensor_of(function, i)];
    if (t->has_ghosts)
      return false;
    memcpy(&at[i], value[t->argument], sizeof at[i]);
  }
  return sdg_hint_none(function->tensors, at, shape->bytes);
}

bool sdg_function_passes(const sdg_function_t *function, void *const *value) {
  int64_t sizes[SDG_ARGUMENTS_MAX];
  if (sdg_label_any_at() || sdg_setup_is_whole())
    return false;
  for (int a = 0; a < function->arguments; a++) {
    sizes[a] = 0;
    if (function->argument[a].is_size &&
        !integer_get(&function->argument[a], value[a], &sizes[a]))
      return false;
  }
  const shape_t *shape = shape_find(function, hash_of(function, sizes), sizes);
  return shape && sdg_tag_passes(&shape->key[0], SDG_FAMILY_FUNCTION) &&
         is_unknown(shape, value);
}

int sdg_function_alias(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    for (int k = 0; call->operand[i].is_output && k < call->operands; k++)
      if (!call->operand[k].is_output &&
          call->operand[k].data == call->operand[i].data)
        return i;
  return -1;
}

sdg_status_t sdg_function_integers(const sdg_function_t *function,
                                   void *const *value, int64_t *out_integer) {
  for (int a = 0; a < function->arguments; a++) {
    const sdg_argument_t *argument = &function->argument[a];
    out_integer[a] = 0;
    if (is_integer(argument) &&
        !integer_get(argument, value[a], &out_integer[a]))
      return sdg_fail(SDG_E_FUNCTION, "%s: '%s' is NULL", function->name,
                      argument->name);
  }
  return SDG_OK;
}

sdg_status_t sdg_function_call_init(sdg_function_call_t *io_function,
                                    sdg_call_t *out) {
  const sdg_function_t *function = io_function->function;
  shape_t *shape;
  int64_t sizes[SDG_ARGUMENTS_MAX] = {0};
  memset(out, 0, sizeof *out);
  SDG_TRY(sdg_function_integers(function, io_function->value,
                                io_function->integer));
  for (int a = 0; a < function->arguments; a++)
    sizes[a] = function->argument[a].is_size ? io_function->integer[a] : 0;
  // Calls that differ in other numbers have the same tensors.
  SDG_TRY(shape_get(function, sizes, &shape));
  out->entry_name = function->name;
  out->entry = -1;
  out->family = SDG_FAMILY_FUNCTION;
  out->stream_kind = SDG_STREAM_GIVEN;
  out->stream = io_function->stream;
  if (function->stream >= 0)
    memcpy(&out->stream, io_function->value[function->stream],
           sizeof out->stream);
  out->args = io_function;
  out->operands = function->tensors;
  for (int i = 0; i < function->tensors; i++) {
    int tensor = sdg_function_tensor_of(function, i);
    int a = function->tensor[tensor].argument;
    sdg_operand_t *operand = &out->operand[i];
    *operand = shape->operand[i];
    operand->generation = sdg_tag_generation(operand->descriptor);
    memcpy(&operand->data, io_function->value[a], sizeof operand->data);
    if (!operand->data)
      return sdg_fail(SDG_E_FUNCTION, "%s: '%s' is NULL", function->name,
                      function->argument[a].name);
  }
  return SDG_OK;
}
