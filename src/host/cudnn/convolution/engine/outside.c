// SPDX-License-Identifier: Apache-2.0
// Keeps infinities and NaN away from the zeros of the padding.
#include "src/host/cudnn/convolution/engine/outside.h"

#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/convolution/engine/finish.h"

// A tensor of the problem.
typedef struct {
  int64_t extent[5], stride[5];
} layout_t;

static layout_t x_layout(const host_conv_t *conv) {
  layout_t x = {.extent = {conv->images, (int64_t)conv->groups * conv->c,
                           conv->in[0], conv->in[1], conv->in[2]}};
  memcpy(x.stride, conv->x_stride, sizeof x.stride);
  return x;
}

static layout_t w_layout(const host_conv_t *conv) {
  layout_t w = {.extent = {(int64_t)conv->groups * conv->k, conv->c,
                           conv->window[0], conv->window[1], conv->window[2]}};
  memcpy(w.stride, conv->w_stride, sizeof w.stride);
  return w;
}

static layout_t y_layout(const host_conv_t *conv) {
  layout_t y = {.extent = {conv->images, (int64_t)conv->groups * conv->k,
                           conv->out[0], conv->out[1], conv->out[2]}};
  memcpy(y.stride, conv->y_stride, sizeof y.stride);
  return y;
}

static void densify(layout_t *layout) {
  int64_t at = 1;
  for (int i = 4; i >= 0; at *= layout->extent[i--])
    layout->stride[i] = at;
}

static size_t bytes_of(const host_conv_t *conv, const layout_t *layout) {
  int64_t span = 1;
  for (int i = 0; i < 5; i++)
    span += (layout->extent[i] - 1) * layout->stride[i];
  size_t unit = conv->is_double ? sizeof(double) : sizeof(float);
  return ((size_t)span * unit + 63) & ~(size_t)63;
}

// Whether a sum has terms outside. Data gradients nearly always do, because at
// its ends x has fewer windows over it.
static bool leaves(host_conv_kind_t kind, const host_conv_t *conv) {
  bool data = kind == HOST_CONV_DATA, any = false;
  for (int i = 0; i < HOST_SPATIAL; i++)
    any |= conv->pad[i] > 0 || (data && conv->window[i] > 1) ||
           host_conv_rows(conv, i, conv->out[i]) > conv->in[i] + conv->pad[i];
  return any;
}

static bool run(host_conv_kind_t kind, const host_conv_t *conv) {
  switch (kind) {
  case HOST_CONV_FORWARD:
    return host_conv_run(conv);
  case HOST_CONV_DATA:
    return host_conv_backward_data(conv);
  case HOST_CONV_WEIGHTS:
    return host_conv_backward_weights(conv);
  }
  return false;
}

static bool is_finite(const host_conv_t *conv, const void *from,
                      const layout_t *layout) {
  return conv->is_double
             ? host_outside_finite_double(from, layout->extent, layout->stride)
             : host_outside_finite_float(from, layout->extent, layout->stride);
}

static void tame(const host_conv_t *conv, const void *from,
                 const layout_t *layout, void *to) {
  if (conv->is_double)
    host_outside_tame_double(from, layout->extent, layout->stride, to);
  else
    host_outside_tame_float(from, layout->extent, layout->stride, to);
}

// Blends dense sums into what the problem writes, given as y of `into`.
static void finish(const host_conv_t *into, const int64_t extent[5],
                   const char *sums) {
  size_t row =
      (size_t)extent[4] * (into->is_double ? sizeof(double) : sizeof(float));
  int64_t at[5] = {0};
  for (at[0] = 0; at[0] < extent[0]; at[0]++)
    for (at[1] = 0; at[1] < extent[1]; at[1]++)
      for (at[2] = 0; at[2] < extent[2]; at[2]++)
        for (at[3] = 0; at[3] < extent[3]; at[3]++, sums += row)
          host_finish_along_w(into, sums, extent[4], at);
}

// dx as the y of a problem.
static host_conv_t dx_of(const host_conv_t *conv) {
  host_conv_t into = {.is_double = conv->is_double,
                      .y = (void *)(uintptr_t)conv->x,
                      .old = conv->x,
                      .alpha = conv->alpha,
                      .gamma = conv->gamma};
  memcpy(into.y_stride, conv->x_stride, sizeof into.y_stride);
  memcpy(into.old_stride, conv->x_stride, sizeof into.old_stride);
  return into;
}

static bool run_tamed(host_conv_kind_t kind, const host_conv_t *conv) {
  bool forward = kind == HOST_CONV_FORWARD;
  layout_t w = w_layout(conv), to = forward ? y_layout(conv) : x_layout(conv);
  densify(&to);
  size_t bytes = bytes_of(conv, &w);
  char *room =
      host_scratch_get(HOST_SCRATCH_OUTSIDE, bytes + bytes_of(conv, &to));
  if (!room)
    return false;
  char *sums = room + bytes;
  tame(conv, conv->w, &w, room);
  host_conv_t tamed = *conv, into = forward ? *conv : dx_of(conv);
  tamed.w = room;
  tamed.alpha = 1;
  tamed.gamma = 0;
  tamed.bias = NULL;
  tamed.relu = false;
  if (forward) {
    tamed.y = sums;
    tamed.old = sums;
    memcpy(tamed.y_stride, to.stride, sizeof to.stride);
    memcpy(tamed.old_stride, to.stride, sizeof to.stride);
  } else {
    tamed.x = sums;
    memcpy(tamed.x_stride, to.stride, sizeof to.stride);
  }
  if (!run(kind, &tamed))
    return false;
  if (conv->is_double)
    host_outside_add_w_double(kind, conv, (double *)sums);
  else
    host_outside_add_w_float(kind, conv, (float *)sums);
  finish(&into, to.extent, sums);
  return true;
}

bool host_outside_run(host_conv_kind_t kind, const host_conv_t *conv) {
  layout_t w = w_layout(conv);
  bool tames = kind != HOST_CONV_WEIGHTS && leaves(kind, conv) &&
               !is_finite(conv, conv->w, &w);
  return tames ? run_tamed(kind, conv) : run(kind, conv);
}

bool host_outside_weights(const host_conv_t *conv, void *sums) {
  layout_t to = w_layout(conv), dy = y_layout(conv);
  densify(&to);
  if (!leaves(HOST_CONV_WEIGHTS, conv) || is_finite(conv, sums, &to) ||
      is_finite(conv, conv->y, &dy))
    return true;
  host_conv_t tamed = *conv;
  tamed.y = host_scratch_get(HOST_SCRATCH_OUTSIDE, bytes_of(conv, &dy));
  if (!tamed.y)
    return false;
  tame(conv, conv->y, &dy, tamed.y);
  if (!host_wgrad_run(&tamed, sums))
    return false;
  if (conv->is_double)
    host_outside_add_dy_double(conv, sums);
  else
    host_outside_add_dy_float(conv, sums);
  return true;
}
