// SPDX-License-Identifier: Apache-2.0
// The windows of resamplings.
#include <math.h>
#include <stdlib.h>

#include "src/host/cudnn/compute/resample/resample.h"

// ---- taps ------------------------------------------------------------------

static int64_t inside(const host_resample_t *how, int d, int64_t i) {
  if (i >= 0 && i < how->in[d])
    return i;
  if (how->in[d] == 0 || how->padding != CUDNN_EDGE_VAL_PAD ||
      how->mode == CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING)
    return -1;
  return i < 0 ? 0 : how->in[d] - 1;
}

// Where tap `tap` of the window of element `o` lies in x; -1: in the padding,
// or without weight.
//
// The window of pooling begins at o * stride - pad. Interpolation reads at
// (o + 1/2) * stride - pad, where elements lie at whole numbers. cuDNN does not
// say so: it documents one case, an upsampling by 2 with stride 1/2, padding
// 1/2 and 2 taps, which this makes the usual one at the centres of elements.
// Example: o = 1 reads at 1/4: 3/4 of element 0 and 1/4 of element 1.
static int64_t tap_at(const host_resample_t *how, int d, int64_t o, int64_t tap,
                      double *out_weight) {
  double at = ((double)o + 0.5) * how->stride[d] - how->pad[d];
  *out_weight = 1;
  if (host_resample_is_mean(how) || host_resample_is_most(how))
    return inside(how, d,
                  o * (int64_t)how->stride[d] - (int64_t)how->pad[d] + tap);
  if (how->taps[d] == 1)
    return inside(how, d, (int64_t)floor(at + 0.5));
  double first = floor(at);
  *out_weight = tap ? at - first : 1 - (at - first);
  // 0 times infinity would be no number.
  return *out_weight == 0 ? -1 : inside(how, d, (int64_t)first + tap);
}

void host_windows_free(host_windows_t *windows) {
  for (int d = 0; d < HOST_RESAMPLE_RANK; d++) {
    free(windows[d].at);
    free(windows[d].weight);
    free(windows[d].counted);
  }
}

bool host_windows_make(const host_resample_t *how, const host_region_t *y,
                       host_windows_t *windows) {
  bool excludes = how->mode == CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
  for (int d = 0; d < HOST_RESAMPLE_RANK; d++)
    windows[d] = (host_windows_t){0};
  for (int d = 0; d < HOST_RESAMPLE_RANK; d++) {
    host_windows_t *w = &windows[d];
    int64_t taps = how->taps[d], hi, k = 0;
    bool real = how->rank - HOST_RESAMPLE_RANK + d >= 2;
    w->lo = host_resample_index(how, d, y->lo);
    hi = real ? host_resample_index(how, d, y->hi) : 1;
    size_t count = (size_t)(hi - w->lo);
    w->at = malloc((count * (size_t)taps + 1) * sizeof *w->at);
    w->weight = malloc((count * (size_t)taps + 1) * sizeof *w->weight);
    w->counted = malloc((count + 1) * sizeof *w->counted);
    if (!w->at || !w->weight || !w->counted)
      return false;
    for (int64_t o = w->lo; o < hi; o++) {
      int64_t met = 0;
      for (int64_t tap = 0; tap < taps; tap++, k++) {
        w->at[k] = tap_at(how, d, o, tap, &w->weight[k]);
        met += w->at[k] >= 0;
      }
      w->counted[o - w->lo] = excludes ? met : taps;
    }
  }
  return true;
}

// ---- regions ---------------------------------------------------------------

static void widen(int64_t i, int64_t *io_lo, int64_t *io_hi) {
  if (*io_hi == *io_lo) {
    *io_lo = i;
    *io_hi = i + 1;
  }
  *io_lo = i < *io_lo ? i : *io_lo;
  *io_hi = i + 1 > *io_hi ? i + 1 : *io_hi;
}

host_region_t host_resample_under(const host_resample_t *how,
                                  const host_region_t *y) {
  host_region_t x = *y;
  double weight;
  for (int at = 2; at < how->rank; at++) {
    int d = at - how->rank + HOST_RESAMPLE_RANK;
    x.lo[at] = x.hi[at] = 0;
    for (int64_t o = y->lo[at]; o < y->hi[at]; o++)
      for (int64_t tap = 0; tap < how->taps[d]; tap++) {
        int64_t i = tap_at(how, d, o, tap, &weight);
        if (i >= 0)
          widen(i, &x.lo[at], &x.hi[at]);
      }
  }
  return x;
}

host_region_t host_resample_over(const host_resample_t *how,
                                 const host_region_t *x) {
  host_region_t y = *x;
  double weight;
  for (int at = 2; at < how->rank; at++) {
    int d = at - how->rank + HOST_RESAMPLE_RANK;
    y.lo[at] = y.hi[at] = 0;
    for (int64_t o = 0; o < how->out[d]; o++)
      for (int64_t tap = 0; tap < how->taps[d]; tap++) {
        int64_t i = tap_at(how, d, o, tap, &weight);
        if (i >= x->lo[at] && i < x->hi[at])
          widen(o, &y.lo[at], &y.hi[at]);
      }
  }
  return y;
}
// ---- one window ------------------------------------------------------------

host_box_of_t host_resample_box(const host_run_t *run, int tensor) {
  host_box_of_t box = {.region = &run->tensor[tensor].need,
                       .value = run->tensor[tensor].value};
  host_region_steps(box.region, box.step);
  return box;
}

// Where the image and channel of `index` begin in the box.
int64_t host_resample_image(const host_box_of_t *box, const int64_t *index) {
  return (index[0] - box->region->lo[0]) * box->step[0] +
         (index[1] - box->region->lo[1]) * box->step[1];
}

// Where spatial index i of dimension d of three lies, relative to the box.
int64_t host_resample_offset(const host_resample_t *how,
                             const host_box_of_t *box, int d, int64_t i) {
  int at = how->rank - HOST_RESAMPLE_RANK + d;
  return at < 2 ? 0 : (i - box->region->lo[at]) * box->step[at];
}

host_window_t host_window_at(const host_resample_t *how,
                             const host_windows_t *windows,
                             const int64_t *index) {
  host_window_t window = {.how = how, .counted = 1};
  for (int d = 0; d < HOST_RESAMPLE_RANK; d++) {
    int64_t o = host_resample_index(how, d, index) - windows[d].lo;
    window.at[d] = windows[d].at + o * how->taps[d];
    window.weight[d] = windows[d].weight + o * how->taps[d];
    window.counted *= (double)windows[d].counted[o];
  }
  return window;
}

// Tap `k`, row by row from 0: its offset in the box, or -1 in the padding.
static int64_t host_window_tap(const host_window_t *w, const host_box_of_t *box,
                               int64_t image, int64_t k, double *out_weight) {
  const int64_t *taps = w->how->taps;
  const int64_t tap[] = {k / taps[2] / taps[1], k / taps[2] % taps[1],
                         k % taps[2]};
  *out_weight = 1;
  for (int d = 0; d < HOST_RESAMPLE_RANK; d++) {
    int64_t i = w->at[d][tap[d]];
    if (i < 0)
      return -1;
    *out_weight *= w->weight[d][tap[d]];
    image += host_resample_offset(w->how, box, d, i);
  }
  return image;
}

// A mean's weights are 1, and its sum is divided once.
double host_window_sum(const host_window_t *w, const host_box_of_t *x,
                       int64_t image, int64_t taps) {
  double sum = 0, weight;
  for (int64_t k = 0; k < taps; k++) {
    int64_t at = host_window_tap(w, x, image, k, &weight);
    if (at >= 0)
      sum += weight * x->value[at];
  }
  if (!host_resample_is_mean(w->how))
    return sum;
  return w->counted > 0 ? sum / w->counted : 0;
}

// The position of the largest element, the first of equal ones, or -1. NaN is
// the largest if it propagates, else it is none.
int64_t host_window_most(const host_window_t *w, const host_box_of_t *x,
                         int64_t image, int64_t taps, double *out_value) {
  int64_t found = -1;
  double weight;
  *out_value = -INFINITY;
  for (int64_t k = 0; k < taps; k++) {
    int64_t at = host_window_tap(w, x, image, k, &weight);
    if (at < 0 && w->how->padding == CUDNN_NEG_INF_PAD)
      continue;
    double value = at < 0 ? 0 : x->value[at];
    if (isnan(value) && !w->how->propagates_nan)
      continue;
    if (found < 0 || value > *out_value || isnan(value)) {
      found = k;
      *out_value = value;
    }
    if (isnan(value))
      break;
  }
  return found;
}
