// SPDX-License-Identifier: Apache-2.0
// Graphs on NVIDIA's cudnn-frontend in C++, each checked against float64 loops:
// what its samples make of convolutions here, and of all else in matrix.hpp,
// norm.hpp and attention.hpp. With LAYER_VIEW=shard each rank has its rows (H)
// of every activation, and its rows (M) of products.
//
// usage: cases [TEXT]     only the graphs whose names contain TEXT
#include "attention.hpp"
#include "matrix.hpp"
#include "nets.hpp"
#include "norm.hpp"

#include <cstdio>
#include <cstdlib>

// ---- cases -----------------------------------------------------------------

struct shape_t {
  const char *name;
  dims_t x, w;
  window_t window;
  DataType_t type;
  bool channels_last;
};

static const shape_t shapes[] = {
    {"1x1", {2, 16, 24, 8}, {8, 16, 1, 1}, same(2, 0), f16, true},
    {"3x3", {2, 8, 24, 8}, {16, 8, 3, 3}, same(2), f16, true},
    {"3x3 NCHW", {2, 8, 24, 8}, {16, 8, 3, 3}, same(2), f16, false},
    {"5x3 float NCHW",
     {2, 6, 25, 9},
     {10, 6, 5, 3},
     {{2, 1}, {2, 1}, {1, 1}, {1, 1}},
     f32,
     false},
    {"3x3 bf16", {2, 8, 25, 9}, {8, 8, 3, 3}, same(2), bf16, true},
    {"dilated",
     {2, 8, 24, 9},
     {8, 8, 3, 3},
     {{2, 2}, {2, 2}, {1, 1}, {2, 2}},
     f16,
     true},
    {"grouped", {2, 8, 24, 9}, {8, 4, 3, 3}, same(2), f16, true},
    {"stride 2",
     {2, 8, 48, 8},
     {8, 8, 3, 3},
     {{1, 1}, {1, 1}, {2, 2}, {1, 1}},
     f16,
     true},
    {"causal",
     {2, 8, 24, 5},
     {8, 8, 4, 1},
     {{3, 0}, {0, 0}, {1, 1}, {1, 1}},
     f16,
     true},
    {"3-D", {1, 4, 5, 12, 6}, {4, 4, 3, 3, 3}, same(3), f16, true},
};

static void forward(const shape_t &s) {
  array_t x = random(s.x, s.type, s.channels_last),
          w = weights(s.w, s.type, s.channels_last),
          y = convolved(x, w, s.window, s.type);
  graph_t g(s.type);
  tensor_t image = g.in(x), filter = g.in(w);
  g.out(g.conv_fprop(image, filter, as<forward_t>(s.window)), y, "y");
  g.finish();
}

static void gradients(const shape_t &s) {
  array_t x = random(s.x, s.type, s.channels_last),
          w = weights(s.w, s.type, s.channels_last), dx = x, dw = w,
          dy = random(convolved(x, w, s.window, s.type).dim, s.type,
                      s.channels_last);
  dx.value.assign(dx.value.size(), 0);
  dw.value.assign(dw.value.size(), 0);
  products(x.dim, w.dim, dy.dim, s.window,
           [&](int64_t i, int64_t j, int64_t o) {
             dx.value[i] += w.value[j] * dy.value[o];
             dw.value[j] += x.value[i] * dy.value[o];
           });
  graph_t data(s.type), filter(s.type);
  tensor_t loss = data.in(dy), f = data.in(w);
  data.out(data.conv_dgrad(loss, f, as<data_t>(s.window)), dx, "dx");
  data.finish();
  loss = filter.in(dy);
  tensor_t image = filter.in(x);
  filter.out(filter.conv_wgrad(loss, image, as<filter_t>(s.window)), dw, "dw");
  filter.finish();
}

static const dims_t image{2, 8, 24, 8}, kernel{16, 8, 3, 3};
static const dims_t per_input{1, 8, 1, 1}, per_output{1, 16, 1, 1};

// Twice: the plan is kept.
static void epilogue(bool dynamic) {
  array_t x = random(image, f16), w = weights(kernel, f16),
          scale = random(per_output, f16, true, false),
          bias = random(per_output, f16, true, false),
          y = scaled(convolved(x, w, same(2), f16), scale, bias);
  graph_t g(f16);
  if (dynamic)
    g.set_dynamic_shape_enabled(true).set_kernel_cache(
        std::make_shared<fe::KernelCache>());
  tensor_t in = g.in(x), filter = g.in(w);
  g.out(g.scale_bias_relu(g.conv_fprop(in, filter, as<forward_t>(same(2))),
                          scale, bias),
        y);
  g.plan();
  for (int i = 0; i < 2; i++) {
    g.run();
    compare("y", y);
  }
}

static void statistics() {
  array_t x = random(image, f16), w = weights(kernel, f16),
          scale = random(per_input, f16, true, false),
          bias = random(per_input, f16, true, false),
          y = convolved(scaled(x, scale, bias), w, same(2), f16),
          sum{per_output, f32, true, false, std::vector<double>(16), nullptr},
          squares = sum;
  for (size_t i = 0; i < y.value.size(); i++) {
    sum.value[channel(y, int64_t(i))] += y.value[i];
    squares.value[channel(y, int64_t(i))] += y.value[i] * y.value[i];
  }
  graph_t g(f16);
  tensor_t in = g.in(x), filter = g.in(w),
           out = g.conv_fprop(g.scale_bias_relu(in, scale, bias), filter,
                              as<forward_t>(same(2)));
  auto [a, b] = g.genstats(out, fe::graph::Genstats_attributes());
  g.out(out, y, "y");
  g.out(a, sum, "sum");
  g.out(b, squares, "squares");
  g.finish();
}

static void residual() {
  array_t x = random(image, f16), w = weights(kernel, f16),
          z = random({2, 16, 24, 8}, f16),
          y = mapped(convolved(x, w, same(2), f16), [&](double v, int64_t i) {
            return std::max(0., v + z.value[i]);
          });
  graph_t g(f16);
  tensor_t in = g.in(x), filter = g.in(w), other = g.in(z);
  g.out(g.op(PointwiseMode_t::RELU_FWD,
             g.op(PointwiseMode_t::ADD,
                  g.conv_fprop(in, filter, as<forward_t>(same(2))), other)),
        y, "y");
  g.finish();
}

static void integers() {
  array_t x = random({2, 16, 24, 8}, i8),
          w = random({4, 16, 3, 3}, i8, true, false),
          y = convolved(x, w, same(2), i32);
  graph_t g(i8, i32, i32);
  tensor_t in = g.in(x), filter = g.in(w),
           sum = g.conv_fprop(in, filter, as<forward_t>(same(2)));
  g.out(g.op(PointwiseMode_t::IDENTITY, sum, sum), y, "y");
  g.finish();
}

static void over_channels() {
  array_t x = random(image, f16), w = weights(kernel, f16),
          y = convolved(x, w, same(2), f32),
          sum{{2, 1, 24, 8}, f32, true, true, {}, nullptr};
  sum.value.resize(size_t(count(sum.dim)));
  for (int64_t i = 0; i < count(y.dim); i++)
    sum.value[i / (16 * 24 * 8) * 24 * 8 + i % (24 * 8)] += y.value[i];
  graph_t g(f16);
  tensor_t in = g.in(x), filter = g.in(w);
  g.out(g.reduction(g.conv_fprop(in, filter, as<forward_t>(same(2))),
                    fe::graph::Reduction_attributes().set_mode(
                        fe::ReductionMode_t::ADD)),
        sum, "sum");
  g.finish();
}

static void data_of_relu() {
  array_t x = random(image, f16), w = weights(kernel, f16),
          dy = random({2, 16, 24, 8}, f16), dx = x;
  dx.value.assign(dx.value.size(), 0);
  products(x.dim, w.dim, dy.dim, same(2), [&](int64_t i, int64_t j, int64_t o) {
    dx.value[i] += x.value[i] > 0 ? w.value[j] * dy.value[o] : 0;
  });
  graph_t g(f16);
  tensor_t loss = g.in(dy), filter = g.in(w), in = g.in(x),
           back = g.conv_dgrad(loss, filter, as<data_t>(same(2)));
  back->set_dim(local_dim(dx));
  g.out(g.op(PointwiseMode_t::RELU_BWD, back, in), dx, "dx");
  g.finish();
}

static void filter_of_relu() {
  array_t x = random(image, f16), w = weights(kernel, f16), dw = w,
          scale = random(per_input, f16, true, false),
          bias = random(per_input, f16, true, false),
          dy = random({2, 16, 24, 8}, f16), seen = scaled(x, scale, bias);
  dw.value.assign(dw.value.size(), 0);
  products(x.dim, w.dim, dy.dim, same(2), [&](int64_t i, int64_t j, int64_t o) {
    dw.value[j] += seen.value[i] * dy.value[o];
  });
  graph_t g(f16, f16);
  tensor_t in = g.in(x), loss = g.in(dy);
  g.out(g.conv_wgrad(loss, g.scale_bias_relu(in, scale, bias),
                     as<filter_t>(same(2))),
        dw, "dw");
  g.finish();
}

static void two_results() {
  array_t x = random(image, f32), w = weights(kernel, f32),
          y = convolved(x, w, same(2), f32),
          z = mapped(y, [](double v, int64_t) {
            return v / 4 * (1 + std::erf(v / 2 / std::sqrt(2.)));
          });
  graph_t g(f32);
  tensor_t in = g.in(x), filter = g.in(w),
           out = g.conv_fprop(in, filter, as<forward_t>(same(2)));
  g.out(out, y, "y");
  g.out(g.op(PointwiseMode_t::GELU_FWD,
             g.op(PointwiseMode_t::MUL, out, g.tensor(0.5F))),
        z, "gelu");
  g.finish();
}

static void one_convolution(graph_t &g, array_t &y) {
  array_t x = random(image, f16), w = weights(kernel, f16);
  y = convolved(x, w, same(2), f16);
  tensor_t in = g.in(x), filter = g.in(w);
  g.out(g.conv_fprop(in, filter, as<forward_t>(same(2))), y);
}

static void serialized() {
  array_t y;
  graph_t g(f16), again(f16);
  std::vector<uint8_t> text;
  one_convolution(g, y);
  g.plan();
  check(g.serialize(text));
  check(again.deserialize(handle, text));
  again.pack = g.pack;
  again.run();
  compare("y", y);
}

static void every_plan() {
  array_t y;
  graph_t g(f16);
  one_convolution(g, y);
  g.plan(fe::BuildPlanPolicy_t::ALL);
  for (int64_t i = 0; i < g.get_execution_plan_count(); i++) {
    void *workspace = memory(size_t(g.get_workspace_size_plan_at_index(i)));
    check(cudaMemset(y.device, 0x7f, 64));
    check(g.execute_plan_at_index(handle, g.pack, workspace, i));
    compare("plan " + std::to_string(i), y);
  }
}

static void autotuned() {
  array_t y;
  graph_t g(f16);
  one_convolution(g, y);
  g.plan(fe::BuildPlanPolicy_t::ALL);
  void *workspace = memory(size_t(g.get_autotune_workspace_size()));
  check(g.autotune(handle, g.pack, workspace));
  check(cudaMemset(y.device, 0x7f, 64));
  g.run();
  compare("y", y);
}

// The whole view refuses captures.
static void captured() {
  array_t y;
  graph_t g(f16);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  const char *view = std::getenv("LAYER_VIEW");
  if (view && std::string(view) == "whole")
    return;
  one_convolution(g, y);
  g.plan();
  g.run();
  void *workspace = memory(size_t(g.get_workspace_size()));
  check(cudaMemset(y.device, 0x7f, 64));
  check(cudaStreamCreate(&stream));
  check(cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS, "a stream");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  check(g.execute(handle, g.pack, workspace));
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&executable, graph, 0));
  check(cudaGraphLaunch(executable, stream));
  check(cudaStreamSynchronize(stream));
  check(cudnnSetStream(handle, nullptr) == CUDNN_STATUS_SUCCESS, "no stream");
  compare("y", y);
}

int main(int words, char **word) {
  const char *view = std::getenv("LAYER_VIEW");
  pieces = view && std::string(view) == "shard";
  if (pieces) {
    this_rank = std::atoi(std::getenv("SUNDOG_RANK"));
    ranks = std::atoi(std::getenv("SUNDOG_SIZE"));
  }
  if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS)
    return EXIT_FAILURE;
  std::vector<std::pair<std::string, std::function<void()>>> cases{
      {"scale, bias, relu", [] { epilogue(false); }},
      {"dynamic shapes", [] { epilogue(true); }},
      {"statistics", statistics},
      {"residual", residual},
      {"integers", integers},
      {"sum over channels", over_channels},
      {"dgrad, relu backward", data_of_relu},
      {"scale, bias, relu, wgrad", filter_of_relu},
      {"two results", two_results},
      {"serialized", serialized},
      {"every plan", every_plan},
      {"autotuned", autotuned},
      {"captured", captured},
  };
  cases.insert(cases.end(), matrix_cases.begin(), matrix_cases.end());
  cases.insert(cases.end(), norm_cases.begin(), norm_cases.end());
  if (!pieces) // refused then
    cases.insert(cases.end(), whole_norm_cases.begin(), whole_norm_cases.end());
  cases.insert(cases.end(), net_cases.begin(), net_cases.end());
  for (auto &of_attention : attention_cases())
    cases.push_back(of_attention);
  for (const shape_t &s : shapes) {
    cases.push_back({std::string("conv ") + s.name, [&s] { forward(s); }});
    cases.push_back(
        {std::string("gradients ") + s.name, [&s] { gradients(s); }});
  }
  int ran = 0, failed = 0;
  for (auto &[name, run] : cases) {
    if (words > 1 && name.find(word[1]) == std::string::npos)
      continue;
    ran++;
    try {
      run();
    } catch (const std::exception &error) {
      failed++;
      std::printf("[%d] FAIL %s: %s\n", this_rank, name.c_str(), error.what());
    }
  }
  std::printf("[%d] %d graphs, %d wrong or refused\n", this_rank, ran, failed);
  cudnnDestroy(handle);
  return ran == 0 || failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
