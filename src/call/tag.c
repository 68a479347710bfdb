// SPDX-License-Identifier: Apache-2.0
// The lock-free table of descriptors, and the extents agreed for them.
#include "src/call/tag.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// If memory runs out, uthash must leave the element out instead of calling
// exit.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "src/base/channel.h"
#include "src/geometry/layout.h"

enum { FIRST_CELLS = 1024 };

_Atomic(sdg_tag_table_t *) sdg_tag_current;

// For writers and for the rarely used map of vectors; readers of the table
// take no lock.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t used; // keys in the current table
static uint64_t last_generation;
static bool shared; // several threads make tagged calls

typedef struct record {
  const void *descriptor;
  sdg_tag_vector_t *vector[SDG_CHANNEL_THREADS]; // index: channel
  const sdg_tag_label_t *label;
  uint64_t label_generation;
  int *said;
  size_t said_count;
  uint64_t said_generation;
  sdg_tag_place_t place;
  UT_hash_handle hh;
} record_t;
static record_t *records;
static atomic_bool labelled; // some descriptor has a label
static atomic_bool saying;   // some descriptor has numbers from the program

static void vector_free(sdg_tag_vector_t *vector) {
  if (vector)
    free(vector->detail);
  free(vector);
}

// Lock held. Returns NULL if memory runs out.
static record_t *record_get(const void *descriptor) {
  record_t *record = NULL;
  HASH_FIND_PTR(records, &descriptor, record);
  if (record)
    return record;
  record = calloc(1, sizeof *record);
  if (!record)
    return NULL;
  record->descriptor = descriptor;
  HASH_ADD_PTR(records, descriptor, record);
  if (record->hh.tbl)
    return record;
  free(record);
  return NULL;
}

static sdg_tag_cell_t *cell_place(sdg_tag_table_t *table,
                                  const void *descriptor) {
  for (size_t i = sdg_tag_hash(descriptor);; i++) {
    sdg_tag_cell_t *cell = &table->cell[i & table->mask];
    const void *key = atomic_load_explicit(&cell->key, memory_order_relaxed);
    if (key == descriptor || !key)
      return cell;
  }
}

// Makes room for one more key, with at most half of the cells used. A reader
// that still uses the old table sees it unchanged: it is never freed (all old
// tables together are smaller than the current one).
static sdg_tag_table_t *table_with_room(void) {
  sdg_tag_table_t *table =
      atomic_load_explicit(&sdg_tag_current, memory_order_relaxed);
  size_t cells = table ? table->mask + 1 : 0;
  if (table && 2 * (used + 1) <= cells)
    return table;
  size_t grown = table ? 2 * cells : FIRST_CELLS;
  sdg_tag_table_t *fresh =
      calloc(1, sizeof *fresh + grown * sizeof(sdg_tag_cell_t));
  if (!fresh)
    return table && used + 1 < cells ? table : NULL;
  fresh->mask = grown - 1;
  fresh->older = table;
  used = 0;
  for (size_t i = 0; i < cells; i++) {
    const void *key = atomic_load(&table->cell[i].key);
    uint64_t word = atomic_load(&table->cell[i].word);
    // Destroyed descriptors are not copied.
    if (!key || word == 0)
      continue;
    sdg_tag_cell_t *cell = cell_place(fresh, key);
    atomic_store_explicit(&cell->word, word, memory_order_relaxed);
    atomic_store_explicit(&cell->key, key, memory_order_relaxed);
    used++;
  }
  atomic_store_explicit(&sdg_tag_current, fresh, memory_order_release);
  return fresh;
}

void sdg_tag_touch(const void *descriptor) {
  if (!descriptor)
    return;
  pthread_mutex_lock(&lock);
  uint64_t word = ++last_generation << SDG_TAG_FAMILY_BITS;
  sdg_tag_table_t *table =
      atomic_load_explicit(&sdg_tag_current, memory_order_relaxed);
  sdg_tag_cell_t *cell = table ? cell_place(table, descriptor) : NULL;
  if (!cell || !atomic_load_explicit(&cell->key, memory_order_relaxed)) {
    table = table_with_room();
    cell = table ? cell_place(table, descriptor) : NULL;
    // If memory runs out, the descriptor stays unknown: generation 0 never
    // passes, and a tagged call refuses it.
    if (cell)
      used++;
  }
  if (cell) {
    atomic_store_explicit(&cell->word, word, memory_order_relaxed);
    atomic_store_explicit(&cell->key, descriptor, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
}

void sdg_tag_forget(const void *descriptor) {
  pthread_mutex_lock(&lock);
  sdg_tag_table_t *table =
      atomic_load_explicit(&sdg_tag_current, memory_order_relaxed);
  if (table && descriptor) {
    sdg_tag_cell_t *cell = cell_place(table, descriptor);
    if (atomic_load_explicit(&cell->key, memory_order_relaxed))
      atomic_store_explicit(&cell->word, 0, memory_order_release);
  }
  record_t *record = NULL;
  HASH_FIND_PTR(records, &descriptor, record);
  if (record) {
    HASH_DEL(records, record);
    for (int i = 0; i < SDG_CHANNEL_THREADS; i++)
      vector_free(record->vector[i]);
    free(record->said);
    free(record);
  }
  pthread_mutex_unlock(&lock);
}

void sdg_tag_set_pass(const void *descriptor, uint64_t generation,
                      sdg_family_t family, bool agreed) {
  pthread_mutex_lock(&lock);
  sdg_tag_table_t *table =
      atomic_load_explicit(&sdg_tag_current, memory_order_relaxed);
  if (table && descriptor && generation && !(agreed && shared)) {
    sdg_tag_cell_t *cell = cell_place(table, descriptor);
    uint64_t word = atomic_load_explicit(&cell->word, memory_order_relaxed);
    if (word >> SDG_TAG_FAMILY_BITS == generation) {
      atomic_store_explicit(&cell->word, word | (uint64_t)1 << family,
                            memory_order_release);
    }
  }
  pthread_mutex_unlock(&lock);
}

void sdg_tag_share(void) {
  pthread_mutex_lock(&lock);
  sdg_tag_table_t *table =
      atomic_load_explicit(&sdg_tag_current, memory_order_relaxed);
  for (size_t i = 0; table && !shared && i <= table->mask; i++)
    atomic_fetch_and(&table->cell[i].word,
                     ~(((uint64_t)1 << SDG_TAG_FAMILY_BITS) - 1));
  shared = true;
  pthread_mutex_unlock(&lock);
}

// The memory of the slot's vector if it has the right size: calls that the
// ranks compare each time must not allocate. NULL: no memory. Lock held.
static sdg_tag_vector_t *vector_room(sdg_tag_vector_t **slot, int ranks,
                                     int dims) {
  sdg_tag_vector_t *vector = *slot;
  if (!vector || vector->ranks != ranks || vector->dims != dims) {
    vector = calloc(1, sizeof *vector + (size_t)ranks * (size_t)dims *
                                            sizeof vector->extent[0]);
    if (!vector)
      return NULL;
    if (*slot) {
      vector->generation = (*slot)->generation;
      vector->hints = (*slot)->hints;
      vector_free(*slot);
    }
    *slot = vector;
  }
  return vector;
}

sdg_status_t sdg_tag_set_vector(const void *descriptor, uint64_t generation,
                                int ranks, int dims, const int64_t *nesting,
                                const int64_t *extent) {
  size_t bytes = (size_t)ranks * (size_t)dims * sizeof *extent;
  pthread_mutex_lock(&lock);
  record_t *record = record_get(descriptor);
  sdg_tag_vector_t *vector =
      record ? vector_room(&record->vector[sdg_channel_get()], ranks, dims)
             : NULL;
  if (vector) {
    if (vector->generation != generation)
      vector->hints = (sdg_tag_hints_t){.exchanged = false};
    free(vector->detail);
    vector->detail = NULL;
    vector->details = 0;
    vector->generation = generation;
    vector->ranks = ranks;
    vector->dims = dims;
    memset(vector->nesting, 0, sizeof vector->nesting);
    if (nesting)
      memcpy(vector->nesting, nesting, (size_t)dims * sizeof *nesting);
    memcpy(vector->extent, extent, bytes);
  }
  pthread_mutex_unlock(&lock);
  return vector
             ? SDG_OK
             : sdg_fail(SDG_E_NO_MEMORY, "%zu bytes for agreed extents", bytes);
}

void sdg_tag_nest(sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++) {
    sdg_operand_t *operand = &call->operand[i];
    const sdg_tag_vector_t *vector =
        sdg_tag_vector(operand->descriptor, operand->generation);
    sdg_nest_t own;
    if (vector) {
      memcpy(operand->nesting, vector->nesting, sizeof operand->nesting);
    } else if (operand->nesting[0] == 0) {
      sdg_nest_make(operand->dims, sdg_operand_is_image(operand),
                    operand->extent, operand->stride, &own);
      sdg_nesting_find(operand->dims, sdg_operand_is_image(operand), 1, &own,
                       operand->nesting);
    }
  }
}

sdg_status_t sdg_tag_set_details(const void *descriptor, uint64_t generation,
                                 int details, int *detail) {
  pthread_mutex_lock(&lock);
  record_t *record = NULL;
  HASH_FIND_PTR(records, &descriptor, record);
  sdg_tag_vector_t *vector = record ? record->vector[sdg_channel_get()] : NULL;
  bool there = vector && vector->generation == generation;
  if (there) {
    free(vector->detail);
    vector->details = details;
    vector->detail = detail;
  }
  pthread_mutex_unlock(&lock);
  if (there)
    return SDG_OK;
  free(detail);
  return sdg_fail(SDG_E_INTERNAL, "numbers of a descriptor without extents");
}

void sdg_tag_set_hints(const void *descriptor, uint64_t generation,
                       const sdg_tag_hints_t *hints) {
  pthread_mutex_lock(&lock);
  record_t *record = NULL;
  HASH_FIND_PTR(records, &descriptor, record);
  sdg_tag_vector_t *vector = record ? record->vector[sdg_channel_get()] : NULL;
  if (vector && vector->generation == generation &&
      (hints->hint || !vector->hints.exchanged))
    vector->hints = *hints;
  pthread_mutex_unlock(&lock);
}

const sdg_tag_vector_t *sdg_tag_vector(const void *descriptor,
                                       uint64_t generation) {
  pthread_mutex_lock(&lock);
  record_t *record = NULL;
  HASH_FIND_PTR(records, &descriptor, record);
  const sdg_tag_vector_t *vector =
      record ? record->vector[sdg_channel_get()] : NULL;
  pthread_mutex_unlock(&lock);
  return vector && vector->generation == generation ? vector : NULL;
}

sdg_status_t sdg_tag_set_label(const void *descriptor,
                               const sdg_tag_label_t *label) {
  uint64_t before = sdg_tag_generation(descriptor);
  sdg_tag_touch(descriptor);
  pthread_mutex_lock(&lock);
  record_t *record = record_get(descriptor);
  if (record) {
    record->label = label;
    record->label_generation = sdg_tag_generation(descriptor);
    if (record->said_generation == before) // not set again meanwhile
      record->said_generation = record->label_generation;
  }
  if (label)
    atomic_store(&labelled, true);
  pthread_mutex_unlock(&lock);
  return record ? SDG_OK : sdg_fail(SDG_E_NO_MEMORY, "a descriptor's record");
}

const sdg_tag_label_t *sdg_tag_label(const void *descriptor,
                                     uint64_t generation) {
  if (!atomic_load_explicit(&labelled, memory_order_acquire))
    return NULL;
  pthread_mutex_lock(&lock);
  record_t *record = NULL;
  HASH_FIND_PTR(records, &descriptor, record);
  const sdg_tag_label_t *label =
      record && record->label_generation == generation ? record->label : NULL;
  pthread_mutex_unlock(&lock);
  return label;
}

sdg_status_t sdg_tag_say(const void *descriptor, const int *number,
                         size_t count) {
  int *said = malloc(count * sizeof *said);
  if (!said)
    return sdg_fail(SDG_E_NO_MEMORY, "%zu numbers of a descriptor", count);
  memcpy(said, number, count * sizeof *said);
  uint64_t generation = sdg_tag_generation(descriptor);
  pthread_mutex_lock(&lock);
  record_t *record = record_get(descriptor);
  if (record) {
    free(record->said);
    record->said = said;
    record->said_count = count;
    record->said_generation = generation;
  }
  atomic_store(&saying, true);
  pthread_mutex_unlock(&lock);
  if (record)
    return SDG_OK;
  free(said);
  return sdg_fail(SDG_E_NO_MEMORY, "a descriptor's record");
}

bool sdg_tag_said(const void *descriptor, uint64_t generation, size_t count,
                  int *out_number) {
  if (!atomic_load_explicit(&saying, memory_order_acquire))
    return false;
  pthread_mutex_lock(&lock);
  record_t *record = NULL;
  HASH_FIND_PTR(records, &descriptor, record);
  bool there = record && record->said && generation &&
               record->said_generation == generation &&
               record->said_count >= count;
  if (there && count > 0)
    memcpy(out_number, record->said, count * sizeof *out_number);
  pthread_mutex_unlock(&lock);
  return there;
}

void sdg_tag_set_place(const void *descriptor, const sdg_tag_place_t *place) {
  pthread_mutex_lock(&lock);
  record_t *record = record_get(descriptor);
  if (record)
    record->place = *place;
  pthread_mutex_unlock(&lock);
}

sdg_tag_place_t sdg_tag_place(const void *descriptor) {
  sdg_tag_place_t place = {.dims = 0};
  uint64_t generation = sdg_tag_generation(descriptor);
  pthread_mutex_lock(&lock);
  record_t *record = NULL;
  HASH_FIND_PTR(records, &descriptor, record);
  if (record && generation && record->place.generation == generation)
    place = record->place;
  pthread_mutex_unlock(&lock);
  return place;
}
