/* SPDX-License-Identifier: Apache-2.0 */
/* The masks of dropout, drawn by generators that lie in the program's states.
 *
 * They have the same bits as a GPU's: element i of a call is drawn by generator
 * i modulo their number, and generator g is cuRAND's XORWOW of subsequence g.
 * Their number depends on the GPU; here it is that of an RTX 3060 (cuDNN 9.27),
 * for which pantheongpu/pantheonsim measured all of this. */
#ifndef SDG_SRC_HOST_CUDNN_ELEMENTWISE_DROPOUT_MASK_H
#define SDG_SRC_HOST_CUDNN_ELEMENTWISE_DROPOUT_MASK_H

#include <stddef.h>
#include <stdint.h>

enum { HOST_DROP_GENERATORS = 21504 };

/* The object that `states` points to on the device. Saving and restoring these
 * bytes repeats masks. */
typedef struct {
  struct {
    uint32_t count, value[5]; /* Marsaglia's Weyl counter and shift register */
    uint32_t unused[6];       /* for normal distributions */
  } generator[HOST_DROP_GENERATORS];
} host_dropstates_t;

void host_dropmask_seed(host_dropstates_t *states, uint64_t seed);

/* Draws `count` bits, 1 for a kept element, and advances the states. Without
 * states (NULL) nothing is drawn: all are kept at probability 0, else none. */
void host_dropmask_draw(host_dropstates_t *states, float probability,
                        int64_t count, uint32_t *mask);

#endif
