/* SPDX-License-Identifier: Apache-2.0 */
/* One channel of a batch normalisation while it is computed. */
#ifndef SDG_SRC_HOST_CUDNN_NORMALIZATION_CHANNEL_H
#define SDG_SRC_HOST_CUDNN_NORMALIZATION_CHANNEL_H

#include "src/host/cudnn/base/rows.h"
#include "src/host/cudnn/normalization/batchnorm.h"

/* The images' rows of a tensor's channel. */
typedef struct {
  char *data;      /* NULL: the op has no such tensor */
  int64_t to_next; /* bytes from image to image */
} host_bn_lines_t;

typedef struct {
  const host_bn_t *bn;
  const host_rows_t *rows;
  int64_t images, points;
  int64_t sets, count; /* sets of `count` values each */
  bool in_place;       /* rows lie in the tensors */
  int64_t bytes;       /* of an element of rows */
  int64_t first[CUDNN_DIM_MAX], box[CUDNN_DIM_MAX], params[CUDNN_DIM_MAX];
  double *room[3];                              /* matrices, if not in place */
  double *mean, *invstd, *scale, *bias, *a, *b; /* one per set */
} host_bn_channel_t;

/* An input's rows, read into `room` where they are not in place. */
host_bn_lines_t host_bn_input(const host_bn_channel_t *ch,
                              const host_view_t *view, double *room);
/* Where an output's rows are to be written; of those in `room`, the store. */
host_bn_lines_t host_bn_output(const host_bn_channel_t *ch,
                               const host_view_t *view, double *room);
void host_bn_output_end(const host_bn_channel_t *ch, const host_view_t *view,
                        double alpha, double beta, const double *room);

/* Where all of a channel is one set, and where each point's column is one:
 * means, and variances in `a`, of x; y in its place or room[2]; dx likewise,
 * dz, and in `a` and `b` the gradients of scale and bias. */
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
