// SPDX-License-Identifier: Apache-2.0
// The gradient of the data by oneDNN: float, channels last inside, in bands of
// dx's rows with the rows of dy that they need.
#include <omp.h>
#include <string.h>

#include "src/host/cudnn/base/primitive.h"
#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/convolution/engine/pack.h"

// Narrower rows are computed with this width, filled with zeros: for very short
// ones oneDNN has other kernels, which add in another order.
enum { HOST_WIDTH = 7 }; // times the stride

// Bytes of dx per band. More if there are more weights, because they are read
// once per band.
enum { HOST_BAND_BYTES = 1 << 19 };

typedef struct {
  const host_conv_t *conv;
  host_conv_t dx; // dx as an output, for finishing
  host_worker_t *worker;
  const float *plain;
  host_primitive_t *ready; // the primitive whose layout the weights have
} job_t;

// The rows of dy that rows [first, first + count) of dx need, in dimension i.
// The first is early enough that padding is not negative; columns continue
// behind the last one.
static void reach(const host_conv_t *conv, int i, int64_t first, int64_t count,
                  int64_t *out_first, int64_t *out_count) {
  int64_t s = conv->stride[i], at = first + conv->pad[i];
  int64_t window = (int64_t)conv->dilation[i] * (conv->window[i] - 1);
  int64_t low = at > window ? (at - window + s - 1) / s : 0;
  int64_t high = (at + count - 1) / s + 1;
  if (low > at / s)
    low = at / s;
  if (high > conv->out[i] && i != HOST_W)
    high = conv->out[i];
  *out_first = low;
  *out_count = high > low ? high - low : 0;
}

// The box of dy as dense rows of W x K.
static void pack_dy(const host_conv_t *conv, int64_t n, const host_box_t *box,
                    float *to) {
  host_conv_t plain = {.groups = conv->groups, .c = conv->k, .x = conv->y};
  memcpy(plain.x_stride, conv->y_stride, sizeof plain.x_stride);
  memcpy(plain.in, conv->out, sizeof plain.in);
  host_pack_x(&plain, box, n, to);
}

static float *weights(job_t *job, host_primitive_t *p, bool *ok) {
  float *w = host_scratch_get(HOST_SCRATCH_REORDERED, p->w_bytes);
  *ok = w && (p == job->ready ||
              (job->ready &&
               dnnl_memory_desc_equal(&p->w_desc, &job->ready->w_desc)) ||
              host_primitive_reorder(job->worker, p, (float *)job->plain, w));
  job->ready = p;
  return w;
}

// Images, planes and rows [at, at + extent) of dx. Only makes the primitive if
// `probes`. *out_done is false if oneDNN has none.
static bool band(job_t *job, const int64_t at[3], const int64_t extent[3],
                 bool probes, bool *out_done) {
  const host_conv_t *conv = job->conv;
  host_shape_t s = {.kind = HOST_CONV_DATA,
                    .images = (int32_t)extent[0],
                    .groups = conv->groups,
                    .c = conv->c,
                    .k = conv->k};
  const int64_t first[HOST_SPATIAL] = {at[1], at[2], 0};
  int64_t width = HOST_WIDTH * conv->stride[HOST_W];
  if (width < conv->in[HOST_W])
    width = conv->in[HOST_W];
  const int64_t count[HOST_SPATIAL] = {extent[1], extent[2], width};
  host_box_t box;
  size_t dx = (size_t)(conv->groups * (int64_t)conv->c);
  size_t dy = (size_t)(conv->groups * (int64_t)conv->k);
  for (int i = 0; i < HOST_SPATIAL; i++) {
    int64_t rows;
    reach(conv, i, first[i], count[i], &box.first[i], &rows);
    box.count[i] = (int32_t)rows;
    s.in[i] = (int32_t)count[i];
    s.out[i] = (int32_t)rows;
    s.pad[i] =
        (int32_t)(conv->pad[i] + first[i] - box.first[i] * conv->stride[i]);
    dx *= (size_t)count[i];
    dy *= (size_t)rows;
  }
  memcpy(s.window, conv->window, sizeof s.window);
  memcpy(s.stride, conv->stride, sizeof s.stride);
  memcpy(s.dilation, conv->dilation, sizeof s.dilation);
  host_primitive_t *p = dy ? host_primitive_get(job->worker, &s) : NULL;
  *out_done = p || !dy;
  if (!*out_done || probes)
    return true;
  size_t images = (size_t)extent[0];
  float *sums =
      host_scratch_get(HOST_SCRATCH_OUTPUT, images * dx * sizeof *sums);
  float *in = host_scratch_get(HOST_SCRATCH_INPUT, images * dy * sizeof *in);
  float *turn = host_scratch_get(HOST_SCRATCH_TILE,
                                 (size_t)conv->groups * (size_t)conv->c *
                                     HOST_TURN * sizeof *turn);
  if (!sums || !turn || (dy && !in))
    return false;
  if (!dy) {
    memset(sums, 0, images * dx * sizeof *sums);
  } else {
    bool ok;
    host_worker_name(job->worker, p);
    for (size_t n = 0; n < images; n++)
      pack_dy(conv, at[0] + (int64_t)n, &box, in + n * dy);
    float *w = weights(job, p, &ok);
    if (!ok || !host_primitive_execute(job->worker, p, sums, w, in))
      return false;
  }
  int64_t plane = extent[2] * width * conv->groups * conv->c;
  for (int64_t n = 0; n < extent[0]; n++)
    for (int64_t d = 0; d < extent[1]; d++, sums += plane)
      host_unpack_rows(&job->dx, sums, width, extent[2], turn,
                       (const int64_t[]){at[0] + n, 0, at[1] + d, at[2], 0});
  return true;
}

// Images, planes and rows of a band. Planes are whole or single; a band has
// several images only if their volumes are whole. Bands start at a multiple of
// the stride.
static void band_extent(const host_conv_t *conv, int64_t extent[3]) {
  int64_t unit = sizeof(float), channels = conv->groups * (int64_t)conv->c;
  int64_t weights = channels * conv->k * conv->window[0] * conv->window[1] *
                    conv->window[2] * unit;
  int64_t room = weights > HOST_BAND_BYTES ? weights : HOST_BAND_BYTES;
  int64_t row = conv->in[HOST_W] * channels * unit, s = conv->stride[HOST_H];
  int64_t rows = room / row / s * s;
  extent[0] = extent[1] = 1;
  extent[2] = rows < s ? s : rows;
  if (extent[2] < conv->in[HOST_H])
    return;
  extent[2] = conv->in[HOST_H];
  s = conv->stride[HOST_D];
  int64_t planes = room / (row * conv->in[HOST_H]) / s * s;
  extent[1] = planes < 1 ? 1 : planes;
  if (extent[1] < conv->in[HOST_D])
    return;
  extent[1] = conv->in[HOST_D];
  int64_t images = room / (row * conv->in[HOST_H] * conv->in[HOST_D]);
  extent[0] = images < 1 ? 1 : images > conv->images ? conv->images : images;
}

static bool bands(job_t *job, bool probes, bool *out_done) {
  const host_conv_t *conv = job->conv;
  const int64_t most[3] = {conv->images, conv->in[HOST_D], conv->in[HOST_H]};
  int64_t extent[3], at[3], now[3];
  band_extent(conv, extent);
  for (at[0] = 0; at[0] < most[0]; at[0] += extent[0])
    for (at[1] = 0; at[1] < most[1]; at[1] += extent[1])
      for (at[2] = 0; at[2] < most[2]; at[2] += extent[2]) {
        for (int i = 0; i < 3; i++)
          now[i] = most[i] - at[i] < extent[i] ? most[i] - at[i] : extent[i];
        if (!band(job, at, now, probes, out_done))
          return false;
        if (!*out_done)
          return true;
      }
  return true;
}

bool host_dgrad_onednn(const host_conv_t *conv, bool *out_done) {
  *out_done = false;
  job_t job = {.conv = conv, .worker = host_worker_get()};
  if (!job.worker)
    return false;
  job.dx = (host_conv_t){.groups = conv->groups,
                         .k = conv->c,
                         .y = (void *)conv->x,
                         .old = conv->x,
                         .alpha = conv->alpha,
                         .gamma = conv->gamma};
  memcpy(job.dx.y_stride, conv->x_stride, sizeof job.dx.y_stride);
  memcpy(job.dx.old_stride, conv->x_stride, sizeof job.dx.old_stride);
  memcpy(job.dx.out, conv->in, sizeof job.dx.out);
  job.plain = host_pack_weights(conv);
  if (!job.plain)
    return false;
  int threads = host_threads_enter();
  // Nothing is written unless all bands can be computed, because dx may be
  // added to.
  bool ok = bands(&job, true, out_done);
  if (ok && *out_done)
    ok = bands(&job, false, out_done);
  omp_set_num_threads(threads);
  return ok;
}
