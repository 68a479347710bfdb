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
 * Attention says whether keys and values are one tensor, and has its windows,
 * if they are so many keys before and after each query, -1 where no key shows a
 * bound: "attention":{"same":true,"left":512,"right":-1}; else
 * "attention":{"same":true,"ragged":true}. Gradients of parameters have no
 * windows. Of a product of matrices the first operand is the product itself, of
 * the extents M, N, K, and BATCH where the entry makes several.
 *
 * An operand in memory of cudaMallocManaged has "managed":true.
 *
 * "rule": whether `knows` says that this version can split it. "window", for
 * convolutions and pooling, has a number for each spatial dimension. Does
 * nothing unless SUNDOG_INSPECT is set. Any thread. */
void sdg_inspect_call(const sdg_call_t *call,
                      bool (*knows)(const sdg_call_t *call));
/* The same for an entry that hides its tensors: {"entry":..., "opaque":true}.
 */
void sdg_inspect_opaque(const char *entry_name);
/* Whether cuBLAS' function of this name makes sums (norms, dot products,
 * products of matrices) or the like: of its own piece in the shard view. */
bool sdg_inspect_reduces(const char *entry_name);
/* Such a function was called: {"entry":..., "reduction":true}. Nothing for
 * others. */
void sdg_inspect_reduction(const char *entry_name);

#endif
