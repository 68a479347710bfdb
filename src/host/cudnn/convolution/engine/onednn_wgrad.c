// SPDX-License-Identifier: Apache-2.0
// The gradient of weights by oneDNN: float, channels last inside, one band at a
// time as in forward calls. Bands smaller than the common shape are filled with
// zeros.
#include <omp.h>
#include <string.h>

#include "src/host/cudnn/base/primitive.h"
#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/transpose.h"
#include "src/host/cudnn/convolution/engine/outside.h"
#include "src/host/cudnn/convolution/engine/pack.h"

// Bytes of packed x per band. More if there are more weights, because their
// gradient is added once per band.
enum { HOST_BAND_BYTES = 1 << 19 };

// Fewer channels of x than fill a vector.
enum { HOST_FEW = 16 };

typedef struct {
  const host_conv_t *conv;
  host_worker_t *worker;
  host_primitive_t *primitive;
  int64_t rows;   // of dy in a band
  int64_t planes; // in a band; more than one only if planes are whole
  int64_t images; // in a band; more than one only if volumes are whole
  bool zeros[HOST_SPATIAL]; // x contains the padding
  float *x, *dy;
} job_t;

// `planes` x `rows` rows of dy from (n, d, h) on, as rows of W x K.
static void pack_dy(const host_conv_t *conv, int64_t n, int64_t d, int64_t h,
                    int64_t planes, int64_t rows, float *to) {
  host_conv_t plain = {.groups = conv->groups, .c = conv->k, .x = conv->y};
  memcpy(plain.x_stride, conv->y_stride, sizeof plain.x_stride);
  memcpy(plain.in, conv->out, sizeof plain.in);
  const host_box_t box = {
      .first = {d, h, 0},
      .count = {(int32_t)planes, (int32_t)rows, (int32_t)conv->out[HOST_W]}};
  host_pack_x(&plain, &box, n, to);
}

// x under a band of dy from (d, h) on.
static void under(const job_t *job, int64_t d, int64_t h, host_box_t *x) {
  const int64_t first[HOST_SPATIAL] = {d, h, 0};
  const int64_t count[HOST_SPATIAL] = {job->planes, job->rows,
                                       job->conv->out[HOST_W]};
  for (int i = 0; i < HOST_SPATIAL; i++)
    host_pack_under(job->conv, i, first[i], count[i], job->zeros[i], x);
}

static size_t x_elements(const job_t *job) {
  const host_shape_t *s = &job->primitive->shape;
  return (size_t)s->in[0] * (size_t)s->in[1] * (size_t)s->in[2] *
         (size_t)s->groups * (size_t)s->c;
}

static size_t dy_elements(const job_t *job) {
  const host_conv_t *conv = job->conv;
  return (size_t)job->planes * (size_t)job->rows * (size_t)conv->out[HOST_W] *
         (size_t)conv->groups * (size_t)conv->k;
}

// x under `planes` x `rows` rows of dy only: the memory behind could hold
// infinities, and 0 * inf is NaN.
static void pack_x(const job_t *job, int64_t n, int64_t d, int64_t h,
                   int64_t planes, int64_t rows, float *to) {
  const host_conv_t *conv = job->conv;
  const int32_t *in = job->primitive->shape.in;
  host_box_t box;
  under(job, d, h, &box);
  host_pack_x(conv, &box, n, to);
  size_t row = (size_t)in[2] * (size_t)conv->groups * (size_t)conv->c;
  size_t deep = (size_t)host_conv_rows(conv, HOST_D, planes);
  size_t used = (size_t)host_conv_rows(conv, HOST_H, rows);
  for (size_t i = 0; i < deep && rows < job->rows; i++)
    memset(to + (i * (size_t)in[1] + used) * row, 0,
           ((size_t)in[1] - used) * row * sizeof *to);
  if (planes < job->planes)
    memset(to + deep * (size_t)in[1] * row, 0,
           ((size_t)in[0] - deep) * (size_t)in[1] * row * sizeof *to);
}

// The first band sets the total; later ones are added.
static bool add_band(const job_t *job, int64_t n, int64_t d, int64_t h,
                     float *part, float *total) {
  const host_conv_t *conv = job->conv;
  size_t xs = x_elements(job), ys = dy_elements(job);
  int64_t left = conv->out[HOST_H] - h, behind = conv->out[HOST_D] - d;
  int64_t rows = left < job->rows ? left : job->rows;
  int64_t planes = behind < job->planes ? behind : job->planes;
  size_t used =
      ys / (size_t)(job->planes * job->rows) * (size_t)(planes * rows);
  for (int64_t i = 0; i < job->images; i++) {
    float *x = job->x + (size_t)i * xs, *dy = job->dy + (size_t)i * ys;
    if (n + i >= conv->images) {
      memset(x, 0, xs * sizeof *x);
      memset(dy, 0, ys * sizeof *dy);
      continue;
    }
    pack_x(job, n + i, d, h, planes, rows, x);
    pack_dy(conv, n + i, d, h, planes, rows, dy);
    memset(dy + used, 0, (ys - used) * sizeof *dy);
  }
  bool first = n == 0 && d == 0 && h == 0;
  if (!host_primitive_execute(job->worker, job->primitive, job->x,
                              first ? total : part, job->dy))
    return false;
  if (first)
    return true;
  size_t count = job->primitive->w_bytes / sizeof *part;
  for (size_t i = 0; i < count; i++)
    total[i] += part[i];
  return true;
}

// Whether oneDNN's weights are [K / 16][C / 16][taps][16 of C][16 of K].
static bool blocks_of_16(const host_primitive_t *p) {
  const dnnl_memory_desc_t *w = &p->w_desc;
  const dnnl_blocking_desc_t *blocks = &w->format_desc.blocking;
  const host_shape_t *s = &p->shape;
  if (w->format_kind != dnnl_blocked || s->groups != 1 || s->c % 16 ||
      s->k % 16 || blocks->inner_nblks != 2 || blocks->inner_blks[0] != 16 ||
      blocks->inner_blks[1] != 16 || blocks->inner_idxs[0] != 1 ||
      blocks->inner_idxs[1] != 0)
    return false;
  int64_t at = 256;
  for (int i = w->ndims - 1; i >= 2; at *= w->dims[i--])
    if (w->dims[i] != 1 && blocks->strides[i] != at)
      return false;
  return blocks->strides[1] == at && blocks->strides[0] == at * (s->c / 16);
}

// Converts from these to dense K C taps. oneDNN's own conversion takes four
// times as long, a quarter of the gradient's time if there are many weights.
static bool unblock(const job_t *job, const float *blocked, float *plain) {
  const host_conv_t *conv = job->conv;
  int64_t taps = (int64_t)conv->window[0] * conv->window[1] * conv->window[2];
  float *turned =
      host_scratch_get(HOST_SCRATCH_TILE, (size_t)taps * 256 * sizeof *turned);
  if (!turned)
    return false;
  for (int64_t k = 0; k < conv->k; k += 16)
    for (int64_t c = 0; c < conv->c; c += 16, blocked += taps * 256) {
      host_transpose(blocked, 16, taps * 16, 16, turned, taps * 16);
      for (int64_t i = 0; i < 16; i++)
        host_transpose(turned + i * taps * 16, 16, taps, 16,
                       plain + ((k + i) * conv->c + c) * taps, taps);
    }
  return true;
}

static bool run(job_t *job, float *sums) {
  const host_conv_t *conv = job->conv;
  size_t bytes = (job->primitive->w_bytes + 63) & ~(size_t)63;
  size_t images = (size_t)job->images;
  float *total = host_scratch_get(HOST_SCRATCH_REORDERED, 2 * bytes);
  job->x = host_scratch_get(HOST_SCRATCH_INPUT,
                            images * x_elements(job) * sizeof(float));
  job->dy = host_scratch_get(HOST_SCRATCH_OUTPUT,
                             images * dy_elements(job) * sizeof(float));
  if (!total || !job->x || !job->dy)
    return false;
  float *part = total + bytes / sizeof *total;
  for (int64_t n = 0; n < conv->images; n += job->images)
    for (int64_t d = 0; d < conv->out[HOST_D]; d += job->planes)
      for (int64_t h = 0; h < conv->out[HOST_H]; h += job->rows)
        if (!add_band(job, n, d, h, part, total))
          return false;
  if (!blocks_of_16(job->primitive))
    return host_primitive_reorder(job->worker, job->primitive, sums, total);
  return unblock(job, total, sums);
}

static host_shape_t shape_of(const job_t *job) {
  const host_conv_t *conv = job->conv;
  host_shape_t s = {.kind = HOST_CONV_WEIGHTS,
                    .images = (int32_t)job->images,
                    .groups = conv->groups,
                    .c = conv->c,
                    .k = conv->k};
  memcpy(s.window, conv->window, sizeof s.window);
  memcpy(s.stride, conv->stride, sizeof s.stride);
  memcpy(s.dilation, conv->dilation, sizeof s.dilation);
  host_box_t x;
  under(job, 0, 0, &x);
  memcpy(s.in, x.count, sizeof s.in);
  memcpy(s.pad, x.pad, sizeof s.pad);
  s.out[HOST_D] = (int32_t)job->planes;
  s.out[HOST_H] = (int32_t)job->rows;
  s.out[HOST_W] = (int32_t)conv->out[HOST_W];
  return s;
}

// About `most` of `all`, at least one, in equal parts: the last part is
// computed as if it were whole.
static int64_t share(int64_t most, int64_t all) {
  most = most < 1 ? 1 : most;
  int64_t parts = (all + most - 1) / most;
  return (all + parts - 1) / parts;
}

static void choose_band(job_t *job) {
  const host_conv_t *conv = job->conv;
  int64_t unit = sizeof(float), channels = (int64_t)conv->groups * conv->c;
  int64_t weights = channels * conv->k * conv->window[0] * conv->window[1] *
                    conv->window[2] * unit;
  int64_t room = weights > HOST_BAND_BYTES ? weights : HOST_BAND_BYTES;
  int64_t row =
      host_conv_rows(conv, HOST_W, conv->out[HOST_W]) * channels * unit;
  int64_t deep = host_conv_rows(conv, HOST_D, 1);
  int64_t rest = host_conv_rows(conv, HOST_H, 1) - conv->stride[HOST_H];
  job->images = job->planes = 1;
  int64_t rows = (room / (row * deep) - rest) / conv->stride[HOST_H];
  // Rows of dy that also stay in the cache.
  int64_t dy = 2 * room / (conv->out[HOST_W] * conv->groups * conv->k * unit);
  job->rows = share(rows < dy ? rows : dy, conv->out[HOST_H]);
  if (job->rows < conv->out[HOST_H])
    return;
  int64_t plane = row * host_conv_rows(conv, HOST_H, job->rows);
  rest = deep - conv->stride[HOST_D];
  int64_t planes = (room / plane - rest) / conv->stride[HOST_D];
  dy /= job->rows;
  job->planes = share(planes < dy ? planes : dy, conv->out[HOST_D]);
  if (job->planes < conv->out[HOST_D])
    return;
  job->images = share(
      room / (plane * host_conv_rows(conv, HOST_D, job->planes)), conv->images);
}

// NULL if oneDNN has none, or computes depthwise channels as sixteen full ones:
// the direct engine takes half the time.
static host_primitive_t *primitive(const job_t *job) {
  const host_conv_t *conv = job->conv;
  host_shape_t shape = shape_of(job);
  host_primitive_t *p = host_primitive_get(job->worker, &shape);
  bool alone = conv->groups > 1 && conv->c == 1 && conv->k == 1;
  return p && alone && !strstr(p->name, "dw") ? NULL : p;
}

// oneDNN 2.6 skips planes of weights if, with a stride, the first window behind
// the padding ends beyond the last plane (window 7, stride 2, padding 3 over 6
// planes: the window at 1 ends at 8), and if one window contains all planes and
// more in front of them.
static bool forgets_planes(const host_conv_t *conv) {
  int64_t pad = conv->pad[HOST_D], step = conv->stride[HOST_D];
  if (pad <= 0 || step <= 1)
    return false;
  int64_t first = (pad + step - 1) / step * step - pad;
  return first + host_conv_rows(conv, HOST_D, 1) > conv->in[HOST_D] ||
         pad + 1 >= conv->in[HOST_D];
}

// Whether zeros that fill up the last band of dy may have met infinities in x,
// in rows that other rows of dy need.
static bool spoiled(const job_t *job, const float *sums) {
  const host_conv_t *conv = job->conv;
  const int *n = conv->window;
  const int64_t x[5] = {conv->images, (int64_t)conv->groups * conv->c,
                        conv->in[0], conv->in[1], conv->in[2]};
  const int64_t count[5] = {(int64_t)conv->groups * conv->k * conv->c * n[0] *
                                n[1] * n[2],
                            1, 1, 1, 1};
  const int64_t one[5] = {1, 1, 1, 1, 1};
  return (conv->out[HOST_D] % job->planes != 0 ||
          conv->out[HOST_H] % job->rows != 0) &&
         !host_outside_finite_float(sums, count, one) &&
         !host_outside_finite_float(conv->x, x, conv->x_stride);
}

bool host_wgrad_onednn(const host_conv_t *conv, float *sums, bool *out_done) {
  *out_done = false;
  host_worker_t *worker = host_worker_get();
  if (!worker)
    return false;
  int threads = host_threads_enter();
  job_t job = {.conv = conv, .worker = worker};
  choose_band(&job);
  // oneDNN skips the padding if it is the same for all bands; with few channels
  // that takes longer than adding zeros.
  bool few = conv->groups == 1 && conv->c < HOST_FEW;
  job.zeros[HOST_D] =
      few || forgets_planes(conv) || job.planes < conv->out[HOST_D];
  job.zeros[HOST_H] = few || job.rows < conv->out[HOST_H];
  job.zeros[HOST_W] = few;
  job.primitive = primitive(&job);
  if (!job.primitive) {
    memset(job.zeros, true, sizeof job.zeros);
    job.primitive = primitive(&job);
  }
  bool ok = true;
  if (job.primitive) {
    host_worker_name(worker, job.primitive);
    ok = run(&job, sums);
    *out_done = ok && !spoiled(&job, sums);
  }
  omp_set_num_threads(threads);
  return ok;
}
