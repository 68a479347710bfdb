/* SPDX-License-Identifier: Apache-2.0 */
/* What the vendor's library answers about convolutions. It is asked once for
 * each description: a question about workspace takes it up to 100 us of the
 * processor, one about algorithms some milliseconds. Programs that set their
 * descriptors anew for every call have every call planned anew. Inside rules/
 * only. */
#ifndef SDG_RULES_CONV_ANSWERS_H
#define SDG_RULES_CONV_ANSWERS_H

#include "rules/conv/rule.h"

/* The workspace in bytes that this algorithm needs for what the call computes
 * or asks about. */
cudnnStatus_t sdg_conv_workspace(const sdg_call_t *call,
                                 const sdg_conv_descriptors_t *descriptors,
                                 cudnnFilterDescriptor_t w, int algo,
                                 size_t *out_bytes);

/* Chooses `wanted` if the vendor's library accepts it for this piece, otherwise
 * the library's own choice; returns its workspace, too. The vendor's status if
 * the library accepts no algorithm. */
cudnnStatus_t sdg_conv_choose(const sdg_call_t *call,
                              const sdg_conv_descriptors_t *descriptors,
                              cudnnFilterDescriptor_t w, int wanted,
                              int *out_algo, size_t *out_workspace_bytes);

/* Forgets all answers. No thread may be in a tagged call. */
void sdg_conv_answers_forget(void);

#endif
