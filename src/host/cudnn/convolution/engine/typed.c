// SPDX-License-Identifier: Apache-2.0
// Convolutions of types that no engine computes in: half and bfloat16 converted
// to float, int8 to double, which holds its sums exactly.
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/convolution/engine/engine.h"
#include "src/host/cudnn/convolution/engine/outside.h"
#include "src/host/cudnn/convolution/reorder.h"

// A tensor in the program's memory, and dense in the engine's type.
typedef struct {
  host_view_t view;
  bool is_double;
  char *dense;
} twin_t;

static twin_t twin_of(const host_conv_t *conv, cudnnDataType_t type, int vector,
                      const int64_t extent[5], const int64_t stride[5],
                      const void *data) {
  twin_t twin = {
      .view = {.type = type, .rank = 5, .vector = vector, .data = (char *)data},
      .is_double = conv->is_double};
  memcpy(twin.view.dim, extent, 5 * sizeof *extent);
  memcpy(twin.view.stride, stride, 5 * sizeof *stride);
  return twin;
}

static size_t dense_bytes(const twin_t *twin) {
  size_t unit = twin->is_double ? sizeof(double) : sizeof(float);
  return ((size_t)host_view_elements(&twin->view) * unit + 63) & ~(size_t)63;
}

// Converts rows of at most `room` doubles; W is the last dimension.
static void copy(const twin_t *twin, bool back, double *room) {
  const host_view_t *view = &twin->view;
  int64_t width = view->dim[4], rows = host_view_elements(view) / width;
  int64_t first[5] = {0}, box[5] = {1, 1, 1, 1, width};
  float *floats = (float *)twin->dense;
  double *doubles = (double *)twin->dense;
  for (int64_t row = 0; row < rows; row++) {
    double *values = twin->is_double ? doubles + row * width : room;
    if (back) {
      for (int64_t i = 0; i < width && !twin->is_double; i++)
        values[i] = floats[row * width + i];
      host_view_store(view, first, box, 1, values, 0);
    } else {
      host_view_load(view, first, box, values);
      for (int64_t i = 0; i < width && !twin->is_double; i++)
        floats[row * width + i] = (float)values[i];
    }
    for (int d = 3; d >= 0 && ++first[d] == view->dim[d]; d--)
      first[d] = 0;
  }
}

static void densify(int64_t stride[5], const int64_t extent[5]) {
  int64_t at = 1;
  for (int i = 4; i >= 0; i--) {
    stride[i] = at;
    at *= extent[i];
  }
}

enum { TWIN_X, TWIN_W, TWIN_Y, TWIN_OLD, TWIN_BIAS, TWINS };

static bool run_converted(host_conv_kind_t kind, const host_conv_t *conv) {
  int64_t channels = (int64_t)conv->groups * conv->k;
  int64_t x[5] = {conv->images, (int64_t)conv->groups * conv->c};
  int64_t w[5] = {channels, conv->c}, y[5] = {conv->images, channels};
  const int64_t bias[5] = {1, 1, 1, 1, channels}, one[5] = {1, 1, 1, 1, 1};
  for (int i = 0; i < HOST_SPATIAL; i++) {
    x[2 + i] = conv->in[i];
    w[2 + i] = conv->window[i];
    y[2 + i] = conv->out[i];
  }
  twin_t twin[TWINS] = {
      twin_of(conv, conv->x_type, conv->x_vector, x, conv->x_stride, conv->x),
      twin_of(conv, conv->w_type, conv->x_vector, w, conv->w_stride, conv->w),
      twin_of(conv, conv->y_type, conv->y_vector, y, conv->y_stride, conv->y),
      twin_of(conv, conv->y_type, conv->y_vector, y, conv->old_stride,
              conv->old),
      twin_of(conv, conv->bias_type, 0, bias, one, conv->bias)};
  int out = kind == HOST_CONV_FORWARD ? TWIN_Y
            : kind == HOST_CONV_DATA  ? TWIN_X
                                      : TWIN_W;
  bool forward = kind == HOST_CONV_FORWARD, blends = conv->gamma != 0;
  bool used[TWINS] = {true, true, true, forward && blends,
                      forward && conv->bias};
  int64_t widest = 1;
  size_t bytes = 0;
  for (int i = 0; i < TWINS; i++)
    if (used[i]) {
      bytes += dense_bytes(&twin[i]);
      if (twin[i].view.dim[4] > widest)
        widest = twin[i].view.dim[4];
    }
  char *block = host_scratch_get(HOST_SCRATCH_TYPED,
                                 bytes + (size_t)widest * sizeof(double));
  if (!block)
    return false;
  double *room = (double *)(block + bytes);
  for (int i = 0; i < TWINS; i++) {
    if (!used[i])
      continue;
    twin[i].dense = block;
    block += dense_bytes(&twin[i]);
    // Gradients blend with the old values; forward calls read `old` instead.
    if (i != out || (!forward && blends))
      copy(&twin[i], false, room);
  }
  if (conv->reordered)
    host_reorder_undo(conv, (double *)twin[TWIN_W].dense,
                      (double *)twin[TWIN_BIAS].dense);
  host_conv_t dense = *conv;
  dense.x = twin[TWIN_X].dense;
  dense.w = twin[TWIN_W].dense;
  dense.y = twin[TWIN_Y].dense;
  dense.old = used[TWIN_OLD] ? twin[TWIN_OLD].dense : twin[TWIN_Y].dense;
  dense.bias = used[TWIN_BIAS] ? twin[TWIN_BIAS].dense : NULL;
  densify(dense.x_stride, x);
  densify(dense.w_stride, w);
  densify(dense.y_stride, y);
  densify(dense.old_stride, y);
  if (!host_outside_run(kind, &dense))
    return false;
  copy(&twin[out], true, room);
  return true;
}

bool host_conv_any(host_conv_kind_t kind, const host_conv_t *conv) {
  cudnnDataType_t own = conv->is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  return conv->x_type == own && conv->w_type == own && conv->y_type == own
             ? host_outside_run(kind, conv)
             : run_converted(kind, conv);
}
