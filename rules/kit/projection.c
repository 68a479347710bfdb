// SPDX-License-Identifier: Apache-2.0
// Computes products of rows and a matrix with convolutions. The matrix is the
// filter of a convolution with one output channel for each of its rows and one
// input channel for each column. The convolution is left = right W^T; its two
// gradients are the other two products. Groups are the convolution's groups.
#include "rules/kit/projection.h"

#include <stdlib.h>

#include "rules/kit/subcall_state.h"
#include "rules/vendor/vendor.h"

enum { LEFT, MATRIX, RIGHT };

// Algorithms that accept any size, and add in a fixed order.
static const cudnnConvolutionFwdAlgo_t forward_algo =
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
static const cudnnConvolutionBwdDataAlgo_t data_algo =
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
static const cudnnConvolutionBwdFilterAlgo_t filter_algo =
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;

typedef struct product {
  cudnnConvolutionDescriptor_t conv;
  cudnnFilterDescriptor_t filter;
} product_t;

static void product_destroy(void *op) {
  product_t *product = op;
  if (product->conv)
    (void)sdg_cudnn_get()->cudnnDestroyConvolutionDescriptor(product->conv);
  if (product->filter)
    (void)sdg_cudnn_get()->cudnnDestroyFilterDescriptor(product->filter);
  free(product);
}

static cudnnStatus_t left_run(const sdg_subcall_run_t *run) {
  const product_t *product = run->op;
  return sdg_cudnn_get()->cudnnConvolutionForward(
      run->handle, &run->scalar[0], run->descriptor[RIGHT], run->data[RIGHT],
      product->filter, run->data[MATRIX], product->conv, forward_algo,
      run->workspace, run->workspace_bytes, &run->scalar[1],
      run->descriptor[LEFT], run->data[LEFT]);
}

static cudnnStatus_t right_run(const sdg_subcall_run_t *run) {
  const product_t *product = run->op;
  return sdg_cudnn_get()->cudnnConvolutionBackwardData(
      run->handle, &run->scalar[0], product->filter, run->data[MATRIX],
      run->descriptor[LEFT], run->data[LEFT], product->conv, data_algo,
      run->workspace, run->workspace_bytes, &run->scalar[1],
      run->descriptor[RIGHT], run->data[RIGHT]);
}

static cudnnStatus_t matrix_run(const sdg_subcall_run_t *run) {
  const product_t *product = run->op;
  return sdg_cudnn_get()->cudnnConvolutionBackwardFilter(
      run->handle, &run->scalar[0], run->descriptor[RIGHT], run->data[RIGHT],
      run->descriptor[LEFT], run->data[LEFT], product->conv, filter_algo,
      run->workspace, run->workspace_bytes, &run->scalar[1], product->filter,
      run->data[MATRIX]);
}

static sdg_status_t product_fill(const sdg_projection_t *p,
                                 product_t *product) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  const int none[] = {0, 0}, one[] = {1, 1};
  int groups = (int)p->matrix.box.dim[1].hi;
  const int extent[] = {groups * (int)p->matrix.box.dim[2].hi,
                        (int)p->matrix.box.dim[3].hi, 1, 1};
  cudnnDataType_t type = (cudnnDataType_t)p->matrix.type;
  cudnnStatus_t got = cudnn->cudnnCreateConvolutionDescriptor(&product->conv);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnCreateFilterDescriptor(&product->filter);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnSetConvolutionNdDescriptor(
        product->conv, 2, none, one, one, CUDNN_CROSS_CORRELATION, type);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnSetConvolutionMathType(product->conv, p->math);
  if (got == CUDNN_STATUS_SUCCESS && groups > 1)
    got = cudnn->cudnnSetConvolutionGroupCount(product->conv, groups);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnSetFilterNdDescriptor(product->filter, type,
                                            CUDNN_TENSOR_NCHW, 4, extent);
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL, "a product's descriptors: status %d",
                        (int)got);
}

static cudnnStatus_t room_ask(const sdg_plan_t *plan, const product_t *product,
                              cudnnTensorDescriptor_t left,
                              cudnnTensorDescriptor_t right,
                              cudnnStatus_t (*fn)(const sdg_subcall_run_t *),
                              size_t *out_bytes) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnHandle_t handle = sdg_subcalls_handle(plan);
  if (fn == left_run)
    return cudnn->cudnnGetConvolutionForwardWorkspaceSize(
        handle, right, product->filter, product->conv, left, forward_algo,
        out_bytes);
  if (fn == right_run)
    return cudnn->cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle, product->filter, left, product->conv, right, data_algo,
        out_bytes);
  return cudnn->cudnnGetConvolutionBackwardFilterWorkspaceSize(
      handle, right, left, product->conv, product->filter, filter_algo,
      out_bytes);
}

static sdg_status_t room_find(const sdg_plan_t *plan, const product_t *product,
                              const sdg_projection_t *p,
                              cudnnStatus_t (*fn)(const sdg_subcall_run_t *),
                              size_t *out_bytes) {
  cudnnTensorDescriptor_t left = NULL, right = NULL;
  sdg_status_t status = sdg_subcall_describe(plan, &p->left, &left);
  if (status == SDG_OK)
    status = sdg_subcall_describe(plan, &p->right, &right);
  if (status == SDG_OK) {
    cudnnStatus_t got = room_ask(plan, product, left, right, fn, out_bytes);
    if (got != CUDNN_STATUS_SUCCESS)
      status = sdg_fail(SDG_E_VENDOR_CALL, "a product's workspace: status %d",
                        (int)got);
  }
  if (left)
    (void)sdg_cudnn_get()->cudnnDestroyTensorDescriptor(left);
  if (right)
    (void)sdg_cudnn_get()->cudnnDestroyTensorDescriptor(right);
  return status;
}

static sdg_status_t
product_add(sdg_plan_t *plan, const sdg_projection_t *p,
            cudnnStatus_t (*fn)(const sdg_subcall_run_t *)) {
  sdg_subcall_t sub = {
      .fn = fn,
      .tensors = 3,
      .tensor = {[LEFT] = p->left, [MATRIX] = p->matrix, [RIGHT] = p->right},
      .scalar = {sdg_scalar(p->matrix.type, 1), sdg_scalar(p->matrix.type, 0)},
      .op_destroy = product_destroy};
  product_t *product;
  SDG_TRY(SDG_ALLOCATE(product, 1, "a plan"));
  sdg_status_t status = product_fill(p, product);
  if (status == SDG_OK)
    status = room_find(plan, product, p, fn, &sub.workspace_bytes);
  if (status != SDG_OK) {
    product_destroy(product);
    return status;
  }
  sub.op = product;
  return sdg_subcall_add(plan, &sub);
}

sdg_status_t sdg_projection_right(sdg_plan_t *plan, const sdg_projection_t *p) {
  return product_add(plan, p, right_run);
}

sdg_status_t sdg_projection_left(sdg_plan_t *plan, const sdg_projection_t *p) {
  return product_add(plan, p, left_run);
}

sdg_status_t sdg_projection_matrix(sdg_plan_t *plan,
                                   const sdg_projection_t *p) {
  return product_add(plan, p, matrix_run);
}
