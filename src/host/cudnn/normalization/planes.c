// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of channels whose values are one set, row by row.
#include "src/host/cudnn/normalization/channel.h"

#include <math.h>
#include <string.h>

static void *line(const host_bn_lines_t *lines, int64_t image) {
  return lines->data ? lines->data + image * lines->to_next : NULL;
}

enum { CHUNK = 4096 }; // values that stay in the first cache

// First each chunk's mean, then the squares of differences from it. Both are
// merged with those of the earlier chunks by their counts.
void host_bn_rows_statistics(const host_bn_channel_t *ch,
                             const host_bn_lines_t *x) {
  double mean = 0, squares = 0, seen = 0;
  for (int64_t n = 0; n < ch->images; n++)
    for (int64_t i = 0; i < ch->points; i += CHUNK) {
      int64_t count = ch->points - i < CHUNK ? ch->points - i : CHUNK;
      const char *from = (const char *)line(x, n) + i * ch->bytes;
      double own = ch->rows->sum(from, count) / (double)count;
      double away = seen > 0 ? own - mean : 0;
      double share = (double)count / (seen + (double)count);
      squares +=
          ch->rows->squares(from, count, own) + away * away * (seen * share);
      mean = seen > 0 ? mean + away * share : own;
      seen += (double)count;
    }
  ch->mean[0] = mean;
  ch->a[0] = squares / seen;
}

// Whether y is 0 everywhere: 0 times no value is NaN.
static bool vanishes(const host_bn_channel_t *ch, const host_row_t *row,
                     const host_bn_lines_t *z) {
  return ch->bn->kind == HOST_BN_TRAINING && row->alpha == 0 &&
         row->beta == 0 && !z->data && isfinite(row->mean) &&
         isfinite(row->slope) && isfinite(row->offset);
}

void host_bn_rows_forward(const host_bn_channel_t *ch,
                          const host_bn_lines_t *x) {
  const host_bn_t *bn = ch->bn;
  host_bn_lines_t z = host_bn_input(ch, &bn->z, ch->room[1]);
  host_bn_lines_t y = host_bn_output(ch, &bn->y, ch->room[2]);
  host_row_t row = {.count = ch->points,
                    .mean = ch->mean[0],
                    .slope = ch->scale[0] * ch->invstd[0],
                    .offset = ch->bias[0],
                    .alpha = ch->in_place ? bn->alpha : 1,
                    .beta = ch->in_place ? bn->beta : 0,
                    .relu = bn->relu,
                    .subtract = bn->x.type == CUDNN_DATA_DOUBLE};
  bool is_zero = vanishes(ch, &row, &z);
  for (int64_t n = 0; n < ch->images; n++) {
    row.x = line(x, n);
    row.with = line(&z, n);
    row.out = line(&y, n);
    if (is_zero)
      memset(row.out, 0, (size_t)(ch->points * ch->bytes));
    else
      ch->rows->map(&row);
  }
}

void host_bn_rows_backward(const host_bn_channel_t *ch,
                           const host_bn_lines_t *x) {
  const host_bn_t *bn = ch->bn;
  host_bn_lines_t dy = host_bn_input(ch, &bn->dy, ch->room[1]),
                  gate = {NULL, 0};
  host_bn_lines_t dx = host_bn_output(ch, &bn->dx, ch->room[2]);
  host_bn_lines_t through = {NULL, 0};
  if (bn->relu)
    gate = host_bn_input(ch, &bn->y, ch->room[2]);
  if (bn->dz.data || (bn->relu && !ch->in_place))
    through = host_bn_output(ch, bn->dz.data ? &bn->dz : &bn->dy, ch->room[1]);
  host_row_t row = {.count = ch->points,
                    .mean = ch->mean[0],
                    .slope = ch->scale[0] * ch->invstd[0],
                    .alpha = ch->in_place ? bn->alpha : 1,
                    .beta = ch->in_place ? bn->beta : 0,
                    .subtract = bn->x.type == CUDNN_DATA_DOUBLE};
  double sum = 0, product = 0, m = (double)ch->count;
  for (int64_t n = 0; n < ch->images; n++) {
    row.x = line(x, n);
    row.with = line(&dy, n);
    row.gate = line(&gate, n);
    row.through = line(&through, n);
    ch->rows->sums(&row, &sum, &product);
  }
  host_bn_output_end(ch, &bn->dz, 1, 0, ch->room[1]);
  ch->a[0] = product * ch->invstd[0];
  ch->b[0] = sum;
  row.offset = sum / m;
  row.curve = ch->a[0] * ch->invstd[0] / m;
  // `through` now holds the gradient with the gate applied.
  if (through.data) {
    dy = through;
    gate.data = NULL;
  }
  for (int64_t n = 0; n < ch->images; n++) {
    row.x = line(x, n);
    row.with = line(&dy, n);
    row.gate = line(&gate, n);
    row.out = line(&dx, n);
    ch->rows->gradient(&row);
  }
}
