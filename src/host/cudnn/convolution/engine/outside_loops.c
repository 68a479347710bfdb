// SPDX-License-Identifier: Apache-2.0
// Infinities and NaN in operands of convolutions: finds them, replaces them,
// and adds their products.
#include <math.h>
#include <string.h>

#include "src/host/cudnn/base/real.h"
#include "src/host/cudnn/convolution/engine/outside.h"

// Elements that are looked at without a branch.
enum { HOST_BLOCK = 512 };

// `value - value` is 0 for numbers only; sums of zeros are exact.
static bool finite_block(const real_t *from) {
  real_t sum[8] = {0};
  for (int i = 0; i < HOST_BLOCK; i += 8)
    for (int j = 0; j < 8; j++)
      sum[j] += from[i + j] - from[i + j];
  real_t all = 0;
  for (int j = 0; j < 8; j++)
    all += sum[j];
  return all == 0;
}

static bool finite_row(const real_t *from, int64_t count, int64_t step) {
  int64_t i = 0;
  for (; step == 1 && i + HOST_BLOCK <= count; i += HOST_BLOCK)
    if (!finite_block(from + i))
      return false;
  real_t sum = 0;
  for (; i < count; i++)
    sum += from[i * step] - from[i * step];
  return sum == 0;
}

static int64_t offset(const int64_t stride[5], const int64_t at[5]) {
  int64_t sum = 0;
  for (int i = 0; i < 5; i++)
    sum += at[i] * stride[i];
  return sum;
}

// The next index without dimension `along`; false after the last one.
static bool next(const int64_t extent[5], int along, int64_t at[5]) {
  for (int i = 4; i >= 0; i--) {
    if (i == along)
      continue;
    if (++at[i] < extent[i])
      return true;
    at[i] = 0;
  }
  return false;
}

static bool has_elements(const int64_t extent[5]) {
  for (int i = 0; i < 5; i++)
    if (extent[i] <= 0)
      return false;
  return true;
}

// Memory without gaps is one row, whatever the order of the dimensions; else
// rows are along the dimension whose elements lie closest.
bool REAL(host_outside_finite)(const real_t *from, const int64_t extent[5],
                               const int64_t stride[5]) {
  int64_t span = 1, count = 1, at[5] = {0};
  int along = 4;
  if (!has_elements(extent))
    return true;
  for (int i = 4; i >= 0; i--) {
    span += (extent[i] - 1) * stride[i];
    count *= extent[i];
    if (extent[i] > 1 && (extent[along] == 1 || stride[i] < stride[along]))
      along = i;
  }
  if (span == count)
    return finite_row(from, count, 1);
  do {
    if (!finite_row(from + offset(stride, at), extent[along], stride[along]))
      return false;
  } while (next(extent, along, at));
  return true;
}

void REAL(host_outside_tame)(const real_t *from, const int64_t extent[5],
                             const int64_t stride[5], real_t *to) {
  int64_t at[5] = {0};
  if (!has_elements(extent))
    return;
  do {
    int64_t i = offset(stride, at);
    to[i] = isfinite(from[i])               ? from[i]
            : isinf(from[i]) && from[i] < 0 ? -1
                                            : 1;
  } while (next(extent, -1, at));
}

// Where one element of the window lies on x: outputs [first, first + count);
// output o meets the input o * stride + at.
typedef struct {
  int64_t at[HOST_SPATIAL], first[HOST_SPATIAL], count[HOST_SPATIAL];
} meeting_t;

static bool meet(const host_conv_t *conv, int tap, meeting_t *out) {
  bool any = true;
  for (int i = HOST_SPATIAL - 1; i >= 0; tap /= conv->window[i--]) {
    int64_t step = conv->stride[i];
    int64_t at =
        (int64_t)(tap % conv->window[i]) * conv->dilation[i] - conv->pad[i];
    int64_t first = at < 0 ? (-at + step - 1) / step : 0;
    int64_t end = at < conv->in[i] ? (conv->in[i] - at + step - 1) / step : 0;
    end = end > conv->out[i] ? conv->out[i] : end;
    out->at[i] = at;
    out->first[i] = first;
    out->count[i] = end - first;
    any &= first < end;
  }
  return any;
}

// The offset of an element of the window, not mirrored, in w's memory.
static int64_t weight_at(const host_conv_t *conv, int tap) {
  int64_t sum = 0;
  for (int i = HOST_SPATIAL - 1; i >= 0; tap /= conv->window[i--]) {
    int at = tap % conv->window[i];
    sum += (conv->flip ? conv->window[i] - 1 - at : at) * conv->w_stride[2 + i];
  }
  return sum;
}

static void dense(const int64_t extent[5], int64_t stride[5]) {
  int64_t at = 1;
  for (int i = 4; i >= 0; at *= extent[i--])
    stride[i] = at;
}

// One weight times the rows that it meets, of one channel each of x and y, or
// their gradients.
typedef struct {
  const real_t *from;
  real_t *to;
  int64_t from_step[4], to_step[4]; // image, then D H W of outputs
  int64_t count[4];
} rows_t;

static void add_rows(const rows_t *r, real_t w) {
  for (int64_t n = 0; n < r->count[0]; n++)
    for (int64_t d = 0; d < r->count[1]; d++)
      for (int64_t h = 0; h < r->count[2]; h++) {
        const real_t *from = r->from + n * r->from_step[0] +
                             d * r->from_step[1] + h * r->from_step[2];
        real_t *to =
            r->to + n * r->to_step[0] + d * r->to_step[1] + h * r->to_step[2];
        for (int64_t i = 0; i < r->count[3]; i++)
          to[i * r->to_step[3]] += from[i * r->from_step[3]] * w;
      }
}

// The rows of channel `c` of x and channel `k` of y, counted over all groups.
static rows_t rows_of(host_conv_kind_t kind, const host_conv_t *conv,
                      const meeting_t *met, int64_t c, int64_t k,
                      const int64_t stride[5], real_t *sums) {
  bool forward = kind == HOST_CONV_FORWARD;
  const int64_t *xs = forward ? conv->x_stride : stride;
  const int64_t *ys = forward ? stride : conv->y_stride;
  int64_t x = c * xs[1], y = k * ys[1];
  rows_t r = {.count = {conv->images}};
  int64_t *x_step = forward ? r.from_step : r.to_step;
  int64_t *y_step = forward ? r.to_step : r.from_step;
  x_step[0] = xs[0];
  y_step[0] = ys[0];
  for (int i = 0; i < HOST_SPATIAL; i++) {
    x += (met->first[i] * conv->stride[i] + met->at[i]) * xs[2 + i];
    y += met->first[i] * ys[2 + i];
    x_step[1 + i] = conv->stride[i] * xs[2 + i];
    y_step[1 + i] = ys[2 + i];
    r.count[1 + i] = met->count[i];
  }
  r.from = forward ? (const real_t *)conv->x + x : (const real_t *)conv->y + y;
  r.to = sums + (forward ? y : x);
  return r;
}

void REAL(host_outside_add_w)(host_conv_kind_t kind, const host_conv_t *conv,
                              real_t *sums) {
  bool forward = kind == HOST_CONV_FORWARD;
  int taps = conv->window[0] * conv->window[1] * conv->window[2];
  int outer = forward ? conv->k : conv->c, inner = forward ? conv->c : conv->k;
  const int64_t *rows = forward ? conv->out : conv->in;
  const int64_t extent[5] = {conv->images, (int64_t)conv->groups * outer,
                             rows[0], rows[1], rows[2]};
  int64_t stride[5];
  dense(extent, stride);
  for (int64_t group = 0; group < conv->groups; group++)
    for (int64_t a = 0; a < outer; a++)
      for (int tap = 0; tap < taps; tap++) {
        meeting_t met;
        if (!meet(conv, tap, &met))
          continue;
        for (int64_t b = 0; b < inner; b++) {
          int64_t c = forward ? b : a, k = group * conv->k + (forward ? a : b);
          real_t w =
              ((const real_t *)
                   conv->w)[k * conv->w_stride[0] + c * conv->w_stride[1] +
                            weight_at(conv, tap)];
          if (isfinite(w))
            continue;
          rows_t r =
              rows_of(kind, conv, &met, group * conv->c + c, k, stride, sums);
          add_rows(&r, w);
          if (isnan(w)) // and so are all of these sums now
            break;
        }
      }
}

// The products of one element of dy, which is at `at`. Returns how many sums
// became NaN.
static int64_t add_element(const host_conv_t *conv, const int64_t at[5],
                           real_t dy, real_t *sums) {
  const int *n = conv->window;
  int64_t lost = 0, group = at[1] / conv->k;
  const real_t *x = (const real_t *)conv->x + at[0] * conv->x_stride[0] +
                    group * conv->c * conv->x_stride[1];
  for (int64_t c = 0; c < conv->c; c++, x += conv->x_stride[1])
    for (int tap = 0; tap < n[0] * n[1] * n[2]; tap++, sums++) {
      const int element[] = {tap / n[2] / n[1], tap / n[2] % n[1], tap % n[2]};
      int64_t from = 0;
      bool inside = true;
      for (int i = 0; i < HOST_SPATIAL; i++) {
        int64_t in = at[2 + i] * conv->stride[i] - conv->pad[i] +
                     (int64_t)element[i] * conv->dilation[i];
        inside &= in >= 0 && in < conv->in[i];
        from += in * conv->x_stride[2 + i];
      }
      if (!inside || isnan(*sums))
        continue;
      *sums += x[from] * dy;
      lost += isnan(*sums);
    }
  return lost;
}

void REAL(host_outside_add_dy)(const host_conv_t *conv, real_t *sums) {
  int64_t count =
      (int64_t)conv->c * conv->window[0] * conv->window[1] * conv->window[2];
  int64_t extent[5] = {conv->images, 1, conv->out[0], conv->out[1],
                       conv->out[2]};
  for (int64_t k = 0; k < (int64_t)conv->groups * conv->k; k++) {
    real_t *mine = sums + k * count;
    int64_t numbers = 0, at[5] = {0, k};
    for (int64_t i = 0; i < count; i++)
      numbers += !isnan(mine[i]);
    do {
      real_t dy = ((const real_t *)conv->y)[offset(conv->y_stride, at)];
      if (!isfinite(dy))
        numbers -= add_element(conv, at, dy, mine);
    } while (numbers && next(extent, 1, at));
  }
}
