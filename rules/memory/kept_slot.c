// SPDX-License-Identifier: Apache-2.0
// Slots of kept memory, by thread and address.
#include "rules/memory/kept_slot.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/vendor.h"
#include "src/exchange/device.h"
#include "src/geometry/hint.h"
#include "src/job/thread.h"

// The slots of one calling thread.
typedef struct state {
  sdg_kept_slot_t *slot; // SDG_KEPT_SLOTS, then the spare ones
  uint64_t number;       // number of the last slot that was taken
  struct {
    sdg_kept_slot_t *slot, was;
  } seen[SDG_KEPT_SEEN];
} state_t;
static state_t states[SDG_CHANNEL_THREADS]; // by the thread's channel number
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static state_t *state_get(void) {
  return &states[sdg_channel_get()];
}

void sdg_kept_slot_forget(void) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < SDG_CHANNEL_THREADS; i++)
    free(states[i].slot);
  memset(states, 0, sizeof states);
  pthread_mutex_unlock(&lock);
}

// Call with the lock held.
static sdg_kept_slot_t *find(const state_t *state, const void *data) {
  for (int i = 0; data && state->slot && i < SDG_KEPT_SLOTS; i++)
    if (state->slot[i].number > 0 &&
        state->slot[i].tensor.at == (uintptr_t)data)
      return &state->slot[i];
  return NULL;
}

sdg_kept_slot_t *sdg_kept_slot_find(const void *data, sdg_kept_slot_t *out) {
  pthread_mutex_lock(&lock);
  sdg_kept_slot_t *slot = find(state_get(), data);
  if (slot)
    *out = *slot;
  pthread_mutex_unlock(&lock);
  return slot;
}

const sdg_kept_slot_t *sdg_kept_slot_look(int index, const void *data) {
  state_t *state = state_get();
  state->seen[index].slot = sdg_kept_slot_find(data, &state->seen[index].was);
  return state->seen[index].slot ? &state->seen[index].was : NULL;
}

sdg_kept_slot_t *sdg_kept_slot_seen(int index, sdg_kept_slot_t *out_as_it_was) {
  const state_t *state = state_get();
  *out_as_it_was = state->seen[index].was;
  return state->seen[index].slot;
}

uint64_t sdg_kept_slot_number(void) {
  return state_get()->number;
}

static sdg_status_t slots_open(state_t *state) {
  pthread_mutex_lock(&lock);
  if (!state->slot)
    state->slot = calloc(SDG_KEPT_SLOTS + SDG_KEPT_SPARE, sizeof *state->slot);
  pthread_mutex_unlock(&lock);
  return state->slot ? SDG_OK : sdg_fail(SDG_E_NO_MEMORY, "kept memory");
}

sdg_status_t sdg_kept_slot_take(const void *data, sdg_kept_slot_t **out) {
  state_t *state = state_get();
  SDG_TRY(slots_open(state));
  pthread_mutex_lock(&lock);
  sdg_kept_slot_t *taken = find(state, data), *oldest = state->slot;
  for (int i = 1; i < SDG_KEPT_SLOTS; i++)
    if (state->slot[i].number < oldest->number)
      oldest = &state->slot[i];
  if (!taken)
    taken = oldest;
  // Without a tensor no write removes the slot, and no look-up finds it.
  taken->tensor = (sdg_span_t){0, 0};
  taken->number = ++state->number;
  pthread_mutex_unlock(&lock);
  *out = taken;
  return SDG_OK;
}

sdg_status_t sdg_kept_slot_spare(int index, sdg_kept_slot_t **out) {
  state_t *state = state_get();
  SDG_TRY(slots_open(state));
  *out = &state->slot[SDG_KEPT_SLOTS + index];
  return SDG_OK;
}

void sdg_kept_slot_fill(sdg_kept_slot_t *slot, sdg_span_t tensor,
                        uint64_t order, uint64_t what) {
  sdg_hint_watch(); // who writes there has to be seen
  pthread_mutex_lock(&lock);
  slot->tensor = tensor;
  slot->order = order;
  slot->what = what;
  pthread_mutex_unlock(&lock);
}

sdg_status_t sdg_kept_slot_room(sdg_kept_slot_t *slot, size_t bytes) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  if (bytes <= slot->bytes)
    return SDG_OK;
  // cudaFree waits for the work that uses the old memory.
  SDG_TRY(
      sdg_vendor_check(cuda->cudaFree(slot->memory), "free of kept memory"));
  slot->memory = NULL;
  slot->bytes = 0;
  if (cuda->cudaMalloc(&slot->memory, bytes) != cudaSuccess) {
    (void)cuda->cudaGetLastError();
    return sdg_fail(SDG_E_DEVICE_MEMORY, "%zu bytes of kept memory", bytes);
  }
  slot->bytes = bytes;
  return SDG_OK;
}

void sdg_kept_slot_drop(sdg_span_t span) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < SDG_CHANNEL_THREADS; i++)
    for (int k = 0; states[i].slot && k < SDG_KEPT_SLOTS; k++)
      if (sdg_span_overlap(states[i].slot[k].tensor, span))
        states[i].slot[k].number = 0;
  pthread_mutex_unlock(&lock);
}
