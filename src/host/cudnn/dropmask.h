/* SPDX-License-Identifier: Apache-2.0 */
/* The masks of dropout, drawn by a counter-based generator whose seed and
 * position lie in the program's states. */
#ifndef SDG_SRC_HOST_CUDNN_DROPMASK_H
#define SDG_SRC_HOST_CUDNN_DROPMASK_H

#include <stddef.h>
#include <stdint.h>

/* What `states` points to on the device. Saving and restoring these bytes
 * repeats masks. */
typedef struct {
  uint64_t seed;
  uint64_t drawn; /* elements so far */
} host_dropstates_t;

/* `count` bits, 1 for what is kept, and moves the states on; without states
 * (NULL) nothing is drawn: all is kept at probability 0, else nothing. */
void host_dropmask_draw(host_dropstates_t *states, double probability,
                        int64_t count, uint32_t *mask);

#endif
