// SPDX-License-Identifier: Apache-2.0
// Hashes of what the memory contains that calls read.
#include "rules/view/whole/contents.h"

#include "rules/memory/memory.h"
#include "rules/step/divergence.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/product.h"
#include "src/base/hash.h"
#include "src/geometry/hint.h"

// Numbers of tensors that are not operands (sdg_divergence_tensor).
enum { VECTOR = SDG_OPERANDS_MAX, TENSORS = 16, SLOTS = 4 };

// ---- what a call reads -----------------------------------------------------

// Whether the old elements of an output are read, because they are scaled and
// added to.
static bool is_kept(const sdg_call_t *call, const sdg_operand_t *output) {
  switch (output->role) {
  case SDG_ROLE_DSCALE:
  case SDG_ROLE_DSHIFT:
  case SDG_ROLE_DGRID:
    return sdg_call_scalar(call, SDG_BETA2) != 0;
  case SDG_ROLE_DW:
  case SDG_ROLE_DBIAS:
    return sdg_call_scalar(call, SDG_BETA) != 0;
  default:
    return sdg_role_is_activation(output->role) &&
           sdg_call_scalar(call, SDG_BETA) != 0;
  }
}

// The old elements of C or D.
static bool is_kept_matrix(const sdg_call_t *call) {
  sdg_product_t product;
  sdg_product_make(call->args, &product);
  return product.keeps && !product.device_scalars; // these may be 0
}

static bool is_read(const sdg_call_t *call, const sdg_operand_t *operand) {
  if (!operand->data || operand->elem_bytes == 0 ||
      operand->kind == SDG_OPERAND_LIMITS || operand->role == SDG_ROLE_PRODUCT)
    return false;
  if (sdg_family_is(call->family, SDG_FAMILY_STATED))
    return (!operand->is_output && operand->role != SDG_ROLE_C) ||
           is_kept_matrix(call);
  if (operand->role == SDG_ROLE_Z && !operand->is_output &&
      sdg_call_has(call, SDG_ARGUMENT_ALPHA2))
    return sdg_call_scalar(call, SDG_ALPHA2) != 0;
  return !operand->is_output || operand->is_updated || is_kept(call, operand);
}

static sdg_span_t span_of(const sdg_operand_t *operand) {
  sdg_layout_t layout = sdg_operand_layout(operand);
  return (sdg_span_t){(uintptr_t)operand->data, sdg_layout_bytes(&layout)};
}

static sdg_span_t access_span(const sdg_access_t *access) {
  size_t rows = access->height ? access->height - 1 : 0;
  return (sdg_span_t){access->at, rows * access->pitch + access->width};
}

static sdg_span_t vector_span(const void *at, int64_t n, int64_t inc,
                              int type) {
  int64_t step = inc < 0 ? -inc : inc;
  size_t each = sdg_vector_type_bytes(type);
  return (sdg_span_t){(uintptr_t)at,
                      n > 0 ? (size_t)((n - 1) * step + 1) * each : 0};
}

// ---- tensors in pieces -----------------------------------------------------

static void pieces_add(const sdg_buffers_t *table, sdg_span_t span, int index,
                       uint64_t *io_hash) {
  for (int i = 0; i < table->buffers; i++) {
    const sdg_buffer_t *buffer = table->buffer[i];
    if (!sdg_span_overlap(sdg_buffer_span(buffer), span))
      continue;
    uint64_t hash = *io_hash ? *io_hash : SDG_HASH_SEED;
    hash = sdg_hash_word(hash, (uint64_t)index);
    hash = sdg_hash_word(hash, buffer->number);
    *io_hash = sdg_hash_word(hash, span.at - buffer->at);
  }
}

uint64_t sdg_contents_pieces(const sdg_call_t *call,
                             const sdg_buffers_t *table) {
  uint64_t hash = 0;
  for (int i = 0; table->buffers > 0 && i < call->operands; i++)
    if (is_read(call, &call->operand[i]))
      pieces_add(table, span_of(&call->operand[i]), i, &hash);
  return hash;
}

uint64_t sdg_contents_pieces_of(const sdg_memory_access_t *memory,
                                const sdg_buffers_t *table) {
  uint64_t hash = 0;
  for (int i = 0; i < memory->accesses; i++)
    if (memory->access[i].width > 0)
      pieces_add(table, access_span(&memory->access[i]), i, &hash);
  return hash;
}

// ---- all memory ------------------------------------------------------------

// What a call reads, in the order of its operands; further ones are combined
// with the first.
typedef struct reader {
  const sdg_buffers_t *table;
  bool unseen; // a library may write by calls that are not seen
  uint64_t contents[SLOTS];
  int count;
} reader_t;

static reader_t reader_make(const sdg_buffers_t *table) {
  return (reader_t){table, sdg_memory_unseen_writes(), {0}, 0};
}

// Frees of other memory are not seen.
static bool is_seen(const sdg_buffers_t *table, sdg_span_t span) {
  sdg_span_t allocation;
  return span.bytes > 0 &&
         sdg_buffers_allocation(table, span.at, &allocation) &&
         sdg_span_contain(allocation, span);
}

static void reader_add(reader_t *reader, sdg_span_t span, int index) {
  uint64_t contents =
      is_seen(reader->table, span)
          ? sdg_hint_renew_contents((const void *)span.at, span.bytes,
                                    sdg_divergence_tensor(index))
          : 0;
  uint64_t *slot = &reader->contents[reader->count % SLOTS];
  if (reader->unseen)
    contents = 0;
  if (reader->count++ < SLOTS)
    *slot = contents;
  else
    *slot = *slot && contents ? sdg_hash_word(*slot, contents) : 0;
}

static sdg_status_t reader_compare(const reader_t *reader,
                                   const char *entry_name) {
  return sdg_divergence_contents(entry_name, reader->contents,
                                 reader->count < SLOTS ? reader->count : SLOTS);
}

sdg_status_t sdg_contents_compare(const sdg_call_t *call,
                                  const sdg_buffers_t *table) {
  if (!sdg_memory_notes_inputs())
    return SDG_OK;
  reader_t reader = reader_make(table);
  for (int i = 0; i < call->operands; i++)
    if (is_read(call, &call->operand[i]))
      reader_add(&reader, span_of(&call->operand[i]), i);
  return reader_compare(&reader, call->entry_name);
}

// Memory of unknown extent holds scalars.
static bool is_vector(const sdg_access_t *access) {
  return access->at && access->width > 0;
}

sdg_status_t sdg_contents_compare_of(const sdg_memory_access_t *memory,
                                     const sdg_buffers_t *table) {
  if (!sdg_memory_notes_inputs())
    return SDG_OK;
  reader_t reader = reader_make(table);
  int index = VECTOR;
  for (int i = 0; i < memory->accesses && index < TENSORS; i++)
    if (is_vector(&memory->access[i]) && memory->access[i].reads)
      reader_add(&reader, access_span(&memory->access[i]), index++);
  return reader_compare(&reader, memory->name);
}

void sdg_contents_of_vectors(const sdg_vector_t *vector,
                             const sdg_buffers_t *table, uint64_t out[2]) {
  out[0] = out[1] = 0;
  if (!sdg_memory_notes_inputs())
    return;
  reader_t reader = reader_make(table);
  reader_add(&reader,
             vector_span(vector->x, vector->n, vector->incx, vector->type_x),
             VECTOR);
  if (vector->y)
    reader_add(&reader,
               vector_span(vector->y, vector->n, vector->incy, vector->type_y),
               VECTOR + 1);
  out[0] = reader.contents[0];
  out[1] = reader.contents[1];
}

// ---- what is written -------------------------------------------------------

static void made(const sdg_buffers_t *table, sdg_span_t span, int index) {
  if (is_seen(table, span))
    sdg_hint_put_contents((const void *)span.at, span.bytes, false,
                          SDG_HINT_KNOWN, sdg_divergence_tensor(index));
}

void sdg_contents_made(const sdg_call_t *call, const sdg_buffers_t *table) {
  for (int i = 0; sdg_memory_notes_inputs() && i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (operand->is_output && operand->data && operand->elem_bytes > 0)
      made(table, span_of(operand), i);
  }
}

void sdg_contents_made_of(const sdg_memory_access_t *memory,
                          const sdg_buffers_t *table) {
  int index = TENSORS;
  for (int i = 0; sdg_memory_notes_inputs() && i < memory->accesses; i++)
    if (is_vector(&memory->access[i]) && memory->access[i].writes && index > 0)
      made(table, access_span(&memory->access[i]), --index);
}

void sdg_contents_overwritten(const sdg_memory_access_t *memory,
                              const sdg_buffers_t *table) {
  if (memory->everything)
    sdg_hint_forget();
  for (int i = 0; sdg_hint_any() && i < memory->accesses; i++) {
    const sdg_access_t *access = &memory->access[i];
    sdg_span_t span = access_span(access);
    if (!access->writes || (access->width == 0 &&
                            !sdg_buffers_allocation(table, access->at, &span)))
      continue;
    sdg_hint_put((const void *)span.at, span.bytes, false, 0);
  }
}
