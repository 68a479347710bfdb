// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of channels in which each point has a set of its own.
#include <string.h>

#include "src/host/cudnn/normalization/channel.h"

void host_bn_columns_statistics(const host_bn_channel_t *ch) {
  const double *x = ch->room[0];
  int64_t sets = ch->sets, all = ch->images * sets;
  memset(ch->mean, 0, (size_t)sets * sizeof *ch->mean);
  memset(ch->a, 0, (size_t)sets * sizeof *ch->a);
  for (int64_t at = 0; at < all; at += sets)
    for (int64_t s = 0; s < sets; s++)
      ch->mean[s] += x[at + s];
  for (int64_t s = 0; s < sets; s++)
    ch->mean[s] /= (double)ch->count;
  for (int64_t at = 0; at < all; at += sets)
    for (int64_t s = 0; s < sets; s++)
      ch->a[s] += (x[at + s] - ch->mean[s]) * (x[at + s] - ch->mean[s]);
  for (int64_t s = 0; s < sets; s++)
    ch->a[s] /= (double)ch->count;
}

void host_bn_columns_forward(const host_bn_channel_t *ch) {
  const host_bn_t *bn = ch->bn;
  const double *x = ch->room[0], *z = ch->room[1];
  double *y = ch->room[2];
  int64_t sets = ch->sets, all = ch->images * sets;
  if (bn->z.data)
    host_view_load(&bn->z, ch->first, ch->box, ch->room[1]);
  for (int64_t at = 0; at < all; at += sets)
    for (int64_t s = 0; s < sets; s++) {
      double value = ch->scale[s] * ch->invstd[s] * (x[at + s] - ch->mean[s]) +
                     ch->bias[s];
      value += bn->z.data ? z[at + s] : 0;
      y[at + s] = bn->relu && value < 0 ? 0 : value;
    }
}

void host_bn_columns_backward(const host_bn_channel_t *ch) {
  const host_bn_t *bn = ch->bn;
  double *x = ch->room[0], *dy = ch->room[1], *dx = ch->room[2];
  int64_t sets = ch->sets, all = ch->images * sets;
  double m = (double)ch->count;
  host_view_load(&bn->dy, ch->first, ch->box, dy);
  if (bn->relu) {
    host_view_load(&bn->y, ch->first, ch->box, dx);
    for (int64_t i = 0; i < all; i++)
      dy[i] = dx[i] > 0 ? dy[i] : 0;
  }
  host_bn_output_end(ch, &bn->dz, 1, 0, dy);
  memset(ch->a, 0, (size_t)sets * sizeof *ch->a);
  memset(ch->b, 0, (size_t)sets * sizeof *ch->b);
  for (int64_t at = 0; at < all; at += sets)
    for (int64_t s = 0; s < sets; s++) {
      x[at + s] = (x[at + s] - ch->mean[s]) * ch->invstd[s];
      ch->b[s] += dy[at + s];
      ch->a[s] += dy[at + s] * x[at + s];
    }
  for (int64_t at = 0; at < all; at += sets)
    for (int64_t s = 0; s < sets; s++)
      dx[at + s] = ch->scale[s] * ch->invstd[s] *
                   (dy[at + s] - ch->b[s] / m - x[at + s] * (ch->a[s] / m));
}
