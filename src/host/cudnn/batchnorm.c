// SPDX-License-Identifier: Apache-2.0
// Batch normalisation on host memory, in doubles, channel by channel.
//
// A channel is a matrix of images x points. Its values fall into sets that
// share parameters: all of it, or each point's column.
#include "src/host/cudnn/batchnorm.h"

#include <math.h>
#include <string.h>

#include "src/host/cudnn/scratch.h"

typedef struct {
  const host_bn_t *bn;
  int64_t images, points;
  int64_t sets, count, step; /* sets of `count` values `step` apart */
  double *x, *y, *dy;        /* matrices */
  double *mean, *invstd, *scale, *bias, *a, *b; /* one per set */
} channel_t;

/* The box of channel c, and of its parameters. */
static void boxes(const channel_t *ch, int64_t c, int64_t *first, int64_t *box,
                  int64_t *params) {
  const host_view_t *x = &ch->bn->x;
  for (int i = 0; i < x->rank; i++) {
    first[i] = i == 1 ? c : 0;
    box[i] = i == 1 ? 1 : x->dim[i];
    params[i] = i >= 2 && ch->bn->per_activation ? x->dim[i] : 1;
  }
}

/* Two passes: the mean first, then squares of differences. */
static void statistics(const channel_t *ch) {
  for (int64_t s = 0; s < ch->sets; s++) {
    const double *x = ch->x + s;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < ch->count; i++)
      sum += x[i * ch->step];
    double mean = sum / (double)ch->count;
    for (int64_t i = 0; i < ch->count; i++) {
      double difference = x[i * ch->step] - mean;
      squares += difference * difference;
    }
    ch->mean[s] = mean;
    ch->a[s] = squares / (double)ch->count;
    ch->invstd[s] = 1 / sqrt(ch->a[s] + ch->bn->epsilon);
  }
}

static void keep(const channel_t *ch, const int64_t *first,
                 const int64_t *params) {
  const host_bn_t *bn = ch->bn;
  if (bn->saved_mean.data)
    host_view_store(&bn->saved_mean, first, params, 1, ch->mean, 0);
  if (bn->saved_invstd.data)
    host_view_store(&bn->saved_invstd, first, params, 1, ch->invstd, 0);
  if (!bn->mean.data)
    return;
  /* The running variance is the unbiased one. */
  double unbias =
      ch->count > 1 ? (double)ch->count / (double)(ch->count - 1) : 1;
  for (int64_t s = 0; s < ch->sets; s++)
    ch->a[s] *= unbias;
  host_view_store(&bn->mean, first, params, bn->factor, ch->mean,
                  1 - bn->factor);
  host_view_store(&bn->variance, first, params, bn->factor, ch->a,
                  1 - bn->factor);
}

static void forward(const channel_t *ch, int64_t c) {
  const host_bn_t *bn = ch->bn;
  int64_t first[CUDNN_DIM_MAX], box[CUDNN_DIM_MAX], params[CUDNN_DIM_MAX];
  boxes(ch, c, first, box, params);
  host_view_load(&bn->x, first, box, ch->x);
  host_view_load(&bn->scale, first, params, ch->scale);
  host_view_load(&bn->bias, first, params, ch->bias);
  if (bn->z.data)
    host_view_load(&bn->z, first, box, ch->dy);
  if (bn->kind == HOST_BN_TRAINING) {
    statistics(ch);
    keep(ch, first, params);
  } else {
    host_view_load(&bn->mean, first, params, ch->mean);
    host_view_load(&bn->variance, first, params, ch->invstd);
    for (int64_t s = 0; s < ch->sets; s++)
      ch->invstd[s] = 1 / sqrt(ch->invstd[s] + bn->epsilon);
  }
  for (int64_t s = 0; s < ch->sets; s++)
    for (int64_t i = 0; i < ch->count; i++) {
      int64_t at = s + i * ch->step;
      double value = ch->scale[s] * (ch->x[at] - ch->mean[s]) * ch->invstd[s] +
                     ch->bias[s];
      if (bn->z.data)
        value += ch->dy[at];
      if (bn->relu && value < 0)
        value = 0;
      if (bn->swish)
        value /= 1 + exp(-bn->swish_beta * value);
      ch->y[at] = value;
    }
  host_view_store(&bn->y, first, box, bn->alpha, ch->y, bn->beta);
}

static void backward(const channel_t *ch, int64_t c) {
  const host_bn_t *bn = ch->bn;
  int64_t first[CUDNN_DIM_MAX], box[CUDNN_DIM_MAX], params[CUDNN_DIM_MAX];
  int64_t elements = ch->images * ch->points;
  boxes(ch, c, first, box, params);
  host_view_load(&bn->x, first, box, ch->x);
  host_view_load(&bn->dy, first, box, ch->dy);
  host_view_load(&bn->scale, first, params, ch->scale);
  if (bn->relu) {
    host_view_load(&bn->y, first, box, ch->y);
    for (int64_t i = 0; i < elements; i++)
      if (!(ch->y[i] > 0))
        ch->dy[i] = 0;
  }
  if (bn->dz.data)
    host_view_store(&bn->dz, first, box, 1, ch->dy, 0);
  if (bn->saved_mean.data) {
    host_view_load(&bn->saved_mean, first, params, ch->mean);
    host_view_load(&bn->saved_invstd, first, params, ch->invstd);
  } else {
    statistics(ch);
  }
  double m = (double)ch->count;
  for (int64_t s = 0; s < ch->sets; s++) {
    double sum = 0, product = 0;
    for (int64_t i = 0; i < ch->count; i++) {
      int64_t at = s + i * ch->step;
      ch->x[at] = (ch->x[at] - ch->mean[s]) * ch->invstd[s];
      sum += ch->dy[at];
      product += ch->dy[at] * ch->x[at];
    }
    ch->a[s] = product;
    ch->b[s] = sum;
    for (int64_t i = 0; i < ch->count; i++) {
      int64_t at = s + i * ch->step;
      ch->y[at] = ch->scale[s] * ch->invstd[s] *
                  (ch->dy[at] - sum / m - ch->x[at] * product / m);
    }
  }
  host_view_store(&bn->dx, first, box, bn->alpha, ch->y, bn->beta);
  host_view_store(&bn->dscale, first, params, bn->alpha_param, ch->a,
                  bn->beta_param);
  host_view_store(&bn->dbias, first, params, bn->alpha_param, ch->b,
                  bn->beta_param);
}

bool host_bn_run(const host_bn_t *bn) {
  channel_t ch = {.bn = bn, .images = bn->x.dim[0], .points = 1};
  for (int i = 2; i < bn->x.rank; i++)
    ch.points *= bn->x.dim[i];
  int64_t elements = ch.images * ch.points;
  ch.sets = bn->per_activation ? ch.points : 1;
  ch.count = elements / ch.sets;
  ch.step = ch.sets;
  size_t bytes = (size_t)elements * sizeof(double);
  ch.x = host_scratch_get(HOST_SCRATCH_INPUT, bytes);
  ch.y = host_scratch_get(HOST_SCRATCH_OUTPUT, bytes);
  ch.dy = host_scratch_get(HOST_SCRATCH_REORDERED, bytes);
  double *sets =
      host_scratch_get(HOST_SCRATCH_TILE, 6 * (size_t)ch.sets * sizeof(double));
  if (!ch.x || !ch.y || !ch.dy || !sets)
    return false;
  double **const of[] = {&ch.mean, &ch.invstd, &ch.scale,
                         &ch.bias, &ch.a,      &ch.b};
  for (int i = 0; i < 6; i++)
    *of[i] = sets + i * ch.sets;
  for (int64_t c = 0; c < bn->x.dim[1]; c++)
    if (bn->kind == HOST_BN_BACKWARD)
      backward(&ch, c);
    else
      forward(&ch, c);
  return true;
}
