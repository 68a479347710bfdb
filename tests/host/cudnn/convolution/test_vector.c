// SPDX-License-Identifier: Apache-2.0
// Tensors with channels in vectors of 4 or 32: transforms, convolutions with
// scaling and saturation, reordered filters and pooling, against loops over
// integers.
#include <cudnn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

static cudnnHandle_t handle;

/* N C H W of values as doubles; `vector` 1: plain. */
typedef struct {
  cudnnDataType_t type;
  int vector, n, c, h, w;
  cudnnTensorDescriptor_t desc;
  size_t bytes;
  void *device;
  double *value;
} block_t;

static cudnnDataType_t scalar_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_INT8x32
             ? CUDNN_DATA_INT8
         : type == CUDNN_DATA_UINT8x4 ? CUDNN_DATA_UINT8
                                      : type;
}

static int vector_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_INT8x32                                ? 32
         : type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_UINT8x4 ? 4
                                                                   : 1;
}

static int count(const block_t *b) {
  return b->n * b->c * b->h * b->w;
}

static int place(const block_t *b, int n, int c, int hw) {
  int v = b->vector;
  return ((n * (b->c / v) + c / v) * b->h * b->w + hw) * v + c % v;
}

/* Between `value`, in the order N C H W, and memory. */
static void move(block_t *b, bool up) {
  size_t unit = b->type == CUDNN_DATA_FLOAT ? 4 : 1;
  char *room = malloc(b->bytes);
  OK(cudaMemcpy(room, b->device, b->bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < count(b); i++) {
    int hw = i % (b->h * b->w), c = i / (b->h * b->w) % b->c;
    char *at = room + (size_t)place(b, i / (b->h * b->w) / b->c, c, hw) * unit;
    switch ((int)scalar_of(b->type)) {
    case CUDNN_DATA_INT8:
      if (up)
        *(int8_t *)at = (int8_t)b->value[i];
      b->value[i] = *(int8_t *)at;
      break;
    case CUDNN_DATA_UINT8:
      if (up)
        *(uint8_t *)at = (uint8_t)b->value[i];
      b->value[i] = *(uint8_t *)at;
      break;
    default:
      if (up)
        *(float *)at = (float)b->value[i];
      b->value[i] = (double)*(float *)at;
    }
  }
  if (up)
    OK(cudaMemcpy(b->device, room, b->bytes, cudaMemcpyHostToDevice));
  free(room);
}

static void create(block_t *b, cudnnDataType_t type, int n, int c, int h,
                   int w) {
  *b = (block_t){
      .type = type, .vector = vector_of(type), .n = n, .c = c, .h = h, .w = w};
  OK(cudnnCreateTensorDescriptor(&b->desc));
  OK(cudnnSetTensor4dDescriptor(
      b->desc, b->vector > 1 ? CUDNN_TENSOR_NCHW_VECT_C : CUDNN_TENSOR_NCHW,
      type, n, c, h, w));
  OK(cudnnGetTensorSizeInBytes(b->desc, &b->bytes));
  ck_assert_uint_eq(b->bytes,
                    (size_t)count(b) * (type == CUDNN_DATA_FLOAT ? 4 : 1));
  OK(cudaMalloc(&b->device, b->bytes));
  b->value = malloc((size_t)count(b) * sizeof *b->value);
  for (int i = 0; i < count(b); i++)
    b->value[i] = case_range(scalar_of(type) == CUDNN_DATA_UINT8 ? 0 : -9, 9);
  move(b, true);
}

static void destroy(block_t *b) {
  OK(cudnnDestroyTensorDescriptor(b->desc));
  OK(cudaFree(b->device));
  free(b->value);
}

static double rounded(const block_t *b, double value) {
  double low = scalar_of(b->type) == CUDNN_DATA_UINT8 ? 0 : -128;
  if (b->type == CUDNN_DATA_FLOAT)
    return (double)(float)value;
  return fmin(fmax(nearbyint(value), low), low + 255);
}

static void check(block_t *b, const double *want, const char *what) {
  move(b, false);
  for (int i = 0; i < count(b); i++)
    ck_assert_msg(b->value[i] == want[i], "%s: value %d is %g, not %g", what, i,
                  b->value[i], want[i]);
}

static const cudnnDataType_t kinds[] = {CUDNN_DATA_INT8x4, CUDNN_DATA_UINT8x4,
                                        CUDNN_DATA_INT8x32};

START_TEST(transforms_reach_vectors_and_come_back) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 30; i++) {
    case_seed((uint64_t)i);
    cudnnDataType_t type = kinds[i % 3];
    int c = vector_of(type) * case_range(1, 3), h = case_range(1, 4);
    block_t plain, vect, back;
    create(&plain, scalar_of(type), 2, c, h, 3);
    create(&vect, type, 2, c, h, 3);
    create(&back, scalar_of(type), 2, c, h, 3);
    double *want = malloc((size_t)count(&vect) * sizeof *want);
    float alpha = 2, beta = 3, one = 1, zero = 0;
    for (int j = 0; j < count(&vect); j++)
      want[j] = rounded(&vect, 2 * plain.value[j] + 3 * vect.value[j]);
    bool there = type != CUDNN_DATA_INT8x32; /* as measured on a GPU */
    IS(cudnnTransformTensor(handle, &alpha, plain.desc, plain.device, &beta,
                            vect.desc, vect.device),
       there ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM);
    if (there) {
      check(&vect, want, "to vectors");
      OK(cudnnTransformTensor(handle, &one, vect.desc, vect.device, &zero,
                              back.desc, back.device));
      check(&back, want, "from vectors");
      block_t real;
      create(&real, CUDNN_DATA_FLOAT, 2, c, h, 3);
      alpha = 0.3F;
      for (int j = 0; j < count(&vect); j++)
        want[j] = rounded(&vect, (double)(float)((double)alpha * real.value[j] +
                                                 3 * want[j]));
      OK(cudnnTransformTensor(handle, &alpha, real.desc, real.device, &beta,
                              vect.desc, vect.device));
      check(&vect, want, "from floats");
      destroy(&real);
      create(&real,
             type == CUDNN_DATA_INT8x4 ? CUDNN_DATA_UINT8 : CUDNN_DATA_INT8, 2,
             c, h, 3);
      IS(cudnnTransformTensor(handle, &one, vect.desc, vect.device, &zero,
                              real.desc, real.device),
         CUDNN_STATUS_NOT_SUPPORTED);
      destroy(&real);
    }
    free(want);
    destroy(&plain);
    destroy(&vect);
    destroy(&back);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

typedef struct {
  block_t x, w, y, z; /* w: as a block of K x C x R x S */
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  int pad, stride;
} conv_t;

static void conv_create(conv_t *c, cudnnDataType_t in, cudnnDataType_t out,
                        int k) {
  int vector = vector_of(in), window = case_range(1, 3);
  c->pad = case_range(0, 1);
  c->stride = case_range(1, 2);
  int h = case_range(window, 6), width = case_range(window, 6);
  create(&c->x, in, case_range(1, 2), vector * case_range(1, 2), h, width);
  create(&c->w, in == CUDNN_DATA_UINT8x4 ? CUDNN_DATA_INT8x4 : in, k, c->x.c,
         window, window);
  OK(cudnnCreateFilterDescriptor(&c->filter));
  OK(cudnnSetFilter4dDescriptor(c->filter, c->w.type, CUDNN_TENSOR_NCHW_VECT_C,
                                k, c->x.c, window, window));
  OK(cudnnCreateConvolutionDescriptor(&c->conv));
  OK(cudnnSetConvolution2dDescriptor(c->conv, c->pad, c->pad, c->stride,
                                     c->stride, 1, 1, CUDNN_CROSS_CORRELATION,
                                     CUDNN_DATA_INT32));
  int dim[4];
  OK(cudnnGetConvolution2dForwardOutputDim(c->conv, c->x.desc, c->filter, dim,
                                           dim + 1, dim + 2, dim + 3));
  create(&c->y, out, dim[0], dim[1], dim[2], dim[3]);
  create(&c->z, out, dim[0], dim[1], dim[2], dim[3]);
}

static void conv_destroy(conv_t *c) {
  destroy(&c->x);
  destroy(&c->w);
  destroy(&c->y);
  destroy(&c->z);
  OK(cudnnDestroyFilterDescriptor(c->filter));
  OK(cudnnDestroyConvolutionDescriptor(c->conv));
}

/* The sums, before scaling. */
static double *sums(const conv_t *c) {
  const block_t *x = &c->x, *w = &c->w, *y = &c->y;
  double *to = calloc((size_t)count(y), sizeof *to);
  for (int i = 0; i < count(y); i++) {
    int ow = i % y->w, oh = i / y->w % y->h, k = i / y->w / y->h % y->c;
    int n = i / y->w / y->h / y->c;
    for (int ch = 0; ch < x->c; ch++)
      for (int r = 0; r < w->h; r++)
        for (int s = 0; s < w->w; s++) {
          int ih = oh * c->stride - c->pad + r,
              iw = ow * c->stride - c->pad + s;
          if (ih >= 0 && ih < x->h && iw >= 0 && iw < x->w)
            to[i] += x->value[((n * x->c + ch) * x->h + ih) * x->w + iw] *
                     w->value[((k * x->c + ch) * w->h + r) * w->w + s];
        }
  }
  return to;
}

static cudnnStatus_t run(conv_t *c, cudnnConvolutionFwdAlgo_t algo, float alpha,
                         float beta, const void *w) {
  return cudnnConvolutionForward(handle, &alpha, c->x.desc, c->x.device,
                                 c->filter, w, c->conv, algo, NULL, 0, &beta,
                                 c->y.desc, c->y.device);
}

static const cudnnConvolutionFwdAlgo_t the_algo =
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;

START_TEST(convolutions_of_vectors_equal_the_loop) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 60; i++) {
    case_seed((uint64_t)i + 100);
    cudnnDataType_t in = kinds[i % 3], out = in;
    if (i % 2 && in != CUDNN_DATA_INT8x32)
      out = CUDNN_DATA_FLOAT;
    else if (in == CUDNN_DATA_UINT8x4 && i % 4)
      out = CUDNN_DATA_INT8x4;
    conv_t c;
    conv_create(&c, in, out, vector_of(in) * case_range(1, 2));
    double *want = sums(&c);
    for (int j = 0; j < count(&c.y); j++)
      want[j] = rounded(&c.y, 0.25 * want[j] + 2 * c.y.value[j]);
    OK(run(&c, the_algo, 0.25F, 2, c.w.device));
    check(&c.y, want, "convolution");
    size_t bytes = 1;
    OK(run(&c, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 1, 0, c.w.device));
    IS(run(&c, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 1, 0, c.w.device),
       CUDNN_STATUS_NOT_SUPPORTED);
    OK(cudnnGetConvolutionForwardWorkspaceSize(
        handle, c.x.desc, c.filter, c.conv, c.y.desc, the_algo, &bytes));
    OK(cudnnSetConvolutionGroupCount(c.conv, 2));
    ck_assert_int_ne(run(&c, the_algo, 1, 0, c.w.device), 0);
    free(want);
    conv_destroy(&c);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(vectors_take_bias_and_activation) {
  OK(cudnnCreate(&handle));
  cudnnActivationDescriptor_t relu;
  OK(cudnnCreateActivationDescriptor(&relu));
  OK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, 0, 0));
  for (int i = 0; i < 30; i++) {
    case_seed((uint64_t)i + 300);
    cudnnDataType_t in = kinds[i % 3];
    conv_t c;
    block_t bias;
    conv_create(&c, in, in, vector_of(in) * case_range(1, 2));
    create(&bias, CUDNN_DATA_FLOAT, 1, c.y.c, 1, 1);
    double *want = sums(&c);
    for (int j = 0; j < count(&c.y); j++) {
      double v = 0.25 * want[j] + 2 * c.z.value[j] +
                 bias.value[j / (c.y.h * c.y.w) % c.y.c];
      want[j] = rounded(&c.y, fmax(v, 0));
    }
    float alpha = 0.25F, beta = 2;
    OK(cudnnConvolutionBiasActivationForward(
        handle, &alpha, c.x.desc, c.x.device, c.filter, c.w.device, c.conv,
        the_algo, NULL, 0, &beta, c.z.desc, c.z.device, bias.desc, bias.device,
        relu, c.y.desc, c.y.device));
    check(&c.y, want, "fused convolution");
    free(want);
    destroy(&bias);
    conv_destroy(&c);
  }
  OK(cudnnDestroyActivationDescriptor(relu));
  OK(cudnnDestroy(handle));
}
END_TEST

/* The result does not depend on who reorders the filter. The order itself is
 * checked, because some programs reorder by themselves. */
START_TEST(reordered_filters_give_the_same) {
  OK(cudnnCreate(&handle));
  cudnnActivationDescriptor_t identity;
  OK(cudnnCreateActivationDescriptor(&identity));
  OK(cudnnSetActivationDescriptor(identity, CUDNN_ACTIVATION_IDENTITY, 0, 0));
  for (int i = 0; i < 10; i++) {
    case_seed((uint64_t)i + 500);
    conv_t c;
    block_t bias, bias2;
    conv_create(&c, CUDNN_DATA_INT8x32, CUDNN_DATA_INT8x32,
                32 * case_range(1, 2));
    create(&bias, CUDNN_DATA_FLOAT, 1, c.y.c, 1, 1);
    create(&bias2, CUDNN_DATA_FLOAT, 1, c.y.c, 1, 1);
    void *w2;
    OK(cudaMalloc(&w2, c.w.bytes));
    OK(cudnnReorderFilterAndBias(handle, c.filter, CUDNN_DEFAULT_REORDER,
                                 c.w.device, w2, 1, bias.device, bias2.device));
    int8_t *have = malloc(c.w.bytes);
    OK(cudaMemcpy(have, w2, c.w.bytes, cudaMemcpyDeviceToHost));
    /* I/32, H, W, O/8, 2, 8, 4, 4 of O/8 4 2 and I/32 8 4. */
    int at = 0, points = c.w.h * c.w.w;
    for (int i32 = 0; i32 < c.w.c / 32; i32++)
      for (int p = 0; p < points; p++)
        for (int o8 = 0; o8 < c.w.n / 8; o8++)
          for (int o2 = 0; o2 < 2; o2++)
            for (int i8 = 0; i8 < 8; i8++)
              for (int o4 = 0; o4 < 4; o4++)
                for (int i4 = 0; i4 < 4; i4++) {
                  int o = o8 * 8 + o4 * 2 + o2, in = i32 * 32 + i8 * 4 + i4;
                  double is = c.w.value[(o * c.w.c + in) * points + p];
                  ck_assert_int_eq(have[at++], (int)is);
                }
    double *want = sums(&c);
    for (int j = 0; j < count(&c.y); j++)
      want[j] = rounded(&c.y, 0.25 * want[j] +
                                  bias.value[j / (c.y.h * c.y.w) % c.y.c]);
    float alpha = 0.25F, zero = 0;
    OK(cudnnSetConvolutionReorderType(c.conv, CUDNN_NO_REORDER));
    OK(cudnnConvolutionBiasActivationForward(
        handle, &alpha, c.x.desc, c.x.device, c.filter, w2, c.conv, the_algo,
        NULL, 0, &zero, c.y.desc, c.y.device, bias2.desc, bias2.device,
        identity, c.y.desc, c.y.device));
    check(&c.y, want, "reordered convolution");
    IS(cudnnReorderFilterAndBias(handle, c.filter, CUDNN_DEFAULT_REORDER,
                                 c.w.value, w2, 0, NULL, NULL),
       CUDNN_STATUS_EXECUTION_FAILED);
    free(want);
    free(have);
    OK(cudaFree(w2));
    destroy(&bias);
    destroy(&bias2);
    conv_destroy(&c);
  }
  OK(cudnnDestroyActivationDescriptor(identity));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(vectors_are_pooled) {
  OK(cudnnCreate(&handle));
  cudnnPoolingDescriptor_t pool;
  OK(cudnnCreatePoolingDescriptor(&pool));
  OK(cudnnSetPooling2dDescriptor(pool, CUDNN_POOLING_MAX, 0, 2, 2, 0, 0, 2, 2));
  for (int i = 0; i < 12; i++) {
    case_seed((uint64_t)i + 700);
    cudnnDataType_t type = kinds[i % 3];
    block_t x, y;
    create(&x, type, 2, vector_of(type) * 2, 6, 4);
    create(&y, type, 2, vector_of(type) * 2, 3, 2);
    double *want = malloc((size_t)count(&y) * sizeof *want);
    for (int j = 0; j < count(&y); j++) {
      const double *from =
          x.value + j / 6 * 24 + j % 6 / 2 * 2 * x.w + j % 2 * 2;
      want[j] = fmax(fmax(from[0], from[1]), fmax(from[x.w], from[x.w + 1]));
    }
    float one = 1, zero = 0;
    OK(cudnnPoolingForward(handle, pool, &one, x.desc, x.device, &zero, y.desc,
                           y.device));
    check(&y, want, "pooling");
    IS(cudnnSoftmaxForward(handle, 0, 0, &one, x.desc, x.device, &zero, x.desc,
                           x.device),
       CUDNN_STATUS_NOT_SUPPORTED);
    free(want);
    destroy(&x);
    destroy(&y);
  }
  OK(cudnnDestroyPoolingDescriptor(pool));
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn vectors");
  TCase *cases = tcase_create("vectors");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, transforms_reach_vectors_and_come_back);
  tcase_add_test(cases, convolutions_of_vectors_equal_the_loop);
  tcase_add_test(cases, vectors_take_bias_and_activation);
  tcase_add_test(cases, reordered_filters_give_the_same);
  tcase_add_test(cases, vectors_are_pooled);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
