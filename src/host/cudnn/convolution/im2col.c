// SPDX-License-Identifier: Apache-2.0
// Im2Col: the matrix whose product with the filter's is the convolution.
//
// NVIDIA's reference gives its height (images, then rows and columns of y), its
// width (channels, then rows and columns of the window) and that it is dense,
// rows first. Columns follow the memory of an NCHW filter, mirrored where the
// convolution mirrors: A times w's transpose is y in both modes.
#include <string.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/host.h"

typedef struct {
  host_view_t x;
  size_t unit; // bytes of an element
  int out[4], window[2], pad[2], stride[2], dilation[2];
  bool flip;
  char *matrix;
} job_t;

// The row of y's point (p, q) of image n.
static char *write_row(const job_t *job, int64_t n, int64_t p, int64_t q,
                       char *to) {
  const host_view_t *x = &job->x;
  for (int64_t c = 0; c < x->dim[1]; c++)
    for (int64_t r = 0; r < job->window[0]; r++)
      for (int64_t s = 0; s < job->window[1]; s++, to += job->unit) {
        int64_t i = job->flip ? job->window[0] - 1 - r : r;
        int64_t j = job->flip ? job->window[1] - 1 - s : s;
        int64_t h = p * job->stride[0] - job->pad[0] + i * job->dilation[0];
        int64_t w = q * job->stride[1] - job->pad[1] + j * job->dilation[1];
        if (h < 0 || h >= x->dim[2] || w < 0 || w >= x->dim[3])
          memset(to, 0, job->unit);
        else
          memcpy(to,
                 x->data + (n * x->stride[0] + c * x->stride[1] +
                            h * x->stride[2] + w * x->stride[3]) *
                               (int64_t)job->unit,
                 job->unit);
      }
  return to;
}

static bool run(void *argument) {
  const job_t *job = argument;
  char *to = job->matrix;
  for (int64_t n = 0; n < job->out[0]; n++)
    for (int64_t p = 0; p < job->out[2]; p++)
      for (int64_t q = 0; q < job->out[3]; q++)
        to = write_row(job, n, p, q, to);
  return true;
}

static bool matrix_bytes(const job_t *job, size_t *bytes) {
  const int64_t extent[] = {job->out[0],   job->out[2],    job->out[3],
                            job->x.dim[1], job->window[0], job->window[1]};
  *bytes = job->unit;
  for (int i = 0; i < 6; i++)
    if (__builtin_mul_overflow(*bytes, (size_t)extent[i], bytes))
      return false;
  return true;
}

cudnnStatus_t cudnnIm2Col(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                          const void *x_data, const cudnnFilterDescriptor_t w,
                          const cudnnConvolutionDescriptor_t conv,
                          void *matrix) {
  REFUSE_IF(!handle || !x || !w || !conv || !x_data || !matrix,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank <= 2, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank != 4 || conv->groups != 1, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(x->type != CUDNN_DATA_FLOAT && x->type != CUDNN_DATA_DOUBLE &&
                x->type != CUDNN_DATA_HALF && x->type != CUDNN_DATA_BFLOAT16,
            CUDNN_STATUS_NOT_SUPPORTED);
  job_t job = {.unit = host_type_bytes(x->type),
               .flip = conv->mode == CUDNN_CONVOLUTION};
  REFUSE_IF(cudnnGetConvolutionNdForwardOutputDim(conv, x, w, 4, job.out),
            CUDNN_STATUS_BAD_PARAM);
  // The order of columns is documented for this format only.
  REFUSE_IF(w->format != CUDNN_TENSOR_NCHW, CUDNN_STATUS_NOT_SUPPORTED);
  cudnnStatus_t status = host_view_init(x, x_data, &job.x);
  if (status)
    return status;
  for (int i = 0; i < 2; i++) {
    job.window[i] = w->dim[2 + i];
    job.pad[i] = conv->pad[i];
    job.stride[i] = conv->stride[i];
    job.dilation[i] = conv->dilation[i];
  }
  size_t bytes;
  REFUSE_IF(!matrix_bytes(&job, &bytes), CUDNN_STATUS_NOT_SUPPORTED);
  job.matrix = host_memory_resolve(matrix, bytes);
  REFUSE_IF(!job.matrix, CUDNN_STATUS_EXECUTION_FAILED);
  return host_work_queue(handle, run, &job, sizeof job);
}
