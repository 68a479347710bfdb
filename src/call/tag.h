/* SPDX-License-Identifier: Apache-2.0 */
/* The tag table: for each descriptor, the generation of its last set, and the
 * op families whose calls with this descriptor pass unchanged.
 *
 * A tag belongs to a descriptor object and the generation of its last set,
 * never to a data pointer. Readers take no lock: the table is open-addressed,
 * only grows, and an old table is never freed. If one thread sets a descriptor
 * while another uses it, that is the program's race, with or without sundog. */
#ifndef SDG_SRC_CALL_TAG_H
#define SDG_SRC_CALL_TAG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/call/call.h"

enum { SDG_TAG_FAMILY_BITS = 24 };
_Static_assert((int)SDG_FAMILY_COUNT <= (int)SDG_TAG_FAMILY_BITS,
               "a family is one bit of a cell's word");

/* word = generation << SDG_TAG_FAMILY_BITS | one bit per family that passes.
 * Generation 0: unknown descriptor (never set, or destroyed). */
typedef struct sdg_tag_cell {
  _Atomic(const void *) key;
  _Atomic(uint64_t) word;
} sdg_tag_cell_t;

typedef struct sdg_tag_table {
  size_t mask; /* number of cells - 1; that number is a power of two */
  struct sdg_tag_table *older; /* readers may still use it */
  sdg_tag_cell_t cell[];
} sdg_tag_table_t;

extern _Atomic(sdg_tag_table_t *) sdg_tag_current;

static inline size_t sdg_tag_hash(const void *descriptor) {
  uint64_t bits = (uint64_t)(uintptr_t)descriptor;
  return (size_t)((bits * 0x9e3779b97f4a7c15u) >> 32);
}

/* Returns the cell's word, 0 if the descriptor is not in the table. */
static inline uint64_t sdg_tag_word(const void *descriptor) {
  sdg_tag_table_t *table =
      atomic_load_explicit(&sdg_tag_current, memory_order_acquire);
  if (!table)
    return 0;
  for (size_t i = sdg_tag_hash(descriptor);; i++) {
    sdg_tag_cell_t *cell = &table->cell[i & table->mask];
    const void *key = atomic_load_explicit(&cell->key, memory_order_acquire);
    if (key == descriptor)
      return atomic_load_explicit(&cell->word, memory_order_acquire);
    if (!key)
      return 0;
  }
}

/* Returns true if calls of this family need not consider this descriptor:
 * since its last set it was found to be untagged. NULL passes: the real
 * function handles an absent operand. */
static inline bool sdg_tag_passes(const void *descriptor, sdg_family_t family) {
  return !descriptor || (sdg_tag_word(descriptor) >> family & 1);
}

/* Returns 0 if the descriptor was never set through an entry. */
static inline uint64_t sdg_tag_generation(const void *descriptor) {
  return sdg_tag_word(descriptor) >> SDG_TAG_FAMILY_BITS;
}

/* Call when a descriptor was created or set: starts a new generation without
 * tags. Generation numbers are never reused. */
void sdg_tag_touch(const void *descriptor);
/* Call when a descriptor was destroyed. */
void sdg_tag_forget(const void *descriptor);
/* From now on the descriptor, at this generation, passes in this family.
 * `agreed`: the decision comes from the extents of all ranks, not of this rank
 * alone. */
void sdg_tag_set_pass(const void *descriptor, uint64_t generation,
                      sdg_family_t family, bool agreed);
/* From now on several threads may make tagged calls. If one thread's agreement
 * let a descriptor pass, another thread would skip the agreement that the
 * threads of other ranks wait in. So this forgets all passes, and later passes
 * by agreement are not stored. */
void sdg_tag_share(void);

/* A label that the program gave a descriptor (sundog_tag). Lives as long as
 * the process; equal texts share one label. */
enum { SDG_TAG_LABEL_BYTES = 96 };
typedef struct sdg_tag_label {
  char text[SDG_TAG_LABEL_BYTES]; /* "H:y" or "local" */
  bool is_local;
} sdg_tag_label_t;

/* Gives the descriptor a label, or removes it (NULL). Starts a new generation,
 * which the label belongs to. */
sdg_status_t sdg_tag_set_label(const void *descriptor,
                               const sdg_tag_label_t *label) SDG_MUST_CHECK;
/* Returns NULL if this generation has no label. Takes no lock while no
 * descriptor has one. */
const sdg_tag_label_t *sdg_tag_label(const void *descriptor,
                                     uint64_t generation);

/* Stores numbers (copied) that the program gave for a descriptor's current
 * generation and that the vendor's library cannot store. */
sdg_status_t sdg_tag_say(const void *descriptor, const int *number,
                         size_t count) SDG_MUST_CHECK;
/* Gets the `count` numbers; false if this generation has none. */
bool sdg_tag_said(const void *descriptor, uint64_t generation, size_t count,
                  int *out_number);

/* The position of this rank's piece in the whole tensor, for the program's
 * queries. */
typedef struct sdg_tag_place {
  uint64_t generation;
  int dims;
  int64_t first[SDG_DIMS_MAX], extent[SDG_DIMS_MAX];
} sdg_tag_place_t;
void sdg_tag_set_place(const void *descriptor, const sdg_tag_place_t *place);
/* Returns dims 0 if the descriptor's current generation has no stored place. */
sdg_tag_place_t sdg_tag_place(const void *descriptor);

/* What the ranks knew about the memory that a call read (src/geometry/hint.h).
 * The int members are members of the group; -1: none. */
typedef struct sdg_tag_hints {
  bool exchanged;   /* the ranks exchanged their hints */
  sdg_hint_t hint;  /* of the first member that has a hint */
  int unknown;      /* a member without a hint */
  int differs;      /* a member with a different hint */
  sdg_hint_t other; /* that member's hint */
} sdg_tag_hints_t;

/* Local extents of all ranks of the agreement's group, for one generation and
 * one channel. Threads that share a descriptor each make their own agreement,
 * because which of them is first depends on timing. Immutable once stored. */
typedef struct sdg_tag_vector {
  uint64_t generation;
  int ranks, dims;
  /* How the dimensions nest in memory on every rank
   * (src/geometry/layout.h). */
  int64_t nesting[SDG_DIMS_MAX];
  sdg_tag_hints_t hints;
  /* Further numbers of the ranks, as [ranks][details]; -1 after the end of a
   * shorter list. details is 0 if no rank has any. */
  int details;
  int *detail;
  int64_t extent[]; /* [ranks][dims], in group order */
} sdg_tag_vector_t;

/* Stores a vector (copied) for the descriptor's generation and the calling
 * thread (src/job/thread.h). nesting is NULL for an op's descriptor, whose
 * numbers are not extents. */
sdg_status_t sdg_tag_set_vector(const void *descriptor, uint64_t generation,
                                int ranks, int dims, const int64_t *nesting,
                                const int64_t *extent) SDG_MUST_CHECK;
/* Sets the nesting of each operand that has none: as the ranks agreed on, or
 * as its own strides show. For planners; calls that only pass need none. */
void sdg_tag_nest(sdg_call_t *call);
/* Adds further numbers to the vector that the calling thread stored last.
 * Takes over `detail` (from malloc), also after an error. */
sdg_status_t sdg_tag_set_details(const void *descriptor, uint64_t generation,
                                 int details, int *detail) SDG_MUST_CHECK;
/* Adds the ranks' hints about its memory in the same way. They also apply to
 * later vectors of this generation, until replaced. */
void sdg_tag_set_hints(const void *descriptor, uint64_t generation,
                       const sdg_tag_hints_t *hints);
/* Returns the vector that the calling thread agreed for exactly this
 * generation; NULL if it has none. Borrowed until the thread's next set_vector
 * or any forget of the descriptor. */
const sdg_tag_vector_t *sdg_tag_vector(const void *descriptor,
                                       uint64_t generation);

#endif
