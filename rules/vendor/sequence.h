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

/* Fills in type, extents and strides (elements) from operand->descriptor. False
 * if the vendor's library cannot read it; nothing is reported. */
bool sdg_sequence_get(sdg_operand_t *operand);

/* The length of each sequence, in elements along TIME. out_length has batch x
 * beam elements, the beam innermost. False as sdg_sequence_get. */
bool sdg_sequence_lengths(const sdg_operand_t *operand, int *out_length);

/* The lengths of sequences with 1 in place of 0, for a descriptor: the vendor's
 * library refuses 0, the length of a piece without elements. The program's
 * lengths are kept beside the descriptor (sdg_tag_say). Allocated by malloc,
 * for the caller to free. NULL: no length is 0, one is negative, or no memory.
 */
int *sdg_sequence_nonzero(const int *length, size_t count);
/* SDG_E_ATTENTION if the descriptor of any operand has a length of 0. For calls
 * that the vendor's library gets as they are: it refuses such lengths. */
sdg_status_t sdg_sequence_whole(const sdg_call_t *call) SDG_MUST_CHECK;

/* Whether a descriptor can describe the elements of `box` with these strides:
 * the last dimension is innermost and there are no gaps. */
bool sdg_sequence_packed(const sdg_box_t *box, const int64_t *stride);
/* Makes a descriptor, which the caller owns. `length`: as above, each at least
 * 1; NULL: all sequences are as long as the box. SDG_E_VENDOR_CALL,
 * SDG_E_LIBRARY_MISSING, SDG_E_NO_MEMORY. */
sdg_status_t sdg_sequence_create(sdg_type_t type, const sdg_box_t *box,
                                 const int64_t *stride, const int *length,
                                 cudnnSeqDataDescriptor_t *out) SDG_MUST_CHECK;

#endif
