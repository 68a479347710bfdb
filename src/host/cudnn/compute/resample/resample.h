/* SPDX-License-Identifier: Apache-2.0 */
/* Which elements of x a resampling reads for an element of y. */
#ifndef SDG_SRC_HOST_CUDNN_COMPUTE_RESAMPLE_RESAMPLE_H
#define SDG_SRC_HOST_CUDNN_COMPUTE_RESAMPLE_RESAMPLE_H

#include "src/host/cudnn/compute/run.h"

/* Always three spatial dimensions: missing leading ones are 1. */
enum { HOST_RESAMPLE_RANK = 3 };

/* A node's resampling. x and y are tensors, or their gradients. Each element of
 * y has a window on x. */
typedef struct {
  cudnnResampleMode_t mode;
  cudnnPaddingMode_t padding;
  bool propagates_nan;
  int rank;                         /* of the tensors */
  int64_t taps[HOST_RESAMPLE_RANK]; /* elements of a window */
  double stride[HOST_RESAMPLE_RANK], pad[HOST_RESAMPLE_RANK];
  int64_t in[HOST_RESAMPLE_RANK], out[HOST_RESAMPLE_RANK]; /* extents */
} host_resample_t;

/* A node: x, y and the positions in y's windows; -1: not there. Of a gradient,
 * `x` is that of x and `y` that of y, and `from` is x itself. */
typedef struct {
  bool backward;
  int x, y, index, from;
  double alpha;
} host_resample_node_t;

host_resample_node_t host_resample_node(const sdg_graph_node_t *node);
/* For a node that lacks nothing. */
host_resample_t host_resample_how(const sdg_graph_t *graph,
                                  const sdg_graph_node_t *node,
                                  const host_resample_node_t *n);
const char *host_resample_lacks(const sdg_graph_t *graph,
                                const sdg_graph_node_t *node);
/* Rounds a result to the type of the computation, then to its own. */
void host_resample_round(host_run_t *run, const sdg_graph_node_t *node,
                         int result);

/* A mean; otherwise an interpolation, or the largest element. */
bool host_resample_is_mean(const host_resample_t *how);
bool host_resample_is_most(const host_resample_t *how);

/* The windows of elements [lo, hi) of one spatial dimension of y. */
typedef struct {
  int64_t lo;
  int64_t *at;      /* by element and tap: the index in x; -1: in the padding */
  double *weight;   /* by element and tap: an interpolation's factor */
  int64_t *counted; /* by element: the taps that a mean is taken over */
} host_windows_t;
/* False when memory is short. `windows` has a row for each dimension, and is
 * always to be freed. */
bool host_windows_make(const host_resample_t *how, const host_region_t *y,
                       host_windows_t *windows);
void host_windows_free(host_windows_t *windows);

/* The elements of x (y) that these of y (x) have to do with. */
host_region_t host_resample_under(const host_resample_t *how,
                                  const host_region_t *y);
host_region_t host_resample_over(const host_resample_t *how,
                                 const host_region_t *x);

/* The elements of a tensor that are at hand. */
typedef struct {
  const host_region_t *region;
  int64_t step[CUDNN_DIM_MAX];
  double *value;
} host_box_of_t;
host_box_of_t host_resample_box(const host_run_t *run, int tensor);
/* Where the image and channel of `index` begin, and what spatial index i of
 * dimension d of three adds to that. */
int64_t host_resample_image(const host_box_of_t *box, const int64_t *index);
int64_t host_resample_offset(const host_resample_t *how,
                             const host_box_of_t *box, int d, int64_t i);

/* The window of one element of y: its taps in each dimension. */
typedef struct {
  const host_resample_t *how;
  const int64_t *at[HOST_RESAMPLE_RANK];
  const double *weight[HOST_RESAMPLE_RANK];
  double counted; /* taps of a mean */
} host_window_t;
host_window_t host_window_at(const host_resample_t *how,
                             const host_windows_t *windows,
                             const int64_t *index);
/* The sum, or mean, of `taps` elements of x; `image` is where x's begins. */
double host_window_sum(const host_window_t *w, const host_box_of_t *x,
                       int64_t image, int64_t taps);
/* The position of the largest element, row by row from 0: the first of equal
 * ones. -1 if there is only padding without value. */
int64_t host_window_most(const host_window_t *w, const host_box_of_t *x,
                         int64_t image, int64_t taps, double *out_value);

/* Spatial index d of a tensor's index of `rank` numbers. */
static inline int64_t host_resample_index(const host_resample_t *how, int d,
                                          const int64_t *index) {
  int at = how->rank - HOST_RESAMPLE_RANK + d;
  return at < 2 ? 0 : index[at];
}

#endif
