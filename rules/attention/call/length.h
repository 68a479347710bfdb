/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of attention's sequences: of all elements, and of those in a piece.
 * Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_LENGTH_H
#define SDG_RULES_ATTENTION_CALL_LENGTH_H

#include <stdint.h>

#include "rules/place/op.h"

/* Of the sequences in a box of a tensor: what is behind a sequence's end is
 * padding, which no query sees. */
typedef struct sdg_attention_lengths {
  int64_t batch, beam, time; /* where the box begins */
  int64_t batches, beams, times;
  int *length; /* from `time` on, batch by batch, beam by beam; owned. NULL: all
                  are full */
} sdg_attention_lengths_t;

/* As this rank's descriptor says, whose elements are `own`. */
sdg_status_t
sdg_attention_lengths_read(const sdg_operand_t *operand, const sdg_box_t *own,
                           sdg_attention_lengths_t *out) SDG_MUST_CHECK;
/* Shard view: those of the whole sequences, of which the ranks told each other
 * their pieces. SDG_E_ATTENTION where these contradict each other, or no rank
 * has an element of one. */
sdg_status_t
sdg_attention_lengths_agreed(const sdg_call_t *call,
                             const sdg_tagging_t *tagging, int index,
                             sdg_attention_lengths_t *out) SDG_MUST_CHECK;
/* Shard view: whether some rank has a sequence without elements, whatever the
 * others have of it. */
bool sdg_attention_lengths_none(const sdg_operand_t *operand);
void sdg_attention_lengths_fini(sdg_attention_lengths_t *lengths);

bool sdg_attention_lengths_equal(const sdg_attention_lengths_t *a,
                                 const sdg_attention_lengths_t *b);
/* A number for those of this rank's descriptor, 0 where all are full. Whole
 * view: of the one thread that makes tagged calls. */
sdg_status_t sdg_attention_lengths_hash(const sdg_operand_t *operand,
                                        uint64_t *out_hash) SDG_MUST_CHECK;

/* How many elements of a sequence are in `time`, which none of them comes
 * before. Example: length 7, [4, 9): 3; [8, 12): 0. */
int64_t sdg_attention_lengths_in(const sdg_attention_lengths_t *lengths,
                                 int64_t batch, int64_t beam, sdg_range_t time);
/* The same of all sequences of a box, in the order of the vendor's arrays, and
 * 1 instead of 0, which a descriptor cannot say; the caller's. NULL: all are
 * full. *out_blank: whether some have none. */
sdg_status_t sdg_attention_lengths_cut(const sdg_attention_lengths_t *lengths,
                                       const sdg_box_t *box, int **out_length,
                                       bool *out_blank) SDG_MUST_CHECK;

#endif
