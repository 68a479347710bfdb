/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN's primitives, made once per shape and executing thread. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_PRIMITIVE_H
#define SDG_SRC_HOST_CUDNN_BASE_PRIMITIVE_H

#include <dnnl.h>
#include <stddef.h>

#include "src/host/cudnn/convolution/engine/engine.h"

/* What a primitive depends on; compared as bytes, so no padding inside. All
 * tensors are dense and channels last. There is padding of `pad` in front of x
 * and, behind it, what the extents `out` leave. */
typedef struct {
  int32_t kind; /* host_conv_kind_t */
  int32_t images, groups, c, k;
  int32_t in[HOST_SPATIAL];
  int32_t window[HOST_SPATIAL], stride[HOST_SPATIAL], dilation[HOST_SPATIAL];
  int32_t pad[HOST_SPATIAL], out[HOST_SPATIAL];
  int32_t all_c; /* channels of the plain weights, if more than c; else 0 */
  int32_t adds;  /* to what y holds: forward only */
} host_shape_t;

/* `conv` takes weights, or makes their gradient, in a layout of its own of
 * `w_bytes`; `reorder` comes from (goes to) dense G K C D H W. */
typedef struct {
  host_shape_t shape;
  uint64_t used; /* 0: free */
  dnnl_primitive_t conv, reorder;
  dnnl_memory_t x, w, y, w_plain;
  dnnl_memory_desc_t w_desc;
  size_t w_bytes;
  char name[64];
} host_primitive_t;

typedef struct host_worker host_worker_t;

/* The calling thread's; NULL without memory. */
host_worker_t *host_worker_get(void);

/* From the cache, or made in the place of the one unused longest: pointers to
 * others may have become invalid. NULL where oneDNN has no kernel of its own.
 */
host_primitive_t *host_primitive_get(host_worker_t *worker,
                                     const host_shape_t *shape);

/* x and w to y, x and y to w, or w and y to x. */
bool host_primitive_execute(host_worker_t *worker, host_primitive_t *p,
                            float *x, float *w, float *y);

/* Between plain weights and the primitive's own. */
bool host_primitive_reorder(host_worker_t *worker, host_primitive_t *p,
                            float *plain, float *w);

/* Keeps the name for host_conv_onednn_name. */
void host_worker_name(host_worker_t *worker, const host_primitive_t *p);

/* One thread where the user did not ask for more: ranks share the machine.
 * Returns what omp_set_num_threads is to be given afterwards. */
int host_threads_enter(void);

#endif
