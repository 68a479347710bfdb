/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN's primitives, made once per shape and executing thread. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_PRIMITIVE_H
#define SDG_SRC_HOST_CUDNN_BASE_PRIMITIVE_H

#include <dnnl.h>
#include <stddef.h>

#include "src/host/cudnn/convolution/engine/engine.h"

/* The key of a primitive. It is compared as bytes, so it has no padding inside.
 * All tensors are dense and channels last. The padding is `pad` in front of x;
 * behind x it follows from the extents `out`. */
typedef struct {
  int32_t kind; /* host_conv_kind_t */
  int32_t images, groups, c, k;
  int32_t in[HOST_SPATIAL];
  int32_t window[HOST_SPATIAL], stride[HOST_SPATIAL], dilation[HOST_SPATIAL];
  int32_t pad[HOST_SPATIAL], out[HOST_SPATIAL];
  int32_t all_c; /* channels of the plain weights, if more than c; else 0 */
  int32_t adds;  /* adds to the content of y: forward only */
} host_shape_t;

/* `conv` uses weights (or their gradient) in a layout of its own with `w_bytes`
 * bytes; `reorder` converts from (or to) dense G K C D H W. */
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

/* The calling thread's; NULL if memory is short. */
host_worker_t *host_worker_get(void);

/* Finds the primitive in the cache, or makes it in place of the one unused
 * longest, which may invalidate pointers to others. NULL if oneDNN has no
 * optimised kernel. */
host_primitive_t *host_primitive_get(host_worker_t *worker,
                                     const host_shape_t *shape);

/* Forward: x and w to y; weight gradient: x and y to w; data gradient: w and y
 * to x. */
bool host_primitive_execute(host_worker_t *worker, host_primitive_t *p,
                            float *x, float *w, float *y);

/* Converts between plain weights and the primitive's layout. */
bool host_primitive_reorder(host_worker_t *worker, host_primitive_t *p,
                            float *plain, float *w);

/* Stores the name for host_conv_onednn_name. */
void host_worker_name(host_worker_t *worker, const host_primitive_t *p);

/* Sets one thread unless the user asked for more, because ranks share the
 * machine. Returns the value for omp_set_num_threads afterwards. */
int host_threads_enter(void);

#endif
