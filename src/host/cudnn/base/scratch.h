/* SPDX-License-Identifier: Apache-2.0 */
/* Reused memory of the thread that executes queued work. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_SCRATCH_H
#define SDG_SRC_HOST_CUDNN_BASE_SCRATCH_H

#include <stddef.h>

typedef enum {
  HOST_SCRATCH_INPUT,
  HOST_SCRATCH_WEIGHTS,
  HOST_SCRATCH_REORDERED,
  HOST_SCRATCH_OUTPUT,
  HOST_SCRATCH_TILE,
  HOST_SCRATCH_FILTER,  /* used by a gradient around a forward problem */
  HOST_SCRATCH_TYPED,   /* tensors converted for an engine */
  HOST_SCRATCH_OUTSIDE, /* a factor without infinities, and its sums */
  HOST_SCRATCH_COUNT
} host_scratch_t;

/* At least `bytes` bytes aligned to 64, contents undefined; NULL when memory is
 * short. Each thread has one block per `kind`. It grows to the largest request
 * and is freed when the thread ends. */
void *host_scratch_get(host_scratch_t kind, size_t bytes);

#endif
