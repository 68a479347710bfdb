/* SPDX-License-Identifier: Apache-2.0 */
/* One channel of a batch normalisation. */
#ifndef SDG_SRC_HOST_CUDNN_NORMALIZATION_CHANNEL_H
#define SDG_SRC_HOST_CUDNN_NORMALIZATION_CHANNEL_H

#include "src/host/cudnn/base/rows.h"
#include "src/host/cudnn/normalization/batchnorm.h"

/* The rows, one per image, of a tensor's channel. */
typedef struct {
  char *data;      /* NULL: the operation has no such tensor */
  int64_t to_next; /* bytes from one image to the next */
} host_bn_lines_t;

typedef struct {
  const host_bn_t *bn;
  const host_rows_t *rows;
  int64_t images, points;
  int64_t sets, count; /* sets of `count` values each */
  bool in_place;       /* the tensors' own rows are used */
  int64_t bytes;       /* bytes of an element of rows */
  int64_t first[CUDNN_DIM_MAX], box[CUDNN_DIM_MAX], params[CUDNN_DIM_MAX];
  double *room[3];                              /* matrices, if not in place */
  double *mean, *invstd, *scale, *bias, *a, *b; /* one per set */
} host_bn_channel_t;

/* An input's rows, copied to `room` unless they are used in place. */
host_bn_lines_t host_bn_input(const host_bn_channel_t *ch,
                              const host_view_t *view, double *room);
/* _output: where to write an output's rows. _end: stores rows that lie in
 * `room`. */
host_bn_lines_t host_bn_output(const host_bn_channel_t *ch,
                               const host_view_t *view, double *room);
void host_bn_output_end(const host_bn_channel_t *ch, const host_view_t *view,
                        double alpha, double beta, const double *room);

/* For a channel that is one set (_rows_), or has one set per column of points
 * (_columns_). _statistics: means of x, and variances in `a`. _forward: y, in
 * place or in room[2]. _backward: dx likewise, dz, and in `a` and `b` the
 * gradients of scale and bias. */
void host_bn_rows_statistics(const host_bn_channel_t *ch,
                             const host_bn_lines_t *x);
void host_bn_rows_forward(const host_bn_channel_t *ch,
                          const host_bn_lines_t *x);
void host_bn_rows_backward(const host_bn_channel_t *ch,
                           const host_bn_lines_t *x);
void host_bn_columns_statistics(const host_bn_channel_t *ch);
void host_bn_columns_forward(const host_bn_channel_t *ch);
void host_bn_columns_backward(const host_bn_channel_t *ch);

#endif
