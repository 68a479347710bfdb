/* SPDX-License-Identifier: Apache-2.0 */
/* A copy or a memset as a box of bytes: depth slices of height rows of width
 * bytes. */
#ifndef SDG_SRC_HOST_CUDART_MEMORY_COPY_H
#define SDG_SRC_HOST_CUDART_MEMORY_COPY_H

#include "src/host/cudart/internal.h"

/* One side of a copy, in bytes. */
typedef struct host_side {
  char *at;
  size_t pitch, slice;
} host_side_t;

typedef struct host_copy {
  host_side_t to, from;
  size_t width, height, depth;
  void *stage;      /* to be returned to the stock of staging buffers */
  int value;        /* for a memset, whose from.at is NULL */
  unsigned element; /* bytes of the value: 1, 2 or 4; 0 means 1 */
} host_copy_t;

/* The kind of memory that the caller expects on a side. */
typedef enum host_expected {
  HOST_EXPECT_ANY,
  HOST_EXPECT_HOST,   /* not device memory */
  HOST_EXPECT_DEVICE, /* any memory that the device can use */
} host_expected_t;

#pragma GCC visibility push(hidden)

/* Replaces the program's address of a side by one that the host can use. */
cudaError_t host_side_resolve(const host_copy_t *copy, host_side_t *side,
                              host_expected_t expected, bool *out_pageable);
/* Puts a copy whose sides are resolved into a stream that is not captured. */
cudaError_t host_copy_push(host_copy_t *copy, host_stream_t *stream);
/* The copy that the structure describes, resolved. Its width is 0 if there is
 * nothing to copy. */
cudaError_t host_copy_from(const struct cudaMemcpy3DParms *p,
                           host_copy_t *out_copy);
/* Carries out a copy whose sides are resolved: before returning if `wait` or if
 * CUDA would do so, else in the stream. */
cudaError_t host_copy_submit(host_copy_t *copy, cudaStream_t stream, bool wait,
                             bool pageable_to, bool pageable_from);

#pragma GCC visibility pop

#endif
