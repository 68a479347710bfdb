/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, by the address of a tensor, of what was brought of it for one call
 * and is read by a later one (rules/reuse/kept.h, rules/step/held.h). Inside
 * rules/ only.
 *
 * A slot is its thread's; others only take from it what they write to. */
#ifndef SDG_RULES_MEMORY_KEPT_SLOT_H
#define SDG_RULES_MEMORY_KEPT_SLOT_H

#include <stdbool.h>

#include "src/base/status.h"
#include "src/geometry/buffer.h"

/* As many calls that left something ago one may have been that is still read: a
 * number that is the same on every rank, whatever their addresses are. */
enum { SDG_KEPT_SLOTS = 256, SDG_KEPT_SPARE = 2, SDG_KEPT_SEEN = 4 };

typedef struct sdg_kept_slot {
  sdg_span_t tensor;
  uint64_t number; /* of all that was left, from 1; 0: nothing */
  uint64_t order;  /* of a product: sdg_product_keep_t */
  uint64_t what;   /* a number for what it is, the same on every rank */
  uint64_t digest; /* of what the rank sent; checked runs */
  void *memory;
  size_t bytes;
} sdg_kept_slot_t;

/* The calling thread's slot of a tensor that lies at `data`, as it is now; NULL
 * where nothing is left of it. */
sdg_kept_slot_t *sdg_kept_slot_find(const void *data, sdg_kept_slot_t *out);
/* The same of operand `index` of a call that comes, for as long as it lasts,
 * whatever other threads write: sdg_kept_slot_seen. Up to SDG_KEPT_SEEN. */
const sdg_kept_slot_t *sdg_kept_slot_look(int index, const void *data);
sdg_kept_slot_t *sdg_kept_slot_seen(int index, sdg_kept_slot_t *out_as_it_was);
/* The calling thread's one of this tensor, or else the oldest; it is empty
 * then, and newer than all others. */
sdg_status_t sdg_kept_slot_take(const void *data,
                                sdg_kept_slot_t **out) SDG_MUST_CHECK;
/* One that nobody finds, of SDG_KEPT_SPARE. */
sdg_status_t sdg_kept_slot_spare(int index,
                                 sdg_kept_slot_t **out) SDG_MUST_CHECK;
/* Says what is in it, for others to find. */
void sdg_kept_slot_fill(sdg_kept_slot_t *slot, sdg_span_t tensor,
                        uint64_t order, uint64_t what);
/* Has it have so many bytes. */
sdg_status_t sdg_kept_slot_room(sdg_kept_slot_t *slot,
                                size_t bytes) SDG_MUST_CHECK;
/* How much the calling thread has left so far. */
uint64_t sdg_kept_slot_number(void);

/* These bytes are written: what is left of a tensor there is forgotten. Any
 * thread. */
void sdg_kept_slot_drop(sdg_span_t span);
/* The device is about to be reset. */
void sdg_kept_slot_forget(void);

#endif
