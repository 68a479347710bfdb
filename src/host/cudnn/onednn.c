// SPDX-License-Identifier: Apache-2.0
// The oneDNN engine: float, channels last inside.
//
// x is copied, band by band of output rows, into a dense channels-last buffer
// that contains the padding, so that oneDNN sees dense tensors without padding
// only: a strided view would send it to its reference code, a thousand times
// slower. Its channels-last kernels add in an order that does not depend on
// the extents (tests/host checks that), so bands do not show in the result.
#include "src/host/cudnn/engine.h"

#include <omp.h>
#include <string.h>

#include "src/host/cudnn/finish.h"
#include "src/host/cudnn/pack.h"
#include "src/host/cudnn/primitive.h"
#include "src/host/cudnn/scratch.h"
#include "src/host/cudnn/transpose.h"

/* Bytes of packed x worked on at once: what stays in the second cache. More
 * where the weights are more, as they are read once a band. */
enum { HOST_BAND_BYTES = 1 << 19 };

static int64_t taps_of(const host_conv_t *conv) {
  return (int64_t)conv->window[0] * conv->window[1] * conv->window[2];
}

/* True where the sums of whole rows are y as it lies in memory. */
static bool sums_are_y(const host_conv_t *conv) {
  const int64_t *s = conv->y_stride;
  int64_t channels = (int64_t)conv->groups * conv->k;
  return conv->alpha == 1 && conv->gamma == 0 && !conv->bias && !conv->relu &&
         s[1] == 1 && s[4] == channels &&
         s[3] == channels * conv->out[HOST_W] &&
         (conv->out[HOST_D] == 1 || s[2] == s[3] * conv->out[HOST_H]);
}

/* Images, output planes and rows of a band: as many as keep its x in the
 * cache; several images only where all of them fits. */
static void band_extent(const host_conv_t *conv, int64_t in_width,
                        int64_t out_band[3]) {
  int64_t unit = sizeof(float);
  int64_t weights = conv->groups * (int64_t)conv->k * conv->c * taps_of(conv);
  int64_t room =
      weights * unit > HOST_BAND_BYTES ? weights * unit : HOST_BAND_BYTES;
  int64_t row = in_width * conv->groups * conv->c * unit;
  int64_t planes = host_conv_rows(conv, HOST_D, 1);
  int64_t rest = host_conv_rows(conv, HOST_H, 1) - conv->stride[HOST_H];
  int64_t rows = (room / (row * planes) - rest) / conv->stride[HOST_H];
  /* The sums of few channels that become many would not stay. */
  int64_t sums = 2 * room / (conv->out[HOST_W] * conv->groups * conv->k * unit);
  rows = rows < sums ? rows : sums;
  out_band[0] = out_band[1] = 1;
  out_band[2] = rows < 1 ? 1 : rows;
  if (rows < conv->out[HOST_H])
    return;
  out_band[2] = conv->out[HOST_H];
  int64_t plane = row * host_conv_rows(conv, HOST_H, conv->out[HOST_H]);
  rest = planes - conv->stride[HOST_D];
  planes = (room / plane - rest) / conv->stride[HOST_D];
  out_band[1] = planes < 1 ? 1 : planes;
  if (planes < conv->out[HOST_D])
    return;
  out_band[1] = conv->out[HOST_D];
  int64_t images =
      room / (plane * host_conv_rows(conv, HOST_D, conv->out[HOST_D]));
  out_band[0] = images < 1 ? 1 : images > conv->images ? conv->images : images;
}

typedef struct {
  const host_conv_t *conv;
  host_worker_t *worker;
  host_primitive_t *ready; /* the one whose layout `w` has */
  const float *plain;
  float *turn;
  int64_t width; /* columns computed of a row */
} job_t;

/* What is one output altogether, oneDNN multiplies as matrices, with other bits
 * than where it is one of a row. */
enum { HOST_WIDTH = 2 };

/* Images, planes and rows [at, at + extent), and the x under them. Rows and
 * planes of padding are left to oneDNN, which passes over them, where it can:
 * the bits are those with zeros. With columns of padding it would add in
 * another order, so they are zeros always. */
static host_primitive_t *band_primitive(const job_t *job, const int64_t at[3],
                                        const int64_t extent[3],
                                        host_box_t *x) {
  const host_conv_t *conv = job->conv;
  host_shape_t s = {.images = (int32_t)extent[0],
                    .groups = conv->groups,
                    .c = conv->c,
                    .k = conv->k};
  memcpy(s.window, conv->window, sizeof s.window);
  memcpy(s.stride, conv->stride, sizeof s.stride);
  memcpy(s.dilation, conv->dilation, sizeof s.dilation);
  const int64_t first[HOST_SPATIAL] = {at[1], at[2], 0};
  const int64_t count[HOST_SPATIAL] = {extent[1], extent[2], job->width};
  host_primitive_t *p = NULL;
  for (int zeros = 0; zeros < 2 && !p; zeros++) {
    for (int i = 0; i < HOST_SPATIAL; i++) {
      host_pack_under(conv, i, first[i], count[i], zeros || i == HOST_W, x);
      s.in[i] = x->count[i];
      s.pad[i] = x->pad[i];
      s.out[i] = (int32_t)count[i];
    }
    p = host_primitive_get(job->worker, &s);
  }
  return p;
}

static bool band(job_t *job, const int64_t at[3], const int64_t extent[3]) {
  const host_conv_t *conv = job->conv;
  host_box_t box;
  host_primitive_t *p = band_primitive(job, at, extent, &box);
  if (!p)
    return false;
  float *w = host_scratch_get(HOST_SCRATCH_REORDERED, p->w_bytes);
  size_t image = (size_t)box.count[0] * (size_t)box.count[1] *
                 (size_t)box.count[2] * (size_t)conv->groups * (size_t)conv->c;
  float *x = host_scratch_get(HOST_SCRATCH_INPUT,
                              (size_t)extent[0] * image * sizeof *x);
  if (!w || !x)
    return false;
  if (p != job->ready &&
      !(job->ready &&
        dnnl_memory_desc_equal(&p->w_desc, &job->ready->w_desc)) &&
      !host_primitive_reorder(job->worker, p, (float *)job->plain, w))
    return false;
  job->ready = p;
  for (int64_t n = 0; n < extent[0]; n++)
    host_pack_x(conv, &box, at[0] + n, x + (size_t)n * image);
  int64_t row = job->width * conv->groups * conv->k;
  const int64_t *s = conv->y_stride;
  if (sums_are_y(conv) && job->width == conv->out[HOST_W] &&
      (extent[0] == 1 || s[0] == row * extent[1] * extent[2]))
    return host_primitive_execute(job->worker, p, x, w,
                                  (float *)conv->y + at[0] * s[0] +
                                      at[1] * s[2] + at[2] * s[3]);
  int64_t rows = extent[0] * extent[1] * extent[2];
  float *sums = host_scratch_get(HOST_SCRATCH_OUTPUT,
                                 (size_t)(rows * row) * sizeof *sums);
  if (!sums || !host_primitive_execute(job->worker, p, x, w, sums))
    return false;
  row *= extent[2];
  for (int64_t n = 0; n < extent[0]; n++)
    for (int64_t d = 0; d < extent[1]; d++, sums += row)
      host_unpack_rows(conv, sums, job->width, extent[2], job->turn,
                       (const int64_t[]){at[0] + n, 0, at[1] + d, at[2], 0});
  return true;
}

static bool bands(job_t *job, const int64_t extent[3]) {
  const host_conv_t *conv = job->conv;
  const int64_t most[3] = {conv->images, conv->out[HOST_D], conv->out[HOST_H]};
  int64_t at[3], now[3];
  for (at[0] = 0; at[0] < most[0]; at[0] += extent[0])
    for (at[1] = 0; at[1] < most[1]; at[1] += extent[1])
      for (at[2] = 0; at[2] < most[2]; at[2] += extent[2]) {
        for (int i = 0; i < 3; i++)
          now[i] = most[i] - at[i] < extent[i] ? most[i] - at[i] : extent[i];
        if (!band(job, at, now))
          return false;
      }
  return true;
}

/* For many input and few output channels with strided columns, oneDNN 2.6
 * blocks the sum over channels by the width of the row (seen above 160 and up
 * to 16 channels): the one case found where a piece would not have the bits of
 * the whole. */
static bool sums_by_width(const host_conv_t *conv) {
  return conv->stride[HOST_W] > 1 && conv->c > 96 && conv->k <= 16;
}

bool host_conv_onednn(const host_conv_t *conv, bool *out_done) {
  *out_done = false;
  if (sums_by_width(conv))
    return true;
  bool ok = false;
  host_worker_t *worker = host_worker_get();
  int threads = host_threads_enter();
  if (!worker)
    goto leave;
  int64_t extent[3];
  job_t job = {.conv = conv, .worker = worker, .width = conv->out[HOST_W]};
  if (job.width < HOST_WIDTH)
    job.width = HOST_WIDTH;
  band_extent(conv, host_conv_rows(conv, HOST_W, job.width), extent);
  host_box_t box;
  host_primitive_t *first =
      band_primitive(&job, (const int64_t[3]){0}, extent, &box);
  if (!first) {
    ok = true; /* not done: no kernel */
    goto leave;
  }
  host_worker_name(worker, first);
  job.plain = host_pack_weights(conv);
  job.turn = host_scratch_get(HOST_SCRATCH_TILE, (size_t)conv->groups *
                                                     (size_t)conv->k *
                                                     HOST_TURN * sizeof(float));
  if (!job.plain || !job.turn)
    goto leave;
  ok = bands(&job, extent);
  *out_done = ok;
leave:
  omp_set_num_threads(threads);
  return ok;
}
