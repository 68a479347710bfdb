// SPDX-License-Identifier: Apache-2.0
// The order in which NVIDIA's kernels want filters and biases of INT8x32.
//
// It is documented by XLA, which does the same without cuDNN
// (xla/service/gpu/cudnn_support_utils.h): output channels o = (o8, o4, o2) of
// O/8 x 4 x 2 and input channels i = (i32, i8, i4) of I/32 x 8 x 4 lie as
// i32, H, W, o8, o2, i8, o4, i4; biases of O/32 x 4 x 2 x 4 change the middle
// two.
#include "src/host/cudnn/convolution/reorder.h"

#include <string.h>

#include "src/host/cudnn/base/work.h"
#include "src/host/host.h"

// The new position of element (o, i, point) of O x I x points.
static int64_t filter_at(int64_t outputs, int64_t points, int64_t o, int64_t i,
                         int64_t point) {
  int64_t o8 = o / 8, o4 = o / 2 % 4, o2 = o % 2;
  int64_t i32 = i / 32, i8 = i / 4 % 8, i4 = i % 4;
  int64_t at = (i32 * points + point) * (outputs / 8) + o8;
  return (((at * 2 + o2) * 8 + i8) * 4 + o4) * 4 + i4;
}

static int64_t bias_at(int64_t o) {
  return o / 32 * 32 + o / 4 % 2 * 16 + o / 8 % 4 * 4 + o % 4;
}

void host_reorder_undo(const host_conv_t *conv, double *w, double *bias) {
  int64_t points = (int64_t)conv->window[0] * conv->window[1] * conv->window[2];
  const int8_t *from = conv->w;
  for (int64_t o = 0; o < conv->k; o++)
    for (int64_t i = 0; i < conv->c; i++)
      for (int64_t p = 0; p < points; p++)
        *w++ = from[filter_at(conv->k, points, o, i, p)];
  const float *biases = conv->bias;
  for (int64_t o = 0; bias && biases && o < conv->k; o++)
    bias[o] = (double)biases[bias_at(o)];
}

typedef struct {
  int64_t outputs, inputs, points;
  bool turns; // if false, copies unchanged
  const int8_t *w;
  int8_t *to;
  const float *bias;
  float *bias_to;
} job_t;

// The given filter is O, I/32, H, W, 32.
static bool run(void *argument) {
  const job_t *job = argument;
  const int8_t *from = job->w;
  for (int64_t o = 0; o < job->outputs; o++)
    for (int64_t i = 0; i < job->inputs; i += 32)
      for (int64_t p = 0; p < job->points; p++)
        for (int64_t j = 0; j < 32; j++, from++)
          job->to[job->turns ? filter_at(job->outputs, job->points, o, i + j, p)
                             : from - job->w] = *from;
  for (int64_t o = 0; job->bias && o < job->outputs; o++)
    job->bias_to[job->turns ? bias_at(o) : o] = job->bias[o];
  return true;
}

cudnnStatus_t cudnnReorderFilterAndBias(cudnnHandle_t handle,
                                        const cudnnFilterDescriptor_t w,
                                        cudnnReorderType_t reorder,
                                        const void *w_data, void *reordered_w,
                                        int with_bias, const void *bias,
                                        void *reordered_bias) {
  REFUSE_IF(!handle || !w || !w_data || !reordered_w, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(with_bias && (!bias || !reordered_bias), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(reorder != CUDNN_DEFAULT_REORDER && reorder != CUDNN_NO_REORDER,
            CUDNN_STATUS_BAD_PARAM);
  // Only INT8x32 has such an order.
  REFUSE_IF(w->type != CUDNN_DATA_INT8x32 ||
                w->format != CUDNN_TENSOR_NCHW_VECT_C || w->dim[0] % 32,
            CUDNN_STATUS_NOT_SUPPORTED);
  size_t biases = (size_t)w->dim[0] * sizeof(float);
  job_t job = {.outputs = w->dim[0],
               .inputs = w->dim[1],
               .points = 1,
               .turns = reorder == CUDNN_DEFAULT_REORDER,
               .w = host_filter_resolve(w, w_data),
               .to = host_filter_resolve(w, reordered_w),
               .bias = with_bias ? host_memory_resolve(bias, biases) : NULL,
               .bias_to = with_bias
                              ? host_memory_resolve(reordered_bias, biases)
                              : NULL};
  for (int i = 2; i < w->rank; i++)
    job.points *= w->dim[i];
  REFUSE_IF(!job.w || !job.to || (with_bias && (!job.bias || !job.bias_to)),
            CUDNN_STATUS_EXECUTION_FAILED);
  return host_work_queue(handle, run, &job, sizeof job);
}
