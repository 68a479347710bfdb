// SPDX-License-Identifier: Apache-2.0
// Linear layers and layer norms of tokens.
#include "tests/clients/graphs/nets/tokens.h"

static int64_t tokens_of(const tensor_t *x) {
  return x->dim[0] * x->dim[2] * x->dim[3];
}

// ---- products of matrices --------------------------------------------------

// Tokens, or a parameter's first index, are rows.
static build_t matrix(sketch_t *s, const tensor_t *t, bool is_turned) {
  int64_t rows = tokens_of(t), columns = t->dim[1];
  const int64_t dim[] = {1, rows, columns}, turned[] = {1, columns, rows};
  const int64_t stride[] = {rows * columns, columns, 1},
                turned_stride[] = {rows * columns, 1, columns};
  return sketch_strided(s, t, 3, is_turned ? turned : dim,
                        is_turned ? turned_stride : stride);
}

static build_t matrix_between(sketch_t *s, const tensor_t *like) {
  const int64_t rows = tokens_of(like), columns = like->dim[1];
  const int64_t dim[] = {1, rows, columns},
                stride[] = {rows * columns, columns, 1};
  return sketch_virtual(s, 3, dim, stride);
}

// A call of cuBLAS, to which rows are columns: c = b a.
typedef struct {
  cublasHandle_t handle;
  cublasOperation_t of_a, of_b;
  int m, n, k, lda, ldb;
  const void *a, *b;
  void *c;
  cudaDataType_t type;
} product_t;

static void product_call(const void *what) {
  const product_t *p = what;
  const float one = 1, zero = 0;
  CHECK(cublasGemmEx(p->handle, p->of_a, p->of_b, p->m, p->n, p->k, &one, p->a,
                     p->type, p->lda, p->b, p->type, p->ldb, &zero, p->c,
                     p->type, p->m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

// to = x y, with either transposed.
static void product_add(model_t *m, const tokens_t *t, const tensor_t *x,
                        bool x_turned, const tensor_t *y, bool y_turned,
                        const tensor_t *to) {
  product_t *p = malloc(sizeof *p);
  CHECK(!p || m->ops == MODEL_OPS);
  *p =
      (product_t){.handle = t->cublas,
                  .of_a = y_turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                  .of_b = x_turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                  .m = (int)to->dim[1],
                  .n = (int)tokens_of(to),
                  .k = (int)(x_turned ? tokens_of(x) : x->dim[1]),
                  .lda = (int)y->dim[1],
                  .ldb = (int)x->dim[1],
                  .a = y->at,
                  .b = x->at,
                  .c = to->at,
                  .type = m->real == CUDNN_DATA_HALF ? CUDA_R_16F : CUDA_R_32F};
  m->op[m->ops++] = (op_t){.call = product_call, .what = p};
}

// ---- linear layers ---------------------------------------------------------

linear_t linear_make(model_t *m, int64_t in, int64_t out) {
  linear_t l;
  l.w = model_parameter(m, in, out, 1, 1);
  l.bias = model_parameter(m, 1, out, 1, 1);
  return l;
}

typedef build_t (*describe_t)(sketch_t *s, const tensor_t *t);

static build_t as_matrix(sketch_t *s, const tensor_t *t) {
  return matrix(s, t, false);
}

static build_t image_between(sketch_t *s, const tensor_t *like) {
  return sketch_between(s, like->dim);
}

// What follows the product `from`: of matrices, or of images.
static void finish(sketch_t *s, describe_t describe, describe_t between,
                   build_t from, const linear_t *l, const tensor_t *add,
                   const tensor_t *h, const tensor_t *y) {
  build_t to = describe(s, h ? h : y);
  build_t sum = add ? between(s, y) : to;
  sketch_add(s, build_pointwise(CUDNN_POINTWISE_ADD, from,
                                describe(s, l->bias->at), sum));
  if (add)
    sketch_add(s,
               build_pointwise(CUDNN_POINTWISE_ADD, sum, describe(s, add), to));
  if (h)
    sketch_add(s, build_pointwise(CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, to,
                                  NULL, describe(s, y)));
}

void linear_forward(model_t *m, const tokens_t *t, const linear_t *l,
                    const tensor_t *x, const tensor_t *add, const tensor_t *h,
                    const tensor_t *y) {
  sketch_t s = {0};
  tensor_t in_place; // the sketch refers to it until its end
  if (!t->cublas) {
    build_t of = matrix(&s, x, false), by = matrix(&s, l->w->at, false);
    build_t from = matrix_between(&s, y);
    sketch_add(&s, build_product(of, by, from));
    finish(&s, as_matrix, matrix_between, from, l, add, h, y);
  } else {
    in_place = tensor_again(h ? h : y);
    product_add(m, t, x, false, l->w->at, false, &in_place);
    build_t from = sketch_tensor(&s, &in_place);
    finish(&s, sketch_tensor, image_between, from, l, add, h, y);
  }
  model_end(m, &s);
}

// dx of the product `from`.
static void finish_back(sketch_t *s, describe_t describe, build_t from,
                        const tensor_t *add, const tensor_t *h,
                        const tensor_t *dx) {
  if (add)
    sketch_add(s, build_pointwise(CUDNN_POINTWISE_ADD, from, describe(s, add),
                                  describe(s, dx)));
  if (h)
    sketch_add(s, build_pointwise_back(CUDNN_POINTWISE_GELU_APPROX_TANH_BWD,
                                       from, describe(s, h), describe(s, dx)));
}

void linear_backward(model_t *m, const tokens_t *t, const linear_t *l,
                     const tensor_t *x, const tensor_t *dy, const tensor_t *add,
                     const tensor_t *h, const tensor_t *dx) {
  sketch_t s = {0};
  CHECK(add && h);
  model_sum(m, dy, l->bias->grad);
  if (!t->cublas) {
    build_t of = matrix(&s, x, true), by = matrix(&s, dy, false);
    sketch_add(&s, build_product(of, by, matrix(&s, l->w->grad, false)));
    model_end(m, &s);
    of = matrix(&s, dy, false), by = matrix(&s, l->w->at, true);
    build_t from = add || h ? matrix_between(&s, dx) : matrix(&s, dx, false);
    sketch_add(&s, build_product(of, by, from));
    finish_back(&s, as_matrix, from, add, h, dx);
    model_end(m, &s);
    return;
  }
  tensor_t in_place = tensor_again(dx);
  product_add(m, t, x, true, dy, false, l->w->grad);
  product_add(m, t, dy, false, l->w->at, true, &in_place);
  if (!add && !h)
    return;
  finish_back(&s, sketch_tensor, sketch_tensor(&s, &in_place), add, h, dx);
  model_end(m, &s);
}

// ---- layer norms -----------------------------------------------------------

// As cudnn-frontend's programs have it: each token is a sample of its own.
static build_t samples(sketch_t *s, const tensor_t *t) {
  const int64_t columns = t->dim[1];
  const int64_t dim[] = {tokens_of(t), columns, 1, 1},
                stride[] = {columns, 1, columns, columns};
  return sketch_strided(s, t, BUILD_DIMS, dim, stride);
}

norm_t norm_make(model_t *m, const tensor_t *x) {
  tensor_t *mean =
      model_tensor(m, CUDNN_DATA_FLOAT, x->dim[0], 1, x->dim[2], x->dim[3]);
  return (norm_t){.scale = model_constants(m, x->dim[1], 1),
                  .bias = model_constants(m, x->dim[1], 0),
                  .mean = mean,
                  .inverse = model_like(m, mean),
                  .epsilon = model_number(m, 1e-5F)};
}

void norm_forward(model_t *m, const norm_t *n, const tensor_t *x,
                  const tensor_t *y) {
  sketch_t s = {0};
  build_t op = build_create(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  cudnnBackendNormMode_t mode = CUDNN_LAYER_NORM;
  cudnnBackendNormFwdPhase_t phase = CUDNN_NORM_FWD_TRAINING;
  BUILD_SET(op, OPERATION_NORM_FWD_MODE, NORM_MODE, 1, &mode);
  BUILD_SET(op, OPERATION_NORM_FWD_PHASE, NORM_FWD_PHASE, 1, &phase);
  BUILD_GIVE(op, OPERATION_NORM_FWD_XDESC, samples(&s, x));
  BUILD_GIVE(op, OPERATION_NORM_FWD_SCALE_DESC, samples(&s, n->scale->at));
  BUILD_GIVE(op, OPERATION_NORM_FWD_BIAS_DESC, samples(&s, n->bias->at));
  BUILD_GIVE(op, OPERATION_NORM_FWD_EPSILON_DESC,
             sketch_tensor(&s, n->epsilon));
  BUILD_GIVE(op, OPERATION_NORM_FWD_YDESC, samples(&s, y));
  BUILD_GIVE(op, OPERATION_NORM_FWD_MEAN_DESC, samples(&s, n->mean));
  BUILD_GIVE(op, OPERATION_NORM_FWD_INV_VARIANCE_DESC, samples(&s, n->inverse));
  CHECK(cudnnBackendFinalize(op));
  sketch_add(&s, op);
  model_end(m, &s);
}

void norm_backward(model_t *m, const norm_t *n, const tensor_t *x,
                   const tensor_t *dy, const tensor_t *dx) {
  sketch_t s = {0};
  build_t op = build_create(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
  cudnnBackendNormMode_t mode = CUDNN_LAYER_NORM;
  BUILD_SET(op, OPERATION_NORM_BWD_MODE, NORM_MODE, 1, &mode);
  BUILD_GIVE(op, OPERATION_NORM_BWD_XDESC, samples(&s, x));
  BUILD_GIVE(op, OPERATION_NORM_BWD_DYDESC, samples(&s, dy));
  BUILD_GIVE(op, OPERATION_NORM_BWD_SCALE_DESC, samples(&s, n->scale->at));
  BUILD_GIVE(op, OPERATION_NORM_BWD_MEAN_DESC, samples(&s, n->mean));
  BUILD_GIVE(op, OPERATION_NORM_BWD_INV_VARIANCE_DESC, samples(&s, n->inverse));
  BUILD_GIVE(op, OPERATION_NORM_BWD_DSCALE_DESC, samples(&s, n->scale->grad));
  BUILD_GIVE(op, OPERATION_NORM_BWD_DBIAS_DESC, samples(&s, n->bias->grad));
  BUILD_GIVE(op, OPERATION_NORM_BWD_DXDESC, samples(&s, dx));
  CHECK(cudnnBackendFinalize(op));
  sketch_add(&s, op);
  model_end(m, &s);
}
