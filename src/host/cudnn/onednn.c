// SPDX-License-Identifier: Apache-2.0
// The oneDNN engine: float, channels last inside.
//
// x is copied, band by band of output rows, into a dense channels-last buffer
// that contains the padding, so that oneDNN sees dense tensors without padding
// only: a strided view would send it to its reference code, a thousand times
// slower. Its channels-last kernels add in an order that does not depend on
// the extents (tests/host checks that), so bands do not show in the result.
#include "src/host/cudnn/engine.h"

#include <dnnl.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/finish.h"
#include "src/host/cudnn/scratch.h"
#include "src/host/cudnn/transpose.h"

/* Bytes of packed x worked on at once: what stays in the second cache. */
enum { HOST_BAND_BYTES = 1 << 19 };

/* Primitives kept per executing thread. */
enum { HOST_PRIMITIVES = 64 };

/* What a primitive depends on; compared as bytes, so no padding inside. */
typedef struct {
  int32_t groups, c, k;
  int32_t in[HOST_SPATIAL];
  int32_t window[HOST_SPATIAL], stride[HOST_SPATIAL], dilation[HOST_SPATIAL];
} shape_t;

typedef struct {
  shape_t shape;
  uint64_t used; /* 0: free */
  dnnl_primitive_t conv, reorder;
  dnnl_memory_t x, w, y, w_plain;
  dnnl_memory_desc_t w_desc;
  size_t w_bytes;
  char name[64];
} primitive_t;

typedef struct {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  uint64_t clock;
  primitive_t slot[HOST_PRIMITIVES];
  char last_name[64];
} worker_t;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int key_failed;
static bool threads_given; /* the user says how many */

static void primitive_fini(primitive_t *p) {
  dnnl_primitive_destroy(p->conv);
  dnnl_primitive_destroy(p->reorder);
  dnnl_memory_destroy(p->x);
  dnnl_memory_destroy(p->w);
  dnnl_memory_destroy(p->y);
  dnnl_memory_destroy(p->w_plain);
  memset(p, 0, sizeof *p);
}

static void worker_destroy(void *pointer) {
  worker_t *worker = pointer;
  for (int i = 0; i < HOST_PRIMITIVES; i++)
    if (worker->slot[i].used)
      primitive_fini(&worker->slot[i]);
  if (worker->stream)
    dnnl_stream_destroy(worker->stream);
  if (worker->engine)
    dnnl_engine_destroy(worker->engine);
  free(worker);
}

static void key_create(void) {
  key_failed = pthread_key_create(&key, worker_destroy);
  threads_given = getenv("OMP_NUM_THREADS") != NULL;
}

/* The calling thread's engine, stream and primitives; NULL without memory. */
static worker_t *worker_get(void) {
  pthread_once(&once, key_create);
  if (key_failed)
    return NULL;
  worker_t *worker = pthread_getspecific(key);
  if (worker)
    return worker;
  worker = calloc(1, sizeof *worker);
  if (!worker)
    return NULL;
  if (dnnl_engine_create(&worker->engine, dnnl_cpu, 0) ||
      dnnl_stream_create(&worker->stream, worker->engine,
                         dnnl_stream_default_flags) ||
      pthread_setspecific(key, worker)) {
    worker_destroy(worker);
    return NULL;
  }
  return worker;
}

const char *host_conv_onednn_name(void) {
  worker_t *worker = worker_get();
  return worker ? worker->last_name : "";
}

static int64_t shape_out(const shape_t *s, int d) {
  return (s->in[d] - s->dilation[d] * (s->window[d] - 1) - 1) / s->stride[d] +
         1;
}

/* Two spatial dimensions where depth is 1: oneDNN has more kernels for them. */
static dnnl_status_t describe(const shape_t *s, dnnl_convolution_desc_t *conv,
                              dnnl_memory_desc_t *x, dnnl_memory_desc_t *y,
                              dnnl_memory_desc_t *w_plain) {
  int first = s->in[HOST_D] == 1 && s->window[HOST_D] == 1 ? HOST_H : HOST_D;
  int spatial = HOST_SPATIAL - first, grouped = s->groups > 1;
  dnnl_dims_t xd = {1, (dnnl_dim_t)s->groups * s->c};
  dnnl_dims_t yd = {1, (dnnl_dim_t)s->groups * s->k};
  dnnl_dims_t wd = {s->groups}, stride = {0}, dilation = {0}, pad = {0};
  wd[grouped] = s->k;
  wd[grouped + 1] = s->c;
  for (int i = 0; i < spatial; i++) {
    xd[2 + i] = s->in[first + i];
    yd[2 + i] = shape_out(s, first + i);
    wd[grouped + 2 + i] = s->window[first + i];
    stride[i] = s->stride[first + i];
    dilation[i] = s->dilation[first + i] - 1;
  }
  dnnl_format_tag_t last = spatial == 2 ? dnnl_nhwc : dnnl_ndhwc;
  dnnl_format_tag_t plain = spatial == 2 ? (grouped ? dnnl_goihw : dnnl_oihw)
                                         : (grouped ? dnnl_goidhw : dnnl_oidhw);
  dnnl_memory_desc_t w;
  dnnl_status_t status;
  if ((status =
           dnnl_memory_desc_init_by_tag(x, 2 + spatial, xd, dnnl_f32, last)) ||
      (status =
           dnnl_memory_desc_init_by_tag(y, 2 + spatial, yd, dnnl_f32, last)) ||
      (status = dnnl_memory_desc_init_by_tag(&w, grouped + 2 + spatial, wd,
                                             dnnl_f32, dnnl_format_tag_any)) ||
      (status = dnnl_memory_desc_init_by_tag(w_plain, grouped + 2 + spatial, wd,
                                             dnnl_f32, plain)))
    return status;
  return dnnl_dilated_convolution_forward_desc_init(
      conv, dnnl_forward_inference, dnnl_convolution_direct, x, &w, NULL, y,
      stride, dilation, pad, pad);
}

static dnnl_status_t primitive_init(worker_t *worker, const shape_t *shape,
                                    primitive_t *p) {
  dnnl_convolution_desc_t desc;
  dnnl_memory_desc_t x, y, w_plain;
  dnnl_status_t status = describe(shape, &desc, &x, &y, &w_plain);
  if (status)
    return status;
  dnnl_primitive_desc_t conv = NULL, reorder = NULL;
  status = dnnl_primitive_desc_create(&conv, &desc, NULL, worker->engine, NULL);
  if (status)
    return status;
  const char *name = "";
  dnnl_primitive_desc_query(conv, dnnl_query_impl_info_str, 0, &name);
  strncpy(p->name, name, sizeof p->name - 1);
  p->w_desc = *dnnl_primitive_desc_query_md(conv, dnnl_query_weights_md, 0);
  p->w_bytes = dnnl_memory_desc_get_size(&p->w_desc);
  if (strncmp(name, "ref", 3) == 0)
    status = dnnl_unimplemented;
  if (!status)
    status = dnnl_reorder_primitive_desc_create(
        &reorder, &w_plain, worker->engine, &p->w_desc, worker->engine, NULL);
  if (!status)
    status = dnnl_primitive_create(&p->conv, conv);
  if (!status)
    status = dnnl_primitive_create(&p->reorder, reorder);
  if (!status)
    status = dnnl_memory_create(&p->x, &x, worker->engine, DNNL_MEMORY_NONE);
  if (!status)
    status = dnnl_memory_create(&p->y, &y, worker->engine, DNNL_MEMORY_NONE);
  if (!status)
    status =
        dnnl_memory_create(&p->w, &p->w_desc, worker->engine, DNNL_MEMORY_NONE);
  if (!status)
    status = dnnl_memory_create(&p->w_plain, &w_plain, worker->engine,
                                DNNL_MEMORY_NONE);
  dnnl_primitive_desc_destroy(conv);
  dnnl_primitive_desc_destroy(reorder);
  return status;
}

/* From the cache, or made in the place of the one unused longest. NULL where
 * oneDNN has no kernel of its own. */
static primitive_t *primitive_get(worker_t *worker, const shape_t *shape) {
  primitive_t *oldest = &worker->slot[0];
  for (int i = 0; i < HOST_PRIMITIVES; i++) {
    primitive_t *p = &worker->slot[i];
    if (p->used && memcmp(&p->shape, shape, sizeof *shape) == 0) {
      p->used = ++worker->clock;
      return p;
    }
    if (p->used < oldest->used)
      oldest = p;
  }
  primitive_fini(oldest);
  if (primitive_init(worker, shape, oldest)) {
    primitive_fini(oldest);
    return NULL;
  }
  oldest->shape = *shape;
  oldest->used = ++worker->clock;
  return oldest;
}

static bool execute(worker_t *worker, primitive_t *p, const float *x,
                    const float *w, float *y) {
  dnnl_memory_set_data_handle(p->x, (void *)x);
  dnnl_memory_set_data_handle(p->w, (void *)w);
  dnnl_memory_set_data_handle(p->y, y);
  dnnl_exec_arg_t args[] = {
      {DNNL_ARG_SRC, p->x}, {DNNL_ARG_WEIGHTS, p->w}, {DNNL_ARG_DST, p->y}};
  return dnnl_primitive_execute(p->conv, worker->stream, 3, args) ==
         dnnl_success;
}

static bool reorder(worker_t *worker, primitive_t *p, const float *plain,
                    float *w) {
  dnnl_memory_set_data_handle(p->w_plain, (void *)plain);
  dnnl_memory_set_data_handle(p->w, w);
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, p->w_plain}, {DNNL_ARG_TO, p->w}};
  return dnnl_primitive_execute(p->reorder, worker->stream, 2, args) ==
         dnnl_success;
}

/* w as dense G K C D H W, mirrored for CUDNN_CONVOLUTION. */
static void weights(const host_conv_t *conv, float *to) {
  const int *n = conv->window;
  const int64_t *s = conv->w_stride;
  for (int64_t k = 0; k < (int64_t)conv->groups * conv->k; k++)
    for (int64_t c = 0; c < conv->c; c++)
      for (int d = 0; d < n[0]; d++)
        for (int h = 0; h < n[1]; h++)
          for (int w = 0; w < n[2]; w++) {
            int64_t fd = conv->flip ? n[0] - 1 - d : d;
            int64_t fh = conv->flip ? n[1] - 1 - h : h;
            int64_t fw = conv->flip ? n[2] - 1 - w : w;
            *to++ = ((const float *)conv->w)[k * s[0] + c * s[1] + fd * s[2] +
                                             fh * s[3] + fw * s[4]];
          }
}

/* One row of x, `width` columns from -pad on, as W x C. */
static void pack_row(const host_conv_t *conv, const float *from, int64_t width,
                     float *to) {
  int64_t channels = (int64_t)conv->groups * conv->c;
  int64_t c_step = conv->x_stride[1], w_step = conv->x_stride[4];
  int64_t low = conv->pad[HOST_W], high = low + conv->in[HOST_W];
  if (low > width)
    low = width;
  if (high > width)
    high = width;
  if (!from)
    low = high = width;
  size_t column = (size_t)channels * sizeof *to;
  memset(to, 0, (size_t)low * column);
  memset(to + high * channels, 0, (size_t)(width - high) * column);
  to += low * channels;
  if (high == low)
    return;
  if (c_step == 1 && w_step == channels)
    memcpy(to, from, (size_t)(high - low) * column);
  else if (w_step == 1)
    host_transpose(from, c_step, channels, high - low, to, channels);
  else
    for (int64_t w = 0; w < high - low; w++)
      for (int64_t c = 0; c < channels; c++)
        to[w * channels + c] = from[w * w_step + c * c_step];
}

static void pack(const host_conv_t *conv, const shape_t *shape, int64_t n,
                 int64_t d0, int64_t h0, float *to) {
  const int64_t *s = conv->x_stride;
  int64_t d_first = d0 * conv->stride[HOST_D] - conv->pad[HOST_D];
  int64_t h_first = h0 * conv->stride[HOST_H] - conv->pad[HOST_H];
  int64_t row = (int64_t)shape->in[HOST_W] * conv->groups * conv->c;
  for (int64_t d = d_first; d < d_first + shape->in[HOST_D]; d++)
    for (int64_t h = h_first; h < h_first + shape->in[HOST_H]; h++, to += row) {
      bool inside =
          d >= 0 && d < conv->in[HOST_D] && h >= 0 && h < conv->in[HOST_H];
      const float *from =
          inside ? (const float *)conv->x + n * s[0] + d * s[2] + h * s[3]
                 : NULL;
      pack_row(conv, from, shape->in[HOST_W], to);
    }
}

/* Columns that are turned from W x C into C x W at once. */
enum { HOST_TURN = 64 };

/* `sums` is one row, W x C. */
static void unpack_row(const host_conv_t *conv, const float *sums, float *turn,
                       const int64_t at[5]) {
  int64_t channels = (int64_t)conv->groups * conv->k;
  int64_t width = conv->out[HOST_W];
  int64_t point[5] = {at[0], at[1], at[2], at[3], at[4]};
  if (conv->y_stride[1] == 1) {
    for (int64_t w = 0; w < width; w++) {
      point[4] = w;
      host_finish_along_c(conv, sums + w * channels, channels, point);
    }
    return;
  }
  for (int64_t w = 0; w < width; w += HOST_TURN) {
    int64_t count = width - w < HOST_TURN ? width - w : HOST_TURN;
    host_transpose(sums + w * channels, channels, count, channels, turn,
                   HOST_TURN);
    point[4] = w;
    for (int64_t k = 0; k < channels; k++) {
      point[1] = k;
      host_finish_along_w(conv, turn + k * HOST_TURN, count, point);
    }
  }
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

/* Output planes and rows of a band: as many as keep its x in the cache. */
static void band_extent(const host_conv_t *conv, int64_t in_width,
                        int64_t out_band[2]) {
  int64_t row = in_width * conv->groups * conv->c * (int64_t)sizeof(float);
  int64_t planes = host_conv_rows(conv, HOST_D, 1);
  int64_t rest = host_conv_rows(conv, HOST_H, 1) - conv->stride[HOST_H];
  int64_t rows =
      (HOST_BAND_BYTES / (row * planes) - rest) / conv->stride[HOST_H];
  rows = rows < 1 ? 1 : rows;
  out_band[0] = 1;
  out_band[1] = rows;
  if (rows >= conv->out[HOST_H]) {
    out_band[1] = conv->out[HOST_H];
    int64_t plane = row * host_conv_rows(conv, HOST_H, conv->out[HOST_H]);
    rest = planes - conv->stride[HOST_D];
    out_band[0] = (HOST_BAND_BYTES / plane - rest) / conv->stride[HOST_D];
    if (out_band[0] < 1)
      out_band[0] = 1;
    if (out_band[0] > conv->out[HOST_D])
      out_band[0] = conv->out[HOST_D];
  }
}

typedef struct {
  const host_conv_t *conv;
  worker_t *worker;
  primitive_t *ready; /* the one whose layout `w` has */
  const float *plain;
  float *x, *turn;
} job_t;

static shape_t band_shape(const host_conv_t *conv, int64_t planes,
                          int64_t rows) {
  shape_t s = {.groups = conv->groups, .c = conv->c, .k = conv->k};
  memcpy(s.window, conv->window, sizeof s.window);
  memcpy(s.stride, conv->stride, sizeof s.stride);
  memcpy(s.dilation, conv->dilation, sizeof s.dilation);
  s.in[HOST_D] = (int32_t)host_conv_rows(conv, HOST_D, planes);
  s.in[HOST_H] = (int32_t)host_conv_rows(conv, HOST_H, rows);
  s.in[HOST_W] = (int32_t)host_conv_rows(conv, HOST_W, conv->out[HOST_W]);
  return s;
}

static bool band(job_t *job, int64_t n, int64_t d0, int64_t h0, int64_t planes,
                 int64_t rows) {
  const host_conv_t *conv = job->conv;
  shape_t shape = band_shape(conv, planes, rows);
  primitive_t *p = primitive_get(job->worker, &shape);
  if (!p)
    return false;
  float *w = host_scratch_get(HOST_SCRATCH_REORDERED, p->w_bytes);
  if (!w)
    return false;
  if (p != job->ready &&
      !(job->ready &&
        dnnl_memory_desc_equal(&p->w_desc, &job->ready->w_desc)) &&
      !reorder(job->worker, p, job->plain, w))
    return false;
  job->ready = p;
  pack(conv, &shape, n, d0, h0, job->x);
  int64_t row = conv->out[HOST_W] * conv->groups * conv->k;
  if (sums_are_y(conv)) {
    const int64_t *s = conv->y_stride;
    return execute(job->worker, p, job->x, w,
                   (float *)conv->y + n * s[0] + d0 * s[2] + h0 * s[3]);
  }
  float *sums = host_scratch_get(HOST_SCRATCH_OUTPUT,
                                 (size_t)(planes * rows * row) * sizeof *sums);
  if (!sums || !execute(job->worker, p, job->x, w, sums))
    return false;
  for (int64_t d = 0; d < planes; d++)
    for (int64_t h = 0; h < rows; h++, sums += row)
      unpack_row(conv, sums, job->turn,
                 (const int64_t[]){n, 0, d0 + d, h0 + h, 0});
  return true;
}

static bool bands(job_t *job, const int64_t extent[2]) {
  const host_conv_t *conv = job->conv;
  for (int64_t n = 0; n < conv->images; n++)
    for (int64_t d = 0; d < conv->out[HOST_D]; d += extent[0])
      for (int64_t h = 0; h < conv->out[HOST_H]; h += extent[1]) {
        int64_t planes = conv->out[HOST_D] - d, rows = conv->out[HOST_H] - h;
        if (!band(job, n, d, h, planes < extent[0] ? planes : extent[0],
                  rows < extent[1] ? rows : extent[1]))
          return false;
      }
  return true;
}

/* One thread where the user did not ask for more: ranks share the machine. */
static int threads_enter(void) {
  int before = omp_get_max_threads();
  if (!threads_given)
    omp_set_num_threads(1);
  return before;
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
  worker_t *worker = worker_get();
  int threads = threads_enter();
  if (!worker)
    goto leave;
  int64_t extent[2];
  band_extent(conv, host_conv_rows(conv, HOST_W, conv->out[HOST_W]), extent);
  shape_t shape = band_shape(conv, extent[0], extent[1]);
  primitive_t *first = primitive_get(worker, &shape);
  if (!first) {
    ok = true; /* not done: no kernel */
    goto leave;
  }
  memcpy(worker->last_name, first->name, sizeof worker->last_name);
  size_t elements = (size_t)shape.in[0] * (size_t)shape.in[1] *
                    (size_t)shape.in[2] * (size_t)conv->groups *
                    (size_t)conv->c;
  size_t taps = (size_t)conv->groups * (size_t)conv->k * (size_t)conv->c *
                (size_t)conv->window[0] * (size_t)conv->window[1] *
                (size_t)conv->window[2];
  float *plain = host_scratch_get(HOST_SCRATCH_WEIGHTS, taps * sizeof *plain);
  job_t job = {
      .conv = conv,
      .worker = worker,
      .plain = plain,
      .x = host_scratch_get(HOST_SCRATCH_INPUT, elements * sizeof(float)),
      .turn = host_scratch_get(HOST_SCRATCH_TILE,
                               (size_t)conv->groups * (size_t)conv->k *
                                   HOST_TURN * sizeof(float))};
  if (!plain || !job.x || !job.turn)
    goto leave;
  weights(conv, plain);
  ok = bands(&job, extent);
  *out_done = ok;
leave:
  omp_set_num_threads(threads);
  return ok;
}
