// SPDX-License-Identifier: Apache-2.0
// The oneDNN engine: float, channels last inside.
//
// x is copied, one band of output rows at a time, into a dense channels-last
// buffer that contains the padding. oneDNN then sees only dense tensors without
// padding: for a strided view it would use its reference code, a thousand times
// slower. If its channels-last kernels read all channels of x at once, their
// order of additions does not depend on the extents (tests/host checks that),
// so bands do not change the result. Many channels are therefore split into
// several turns whose results are added.
#include "src/host/cudnn/convolution/engine/engine.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/base/primitive.h"
#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/transpose.h"
#include "src/host/cudnn/convolution/engine/finish.h"
#include "src/host/cudnn/convolution/engine/pack.h"

// Bytes of packed x per band: it stays in the second cache. More if there are
// more weights, because they are read once per band.
enum { HOST_BAND_BYTES = 1 << 19 };

static int64_t taps_of(const host_conv_t *conv) {
  return (int64_t)conv->window[0] * conv->window[1] * conv->window[2];
}

// True if the sums of whole rows have y's layout in memory.
static bool sums_are_y(const host_conv_t *conv) {
  const int64_t *s = conv->y_stride;
  int64_t channels = (int64_t)conv->groups * conv->k;
  return conv->alpha == 1 && conv->gamma == 0 && !conv->bias && !conv->relu &&
         s[1] == 1 && s[4] == channels &&
         s[3] == channels * conv->out[HOST_W] &&
         (conv->out[HOST_D] == 1 || s[2] == s[3] * conv->out[HOST_H]);
}

// Images, output planes and rows of a band: as many as fit the cache. Several
// images only if all of each fits.
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
  // The sums would not fit if few channels become many.
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

// Channels read at once. oneDNN splits windows into groups of channels by the
// sizes of the caches, which it takes for at least half a megabyte (exactly
// that for unknown processors), and by rules that also use the extents. It does
// not split if the weights of 64 outputs, and the input under 28 columns, fit
// these limits. Example: 80 channels for a window of 3 x 3, 16 for one of 7 x
// 7.
enum { HOST_UNIT = 16, HOST_NEAR = 1 << 14, HOST_FAR = 1 << 18 };

static int channels_at_once(const host_conv_t *conv) {
  int64_t bytes = HOST_UNIT * (int64_t)sizeof(float);
  int64_t columns = host_conv_rows(conv, HOST_W, 28);
  int64_t rows = (int64_t)conv->window[HOST_D] * conv->window[HOST_H];
  int64_t near = HOST_NEAR / (columns * bytes);
  int64_t far = (HOST_FAR - 28 * 64 * 4) /
                ((64 * taps_of(conv) + rows * columns) * bytes);
  int64_t most = HOST_UNIT * (near < far ? near : far);
  most = most < HOST_UNIT ? HOST_UNIT : most;
  if (conv->c <= most)
    return conv->c;
  int64_t turns = (conv->c + most - 1) / most;
  int64_t share = (conv->c + turns - 1) / turns;
  return (int)((share + HOST_UNIT - 1) / HOST_UNIT * HOST_UNIT);
}

// The layout of the weights of a turn.
typedef struct {
  bool ready;
  dnnl_memory_desc_t layout;
} turn_t;

typedef struct {
  const host_conv_t *conv;
  host_worker_t *worker;
  int at_once; // channels of a turn
  int turns;
  turn_t *weights; // in HOST_SCRATCH_REORDERED, turn after turn
  size_t room;     // bytes there for the weights of one turn
  const float *plain;
  float *turn;
  int64_t width; // columns computed per row
} job_t;

// oneDNN multiplies a single output as matrices, with other bits than for an
// output in a row.
enum { HOST_WIDTH = 2 };

// One turn of images, planes and rows [at, at + extent), and the x under them.
// oneDNN skips rows and planes of padding by itself: the bits are those with
// zeros. With columns of padding it would add in another order, so these are
// always zeros.
static host_primitive_t *band_primitive(const job_t *job, int turn,
                                        const int64_t at[3],
                                        const int64_t extent[3],
                                        host_box_t *x) {
  const host_conv_t *conv = job->conv;
  int left = conv->c - turn * job->at_once;
  host_shape_t s = {.images = (int32_t)extent[0],
                    .groups = conv->groups,
                    .c = left < job->at_once ? left : job->at_once,
                    .k = conv->k,
                    .all_c = job->turns > 1 ? conv->c : 0,
                    .adds = turn > 0};
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

// The weights of a turn in the layout of `p`; NULL when memory is short.
static float *turn_weights(job_t *job, int turn, host_primitive_t *p) {
  if (p->w_bytes > job->room) {
    job->room = (p->w_bytes + 63) & ~(size_t)63;
    for (int i = 0; i < job->turns; i++)
      job->weights[i].ready = false;
  }
  char *block =
      host_scratch_get(HOST_SCRATCH_REORDERED, (size_t)job->turns * job->room);
  if (!block)
    return NULL;
  turn_t *mine = &job->weights[turn];
  float *w = (float *)(void *)(block + (size_t)turn * job->room);
  if (mine->ready && dnnl_memory_desc_equal(&p->w_desc, &mine->layout))
    return w;
  const float *plain = job->plain + turn * job->at_once * taps_of(job->conv);
  mine->layout = p->w_desc;
  mine->ready =
      host_primitive_reorder(job->worker, p, (float *)(uintptr_t)plain, w);
  return mine->ready ? w : NULL;
}

// Adds the products of a turn's channels to `sums`.
static bool add_turn(job_t *job, int turn, const int64_t at[3],
                     const int64_t extent[3], float *sums) {
  host_conv_t part = *job->conv;
  host_box_t box;
  host_primitive_t *p = band_primitive(job, turn, at, extent, &box);
  if (!p)
    return false;
  part.c = p->shape.c;
  part.x =
      (const float *)part.x + turn * (int64_t)job->at_once * part.x_stride[1];
  size_t image = (size_t)box.count[0] * (size_t)box.count[1] *
                 (size_t)box.count[2] * (size_t)part.groups * (size_t)part.c;
  float *w = turn_weights(job, turn, p);
  float *x = host_scratch_get(HOST_SCRATCH_INPUT,
                              (size_t)extent[0] * image * sizeof *x);
  if (!w || !x)
    return false;
  for (int64_t n = 0; n < extent[0]; n++)
    host_pack_x(&part, &box, at[0] + n, x + (size_t)n * image);
  return host_primitive_execute(job->worker, p, x, w, sums);
}

static bool band(job_t *job, const int64_t at[3], const int64_t extent[3]) {
  const host_conv_t *conv = job->conv;
  int64_t row = job->width * conv->groups * conv->k;
  const int64_t *s = conv->y_stride;
  bool direct = sums_are_y(conv) && job->width == conv->out[HOST_W] &&
                (extent[0] == 1 || s[0] == row * extent[1] * extent[2]);
  int64_t rows = extent[0] * extent[1] * extent[2];
  float *sums =
      direct ? (float *)conv->y + at[0] * s[0] + at[1] * s[2] + at[2] * s[3]
             : host_scratch_get(HOST_SCRATCH_OUTPUT,
                                (size_t)(rows * row) * sizeof *sums);
  bool ok = sums;
  for (int i = 0; ok && i < job->turns; i++)
    ok = add_turn(job, i, at, extent, sums);
  if (!ok || direct)
    return ok;
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

// Whether oneDNN has kernels for every turn of the first band.
static bool probe(const job_t *job, const int64_t extent[3]) {
  host_box_t box;
  for (int i = 0; i < job->turns; i++) {
    host_primitive_t *p =
        band_primitive(job, i, (const int64_t[3]){0}, extent, &box);
    if (!p)
      return false;
    host_worker_name(job->worker, p);
  }
  return true;
}

static bool run(job_t *job, bool *out_done) {
  const host_conv_t *conv = job->conv;
  int64_t extent[3];
  band_extent(conv, host_conv_rows(conv, HOST_W, job->width), extent);
  if (!probe(job, extent))
    return true; // not done
  job->plain = host_pack_weights(conv);
  job->turn = host_scratch_get(HOST_SCRATCH_TILE,
                               (size_t)conv->groups * (size_t)conv->k *
                                   HOST_TURN * sizeof(float));
  *out_done = job->plain && job->turn && bands(job, extent);
  return *out_done;
}

static bool whole(const host_conv_t *conv, bool *out_done) {
  job_t job = {.conv = conv,
               .worker = host_worker_get(),
               .at_once = channels_at_once(conv),
               .width = conv->out[HOST_W]};
  if (job.width < HOST_WIDTH)
    job.width = HOST_WIDTH;
  job.turns = (conv->c + job.at_once - 1) / job.at_once;
  job.weights = calloc((size_t)job.turns, sizeof *job.weights);
  bool ok = job.worker && job.weights && run(&job, out_done);
  free(job.weights);
  return ok;
}

// The channels of a group are used together. With one group they can be split
// into turns.
static bool each_group(const host_conv_t *conv, bool *out_done) {
  bool ok = true;
  *out_done = true;
  for (int64_t g = 0; ok && *out_done && g < conv->groups; g++) {
    host_conv_t one = *conv;
    one.groups = 1;
    one.x = (const float *)one.x + g * one.c * one.x_stride[1];
    one.w = (const float *)one.w + g * one.k * one.w_stride[0];
    one.y = (float *)one.y + g * one.k * one.y_stride[1];
    one.old = (const float *)one.old + g * one.k * one.old_stride[1];
    one.bias = one.bias ? (const float *)one.bias + g * one.k : NULL;
    ok = whole(&one, out_done);
  }
  return ok;
}

bool host_conv_onednn(const host_conv_t *conv, bool *out_done) {
  *out_done = false;
  int threads = host_threads_enter();
  bool ok = conv->groups > 1 && channels_at_once(conv) < conv->c
                ? each_group(conv, out_done)
                : whole(conv, out_done);
  omp_set_num_threads(threads);
  return ok;
}
