// SPDX-License-Identifier: Apache-2.0
// oneDNN's primitives, made once per shape and executing thread.
#include "src/host/cudnn/base/primitive.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Primitives kept per executing thread.
enum { HOST_PRIMITIVES = 64 };

struct host_worker {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  uint64_t clock;
  host_primitive_t slot[HOST_PRIMITIVES];
  char last_name[64];
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int key_failed;
static bool threads_given; // the user sets the number of threads

static void primitive_fini(host_primitive_t *p) {
  dnnl_primitive_destroy(p->conv);
  dnnl_primitive_destroy(p->reorder);
  dnnl_memory_destroy(p->x);
  dnnl_memory_destroy(p->w);
  dnnl_memory_destroy(p->y);
  dnnl_memory_destroy(p->w_plain);
  memset(p, 0, sizeof *p);
}

static void worker_destroy(void *pointer) {
  host_worker_t *worker = pointer;
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

host_worker_t *host_worker_get(void) {
  pthread_once(&once, key_create);
  if (key_failed)
    return NULL;
  host_worker_t *worker = pthread_getspecific(key);
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
  host_worker_t *worker = host_worker_get();
  return worker ? worker->last_name : "";
}

// The description for oneDNN: all layouts are given except that of the weights.
typedef struct {
  dnnl_memory_desc_t x, y, w, w_plain;
  dnnl_dims_t stride, dilation, pad, pad_behind;
} layout_t;

// Two spatial dimensions if depth is 1, because oneDNN has more kernels for
// them.
static dnnl_status_t describe(const host_shape_t *s, layout_t *l) {
  int first = s->in[HOST_D] == 1 && s->window[HOST_D] == 1 ? HOST_H : HOST_D;
  int spatial = HOST_SPATIAL - first, grouped = s->groups > 1;
  dnnl_dims_t xd = {s->images, (dnnl_dim_t)s->groups * s->c};
  dnnl_dims_t yd = {s->images, (dnnl_dim_t)s->groups * s->k};
  dnnl_dims_t wd = {s->groups};
  memset(l, 0, sizeof *l);
  wd[grouped] = s->k;
  wd[grouped + 1] = s->c;
  for (int i = 0; i < spatial; i++) {
    xd[2 + i] = s->in[first + i];
    yd[2 + i] = s->out[first + i];
    wd[grouped + 2 + i] = s->window[first + i];
    l->stride[i] = s->stride[first + i];
    l->dilation[i] = s->dilation[first + i] - 1;
    l->pad[i] = s->pad[first + i];
    l->pad_behind[i] = (yd[2 + i] - 1) * l->stride[i] +
                       s->dilation[first + i] * (s->window[first + i] - 1) + 1 -
                       s->in[first + i] - l->pad[i];
  }
  int rank = 2 + spatial;
  dnnl_format_tag_t last = spatial == 2 ? dnnl_nhwc : dnnl_ndhwc;
  dnnl_format_tag_t plain = spatial == 2 ? (grouped ? dnnl_goihw : dnnl_oihw)
                                         : (grouped ? dnnl_goidhw : dnnl_oidhw);
  dnnl_status_t status =
      dnnl_memory_desc_init_by_tag(&l->x, rank, xd, dnnl_f32, last);
  if (!status)
    status = dnnl_memory_desc_init_by_tag(&l->y, rank, yd, dnnl_f32, last);
  if (!status)
    status = dnnl_memory_desc_init_by_tag(&l->w, grouped + rank, wd, dnnl_f32,
                                          dnnl_format_tag_any);
  if (!status)
    status = dnnl_memory_desc_init_by_tag(&l->w_plain, grouped + rank, wd,
                                          dnnl_f32, plain);
  if (!status && s->all_c) { // one group
    dnnl_dims_t strides = {0};
    dnnl_dim_t at = 1;
    for (int i = rank - 1; i >= 0; at *= i == 1 ? s->all_c : wd[i], i--)
      strides[i] = at;
    status = dnnl_memory_desc_init_by_strides(&l->w_plain, rank, wd, dnnl_f32,
                                              strides);
  }
  return status;
}

static dnnl_status_t forward(host_worker_t *worker, dnnl_prop_kind_t kind,
                             const layout_t *l, bool adds,
                             dnnl_primitive_desc_t *out) {
  dnnl_convolution_desc_t desc;
  dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
      &desc, kind, dnnl_convolution_direct, &l->x, &l->w, NULL, &l->y,
      l->stride, l->dilation, l->pad, l->pad_behind);
  dnnl_primitive_attr_t attributes = NULL;
  dnnl_post_ops_t after = NULL;
  if (!status && adds) {
    status = dnnl_primitive_attr_create(&attributes);
    if (!status)
      status = dnnl_post_ops_create(&after);
    if (!status)
      status = dnnl_post_ops_append_sum(after, 1);
    if (!status)
      status = dnnl_primitive_attr_set_post_ops(attributes, after);
  }
  if (!status)
    status = dnnl_primitive_desc_create(out, &desc, attributes, worker->engine,
                                        NULL);
  dnnl_post_ops_destroy(after);
  dnnl_primitive_attr_destroy(attributes);
  return status;
}

static dnnl_status_t gradient(host_worker_t *worker, int32_t kind,
                              const layout_t *l, dnnl_primitive_desc_t *out) {
  dnnl_primitive_desc_t hint = NULL;
  dnnl_convolution_desc_t desc;
  dnnl_status_t status =
      forward(worker, dnnl_forward_training, l, false, &hint);
  if (!status)
    status = kind == HOST_CONV_DATA
                 ? dnnl_dilated_convolution_backward_data_desc_init(
                       &desc, dnnl_convolution_direct, &l->x, &l->w, &l->y,
                       l->stride, l->dilation, l->pad, l->pad_behind)
                 : dnnl_dilated_convolution_backward_weights_desc_init(
                       &desc, dnnl_convolution_direct, &l->x, &l->w, NULL,
                       &l->y, l->stride, l->dilation, l->pad, l->pad_behind);
  if (!status)
    status = dnnl_primitive_desc_create(out, &desc, NULL, worker->engine, hint);
  dnnl_primitive_desc_destroy(hint);
  return status;
}

static dnnl_status_t primitive_init(host_worker_t *worker,
                                    const host_shape_t *shape,
                                    host_primitive_t *p) {
  layout_t l;
  dnnl_primitive_desc_t conv = NULL, reorder = NULL;
  dnnl_status_t status = describe(shape, &l);
  if (!status)
    status =
        shape->kind == HOST_CONV_FORWARD
            ? forward(worker, dnnl_forward_inference, &l, shape->adds, &conv)
            : gradient(worker, shape->kind, &l, &conv);
  if (status)
    return status;
  bool w_out = shape->kind == HOST_CONV_WEIGHTS;
  const char *name = "";
  dnnl_primitive_desc_query(conv, dnnl_query_impl_info_str, 0, &name);
  strncpy(p->name, name, sizeof p->name - 1);
  p->w_desc = *dnnl_primitive_desc_query_md(
      conv, w_out ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
  p->w_bytes = dnnl_memory_desc_get_size(&p->w_desc);
  const dnnl_memory_desc_t *from = w_out ? &p->w_desc : &l.w_plain;
  const dnnl_memory_desc_t *to = w_out ? &l.w_plain : &p->w_desc;
  if (strncmp(name, "ref", 3) == 0)
    status = dnnl_unimplemented;
  if (!status)
    status = dnnl_reorder_primitive_desc_create(&reorder, from, worker->engine,
                                                to, worker->engine, NULL);
  if (!status)
    status = dnnl_primitive_create(&p->conv, conv);
  if (!status)
    status = dnnl_primitive_create(&p->reorder, reorder);
  if (!status)
    status = dnnl_memory_create(&p->x, &l.x, worker->engine, DNNL_MEMORY_NONE);
  if (!status)
    status = dnnl_memory_create(&p->y, &l.y, worker->engine, DNNL_MEMORY_NONE);
  if (!status)
    status =
        dnnl_memory_create(&p->w, &p->w_desc, worker->engine, DNNL_MEMORY_NONE);
  if (!status)
    status = dnnl_memory_create(&p->w_plain, &l.w_plain, worker->engine,
                                DNNL_MEMORY_NONE);
  dnnl_primitive_desc_destroy(conv);
  dnnl_primitive_desc_destroy(reorder);
  return status;
}

// Finds or makes a primitive. A shape that oneDNN cannot compute is kept
// without primitives.
host_primitive_t *host_primitive_get(host_worker_t *worker,
                                     const host_shape_t *shape) {
  host_primitive_t *oldest = &worker->slot[0];
  for (int i = 0; i < HOST_PRIMITIVES; i++) {
    host_primitive_t *p = &worker->slot[i];
    if (p->used && memcmp(&p->shape, shape, sizeof *shape) == 0) {
      p->used = ++worker->clock;
      return p->conv ? p : NULL;
    }
    if (p->used < oldest->used)
      oldest = p;
  }
  primitive_fini(oldest);
  if (primitive_init(worker, shape, oldest))
    primitive_fini(oldest);
  oldest->shape = *shape;
  oldest->used = ++worker->clock;
  return oldest->conv ? oldest : NULL;
}

bool host_primitive_execute(host_worker_t *worker, host_primitive_t *p,
                            float *x, float *w, float *y) {
  static const int name[][3] = {
      [HOST_CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
      [HOST_CONV_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS,
                          DNNL_ARG_DIFF_DST},
      [HOST_CONV_WEIGHTS] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS,
                             DNNL_ARG_DIFF_DST}};
  dnnl_memory_set_data_handle(p->x, x);
  dnnl_memory_set_data_handle(p->w, w);
  dnnl_memory_set_data_handle(p->y, y);
  const int *of = name[p->shape.kind];
  dnnl_exec_arg_t args[] = {{of[0], p->x}, {of[1], p->w}, {of[2], p->y}};
  return dnnl_primitive_execute(p->conv, worker->stream, 3, args) ==
         dnnl_success;
}

bool host_primitive_reorder(host_worker_t *worker, host_primitive_t *p,
                            float *plain, float *w) {
  bool w_out = p->shape.kind == HOST_CONV_WEIGHTS;
  dnnl_memory_set_data_handle(p->w_plain, plain);
  dnnl_memory_set_data_handle(p->w, w);
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, w_out ? p->w : p->w_plain},
                            {DNNL_ARG_TO, w_out ? p->w_plain : p->w}};
  return dnnl_primitive_execute(p->reorder, worker->stream, 2, args) ==
         dnnl_success;
}

void host_worker_name(host_worker_t *worker, const host_primitive_t *p) {
  memcpy(worker->last_name, p->name, sizeof worker->last_name);
}

int host_threads_enter(void) {
  int before = omp_get_max_threads();
  if (!threads_given)
    omp_set_num_threads(1);
  return before;
}
