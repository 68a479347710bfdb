// SPDX-License-Identifier: Apache-2.0
// A fake cuDNN: naive gradients of convolutions, and descriptors.
#include "tests/unit/fake_conv.h"

#include <string.h>

#include "rules/conv/answers.h"
#include "src/base/vendor.h"
#include "tests/unit/harness.h"
#include "tests/unit/fake_cuda.h"

static int living;
static bool refuse_views;

void fake_conv_refuse_views(bool refuse) {
  if (refuse != refuse_views)
    sdg_conv_answers_forget();
  refuse_views = refuse;
}

int fake_conv_living(void) {
  return living;
}

static cudnnStatus_t create_tensor(cudnnTensorDescriptor_t *out) {
  *out = (cudnnTensorDescriptor_t)calloc(1, sizeof(fake_tensor_t));
  living++;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t create_conv(cudnnConvolutionDescriptor_t *out) {
  *out = (cudnnConvolutionDescriptor_t)calloc(1, sizeof(fake_conv_t));
  living++;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy(void *descriptor) {
  free(descriptor);
  living--;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_tensor(cudnnTensorDescriptor_t descriptor,
                                cudnnDataType_t type, int dims,
                                const int *extent, const int *stride) {
  (void)type;
  fake_tensor_t *t = (fake_tensor_t *)descriptor;
  t->dims = dims;
  for (int d = 0; d < dims; d++) {
    REQUIRE(extent[d] > 0);
    t->extent[d] = extent[d];
    t->stride[d] = stride[d];
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_tensor(const cudnnTensorDescriptor_t descriptor,
                                int room, cudnnDataType_t *type, int *dims,
                                int *extent, int *stride) {
  const fake_tensor_t *t = (const fake_tensor_t *)descriptor;
  REQUIRE(room >= t->dims);
  *type = CUDNN_DATA_FLOAT;
  *dims = t->dims;
  for (int d = 0; d < t->dims; d++) {
    extent[d] = t->extent[d];
    stride[d] = t->stride[d];
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_conv(cudnnConvolutionDescriptor_t descriptor,
                              int spatial, const int *pad, const int *stride,
                              const int *dilation, cudnnConvolutionMode_t mode,
                              cudnnDataType_t compute) {
  (void)mode, (void)compute;
  fake_conv_t *c = (fake_conv_t *)descriptor;
  c->spatial = spatial;
  for (int i = 0; i < spatial; i++) {
    REQUIRE(pad[i] >= 0);
    c->pad[i] = pad[i];
    c->stride[i] = stride[i];
    c->dilation[i] = dilation[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t create_filter(cudnnFilterDescriptor_t *out) {
  *out = (cudnnFilterDescriptor_t)calloc(1, sizeof(fake_filter_t));
  living++;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_filter(cudnnFilterDescriptor_t descriptor,
                                cudnnDataType_t type,
                                cudnnTensorFormat_t format, int dims,
                                const int *extent) {
  fake_filter_t *w = (fake_filter_t *)descriptor;
  REQUIRE(type == CUDNN_DATA_FLOAT && format == CUDNN_TENSOR_NCHW && dims == 4);
  for (int d = 0; d < dims; d++) {
    REQUIRE(extent[d] > 0);
    w->extent[d] = extent[d];
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_filter(const cudnnFilterDescriptor_t descriptor,
                                int room, cudnnDataType_t *type,
                                cudnnTensorFormat_t *format, int *dims,
                                int *extent) {
  REQUIRE(room >= 4);
  *type = CUDNN_DATA_FLOAT;
  *format = CUDNN_TENSOR_NCHW;
  *dims = 4;
  memcpy(extent, ((const fake_filter_t *)descriptor)->extent,
         4 * sizeof *extent);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_conv(const cudnnConvolutionDescriptor_t descriptor,
                              int room, int *spatial, int *pad, int *stride,
                              int *dilation, cudnnConvolutionMode_t *mode,
                              cudnnDataType_t *compute) {
  const fake_conv_t *c = (const fake_conv_t *)descriptor;
  REQUIRE(room >= c->spatial);
  *spatial = c->spatial;
  for (int i = 0; i < c->spatial; i++) {
    pad[i] = c->pad[i];
    stride[i] = c->stride[i];
    dilation[i] = c->dilation[i];
  }
  *mode = CUDNN_CROSS_CORRELATION;
  *compute = CUDNN_DATA_FLOAT;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_groups(cudnnConvolutionDescriptor_t conv, int *out) {
  (void)conv;
  *out = 1;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_math(cudnnConvolutionDescriptor_t conv,
                              cudnnMathType_t *out) {
  (void)conv;
  *out = CUDNN_DEFAULT_MATH;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_nothing(cudnnConvolutionDescriptor_t conv, int value) {
  (void)conv, (void)value;
  return CUDNN_STATUS_SUCCESS;
}

// ---- the convolution -------------------------------------------------------

static bool is_legal(const fake_tensor_t *x, const fake_filter_t *w,
                     const fake_conv_t *conv, const fake_tensor_t *y) {
  if (x->extent[0] != y->extent[0] || x->extent[1] != w->extent[1] ||
      y->extent[1] != w->extent[0])
    return false;
  for (int i = 0; i < 2; i++) {
    int span = conv->dilation[i] * (w->extent[i + 2] - 1) + 1;
    int room = x->extent[i + 2] + 2 * conv->pad[i] - span;
    if (room < 0 || room / conv->stride[i] + 1 != y->extent[i + 2])
      return false;
  }
  return true;
}

static bool is_view(const fake_tensor_t *t) {
  int64_t count = 1, last = 1;
  for (int d = 0; d < 4; d++) {
    count *= t->extent[d];
    last += (int64_t)(t->extent[d] - 1) * t->stride[d];
  }
  return count != last;
}

typedef struct job {
  fake_tensor_t x, y;
  fake_filter_t filter;
  fake_conv_t conv;
  float alpha, beta;
  float *x_at, *w_at, *y_at;
  bool of_filter;
} job_t;

static float *at(float *data, const fake_tensor_t *t, int n, int c, int h,
                 int w) {
  return &data[(int64_t)n * t->stride[0] + (int64_t)c * t->stride[1] +
               (int64_t)h * t->stride[2] + (int64_t)w * t->stride[3]];
}

static void scale(float *value, float by) {
  *value = by == 0 ? 0 : *value * by;
}

static void output_scale(const job_t *job) {
  const int *e = job->filter.extent;
  if (job->of_filter) {
    for (int i = 0; i < e[0] * e[1] * e[2] * e[3]; i++)
      scale(&job->w_at[i], job->beta);
    return;
  }
  for (int n = 0; n < job->x.extent[0]; n++)
    for (int c = 0; c < job->x.extent[1]; c++)
      for (int h = 0; h < job->x.extent[2]; h++)
        for (int w = 0; w < job->x.extent[3]; w++)
          scale(at(job->x_at, &job->x, n, c, h, w), job->beta);
}

// Adds every pair of an element of y and a tap.
static void pairs_add(const job_t *job, int n, int k, int oh, int ow) {
  const int *e = job->filter.extent;
  const fake_conv_t *conv = &job->conv;
  const float *y = at(job->y_at, &job->y, n, k, oh, ow);
  for (int i = 0; i < e[2]; i++)
    for (int j = 0; j < e[3]; j++) {
      int h = oh * conv->stride[0] - conv->pad[0] + i * conv->dilation[0];
      int w = ow * conv->stride[1] - conv->pad[1] + j * conv->dilation[1];
      if (h < 0 || h >= job->x.extent[2] || w < 0 || w >= job->x.extent[3])
        continue;
      for (int c = 0; c < e[1]; c++) {
        float *x = at(job->x_at, &job->x, n, c, h, w);
        float *tap = &job->w_at[((k * e[1] + c) * e[2] + i) * e[3] + j];
        if (job->of_filter)
          *tap += job->alpha * *x * *y;
        else
          *x += job->alpha * *tap * *y;
      }
    }
}

static void job_work(void *argument) {
  job_t *job = argument;
  output_scale(job);
  for (int n = 0; n < job->y.extent[0]; n++)
    for (int k = 0; k < job->y.extent[1]; k++)
      for (int h = 0; h < job->y.extent[2]; h++)
        for (int w = 0; w < job->y.extent[3]; w++)
          pairs_add(job, n, k, h, w);
  free(job);
}

static cudnnStatus_t job_add(cudnnHandle_t handle, const job_t *job) {
  if (!is_legal(&job->x, &job->filter, &job->conv, &job->y))
    return CUDNN_STATUS_BAD_PARAM;
  job_t *own = malloc(sizeof *own);
  REQUIRE(own);
  *own = *job;
  fake_cuda_enqueue((cudaStream_t)handle, job_work, own);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
backward_data(cudnnHandle_t handle, const void *alpha,
              const cudnnFilterDescriptor_t w, const void *w_data,
              const cudnnTensorDescriptor_t y, const void *y_data,
              const cudnnConvolutionDescriptor_t conv,
              cudnnConvolutionBwdDataAlgo_t algo, void *workspace, size_t bytes,
              const void *beta, const cudnnTensorDescriptor_t x, void *x_data) {
  (void)algo, (void)workspace, (void)bytes;
  job_t job = {*(const fake_tensor_t *)x,
               *(const fake_tensor_t *)y,
               *(const fake_filter_t *)w,
               *(const fake_conv_t *)conv,
               *(const float *)alpha,
               *(const float *)beta,
               x_data,
               (float *)(uintptr_t)w_data,
               (float *)(uintptr_t)y_data,
               false};
  return job_add(handle, &job);
}

static cudnnStatus_t backward_filter(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionBwdFilterAlgo_t algo, void *workspace, size_t bytes,
    const void *beta, const cudnnFilterDescriptor_t w, void *w_data) {
  (void)algo, (void)workspace, (void)bytes;
  job_t job = {*(const fake_tensor_t *)x,  *(const fake_tensor_t *)y,
               *(const fake_filter_t *)w,  *(const fake_conv_t *)conv,
               *(const float *)alpha,      *(const float *)beta,
               (float *)(uintptr_t)x_data, w_data,
               (float *)(uintptr_t)y_data, true};
  return job_add(handle, &job);
}

// ---- algorithms: one, without workspace ------------------------------------

static cudnnStatus_t taken(const cudnnTensorDescriptor_t x,
                           const cudnnFilterDescriptor_t w,
                           const cudnnConvolutionDescriptor_t conv,
                           const cudnnTensorDescriptor_t y) {
  if (!is_legal((const fake_tensor_t *)x, (const fake_filter_t *)w,
                (const fake_conv_t *)conv, (const fake_tensor_t *)y))
    return CUDNN_STATUS_BAD_PARAM;
  return refuse_views && (is_view((const fake_tensor_t *)x) ||
                          is_view((const fake_tensor_t *)y))
             ? CUDNN_STATUS_NOT_SUPPORTED
             : CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t data_workspace(cudnnHandle_t handle,
                                    const cudnnFilterDescriptor_t w,
                                    const cudnnTensorDescriptor_t y,
                                    const cudnnConvolutionDescriptor_t conv,
                                    const cudnnTensorDescriptor_t x,
                                    cudnnConvolutionBwdDataAlgo_t algo,
                                    size_t *out) {
  (void)handle, (void)algo;
  *out = 0;
  return taken(x, w, conv, y);
}

static cudnnStatus_t data_algorithm(cudnnHandle_t handle,
                                    const cudnnFilterDescriptor_t w,
                                    const cudnnTensorDescriptor_t y,
                                    const cudnnConvolutionDescriptor_t conv,
                                    const cudnnTensorDescriptor_t x, int room,
                                    int *out_count,
                                    cudnnConvolutionBwdDataAlgoPerf_t *out) {
  (void)handle, (void)room, (void)out;
  *out_count = 0;
  return taken(x, w, conv, y);
}

static cudnnStatus_t filter_workspace(cudnnHandle_t handle,
                                      const cudnnTensorDescriptor_t x,
                                      const cudnnTensorDescriptor_t y,
                                      const cudnnConvolutionDescriptor_t conv,
                                      const cudnnFilterDescriptor_t w,
                                      cudnnConvolutionBwdFilterAlgo_t algo,
                                      size_t *out) {
  (void)handle, (void)algo;
  *out = 0;
  return taken(x, w, conv, y);
}

static cudnnStatus_t
filter_algorithm(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                 const cudnnTensorDescriptor_t y,
                 const cudnnConvolutionDescriptor_t conv,
                 const cudnnFilterDescriptor_t w, int room, int *out_count,
                 cudnnConvolutionBwdFilterAlgoPerf_t *out) {
  (void)handle, (void)room, (void)out;
  *out_count = 0;
  return taken(x, w, conv, y);
}

// ---- sums ------------------------------------------------------------------

typedef struct turn {
  fake_tensor_t from_tensor, to_tensor;
  float alpha, beta;
  float *from, *to;
} turn_t;

static void turn_work(void *argument) {
  turn_t *turn = argument;
  const int *extent = turn->from_tensor.extent;
  for (int n = 0; n < extent[0]; n++)
    for (int c = 0; c < extent[1]; c++)
      for (int h = 0; h < extent[2]; h++)
        for (int w = 0; w < extent[3]; w++) {
          float *to = at(turn->to, &turn->to_tensor, n, c, h, w);
          scale(to, turn->beta);
          *to += turn->alpha * *at(turn->from, &turn->from_tensor, n, c, h, w);
        }
  free(turn);
}

static cudnnStatus_t transform(cudnnHandle_t handle, const void *alpha,
                               const cudnnTensorDescriptor_t x,
                               const void *x_data, const void *beta,
                               const cudnnTensorDescriptor_t y, void *y_data) {
  const fake_tensor_t *from = (const fake_tensor_t *)x;
  const fake_tensor_t *to = (const fake_tensor_t *)y;
  REQUIRE(memcmp(from->extent, to->extent, sizeof from->extent) == 0);
  turn_t *turn = malloc(sizeof *turn);
  REQUIRE(turn);
  *turn = (turn_t){*from,
                   *to,
                   *(const float *)alpha,
                   *(const float *)beta,
                   (float *)(uintptr_t)x_data,
                   y_data};
  fake_cuda_enqueue((cudaStream_t)handle, turn_work, turn);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t scale_tensor(cudnnHandle_t handle,
                                  const cudnnTensorDescriptor_t y, void *y_data,
                                  const void *alpha) {
  static const float nothing = 0;
  return transform(handle, &nothing, y, y_data, alpha, y, y_data);
}

static const job_fake_t *own_table;
static int own_count;

static void *find(sdg_library_t library, const char *name) {
  static const job_fake_t table[] = {
      JOB_FAKE(cudnnCreateTensorDescriptor, create_tensor),
      JOB_FAKE(cudnnDestroyTensorDescriptor, destroy),
      JOB_FAKE(cudnnSetTensorNdDescriptor, set_tensor),
      JOB_FAKE(cudnnGetTensorNdDescriptor, get_tensor),
      JOB_FAKE(cudnnCreateFilterDescriptor, create_filter),
      JOB_FAKE(cudnnDestroyFilterDescriptor, destroy),
      JOB_FAKE(cudnnSetFilterNdDescriptor, set_filter),
      JOB_FAKE(cudnnGetFilterNdDescriptor, get_filter),
      JOB_FAKE(cudnnCreateConvolutionDescriptor, create_conv),
      JOB_FAKE(cudnnDestroyConvolutionDescriptor, destroy),
      JOB_FAKE(cudnnSetConvolutionNdDescriptor, set_conv),
      JOB_FAKE(cudnnGetConvolutionNdDescriptor, get_conv),
      JOB_FAKE(cudnnGetConvolutionGroupCount, get_groups),
      JOB_FAKE(cudnnGetConvolutionMathType, get_math),
      JOB_FAKE(cudnnSetConvolutionGroupCount, set_nothing),
      JOB_FAKE(cudnnSetConvolutionMathType, set_nothing),
      JOB_FAKE(cudnnTransformTensor, transform),
      JOB_FAKE(cudnnScaleTensor, scale_tensor),
      JOB_FAKE(cudnnConvolutionBackwardData, backward_data),
      JOB_FAKE(cudnnConvolutionBackwardFilter, backward_filter),
      JOB_FAKE(cudnnGetConvolutionBackwardDataWorkspaceSize, data_workspace),
      JOB_FAKE(cudnnGetConvolutionBackwardDataAlgorithm_v7, data_algorithm),
      JOB_FAKE(cudnnGetConvolutionBackwardFilterWorkspaceSize,
               filter_workspace),
      JOB_FAKE(cudnnGetConvolutionBackwardFilterAlgorithm_v7, filter_algorithm),
  };
  for (int i = 0; i < own_count; i++)
    if (strcmp(own_table[i].name, name) == 0)
      return job_fake_find(own_table, own_count, name);
  return library == SDG_LIBRARY_CUDNN
             ? job_fake_find(table, sizeof table / sizeof table[0], name)
             : fake_cuda_find(library, name);
}

void fake_conv_install(const job_fake_t *own, int count) {
  own_table = own;
  own_count = count;
  fake_cuda_install();
  sdg_library_set_finder(find);
}
