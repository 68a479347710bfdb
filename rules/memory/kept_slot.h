/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory, found by the address of a tensor: one call fetches parts of
 * the tensor into it, and a later call reads them (rules/reuse/kept.h,
 * rules/step/held.h). Inside rules/ only.
 *
 * A slot belongs to a thread. Other threads may only invalidate slots whose
 * tensor they write. */
#ifndef SDG_RULES_MEMORY_KEPT_SLOT_H
#define SDG_RULES_MEMORY_KEPT_SLOT_H

#include "src/base/status.h"
#include "src/geometry/buffer.h"

/* As many calls that left something ago one may have been that is still read: a
 * number that is the same on every rank, whatever their addresses are. */
enum { SDG_KEPT_SLOTS = 256, SDG_KEPT_SPARE = 2, SDG_KEPT_SEEN = 4 };

typedef struct sdg_kept_slot {
  sdg_span_t tensor;
  uint64_t number; /* its number among the slots taken, from 1; 0: empty */
  uint64_t order;  /* for a product: sdg_product_keep_t */
  uint64_t what;   /* identifies the contents, equal on every rank */
  uint64_t digest; /* digest of what the rank sent; in checked runs */
  void *memory;
  size_t bytes;
} sdg_kept_slot_t;

/* The calling thread's slot for the tensor at `data`, in its present state;
 * NULL if nothing is kept for it. */
sdg_kept_slot_t *sdg_kept_slot_find(const void *data, sdg_kept_slot_t *out);
/* The same for operand `index` of a call to come. It stays valid during the
 * call, whatever other threads write: see sdg_kept_slot_seen. `index` is below
 * SDG_KEPT_SEEN. */
const sdg_kept_slot_t *sdg_kept_slot_look(int index, const void *data);
sdg_kept_slot_t *sdg_kept_slot_seen(int index, sdg_kept_slot_t *out_as_it_was);
/* The calling thread's slot for this tensor, or else its oldest one. The slot
 * is then empty, and newer than all others. */
sdg_status_t sdg_kept_slot_take(const void *data,
                                sdg_kept_slot_t **out) SDG_MUST_CHECK;
/* One of SDG_KEPT_SPARE slots that nobody can find. */
sdg_status_t sdg_kept_slot_spare(int index,
                                 sdg_kept_slot_t **out) SDG_MUST_CHECK;
/* Describes the contents, so that others find them. */
void sdg_kept_slot_fill(sdg_kept_slot_t *slot, sdg_span_t tensor,
                        uint64_t order, uint64_t what);
/* Makes the slot at least this large. */
sdg_status_t sdg_kept_slot_room(sdg_kept_slot_t *slot,
                                size_t bytes) SDG_MUST_CHECK;
/* How many slots the calling thread has taken so far. */
uint64_t sdg_kept_slot_number(void);

/* These bytes are written: forgets what is kept for tensors there. Any thread
 * may call it. */
void sdg_kept_slot_drop(sdg_span_t span);
/* The device is about to be reset. */
void sdg_kept_slot_forget(void);

#endif
