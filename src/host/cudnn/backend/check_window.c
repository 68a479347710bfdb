// SPDX-License-Identifier: Apache-2.0
// Convolutions and resampling: extents that fit to windows.
#include "src/host/cudnn/backend/check.h"

cudnnStatus_t host_check_convolution(host_object_t *convolution) {
  const host_value_t *stride =
      HOST_VALUE(convolution, CONVOLUTION_FILTER_STRIDES);
  const host_value_t *dilation = HOST_VALUE(convolution, CONVOLUTION_DILATIONS);
  host_value_t *pre = HOST_VALUE(convolution, CONVOLUTION_PRE_PADDINGS);
  host_value_t *post = HOST_VALUE(convolution, CONVOLUTION_POST_PADDINGS);
  int64_t rank =
      host_object_integer(convolution, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
  REFUSE_IF(rank < 1 || rank > CUDNN_DIM_MAX - 2, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(stride->count != rank || dilation->count != rank,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF((pre->count != 0 && pre->count != rank) ||
                (post->count != 0 && post->count != rank),
            CUDNN_STATUS_BAD_PARAM);
  for (int64_t i = 0; i < rank; i++) {
    REFUSE_IF(stride->slot[i].integer < 1 || dilation->slot[i].integer < 1,
              CUDNN_STATUS_BAD_PARAM);
    // No cropping.
    REFUSE_IF(pre->count > 0 && pre->slot[i].integer < 0,
              CUDNN_STATUS_BAD_PARAM);
    REFUSE_IF(post->count > 0 && post->slot[i].integer < 0,
              CUDNN_STATUS_BAD_PARAM);
  }
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  if (pre->count == 0)
    status = host_value_resize(pre, CUDNN_TYPE_INT64, rank);
  if (!status && post->count == 0)
    status = host_value_resize(post, CUDNN_TYPE_INT64, rank);
  return status;
}

// y = floor((x + pre + post - span) / stride) + 1, span = dilation (w - 1) + 1:
// 224 = (224 + 1 + 1 - 3) / 1 + 1.
static cudnnStatus_t check_sum(host_object_t *how, int at, int64_t x, int64_t w,
                               int64_t y) {
  int64_t pre = host_list_at(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, at, 0);
  int64_t post = host_list_at(how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, at, 0);
  int64_t step =
      host_list_at(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, at, 1);
  int64_t dilation = host_list_at(how, CUDNN_ATTR_CONVOLUTION_DILATIONS, at, 1);
  int64_t room = x + pre + post - (dilation * (w - 1) + 1);
  REFUSE_IF(room < 0 || y != room / step + 1, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

// A filter has no room between its elements, which do not overlap, in any order
// of dimensions.
static cudnnStatus_t check_dense(host_object_t *op,
                                 cudnnBackendAttributeName_t name) {
  host_object_t *tensor = host_object_child(op, name);
  host_extents_t extents = host_extents_of(op, name);
  int64_t count = 1, last = 0;
  for (int i = 0; i < extents.rank; i++) {
    count *= extents.dim[i];
    last += (extents.dim[i] - 1) *
            host_list_at(tensor, CUDNN_ATTR_TENSOR_STRIDES, i, 0);
  }
  REFUSE_IF(count > 0 && last + 1 != count, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_op(host_object_t *op,
                              cudnnBackendAttributeName_t x_name,
                              cudnnBackendAttributeName_t w_name,
                              cudnnBackendAttributeName_t y_name,
                              cudnnBackendAttributeName_t how_name) {
  REFUSE_IF(
      !host_operand_final(op, x_name) || !host_operand_final(op, w_name) ||
          !host_operand_final(op, y_name) || !host_operand_final(op, how_name),
      CUDNN_STATUS_BAD_PARAM);
  host_extents_t x = host_extents_of(op, x_name);
  host_extents_t w = host_extents_of(op, w_name);
  host_extents_t y = host_extents_of(op, y_name);
  host_object_t *how = host_object_child(op, how_name);
  int rank =
      (int)host_object_integer(how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
  REFUSE_IF(x.rank != rank + 2 || w.rank != x.rank || y.rank != x.rank,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x.dim[0] != y.dim[0] || y.dim[1] != w.dim[0],
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(w.dim[1] < 1 || x.dim[1] % w.dim[1] != 0, CUDNN_STATUS_BAD_PARAM);
  int64_t groups = x.dim[1] / w.dim[1];
  REFUSE_IF(groups < 1 || w.dim[0] % groups != 0, CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < rank; i++) {
    cudnnStatus_t status =
        check_sum(how, i, x.dim[2 + i], w.dim[2 + i], y.dim[2 + i]);
    if (status)
      return status;
  }
  return check_dense(op, w_name);
}

cudnnStatus_t host_check_forward(host_object_t *op) {
  return check_op(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
}

cudnnStatus_t host_check_backward_data(host_object_t *op) {
  return check_op(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
}

cudnnStatus_t host_check_backward_filter(host_object_t *op) {
  return check_op(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
}

// Value `at` of a list of whole numbers or fractions, 0/0 beyond its end.
static cudnnFraction_t fraction_at(host_object_t *how,
                                   cudnnBackendAttributeName_t name, int at) {
  const host_value_t *value = host_object_value(how, name);
  if (at >= value->count)
    return (cudnnFraction_t){0, 0};
  return value->type == CUDNN_TYPE_FRACTION
             ? value->slot[at].fraction
             : (cudnnFraction_t){value->slot[at].integer, 1};
}

// Interpolation is between two elements in each dimension.
static bool windows_are_two(host_object_t *resample, int64_t rank) {
  for (int i = 0; i < rank; i++) {
    cudnnFraction_t window =
        fraction_at(resample, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, i);
    if (window.numerator != 2 || window.denominator != 1)
      return false;
  }
  return true;
}

cudnnStatus_t host_check_resample(host_object_t *resample) {
  int64_t rank =
      host_object_integer(resample, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, 0);
  int64_t mode = host_object_integer(resample, CUDNN_ATTR_RESAMPLE_MODE, 0);
  host_value_t *list[] = {
      HOST_VALUE(resample, RESAMPLE_WINDOW_DIMS),
      HOST_VALUE(resample, RESAMPLE_STRIDES),
      HOST_VALUE(resample, RESAMPLE_PRE_PADDINGS),
      HOST_VALUE(resample, RESAMPLE_POST_PADDINGS),
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    REFUSE_IF(list[i]->count != 0 && list[i]->count != rank,
              CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(mode < 0 || mode > CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(mode <= CUDNN_RESAMPLE_BILINEAR && !windows_are_two(resample, rank),
            CUDNN_STATUS_NOT_SUPPORTED);
  // What was not set is 0/0, which no operation takes.
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  for (size_t i = 0; i < sizeof list / sizeof *list && !status; i++)
    if (list[i]->count == 0 && rank > 0 && rank <= CUDNN_DIM_MAX)
      status = host_value_resize(list[i], CUDNN_TYPE_FRACTION, rank);
  return status;
}

__extension__ typedef __int128 wide_t;

// Whether there are `out` windows: floor((in + pre + post - window) / step)
// + 1.
static bool windows_fit(host_object_t *how, int at, int64_t in, int64_t out) {
  static const cudnnBackendAttributeName_t names[] = {
      CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS,
      CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_ATTR_RESAMPLE_POST_PADDINGS};
  cudnnFraction_t value[4];
  int64_t unit = 1; // all values are multiples of 1 / unit
  for (int i = 0; i < 4; i++) {
    value[i] = fraction_at(how, names[i], at);
    if (value[i].denominator < 1 || value[i].numerator < (i < 2) ||
        __builtin_mul_overflow(unit, value[i].denominator, &unit))
      return false;
  }
  wide_t part[4], room;
  for (int i = 0; i < 4; i++)
    part[i] = (wide_t)value[i].numerator * (unit / value[i].denominator);
  room = (wide_t)in * unit + part[2] + part[3] - part[1];
  return room >= 0 && out == room / part[0] + 1;
}

static cudnnStatus_t check_windows(const host_extents_t *x,
                                   const host_extents_t *y,
                                   host_object_t *how) {
  int rank = (int)host_object_integer(how, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, 0);
  REFUSE_IF(x->rank != rank + 2 || y->rank != x->rank, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1],
            CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < rank; i++)
    REFUSE_IF(!windows_fit(how, i, x->dim[2 + i], y->dim[2 + i]),
              CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

#define FORWARD(name)  CUDNN_ATTR_OPERATION_RESAMPLE_FWD_##name
#define BACKWARD(name) CUDNN_ATTR_OPERATION_RESAMPLE_BWD_##name

// Whether an index that is given, were it NULL, has not the extents of y.
static bool index_is_off(host_object_t *op, cudnnBackendAttributeName_t name,
                         const host_extents_t *y) {
  host_extents_t index = host_extents_of(op, name);
  return host_object_value(op, name)->count > 0 &&
         !host_extents_same(&index, y);
}

cudnnStatus_t host_check_resample_forward(host_object_t *op) {
  host_extents_t x = host_extents_of(op, FORWARD(XDESC)),
                 y = host_extents_of(op, FORWARD(YDESC));
  REFUSE_IF(index_is_off(op, FORWARD(IDXDESC), &y), CUDNN_STATUS_BAD_PARAM);
  if (x.rank == 0 && y.rank == 0) // the graph refuses it
    return CUDNN_STATUS_SUCCESS;
  REFUSE_IF(!host_operand_there(op, FORWARD(DESC)), CUDNN_STATUS_BAD_PARAM);
  return check_windows(&x, &y, host_object_child(op, FORWARD(DESC)));
}

cudnnStatus_t host_check_resample_backward(host_object_t *op) {
  REFUSE_IF(!host_operand_there(op, BACKWARD(DESC)), CUDNN_STATUS_BAD_PARAM);
  host_object_t *how = host_object_child(op, BACKWARD(DESC));
  int mode = (int)host_object_integer(how, CUDNN_ATTR_RESAMPLE_MODE, 0);
  host_extents_t dx = host_extents_of(op, BACKWARD(DXDESC)),
                 dy = host_extents_of(op, BACKWARD(DYDESC));
  host_extents_t x = host_extents_of(op, BACKWARD(XDESC)),
                 y = host_extents_of(op, BACKWARD(YDESC));
  bool both = host_object_value(op, BACKWARD(XDESC))->count > 0 &&
              host_object_value(op, BACKWARD(YDESC))->count > 0;
  bool index = host_object_value(op, BACKWARD(IDXDESC))->count > 0;
  REFUSE_IF(
      (mode == CUDNN_RESAMPLE_MAXPOOL || mode == CUDNN_RESAMPLE_NEAREST) &&
          !index && !both,
      CUDNN_STATUS_BAD_PARAM);
  if (dx.rank == 0 && dy.rank == 0) // the graph refuses it
    return CUDNN_STATUS_SUCCESS;
  REFUSE_IF(index_is_off(op, BACKWARD(IDXDESC), &dy), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(both &&
                (!host_extents_same(&x, &dx) || !host_extents_same(&y, &dy)),
            CUDNN_STATUS_BAD_PARAM);
  return check_windows(&dx, &dy, how);
}
