/* SPDX-License-Identifier: Apache-2.0 */
/* Captured calls as lines of the record that `sundog inspect` reads. */
#ifndef SDG_RULES_OBSERVE_INSPECT_H
#define SDG_RULES_OBSERVE_INSPECT_H

#include "src/call/call.h"

/* Records a call, whether or not anything is split, as one JSON object:
 *
 *   {"entry":"cudnnPoolingForward","family":"pool","query":false,"rule":true,
 *    "window":{"kernel":[2,2],"stride":[2,2],"pad":[0,0],"dilation":[1,1]},
 *    "operands":[{"role":"x","output":false,"filter":false,"type":0,
 *                 "bytes":4,"extent":[1,8,64,64]}, ...]}
 *
 * Attention has "attention":{"same":true,"left":512,"right":-1}: whether keys
 * and values are one tensor, and the number of keys before and after each
 * query, -1 if no key limits it. If the windows have no such form:
 * "attention":{"same":true,"ragged":true}. Gradients of parameters have no
 * windows, and graphs of attention no "same". An operand of a product of
 * matrices is the product itself, with the extents M, N, K and, if the entry
 * computes several, BATCH.
 *
 * An operand in memory of cudaMallocManaged has "managed":true.
 *
 * "rule": whether this version can split it, from `knows`. "window", for
 * convolutions and pooling, has a number for each spatial dimension. Does
 * nothing unless SUNDOG_INSPECT is set. Any thread may call it. */
void sdg_inspect_call(const sdg_call_t *call,
                      bool (*knows)(const sdg_call_t *call));
/* The same for an entry that hides its tensors: {"entry":..., "opaque":true}.
 */
void sdg_inspect_opaque(const char *entry_name);
/* Whether cuBLAS's function of this name computes sums (norms, dot products,
 * products of matrices) or similar values, which in the shard view are those of
 * one piece. */
bool sdg_inspect_reduces(const char *entry_name);
/* Such a function was called: {"entry":..., "reduction":true}. Does nothing for
 * others. */
void sdg_inspect_reduction(const char *entry_name);

#endif
