/* SPDX-License-Identifier: Apache-2.0 */
/* Runs convolutions with cuDNN on a piece of their input, and writes its piece
 * of their output.
 *
 * usage: convcase CASES OUT RANK
 *        CASES one case per line (case.h); RANK whose piece, -1 for all of it.
 *        OUT gets, per case, int32 status and extents [5], then the floats in
 *        the order N, C, D, H, W. Status 0 is good, then cuDNN's numbers; a
 *        negative status is a fault of memory (see below). It ends with the
 *        first case that fails. */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

/* What the gaps between lines hold before and must hold after. */
static const float gap_mark = 12345;
enum { WROTE_GAP = -1, NOT_REPEATABLE = -2, CUDA_FAILED = -3 };

#define TRY(call)                                                              \
  do {                                                                         \
    int status_ = (int)(call);                                                 \
    if (status_ != 0) {                                                        \
      fprintf(stderr, "convcase: %s: %s\n", #call,                             \
              cudnnGetErrorString((cudnnStatus_t)status_));                    \
      return status_;                                                          \
    }                                                                          \
  } while (0)

#define CUDA(call)                                                             \
  do {                                                                         \
    cudaError_t status_ = (call);                                              \
    if (status_ != cudaSuccess) {                                              \
      fprintf(stderr, "convcase: %s: %s\n", #call,                             \
              cudaGetErrorString(status_));                                    \
      return CUDA_FAILED;                                                      \
    }                                                                          \
  } while (0)

/* A tensor's memory on host and device. */
typedef struct {
  case_box_t box;
  int size[CASE_DIMS];
  int64_t stride[CASE_DIMS];
  int64_t span;
  float *host, *device;
} array_t;

/* Made once, set anew for each case, as a program with changing inputs does. */
static struct {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x, y, bias;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  cudnnActivationDescriptor_t act;
} g;

/* Calls `visit` with each index of the box, and its offset in memory. */
#define FOR_EACH(a, at, offset)                                                \
  for (int64_t left_ = case_count((a)->box), offset = 0; left_ > 0;            \
       left_--, offset = next_index((a), at))

static int64_t next_index(const array_t *a, int at[CASE_DIMS]) {
  int64_t offset = 0;
  for (int d = CASE_DIMS - 1; d >= 0; d--) {
    if (++at[d] < a->box.extent[d])
      break;
    at[d] = 0;
  }
  for (int d = 0; d < CASE_DIMS; d++)
    offset += at[d] * a->stride[d];
  return offset;
}

static int is_spread(const case_t *c, case_tensor_t tensor) {
  return c->spread > 0 &&
         (tensor == CASE_X ||
          (c->spread > 1 && (tensor == CASE_Y || tensor == CASE_Z)));
}

static int spread(const case_t *c, case_tensor_t tensor,
                  cudnnTensorDescriptor_t desc, array_t *a) {
  const float two = 2;
  if (is_spread(c, tensor))
    TRY(cudnnScaleTensor(g.cudnn, desc, a->device, &two));
  return 0;
}

static void fill(const case_t *c, case_tensor_t tensor, array_t *a) {
  for (int64_t i = 0; i < a->span; i++)
    a->host[i] = gap_mark;
  int at[CASE_DIMS] = {0};
  FOR_EACH(a, at, offset) {
    int global[CASE_DIMS];
    for (int d = 0; d < CASE_DIMS; d++)
      global[d] = a->box.first[d] + at[d];
    a->host[offset] = (is_spread(c, tensor) ? 0.5f : 1) *
                      case_value(c, tensor, global, a->size);
  }
}

static int array_init(const case_t *c, case_tensor_t tensor, case_box_t box,
                      case_box_t whole, int gap, array_t *a) {
  a->box = box;
  memcpy(a->size, whole.extent, sizeof a->size);
  a->span = case_strides(c, box.extent, gap, a->stride);
  a->host = malloc((size_t)a->span * sizeof(float));
  if (!a->host)
    return CUDA_FAILED;
  CUDA(cudaMalloc((void **)&a->device, (size_t)a->span * sizeof(float)));
  fill(c, tensor, a);
  CUDA(cudaMemcpy(a->device, a->host, (size_t)a->span * sizeof(float),
                  cudaMemcpyHostToDevice));
  return 0;
}

static void array_free(array_t *a) {
  free(a->host);
  (void)cudaFree(a->device);
  memset(a, 0, sizeof *a);
}

/* Five dimensions to the descriptor's four: D goes where it is not used. */
static int squeeze(const case_t *c, const int in[CASE_DIMS], int *out) {
  int count = 0;
  for (int d = 0; d < CASE_DIMS; d++)
    if (d != 2 || c->rank == 5)
      out[count++] = in[d];
  return count;
}

static int set_tensor(const case_t *c, const array_t *a,
                      cudnnTensorDescriptor_t desc) {
  int dims[CASE_DIMS], strides[CASE_DIMS], wide[CASE_DIMS];
  for (int d = 0; d < CASE_DIMS; d++)
    wide[d] = (int)a->stride[d];
  int count = squeeze(c, a->box.extent, dims);
  squeeze(c, wide, strides);
  cudnnTensorFormat_t format = c->nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  if (c->gap)
    TRY(cudnnSetTensorNdDescriptor(desc, CUDNN_DATA_FLOAT, count, dims,
                                   strides));
  else if (count == 4)
    TRY(cudnnSetTensor4dDescriptor(desc, format, CUDNN_DATA_FLOAT, dims[0],
                                   dims[1], dims[2], dims[3]));
  else
    TRY(cudnnSetTensorNdDescriptorEx(desc, format, CUDNN_DATA_FLOAT, count,
                                     dims));
  return 0;
}

static int set_convolution(const case_t *c) {
  int first = c->rank == 5 ? 0 : 1;
  int filter[CASE_DIMS] = {c->outputs, c->size[1] / c->groups, c->kernel[0],
                           c->kernel[1], c->kernel[2]};
  int dims[CASE_DIMS];
  int count = squeeze(c, filter, dims);
  TRY(cudnnSetFilterNdDescriptor(
      g.w, CUDNN_DATA_FLOAT, c->nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
      count, dims));
  TRY(cudnnSetConvolutionNdDescriptor(
      g.conv, count - 2, c->pad + first, c->stride + first, c->dilation + first,
      c->flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION,
      CUDNN_DATA_FLOAT));
  TRY(cudnnSetConvolutionGroupCount(g.conv, c->groups));
  return 0;
}

/* The extents of y: cuDNN's answer, or what a program works out for itself
 * from its own input. */
static int output_extents(const case_t *c, const case_box_t *x,
                          int extent[CASE_DIMS]) {
  int dims[CASE_DIMS];
  if (c->own_sizes) {
    extent[0] = x->extent[0];
    extent[1] = c->outputs;
    for (int i = 0; i < 3; i++)
      extent[2 + i] = (x->extent[2 + i] + 2 * c->pad[i] -
                       (c->dilation[i] * (c->kernel[i] - 1) + 1)) /
                          c->stride[i] +
                      1;
    return 0;
  }
  TRY(cudnnGetConvolutionNdForwardOutputDim(g.conv, g.x, g.w, c->rank, dims));
  extent[2] = 1;
  for (int d = 0, i = 0; d < CASE_DIMS; d++)
    if (d != 2 || c->rank == 5)
      extent[d] = dims[i++];
  return 0;
}

static int call(const case_t *c, cudnnConvolutionFwdAlgo_t algo, void *space,
                size_t bytes, const array_t *x, const array_t *w,
                const array_t *bias, const array_t *z, const array_t *y) {
  if (c->op == CASE_CONV)
    TRY(cudnnConvolutionForward(g.cudnn, &c->alpha, g.x, x->device, g.w,
                                w->device, g.conv, algo, space, bytes, &c->beta,
                                g.y, y->device));
  else
    TRY(cudnnConvolutionBiasActivationForward(
        g.cudnn, &c->alpha, g.x, x->device, g.w, w->device, g.conv, algo, space,
        bytes, &c->beta, g.y, c->z_is_y ? y->device : z->device, g.bias,
        bias->device, g.act, g.y, y->device));
  return 0;
}

/* Copies y back; finds writes into its gaps. */
static int collect(const array_t *y, float *out) {
  int at[CASE_DIMS] = {0}, status = 0;
  int64_t count = 0;
  CUDA(cudaMemcpy(y->host, y->device, (size_t)y->span * sizeof(float),
                  cudaMemcpyDeviceToHost));
  FOR_EACH(y, at, offset) {
    out[count++] = y->host[offset];
    y->host[offset] = gap_mark;
  }
  for (int64_t i = 0; i < y->span; i++)
    if (y->host[i] != gap_mark)
      status = WROTE_GAP;
  return status;
}

/* All calls of a case on memory that is there; `out` gets y's values. */
static int run_calls(const case_t *c, array_t *x, array_t *w, array_t *bias,
                     array_t *z, array_t *y, float *out) {
  cudnnConvolutionFwdAlgoPerf_t found;
  int count, status = 0;
  size_t bytes;
  TRY(cudnnGetConvolutionForwardAlgorithm_v7(g.cudnn, g.x, g.w, g.conv, g.y, 1,
                                             &count, &found));
  /* The only algorithm that takes the identity as activation. */
  if (c->op == CASE_BIAS_NONE)
    found.algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  TRY(cudnnGetConvolutionForwardWorkspaceSize(g.cudnn, g.x, g.w, g.conv, g.y,
                                              found.algo, &bytes));
  void *space = NULL;
  CUDA(cudaMalloc(&space, bytes ? bytes : 1));
  int64_t values = case_count(y->box);
  float *again = malloc((size_t)values * sizeof(float));
  for (int i = 0; again && i < c->repeat && status == 0; i++) {
    fill(c, CASE_Y, y);
    CUDA(cudaMemcpy(y->device, y->host, (size_t)y->span * sizeof(float),
                    cudaMemcpyHostToDevice));
    TRY(spread(c, CASE_Y, g.y, y));
    status = call(c, found.algo, space, bytes, x, w, bias, z, y);
    if (status == 0)
      status = collect(y, i == 0 ? out : again);
    if (status == 0 && i > 0 &&
        memcmp(out, again, (size_t)values * sizeof(float)) != 0)
      status = NOT_REPEATABLE;
  }
  free(again);
  CUDA(cudaFree(space));
  return status;
}

static int run_case(const case_t *c, int rank, case_box_t *out_box,
                    float **out) {
  case_box_t wbox = {.extent = {c->outputs, c->size[1] / c->groups,
                                c->kernel[0], c->kernel[1], c->kernel[2]}};
  case_box_t bbox = {.extent = {1, c->outputs, 1, 1, 1}};
  case_box_t ybox = case_y(c, rank);
  array_t x = {0}, w = {0}, bias = {0}, z = {0}, y = {0};
  int status =
      array_init(c, CASE_X, case_x(c, rank), case_x(c, -1), c->gap, &x);
  if (status == 0)
    status = set_tensor(c, &x, g.x);
  if (status == 0)
    status = spread(c, CASE_X, g.x, &x);
  if (status == 0)
    status = set_convolution(c);
  if (status == 0)
    status = output_extents(c, &x.box, ybox.extent);
  if (status == 0)
    status = array_init(c, CASE_W, wbox, wbox, 0, &w);
  if (status == 0)
    status = array_init(c, CASE_BIAS, bbox, bbox, 0, &bias);
  if (status == 0)
    status = array_init(c, CASE_Z, ybox, case_y(c, -1), c->gap, &z);
  if (status == 0)
    status = array_init(c, CASE_Y, ybox, case_y(c, -1), c->gap, &y);
  if (status == 0)
    status = set_tensor(c, &y, g.y);
  if (status == 0)
    status = spread(c, CASE_Z, g.y, &z);
  if (status == 0) {
    case_t dense = *c;
    dense.gap = 0;
    status = set_tensor(&dense, &bias, g.bias);
  }
  if (status == 0)
    status = (int)cudnnSetActivationDescriptor(g.act,
                                               c->op == CASE_BIAS_RELU
                                                   ? CUDNN_ACTIVATION_RELU
                                                   : CUDNN_ACTIVATION_IDENTITY,
                                               CUDNN_NOT_PROPAGATE_NAN, 0);
  if (status == 0) {
    *out_box = ybox;
    *out = calloc((size_t)case_count(ybox), sizeof **out);
    status = *out ? run_calls(c, &x, &w, &bias, &z, &y, *out) : CUDA_FAILED;
  }
  array_free(&x);
  array_free(&w);
  array_free(&bias);
  array_free(&z);
  array_free(&y);
  return status;
}

static int create_all(void) {
  TRY(cudnnCreate(&g.cudnn));
  TRY(cudnnCreateTensorDescriptor(&g.x));
  TRY(cudnnCreateTensorDescriptor(&g.y));
  TRY(cudnnCreateTensorDescriptor(&g.bias));
  TRY(cudnnCreateFilterDescriptor(&g.w));
  TRY(cudnnCreateConvolutionDescriptor(&g.conv));
  TRY(cudnnCreateActivationDescriptor(&g.act));
  return 0;
}

static void destroy_all(void) {
  (void)cudnnDestroyTensorDescriptor(g.x);
  (void)cudnnDestroyTensorDescriptor(g.y);
  (void)cudnnDestroyTensorDescriptor(g.bias);
  (void)cudnnDestroyFilterDescriptor(g.w);
  (void)cudnnDestroyConvolutionDescriptor(g.conv);
  (void)cudnnDestroyActivationDescriptor(g.act);
  (void)cudnnDestroy(g.cudnn);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: convcase CASES OUT RANK\n");
    return 2;
  }
  FILE *cases = fopen(argv[1], "r"), *out = fopen(argv[2], "wb");
  if (!cases || !out) {
    fprintf(stderr, "convcase: cannot open %s\n", cases ? argv[2] : argv[1]);
    return 2;
  }
  if (create_all() != 0)
    return EXIT_FAILURE;
  int rank = atoi(argv[3]), failed = 0;
  for (char line[4096]; !failed && fgets(line, sizeof line, cases);) {
    case_t c;
    const char *wrong = case_read(line, &c);
    if (wrong) {
      fprintf(stderr, "convcase: %s is not understood\n", wrong);
      return 2;
    }
    case_box_t box = {0};
    float *values = NULL;
    int32_t status = run_case(&c, rank, &box, &values);
    fwrite(&status, sizeof status, 1, out);
    fwrite(box.extent, sizeof box.extent[0], CASE_DIMS, out);
    if (status == 0)
      fwrite(values, sizeof *values, (size_t)case_count(box), out);
    free(values);
    failed = status != 0;
  }
  destroy_all();
  fclose(cases);
  return fclose(out) == 0 && !failed ? EXIT_SUCCESS : EXIT_FAILURE;
}
