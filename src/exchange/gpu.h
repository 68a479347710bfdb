/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies the GPU of this rank in a form that other ranks can compare. */
#ifndef SDG_SRC_EXCHANGE_GPU_H
#define SDG_SRC_EXCHANGE_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"

typedef struct sdg_gpu {
  /* Hash of the boot id, the process namespace and NCCL_HOSTID. */
  uint64_t machine;
  char bus[24]; /* "0000:3B:00.0" */
} sdg_gpu_t;

/* Finds the current device of the calling thread. SDG_E_CUDA. */
sdg_status_t sdg_gpu_find(sdg_gpu_t *out_gpu) SDG_MUST_CHECK;

/* Returns true if both are the same GPU. */
bool sdg_gpu_same(const sdg_gpu_t *a, const sdg_gpu_t *b);

#endif
