// SPDX-License-Identifier: Apache-2.0
// Arrays for cases.cpp: all values of a tensor in float64, this rank's piece
// of it in device memory, and convolutions by loops.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <cudnn_frontend.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

using cudnn_frontend::DataType_t;
using dims_t = std::vector<int64_t>;

static constexpr DataType_t f16 = DataType_t::HALF, f32 = DataType_t::FLOAT,
                            bf16 = DataType_t::BFLOAT16, i8 = DataType_t::INT8,
                            i32 = DataType_t::INT32, fp8 = DataType_t::FP8_E4M3;
// With pieces each rank has its rows of every activation.
static int this_rank = 0, ranks = 1;
static bool pieces = false;

static void check(bool good, const std::string &what) {
  if (!good)
    throw std::runtime_error(what);
}
static void check(cudaError_t status) {
  check(status == cudaSuccess, cudaGetErrorString(status));
}

// ---- arrays ----------------------------------------------------------------

// All values of a tensor N C ..., and where it is in memory. An activation's
// rows are cut into the ranks' pieces.
struct array_t {
  dims_t dim;
  DataType_t type;
  bool channels_last = true, is_cut = true;
  std::vector<double> value;
  void *device = nullptr;
  int cut_at = -1; // the dimension; -1: that of rows
  // Pieces begin at multiples of it; 0: of two rows, where that can be, so that
  // outputs of stride 2 add up.
  int64_t unit = 0;
};

static int64_t count(const dims_t &dim) {
  int64_t product = 1;
  for (int64_t extent : dim)
    product *= extent;
  return product;
}

static size_t bytes(DataType_t type) {
  return type == f16 || type == bf16 ? 2 : type == i8 || type == fp8 ? 1 : 4;
}

static void store(char *at, double value, DataType_t type) {
  switch (type) {
  case f16:
    *reinterpret_cast<__half *>(at) = __float2half(float(value));
    break;
  case bf16:
    *reinterpret_cast<__nv_bfloat16 *>(at) = __float2bfloat16(float(value));
    break;
  case f32:
    *reinterpret_cast<float *>(at) = float(value);
    break;
  case i32:
    *reinterpret_cast<int32_t *>(at) = int32_t(value);
    break;
  case fp8:
    *reinterpret_cast<__nv_fp8_e4m3 *>(at) = __nv_fp8_e4m3(float(value));
    break;
  default:
    *reinterpret_cast<int8_t *>(at) = int8_t(value);
  }
}

static double load(const char *at, DataType_t type) {
  switch (type) {
  case f16:
    return __half2float(*reinterpret_cast<const __half *>(at));
  case bf16:
    return __bfloat162float(*reinterpret_cast<const __nv_bfloat16 *>(at));
  case f32:
    return *reinterpret_cast<const float *>(at);
  case i32:
    return *reinterpret_cast<const int32_t *>(at);
  case fp8:
    return float(*reinterpret_cast<const __nv_fp8_e4m3 *>(at));
  default:
    return *reinterpret_cast<const int8_t *>(at);
  }
}

static double drawn() {
  static uint64_t state = 0x9e3779b97f4a7c15u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return double(state % 2001) / 1000 - 1;
}

static array_t random(dims_t dim, DataType_t type, bool channels_last = true,
                      bool is_cut = true, double scale = 1) {
  array_t a{dim, type, channels_last, is_cut, {}, nullptr};
  for (int64_t i = count(dim); i > 0; i--) {
    char bits[8];
    store(bits, drawn() * (type == i8 ? 5 : scale), type);
    a.value.push_back(load(bits, type));
  }
  return a;
}

static array_t weights(dims_t dim, DataType_t type, bool last = true) {
  return random(dim, type, last, false, 0.3);
}

static int rows_at(const array_t &a) {
  return a.cut_at < 0 ? int(a.dim.size()) - 2 : a.cut_at;
}

static int64_t first_row(const array_t &a, int rank) {
  int64_t rows = a.dim[rows_at(a)], unit = a.unit ? a.unit : rows % 2 ? 1 : 2;
  return rows / unit * rank / ranks * unit;
}

static dims_t local_dim(const array_t &a) {
  dims_t dim = a.dim;
  if (pieces && a.is_cut)
    dim[rows_at(a)] = first_row(a, this_rank + 1) - first_row(a, this_rank);
  return dim;
}

static dims_t strides(const dims_t &dim, bool channels_last) {
  dims_t stride(dim.size(), 1);
  int64_t next = channels_last ? dim[1] : 1;
  for (size_t d = dim.size(); d-- > 0;)
    if (d != 1 || !channels_last) {
      stride[d] = next;
      next *= dim[d];
    }
  return stride;
}

// For each element that this rank has: its index in `value`, and its offset.
static void each(const array_t &a,
                 std::function<void(int64_t, int64_t)> visit) {
  dims_t dim = local_dim(a), stride = strides(dim, a.channels_last);
  int64_t begin = pieces && a.is_cut ? first_row(a, this_rank) : 0;
  for (int64_t i = 0; i < count(dim); i++) {
    int64_t rest = i, index = 0, offset = 0;
    dims_t at(dim.size());
    for (size_t d = dim.size(); d-- > 0; rest /= dim[d])
      at[d] = rest % dim[d];
    for (size_t d = 0; d < dim.size(); d++) {
      offset += at[d] * stride[d];
      index = index * a.dim[d] + at[d] + (int(d) == rows_at(a) ? begin : 0);
    }
    visit(index, offset);
  }
}

static void *memory(size_t size) {
  void *at;
  check(cudaMalloc(&at, size + 1));
  check(cudaMemset(at, 0x7f, size + 1));
  return at;
}

static void *output(array_t &a) {
  return a.device = memory(size_t(count(local_dim(a))) * bytes(a.type));
}

// Writes this rank's values to where the array is in memory.
static void upload(const array_t &a) {
  size_t size = bytes(a.type);
  std::vector<char> host(size_t(count(local_dim(a))) * size);
  each(a, [&](int64_t index, int64_t offset) {
    store(&host[offset * size], a.value[index], a.type);
  });
  check(cudaMemcpy(a.device, host.data(), host.size(), cudaMemcpyHostToDevice));
}

static void *input(array_t &a) {
  output(a);
  upload(a);
  return a.device;
}

static double tolerance_of(DataType_t type) {
  return type == fp8                 ? 7e-2
         : type == bf16              ? 1.6e-2
         : type == i32 || type == i8 ? 0
                                     : 4e-3;
}

// tolerance: the error that is allowed, as a part of the largest value.
static void compare(const std::string &name, const array_t &a,
                    double tolerance) {
  size_t size = bytes(a.type);
  std::vector<char> host(size_t(count(local_dim(a))) * size);
  double off = 0, most = 0;
  check(cudaDeviceSynchronize());
  check(cudaMemcpy(host.data(), a.device, host.size(), cudaMemcpyDeviceToHost));
  each(a, [&](int64_t index, int64_t offset) {
    double error =
        std::fabs(load(&host[offset * size], a.type) - a.value[index]);
    off = error <= off ? off : error;
    most = std::max(most, std::fabs(a.value[index]));
  });
  check(off <= tolerance * most, name + ": off by " + std::to_string(off) +
                                     " of " + std::to_string(most));
}

static void compare(const std::string &name, const array_t &a) {
  compare(name, a, tolerance_of(a.type));
}

// ---- what is right ---------------------------------------------------------

struct window_t {
  dims_t pre, post, stride, dilation;
};

static window_t same(int spatial, int64_t pad = 1) {
  size_t n = size_t(spatial);
  return {dims_t(n, pad), dims_t(n, pad), dims_t(n, 1), dims_t(n, 1)};
}

// Calls visit(x, w, y) with the indices of the factors of each product.
static void
products(const dims_t &x, const dims_t &w, const dims_t &y, const window_t &v,
         const std::function<void(int64_t, int64_t, int64_t)> &visit) {
  dims_t space_x(x.begin() + 2, x.end()), space_w(w.begin() + 2, w.end()),
      space_y(y.begin() + 2, y.end());
  int64_t of_group = w[0] / (x[1] / w[1]);
  for (int64_t out = 0; out < count(y); out++)
    for (int64_t tap = 0; tap < count(space_w); tap++) {
      int64_t rest = out, tap_rest = tap, at = 0, scale = 1;
      bool inside = true;
      for (size_t d = space_x.size(); d-- > 0;) {
        int64_t row = rest % space_y[d] * v.stride[d] - v.pre[d] +
                      tap_rest % space_w[d] * v.dilation[d];
        inside = inside && row >= 0 && row < space_x[d];
        at += row * scale;
        scale *= space_x[d];
        rest /= space_y[d];
        tap_rest /= space_w[d];
      }
      int64_t k = rest % y[1], n = rest / y[1], c0 = k / of_group * w[1];
      for (int64_t c = 0; inside && c < w[1]; c++)
        visit((n * x[1] + c0 + c) * scale + at,
              (k * w[1] + c) * count(space_w) + tap, out);
    }
}

static array_t convolved(const array_t &x, const array_t &w, const window_t &v,
                         DataType_t type) {
  dims_t dim{x.dim[0], w.dim[0]};
  for (size_t d = 2; d < x.dim.size(); d++)
    dim.push_back((x.dim[d] + v.pre[d - 2] + v.post[d - 2] -
                   v.dilation[d - 2] * (w.dim[d] - 1) - 1) /
                      v.stride[d - 2] +
                  1);
  array_t y{dim, type, x.channels_last, true, {}, nullptr};
  y.value.resize(size_t(count(dim)));
  products(x.dim, w.dim, dim, v, [&](int64_t i, int64_t j, int64_t o) {
    y.value[o] += x.value[i] * w.value[j];
  });
  return y;
}

static int64_t channel(const array_t &a, int64_t index) {
  return index / count(dims_t(a.dim.begin() + 2, a.dim.end())) % a.dim[1];
}

static array_t mapped(array_t a, std::function<double(double, int64_t)> f) {
  for (size_t i = 0; i < a.value.size(); i++)
    a.value[i] = f(a.value[i], int64_t(i));
  return a;
}

static array_t scaled(const array_t &a, const array_t &scale,
                      const array_t &bias) {
  return mapped(a, [&](double v, int64_t i) {
    int64_t c = channel(a, i);
    return std::max(0., v * scale.value[c] + bias.value[c]);
  });
}
