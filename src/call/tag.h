/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a descriptor: the generation of its last set, and for which
 * op families a call that uses it can pass untouched.
 *
 * A tag belongs to a descriptor object and the generation of its last set,
 * never to a data pointer. Readers take no lock: the table is open-addressed,
 * only grows, and an old one is never freed. A descriptor that one thread sets
 * while another uses it is the program's race, as without sundog. */
#ifndef SDG_SRC_CALL_TAG_H
#define SDG_SRC_CALL_TAG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/call/call.h"

enum { SDG_TAG_FAMILY_BITS = 16 };
_Static_assert((int)SDG_FAMILY_COUNT <= (int)SDG_TAG_FAMILY_BITS,
               "a family is one bit of a cell's word");

/* word = generation << SDG_TAG_FAMILY_BITS | one bit per family that passes.
 * Generation 0: not a known descriptor (never set, or destroyed). */
typedef struct sdg_tag_cell {
  _Atomic(const void *) key;
  _Atomic(uint64_t) word;
} sdg_tag_cell_t;

typedef struct sdg_tag_table {
  size_t mask;                 /* cells - 1, a power of two less one */
  struct sdg_tag_table *older; /* that readers may still hold */
  sdg_tag_cell_t cell[];
} sdg_tag_table_t;

extern _Atomic(sdg_tag_table_t *) sdg_tag_current;

static inline size_t sdg_tag_hash(const void *descriptor) {
  uint64_t bits = (uint64_t)(uintptr_t)descriptor;
  return (size_t)((bits * 0x9e3779b97f4a7c15u) >> 32);
}

/* The cell's word, 0 if the descriptor is not in the table. */
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

/* True if no call of this family is affected by this descriptor: it has been
 * judged untagged since its last set. NULL passes: the real function answers
 * for an operand that is absent. */
static inline bool sdg_tag_passes(const void *descriptor, sdg_family_t family) {
  return !descriptor || (sdg_tag_word(descriptor) >> family & 1);
}

/* 0 if the descriptor was never set through an entry. */
static inline uint64_t sdg_tag_generation(const void *descriptor) {
  return sdg_tag_word(descriptor) >> SDG_TAG_FAMILY_BITS;
}

/* A descriptor was created or set: a new generation, nothing known of it.
 * Generation numbers are never reused. */
void sdg_tag_touch(const void *descriptor);
/* A descriptor was destroyed. */
void sdg_tag_forget(const void *descriptor);
/* The descriptor, at this generation, passes in this family from now on.
 * `agreed`: the ranks' extents said so, not this rank's alone. */
void sdg_tag_set_pass(const void *descriptor, uint64_t generation,
                      sdg_family_t family, bool agreed);
/* Several threads may make tagged calls from now on. A descriptor that passes
 * by agreement of one thread would keep another from the agreement that the
 * other ranks' threads wait in: all passes are forgotten, and no further ones
 * by agreement are kept. */
void sdg_tag_share(void);

/* What the program said of a descriptor (sundog_tag). Lives as long as the
 * process; equal texts are one label. */
enum { SDG_TAG_LABEL_BYTES = 96 };
typedef struct sdg_tag_label {
  char text[SDG_TAG_LABEL_BYTES]; /* "H:y", "local" */
  bool is_local;
} sdg_tag_label_t;

/* Gives the descriptor a label, or takes it off (NULL), and a new generation:
 * the label is that generation's. */
sdg_status_t sdg_tag_set_label(const void *descriptor,
                               const sdg_tag_label_t *label) SDG_MUST_CHECK;
/* NULL if this generation has none. No lock while no descriptor has one. */
const sdg_tag_label_t *sdg_tag_label(const void *descriptor,
                                     uint64_t generation);

/* What the program said of a descriptor at its present generation and the
 * vendor's library cannot keep: numbers, copied. */
sdg_status_t sdg_tag_say(const void *descriptor, const int *number,
                         size_t count) SDG_MUST_CHECK;
/* `count` of them; false if this generation has none. */
bool sdg_tag_said(const void *descriptor, uint64_t generation, size_t count,
                  int *out_number);

/* Where this rank's piece is in the whole tensor, for the program's questions.
 */
typedef struct sdg_tag_place {
  uint64_t generation;
  int dims;
  int64_t first[SDG_DIMS_MAX], extent[SDG_DIMS_MAX];
} sdg_tag_place_t;
void sdg_tag_set_place(const void *descriptor, const sdg_tag_place_t *place);
/* dims 0 if the descriptor's present generation was not placed. */
sdg_tag_place_t sdg_tag_place(const void *descriptor);

/* What the ranks knew of the memory that a call read (src/geometry/hint.h).
 * Members of the group; -1: none. */
typedef struct sdg_tag_hints {
  bool told;        /* they told each other */
  sdg_hint_t hint;  /* of the first one that knew something */
  int unknown;      /* one that knew nothing */
  int differs;      /* one that knew something else: */
  sdg_hint_t other; /* that */
} sdg_tag_hints_t;

/* Local extents of all ranks of the agreement's group, agreed for one
 * generation by the threads of one channel: threads that share a descriptor
 * each agree on it, since which comes first depends on time. Immutable once
 * stored. */
typedef struct sdg_tag_vector {
  uint64_t generation;
  int ranks, dims;
  /* How the dimensions nest in memory on every rank, as strides do: the larger,
   * the further out. One rank's strides do not tell where an extent is 1. */
  int64_t nesting[SDG_DIMS_MAX];
  sdg_tag_hints_t hints;
  /* What the ranks said beside extents: so many numbers of each, [ranks][...],
   * -1 behind the end of a shorter list. 0: no rank said anything. */
  int details;
  int *detail;
  int64_t extent[]; /* [ranks][dims], group order */
} sdg_tag_vector_t;

/* Stores a vector (copied) for the descriptor's generation, and the calling
 * thread (src/job/thread.h). nesting NULL: of an op, whose numbers are no
 * extents.
 */
sdg_status_t sdg_tag_set_vector(const void *descriptor, uint64_t generation,
                                int ranks, int dims, const int64_t *nesting,
                                const int64_t *extent) SDG_MUST_CHECK;
/* Adds what the ranks said more to the vector that the calling thread stored
 * last; takes `detail` (of malloc) over, also after an error. */
sdg_status_t sdg_tag_set_details(const void *descriptor, uint64_t generation,
                                 int details, int *detail) SDG_MUST_CHECK;
/* The same of what the ranks knew of its memory: stays with later vectors of
 * this generation until something else is known. */
void sdg_tag_set_hints(const void *descriptor, uint64_t generation,
                       const sdg_tag_hints_t *hints);
/* The vector that the calling thread agreed for exactly this generation, NULL
 * if there is none. Borrowed until the thread's next set_vector or any forget
 * of the descriptor. */
const sdg_tag_vector_t *sdg_tag_vector(const void *descriptor,
                                       uint64_t generation);

#endif
