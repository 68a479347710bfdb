// SPDX-License-Identifier: Apache-2.0
// cuDNN's operations in a captured stream: nothing runs before the launch, and
// each launch does the same.
#include <cudnn.h>
#include <stdlib.h>

#include "tests/calls.h"
#include "tests/unit/harness.h"
#include "tests/workspace.h"

enum { SIDE = 6, CELLS = SIDE * SIDE };

static float *upload(const float *values, int count) {
  float *device;
  OK(cudaMalloc((void **)&device, (size_t)count * sizeof *device));
  OK(cudaMemcpy(device, values, (size_t)count * sizeof *device,
                cudaMemcpyHostToDevice));
  return device;
}

/* y := 3x3 box sum of x + y, then y := 2 x + y, then y := max(y, 0). */
static void calls(cudnnHandle_t handle, float *x, float *w, float *y) {
  cudnnTensorDescriptor_t image;
  cudnnFilterDescriptor_t kernel;
  cudnnConvolutionDescriptor_t conv;
  cudnnActivationDescriptor_t relu;
  float one = 1, two = 2, zero = 0;
  OK(cudnnCreateTensorDescriptor(&image));
  OK(cudnnSetTensor4dDescriptor(image, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                                1, SIDE, SIDE));
  OK(cudnnCreateFilterDescriptor(&kernel));
  OK(cudnnSetFilter4dDescriptor(kernel, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1,
                                1, 3, 3));
  OK(cudnnCreateConvolutionDescriptor(&conv));
  OK(cudnnSetConvolution2dDescriptor(
      conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  OK(cudnnCreateActivationDescriptor(&relu));
  OK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                  CUDNN_NOT_PROPAGATE_NAN, 0));
  OK(cudnnConvolutionForward(handle, &one, image, x, kernel, w, conv,
                             CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                             workspace(), WORKSPACE_BYTES, &one, image, y));
  OK(cudnnAddTensor(handle, &two, image, x, &one, image, y));
  OK(cudnnActivationForward(handle, relu, &one, image, y, &zero, image, y));
  OK(cudnnDestroyActivationDescriptor(relu));
  OK(cudnnDestroyConvolutionDescriptor(conv));
  OK(cudnnDestroyFilterDescriptor(kernel));
  OK(cudnnDestroyTensorDescriptor(image));
}

START_TEST(captured_operations_are_done_at_each_launch) {
  float values[CELLS], ones[9], direct[CELLS], replayed[CELLS];
  cudnnHandle_t handle;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  srand(2);
  for (int i = 0; i < CELLS; i++)
    values[i] = (float)(rand() % 9 - 4);
  for (int i = 0; i < 9; i++)
    ones[i] = 1;
  float *x = upload(values, CELLS), *w = upload(ones, 9);
  float *y = upload(values, CELLS), *z = upload(values, CELLS);
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudnnCreate(&handle));
  OK(cudnnSetStream(handle, stream));
  for (int i = 0; i < 3; i++)
    calls(handle, x, w, y);
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  calls(handle, x, w, z);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  /* Captured work does not need the handle. */
  OK(cudnnDestroy(handle));
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(replayed, z, sizeof replayed, cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(replayed, values, sizeof values);
  for (int i = 0; i < 3; i++)
    OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaMemcpy(direct, y, sizeof direct, cudaMemcpyDeviceToHost));
  OK(cudaMemcpy(replayed, z, sizeof replayed, cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(direct, replayed, sizeof direct);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudnn_capture");
  TCase *tests = tcase_create("capture");
  tcase_add_test(tests, captured_operations_are_done_at_each_launch);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
