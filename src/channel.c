// SPDX-License-Identifier: Apache-2.0
// The names of the job's threads, in the memory that the ranks share.
#include "src/channel.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "src/control_state.h"
#include "src/segment.h"

enum { NAME_FREE, NAME_WRITING, NAME_COMPLETE, PATIENCE = 100000 };
_Static_assert((int)SDG_CHANNEL_NAME_BYTES == (int)SDG_SEGMENT_NAME_BYTES,
               "a thread's name fits");

// The other rank writes 32 bytes meanwhile; bounded, as it may be killed there.
static uint32_t state_settled(sdg_segment_name_t *entry) {
  uint32_t state = atomic_load_explicit(&entry->state, memory_order_acquire);
  for (int turn = 0; state == NAME_WRITING && turn < PATIENCE; turn++) {
    sched_yield();
    state = atomic_load_explicit(&entry->state, memory_order_acquire);
  }
  return state;
}

static int name_is(const sdg_segment_name_t *entry, const char *name) {
  return strncmp(entry->text, name, sizeof entry->text) == 0;
}

// Names are looked for from below and take the first free place, so that two
// ranks that bring the same name try the same place.
sdg_status_t sdg_channel_find(sdg_control_t *control, const char *name,
                              int *out_channel) {
  for (int channel = 1; channel < SDG_CONTROL_THREADS; channel++) {
    sdg_segment_name_t *entry = &control->view.shared->name[channel];
    uint32_t none = NAME_FREE;
    if (atomic_compare_exchange_strong(&entry->state, &none, NAME_WRITING)) {
      snprintf(entry->text, sizeof entry->text, "%s", name);
      atomic_store_explicit(&entry->state, NAME_COMPLETE, memory_order_release);
    }
    if (state_settled(entry) != NAME_COMPLETE)
      return sdg_fail(SDG_E_PEER_LOST,
                      "a rank ended while it named thread %d of the job",
                      channel);
    if (name_is(entry, name)) {
      *out_channel = channel;
      return SDG_OK;
    }
  }
  return sdg_fail(SDG_E_THREADS_MANY, "'%s' is one more than %d names", name,
                  SDG_CONTROL_THREADS - 1);
}

void sdg_channel_label(const sdg_control_t *control, int channel, char *out,
                       size_t bytes) {
  out[0] = '\0';
  if (channel < 1 || channel >= SDG_CONTROL_THREADS)
    return;
  const sdg_segment_name_t *entry = &control->view.shared->name[channel];
  if (atomic_load_explicit(&entry->state, memory_order_acquire) ==
      NAME_COMPLETE)
    snprintf(out, bytes, " of thread '%.*s'", (int)sizeof entry->text - 1,
             entry->text);
}
