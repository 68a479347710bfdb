// SPDX-License-Identifier: Apache-2.0
// Batch normalisation on host memory, in doubles, channel by channel.
//
// A channel is a matrix of images x points. Values that share parameters form a
// set: all values of the channel, or each point's column. Matrices of floats or
// doubles are computed in place; other types are converted to doubles, and
// other layouts to rows.
#include "src/host/cudnn/normalization/batchnorm.h"

#include <math.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/normalization/channel.h"
#include "src/host/cudnn/normalization/channels_last.h"

// Sets the box of channel c, and of its parameters.
static void boxes(host_bn_channel_t *ch, int64_t c) {
  const host_view_t *x = &ch->bn->x;
  for (int i = 0; i < x->rank; i++) {
    ch->first[i] = i == 1 ? c : 0;
    ch->box[i] = i == 1 ? 1 : x->dim[i];
    ch->params[i] = i >= 2 && ch->bn->per_activation ? x->dim[i] : 1;
  }
}

static void param_load(const host_bn_channel_t *ch, const host_view_t *view,
                       double *to) {
  host_view_load(view, ch->first, ch->params, to);
}

static void param_store(const host_bn_channel_t *ch, const host_view_t *view,
                        double alpha, const double *from, double beta) {
  host_view_store(view, ch->first, ch->params, alpha, from, beta);
}

host_bn_lines_t host_bn_input(const host_bn_channel_t *ch,
                              const host_view_t *view, double *room) {
  if (!view->data)
    return (host_bn_lines_t){NULL, 0};
  if (!ch->in_place) {
    host_view_load(view, ch->first, ch->box, room);
    return (host_bn_lines_t){(char *)room, ch->points * ch->bytes};
  }
  return (host_bn_lines_t){view->data +
                               ch->first[1] * view->stride[1] * ch->bytes,
                           view->stride[0] * ch->bytes};
}

host_bn_lines_t host_bn_output(const host_bn_channel_t *ch,
                               const host_view_t *view, double *room) {
  if (!view->data || ch->in_place)
    return host_bn_input(ch, view, NULL);
  return (host_bn_lines_t){(char *)room, ch->points * ch->bytes};
}

void host_bn_output_end(const host_bn_channel_t *ch, const host_view_t *view,
                        double alpha, double beta, const double *room) {
  if (view->data && !ch->in_place)
    host_view_store(view, ch->first, ch->box, alpha, room, beta);
}

// Computes the sets' means, and their variances in `a`, of x in rows.
static void find(const host_bn_channel_t *ch, const host_bn_lines_t *x) {
  if (ch->bn->per_activation)
    host_bn_columns_statistics(ch);
  else
    host_bn_rows_statistics(ch, x);
  for (int64_t s = 0; s < ch->sets; s++)
    ch->invstd[s] = 1 / sqrt(ch->a[s] + ch->bn->epsilon);
}

static void keep(const host_bn_channel_t *ch) {
  const host_bn_t *bn = ch->bn;
  if (bn->saved_mean.data)
    param_store(ch, &bn->saved_mean, 1, ch->mean, 0);
  if (bn->saved_invstd.data)
    param_store(ch, &bn->saved_invstd, 1, ch->invstd, 0);
  if (!bn->mean.data)
    return;
  // The running variance is the unbiased estimate.
  double unbias =
      ch->count > 1 ? (double)ch->count / (double)(ch->count - 1) : 1;
  for (int64_t s = 0; s < ch->sets; s++)
    ch->a[s] *= unbias;
  param_store(ch, &bn->mean, bn->factor, ch->mean, 1 - bn->factor);
  param_store(ch, &bn->variance, bn->factor, ch->a, 1 - bn->factor);
}

static void forward(const host_bn_channel_t *ch) {
  const host_bn_t *bn = ch->bn;
  host_bn_lines_t x = host_bn_input(ch, &bn->x, ch->room[0]);
  param_load(ch, &bn->scale, ch->scale);
  param_load(ch, &bn->bias, ch->bias);
  if (bn->kind == HOST_BN_TRAINING) {
    find(ch, &x);
    keep(ch);
  } else {
    param_load(ch, &bn->mean, ch->mean);
    param_load(ch, &bn->variance, ch->invstd);
    for (int64_t s = 0; s < ch->sets; s++)
      ch->invstd[s] = 1 / sqrt(ch->invstd[s] + bn->epsilon);
  }
  if (bn->per_activation)
    host_bn_columns_forward(ch);
  else
    host_bn_rows_forward(ch, &x);
  double *y = ch->room[2];
  for (int64_t i = 0; i < ch->images * ch->points && bn->swish; i++)
    y[i] /= 1 + exp(-bn->swish_beta * y[i]);
  host_bn_output_end(ch, &bn->y, bn->alpha, bn->beta, y);
}

static void backward(const host_bn_channel_t *ch) {
  const host_bn_t *bn = ch->bn;
  host_bn_lines_t x = host_bn_input(ch, &bn->x, ch->room[0]);
  param_load(ch, &bn->scale, ch->scale);
  if (bn->saved_mean.data) {
    param_load(ch, &bn->saved_mean, ch->mean);
    param_load(ch, &bn->saved_invstd, ch->invstd);
  } else {
    find(ch, &x);
  }
  if (bn->per_activation)
    host_bn_columns_backward(ch);
  else
    host_bn_rows_backward(ch, &x);
  host_bn_output_end(ch, &bn->dx, bn->alpha, bn->beta, ch->room[2]);
  param_store(ch, &bn->dscale, bn->alpha_param, ch->a, bn->beta_param);
  param_store(ch, &bn->dbias, bn->alpha_param, ch->b, bn->beta_param);
}

// Whether each image's points of a channel are contiguous.
static bool has_rows(const host_view_t *view, cudnnDataType_t type) {
  int64_t stride = 1;
  if (!view->data)
    return true;
  for (int i = view->rank - 1; i >= 2; stride *= view->dim[i--])
    if (view->dim[i] > 1 && view->stride[i] != stride)
      return false;
  return view->type == type;
}

static bool in_place(const host_bn_t *bn) {
  cudnnDataType_t type = bn->x.type;
  return (type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE) &&
         !bn->per_activation && !bn->swish && has_rows(&bn->x, type) &&
         has_rows(&bn->y, type) && has_rows(&bn->z, type) &&
         has_rows(&bn->dy, type) && has_rows(&bn->dx, type) &&
         has_rows(&bn->dz, type);
}

bool host_bn_run(const host_bn_t *bn) {
  static const host_scratch_t kind[] = {
      HOST_SCRATCH_INPUT, HOST_SCRATCH_REORDERED, HOST_SCRATCH_OUTPUT};
  host_bn_channel_t ch = {.bn = bn, .images = bn->x.dim[0], .points = 1};
  for (int i = 2; i < bn->x.rank; i++)
    ch.points *= bn->x.dim[i];
  int64_t elements = ch.images * ch.points;
  ch.sets = bn->per_activation ? ch.points : 1;
  ch.count = elements / ch.sets;
  ch.in_place = in_place(bn);
  if (!ch.in_place && host_bn_last_is(bn))
    return host_bn_last_run(bn, host_bn_run);
  bool is_double = !ch.in_place || bn->x.type == CUDNN_DATA_DOUBLE;
  ch.rows = host_rows(is_double);
  ch.bytes = is_double ? sizeof(double) : sizeof(float);
  for (int i = 0; i < 3 && !ch.in_place; i++) {
    ch.room[i] =
        host_scratch_get(kind[i], (size_t)elements * sizeof *ch.room[i]);
    if (!ch.room[i])
      return false;
  }
  double *sets =
      host_scratch_get(HOST_SCRATCH_TILE, 6 * (size_t)ch.sets * sizeof(double));
  if (!sets)
    return false;
  double **const of[] = {&ch.mean, &ch.invstd, &ch.scale,
                         &ch.bias, &ch.a,      &ch.b};
  for (int i = 0; i < 6; i++)
    *of[i] = sets + i * ch.sets;
  for (int64_t c = 0; c < bn->x.dim[1]; c++) {
    boxes(&ch, c);
    if (bn->kind == HOST_BN_BACKWARD)
      backward(&ch);
    else
      forward(&ch);
  }
  return true;
}
