/* SPDX-License-Identifier: Apache-2.0 */
/* The masks of dropout, drawn by generators that lie in the program's states.
 *
 * They are those of a GPU, bit for bit: element i of a call is drawn by
 * generator i modulo their number, which is cuRAND's XORWOW of that
 * subsequence. Their number depends on the GPU; here it is that of an RTX 3060
 * (cuDNN 9.27), where pantheongpu/pantheonsim measured all of this. */
#ifndef SDG_SRC_HOST_CUDNN_ELEMENTWISE_DROPOUT_MASK_H
#define SDG_SRC_HOST_CUDNN_ELEMENTWISE_DROPOUT_MASK_H

#include <stddef.h>
#include <stdint.h>

enum { HOST_DROP_GENERATORS = 21504 };

/* What `states` points to on the device. Saving and restoring these bytes
 * repeats masks. */
typedef struct {
  struct {
    uint32_t count, value[5]; /* Marsaglia's Weyl counter and shift register */
    uint32_t unused[6];       /* of normal distributions */
  } generator[HOST_DROP_GENERATORS];
} host_dropstates_t;

void host_dropmask_seed(host_dropstates_t *states, uint64_t seed);

/* `count` bits, 1 for what is kept, and moves the states on; without states
 * (NULL) nothing is drawn: all is kept at probability 0, else nothing. */
void host_dropmask_draw(host_dropstates_t *states, float probability,
                        int64_t count, uint32_t *mask);

#endif
