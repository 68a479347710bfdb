// SPDX-License-Identifier: Apache-2.0
// A float convolution by oneDNN alone, from and to plain layouts.
#include "tests/bench/rival.h"

#include <dnnl.h>
#include <stdlib.h>
#include <string.h>

enum { X, W, Y, TENSORS };

struct rival {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t conv, reorder[TENSORS];
  dnnl_memory_t user[TENSORS], own[TENSORS];
  int out; /* the tensor that is computed */
};

static const int arg_of[BENCH_KINDS][TENSORS] = {
    {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
    {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
    {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};

typedef struct {
  dnnl_memory_desc_t plain[TENSORS], wish[TENSORS];
  dnnl_dims_t stride, dilation, pad;
} layout_t;

static dnnl_status_t describe(const bench_shape_t *s, bench_layout_t layout,
                              layout_t *l) {
  int first = BENCH_SPATIAL - s->dims, grouped = s->groups > 1;
  dnnl_dims_t dim[TENSORS] = {{s->n, s->c}, {s->groups}, {s->n, s->k}};
  dim[W][grouped] = s->k / s->groups;
  dim[W][grouped + 1] = s->c / s->groups;
  memset(l, 0, sizeof *l);
  for (int i = 0; i < s->dims; i++) {
    dim[X][2 + i] = s->in[first + i];
    dim[Y][2 + i] = bench_out(s, first + i);
    dim[W][grouped + 2 + i] = s->window[first + i];
    l->stride[i] = s->stride;
    l->dilation[i] = s->dilation - 1;
    l->pad[i] = s->pad;
  }
  bool flat = s->dims == 2;
  dnnl_format_tag_t data = flat ? dnnl_nchw : dnnl_ncdhw;
  dnnl_format_tag_t filter = flat ? (grouped ? dnnl_goihw : dnnl_oihw)
                                  : (grouped ? dnnl_goidhw : dnnl_oidhw);
  dnnl_format_tag_t wish = layout == BENCH_ANY     ? dnnl_format_tag_any
                           : layout == BENCH_PLAIN ? data
                           : flat                  ? dnnl_nhwc
                                                   : dnnl_ndhwc;
  dnnl_status_t status = dnnl_success;
  for (int t = 0; t < TENSORS && !status; t++) {
    int rank = 2 + s->dims + (t == W && grouped);
    status = dnnl_memory_desc_init_by_tag(&l->plain[t], rank, dim[t], dnnl_f32,
                                          t == W ? filter : data);
    if (!status)
      status =
          dnnl_memory_desc_init_by_tag(&l->wish[t], rank, dim[t], dnnl_f32,
                                       t == W ? dnnl_format_tag_any : wish);
  }
  return status;
}

static dnnl_status_t make_conv(rival_t *r, const layout_t *l, bench_kind_t kind,
                               dnnl_primitive_desc_t *out) {
  dnnl_convolution_desc_t desc;
  const dnnl_memory_desc_t *m = l->wish;
  dnnl_primitive_desc_t hint = NULL;
  dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
      &desc,
      kind == BENCH_FORWARD ? dnnl_forward_inference : dnnl_forward_training,
      dnnl_convolution_direct, &m[X], &m[W], NULL, &m[Y], l->stride,
      l->dilation, l->pad, l->pad);
  if (!status)
    status = dnnl_primitive_desc_create(&hint, &desc, NULL, r->engine, NULL);
  if (status || kind == BENCH_FORWARD) {
    *out = hint;
    return status;
  }
  status = kind == BENCH_DATA
               ? dnnl_dilated_convolution_backward_data_desc_init(
                     &desc, dnnl_convolution_direct, &m[X], &m[W], &m[Y],
                     l->stride, l->dilation, l->pad, l->pad)
               : dnnl_dilated_convolution_backward_weights_desc_init(
                     &desc, dnnl_convolution_direct, &m[X], &m[W], NULL, &m[Y],
                     l->stride, l->dilation, l->pad, l->pad);
  if (!status)
    status = dnnl_primitive_desc_create(out, &desc, NULL, r->engine, hint);
  dnnl_primitive_desc_destroy(hint);
  return status;
}

/* The conversion of tensor t between the program's layout and oneDNN's. */
static dnnl_status_t make_reorder(rival_t *r, int t,
                                  const dnnl_memory_desc_t *plain,
                                  const dnnl_memory_desc_t *own, float *data) {
  dnnl_status_t status =
      dnnl_memory_create(&r->user[t], plain, r->engine, data);
  if (status || dnnl_memory_desc_equal(plain, own))
    return status;
  dnnl_primitive_desc_t desc = NULL;
  const dnnl_memory_desc_t *from = t == r->out ? own : plain;
  const dnnl_memory_desc_t *to = t == r->out ? plain : own;
  status = dnnl_memory_create(&r->own[t], own, r->engine, DNNL_MEMORY_ALLOCATE);
  if (!status)
    status = dnnl_reorder_primitive_desc_create(&desc, from, r->engine, to,
                                                r->engine, NULL);
  if (!status)
    status = dnnl_primitive_create(&r->reorder[t], desc);
  dnnl_primitive_desc_destroy(desc);
  return status;
}

rival_t *rival_create(const bench_shape_t *shape, bench_kind_t kind,
                      bench_layout_t layout, float *x, float *w, float *y) {
  rival_t *r = calloc(1, sizeof *r);
  if (!r)
    return NULL;
  r->out = kind == BENCH_FORWARD ? Y : kind == BENCH_DATA ? X : W;
  float *data[TENSORS] = {x, w, y};
  layout_t l;
  dnnl_primitive_desc_t conv = NULL;
  dnnl_status_t status = dnnl_engine_create(&r->engine, dnnl_cpu, 0);
  if (!status)
    status =
        dnnl_stream_create(&r->stream, r->engine, dnnl_stream_default_flags);
  if (!status)
    status = describe(shape, layout, &l);
  if (!status)
    status = make_conv(r, &l, kind, &conv);
  const char *name = "";
  if (!status)
    status =
        dnnl_primitive_desc_query(conv, dnnl_query_impl_info_str, 0, &name);
  if (!status && strncmp(name, "ref", 3) == 0)
    status = dnnl_unimplemented;
  for (int t = 0; t < TENSORS && !status; t++)
    status = make_reorder(r, t, &l.plain[t],
                          dnnl_primitive_desc_query_md(
                              conv, dnnl_query_exec_arg_md, arg_of[kind][t]),
                          data[t]);
  if (!status)
    status = dnnl_primitive_create(&r->conv, conv);
  dnnl_primitive_desc_destroy(conv);
  if (!status)
    return r;
  rival_destroy(r);
  return NULL;
}

void rival_destroy(rival_t *rival) {
  if (!rival)
    return;
  for (int t = 0; t < TENSORS; t++) {
    dnnl_primitive_destroy(rival->reorder[t]);
    dnnl_memory_destroy(rival->user[t]);
    dnnl_memory_destroy(rival->own[t]);
  }
  dnnl_primitive_destroy(rival->conv);
  if (rival->stream)
    dnnl_stream_destroy(rival->stream);
  if (rival->engine)
    dnnl_engine_destroy(rival->engine);
  free(rival);
}

static dnnl_status_t reorder(rival_t *r, int t) {
  if (!r->reorder[t])
    return dnnl_success;
  bool out = t == r->out;
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, out ? r->own[t] : r->user[t]},
                            {DNNL_ARG_TO, out ? r->user[t] : r->own[t]}};
  return dnnl_primitive_execute(r->reorder[t], r->stream, 2, args);
}

bool rival_run(rival_t *rival) {
  bench_kind_t kind = rival->out == Y   ? BENCH_FORWARD
                      : rival->out == X ? BENCH_DATA
                                        : BENCH_WEIGHTS;
  dnnl_exec_arg_t args[TENSORS];
  dnnl_status_t status = dnnl_success;
  for (int t = 0; t < TENSORS; t++) {
    if (t != rival->out && !status)
      status = reorder(rival, t);
    args[t] = (dnnl_exec_arg_t){arg_of[kind][t],
                                rival->own[t] ? rival->own[t] : rival->user[t]};
  }
  if (!status)
    status = dnnl_primitive_execute(rival->conv, rival->stream, TENSORS, args);
  if (!status)
    status = reorder(rival, rival->out);
  return !status && !dnnl_stream_wait(rival->stream);
}
