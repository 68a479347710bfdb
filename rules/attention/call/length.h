/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of attention's sequences, in elements: of whole sequences and of
 * pieces. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_LENGTH_H
#define SDG_RULES_ATTENTION_CALL_LENGTH_H

#include <stdint.h>

#include "rules/place/op.h"

/* Lengths of the sequences in a box of a tensor. Elements behind a sequence's
 * end are padding, which no query sees. */
typedef struct sdg_attention_lengths {
  int64_t batch, beam, time; /* the box's first index */
  int64_t batches, beams, times;
  int *length; /* counted from `time`; batch by batch, beam by beam; owned.
                * NULL: all are full */
} sdg_attention_lengths_t;

/* Reads the lengths from this rank's descriptor; its elements are `own`. */
sdg_status_t
sdg_attention_lengths_read(const sdg_operand_t *operand, const sdg_box_t *own,
                           sdg_attention_lengths_t *out) SDG_MUST_CHECK;
/* Shard view: computes the lengths of whole sequences from the lengths of
 * pieces that the ranks exchanged. SDG_E_ATTENTION if these contradict each
 * other, or if no rank has an element of some sequence. */
sdg_status_t
sdg_attention_lengths_agreed(const sdg_call_t *call,
                             const sdg_tagging_t *tagging, int index,
                             sdg_attention_lengths_t *out) SDG_MUST_CHECK;
/* Shard view: whether some rank has no element of some sequence, even if other
 * ranks have. */
bool sdg_attention_lengths_none(const sdg_operand_t *operand);
void sdg_attention_lengths_fini(sdg_attention_lengths_t *lengths);

bool sdg_attention_lengths_equal(const sdg_attention_lengths_t *a,
                                 const sdg_attention_lengths_t *b);
/* A hash of the lengths in this rank's descriptor; 0 if all are full. Whole
 * view: only the thread that makes tagged calls may use it. */
sdg_status_t sdg_attention_lengths_hash(const sdg_operand_t *operand,
                                        uint64_t *out_hash) SDG_MUST_CHECK;

/* How many elements of a sequence lie in `time`, which begins at or after
 * lengths->time. Example: length 7, [4, 9): 3; [8, 12): 0. */
int64_t sdg_attention_lengths_in(const sdg_attention_lengths_t *lengths,
                                 int64_t batch, int64_t beam, sdg_range_t time);
/* The same for all sequences of a box, in the order of the vendor's arrays,
 * with 1 in place of 0, which a descriptor cannot express. The caller frees the
 * array. NULL: all are full. *out_blank: whether some sequence has no
 * element. */
sdg_status_t sdg_attention_lengths_cut(const sdg_attention_lengths_t *lengths,
                                       const sdg_box_t *box, int **out_length,
                                       bool *out_blank) SDG_MUST_CHECK;

#endif
