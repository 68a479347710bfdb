/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of vectors as tensors of four dimensions, in the order of the
 * vendor's axes, whatever the order in memory. Inside rules/ only. */
#ifndef SDG_RULES_VENDOR_SEQUENCE_H
#define SDG_RULES_VENDOR_SEQUENCE_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/box.h"

enum {
  SDG_SEQUENCE_TIME = CUDNN_SEQDATA_TIME_DIM,
  SDG_SEQUENCE_BATCH = CUDNN_SEQDATA_BATCH_DIM,
  SDG_SEQUENCE_BEAM = CUDNN_SEQDATA_BEAM_DIM,
  SDG_SEQUENCE_VECTOR = CUDNN_SEQDATA_VECT_DIM,
  SDG_SEQUENCE_DIMS = CUDNN_SEQDATA_DIM_COUNT
};

/* Type, extents and strides of operand->descriptor. False if the vendor's
 * library does not read it; nothing is reported. */
bool sdg_sequence_get(sdg_operand_t *operand);

/* How long each sequence is, batch by batch, beam by beam; as
 * sdg_sequence_get. */
bool sdg_sequence_lengths(const sdg_operand_t *operand, int *out_length);

/* The lengths of sequences with 1 in place of 0, for a descriptor: the vendor's
 * library refuses 0, the length of a piece without elements. The program's
 * lengths are kept beside the descriptor (sdg_tag_say). Allocated by malloc,
 * for the caller to free. NULL: no length is 0, one is negative, or no memory.
 */
int *sdg_sequence_nonzero(const int *length, size_t count);
/* Whether an operand's descriptor has such lengths. */
bool sdg_sequence_has_none(const sdg_operand_t *operand);
/* SDG_E_ATTENTION if that of any operand has: for a call that is the program's
 * as it is, in which the vendor's library takes none. */
sdg_status_t sdg_sequence_whole(const sdg_call_t *call) SDG_MUST_CHECK;

/* Whether a descriptor can say where the elements of `box` lie: with the last
 * dimension innermost, without gaps. */
bool sdg_sequence_packed(const sdg_box_t *box, const int64_t *stride);
/* Makes a descriptor of elements of this type; the caller's. `length`: of its
 * sequences, as above, each at least 1; NULL: all are full. SDG_E_VENDOR_CALL.
 */
sdg_status_t sdg_sequence_create(sdg_type_t type, const sdg_box_t *box,
                                 const int64_t *stride, const int *length,
                                 cudnnSeqDataDescriptor_t *out) SDG_MUST_CHECK;

#endif
