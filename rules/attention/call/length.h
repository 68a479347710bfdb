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

/* Reads the lengths from this rank's descriptor, whose tensor is box `own` of
 * the global tensor. The caller frees `out`. SDG_E_NO_MEMORY. */
sdg_status_t
sdg_attention_lengths_read(const sdg_operand_t *operand, const sdg_box_t *own,
                           sdg_attention_lengths_t *out) SDG_MUST_CHECK;
/* Shard view: computes the lengths of the whole sequences of operand `index`
 * from the lengths of their pieces, which the ranks have exchanged. The caller
 * frees `out`. SDG_E_ATTENTION if the lengths of the pieces contradict each
 * other, or if some sequence has no element on any rank. */
sdg_status_t
sdg_attention_lengths_agreed(const sdg_call_t *call,
                             const sdg_tagging_t *tagging, int index,
                             sdg_attention_lengths_t *out) SDG_MUST_CHECK;
/* Shard view: whether, on some rank, the piece of some sequence has length
 * 0. */
bool sdg_attention_lengths_none(const sdg_operand_t *operand);
void sdg_attention_lengths_fini(sdg_attention_lengths_t *lengths);

/* Whether two sets of sequences have the same lengths. */
bool sdg_attention_lengths_equal(const sdg_attention_lengths_t *a,
                                 const sdg_attention_lengths_t *b);
/* A hash of the lengths in this rank's descriptor; 0 if all are full. Whole
 * view: only the thread that makes tagged calls may use it. */
sdg_status_t sdg_attention_lengths_hash(const sdg_operand_t *operand,
                                        uint64_t *out_hash) SDG_MUST_CHECK;

/* How many elements of sequence (batch, beam) lie in `time`, which begins at or
 * after lengths->time. Example with length 7: 3 in [4, 9), 0 in [8, 12). */
int64_t sdg_attention_lengths_in(const sdg_attention_lengths_t *lengths,
                                 int64_t batch, int64_t beam, sdg_range_t time);
/* sdg_attention_lengths_in for all sequences of a box, in the order of the
 * vendor's arrays. The array has 1 in place of 0, because a descriptor cannot
 * express a length of 0; *out_blank tells whether that happened. The caller
 * frees the array. *out_length is NULL if all sequences are full.
 * SDG_E_NO_MEMORY. */
sdg_status_t sdg_attention_lengths_cut(const sdg_attention_lengths_t *lengths,
                                       const sdg_box_t *box, int **out_length,
                                       bool *out_blank) SDG_MUST_CHECK;

#endif
