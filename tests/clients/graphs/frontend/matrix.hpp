// SPDX-License-Identifier: Apache-2.0
// What cudnn-frontend's samples make of products of matrices, of poolings,
// pointwise operations and reductions, and of plans: chosen, timed, serialized,
// turned into CUDA graphs. In pieces, each rank has its rows (M) of a product;
// the second matrix is the same on all.
#pragma once
#include "graph.hpp"

#include <thread>

using matmul_t = fe::graph::Matmul_attributes;
using pool_t = fe::graph::Resample_attributes;

static array_t matrices(dims_t dim, DataType_t type, bool is_cut = true,
                        bool by_columns = false) {
  return random(dim, type, by_columns, is_cut);
}

// c[i, m, n] = f(sum over k of a[i, m, k] b[i, k, n], index)
static array_t multiplied(const array_t &a, const array_t &b, DataType_t type,
                          std::function<double(double, int64_t)> f = nullptr) {
  int64_t m = a.dim[1], k = a.dim[2], n = b.dim[2];
  array_t c{{a.dim[0], m, n}, type, false, a.is_cut, {}, nullptr};
  c.value.resize(size_t(count(c.dim)));
  for (int64_t at = 0; at < count(c.dim); at++) {
    int64_t row = at / n, batch = row / m;
    double sum = 0;
    for (int64_t i = 0; i < k; i++)
      sum += a.value[row * k + i] * b.value[(batch * k + i) * n + at % n];
    c.value[at] = f ? f(sum, at) : sum;
  }
  return c;
}

// ---- products --------------------------------------------------------------

static void product(DataType_t type, bool dynamic) {
  auto cache = std::make_shared<fe::KernelCache>();
  for (int64_t size : {32, 40, 64}) {
    array_t a = matrices({4, size, 128}, type),
            b = matrices({4, 128, size}, type, false),
            c = multiplied(a, b, f32);
    graph_t g(type);
    if (dynamic)
      g.set_dynamic_shape_enabled(true).set_kernel_cache(cache);
    tensor_t left = g.in(a), right = g.in(b);
    g.out(g.matmul(left, right, matmul_t()), c);
    g.plan(fe::BuildPlanPolicy_t::ALL);
    g.run();
    compare("c", c);
  }
}

// A product of |a|, and one of a + its bias.
static void before() {
  array_t a = matrices({4, 32, 128}, bf16),
          b = matrices({4, 128, 64}, bf16, false),
          bias = matrices({4, 32, 1}, bf16),
          positive = mapped(a, [](double v, int64_t) { return std::fabs(v); }),
          shifted = mapped(
              a, [&](double v, int64_t i) { return v + bias.value[i / 128]; }),
          c = multiplied(positive, b, f32), d = multiplied(shifted, b, f32);
  graph_t g(bf16, bf16), h(bf16, bf16);
  tensor_t left = g.op(PointwiseMode_t::ABS, g.in(a)), right = g.in(b);
  g.out(g.matmul(left, right, matmul_t()), c, "of |a|");
  g.finish();
  left = h.in(a);
  left = h.op(PointwiseMode_t::ADD, left, h.in(bias));
  right = h.in(b);
  h.out(h.matmul(left, right, matmul_t()), d, "of a + bias");
  h.finish();
}

// relu(a b * scale + bias); both matrices are in columns.
static void behind() {
  array_t a = matrices({4, 16, 64}, f16, false, true),
          b = matrices({4, 64, 32}, f16, false, true),
          scale = matrices({4, 16, 32}, f16, false),
          bias = matrices({4, 16, 32}, f16, false),
          c = multiplied(a, b, f16, [&](double sum, int64_t i) {
            return std::max(0., sum * scale.value[i] + bias.value[i]);
          });
  graph_t g(f16);
  tensor_t left = g.in(a), right = g.in(b);
  g.out(g.scale_bias_relu(g.matmul(left, right, matmul_t()), scale, bias), c);
  g.plan(fe::BuildPlanPolicy_t::ALL);
  void *workspace = memory(size_t(g.get_autotune_workspace_size()));
  check(g.autotune(handle, g.pack, workspace));
  g.run();
  compare("c", c);
}

static void of_integers() {
  array_t a = matrices({4, 32, 64}, i8),
          b = matrices({4, 64, 32}, i8, false, true),
          bias = matrices({4, 32, 32}, f32),
          c = multiplied(a, b, f32, [&](double sum, int64_t i) {
            return sum + bias.value[i];
          });
  graph_t g(i8);
  tensor_t left = g.in(a), right = g.in(b),
           sum = g.matmul(left, right, matmul_t().set_compute_data_type(i32));
  g.out(g.op(PointwiseMode_t::ADD, sum, g.in(bias)), c, "c");
  g.finish();
}

// Integers that become bfloat16 on their way.
static void mixed() {
  array_t a = matrices({4, 32, 128}, i8),
          b = matrices({4, 128, 64}, bf16, false), c = multiplied(a, b, bf16);
  graph_t g(bf16, bf16);
  tensor_t left = g.op(PointwiseMode_t::IDENTITY, g.in(a)), right = g.in(b);
  g.out(g.matmul(left, right, matmul_t()), c, "c");
  g.finish();
}

static void of_bytes() {
  array_t a = matrices({4, 32, 128}, fp8),
          b = matrices({4, 128, 64}, fp8, false, true),
          first = random({1, 1, 1}, f32, false, false),
          second = random({1, 1, 1}, f32, false, false),
          c = multiplied(a, b, bf16, [&](double sum, int64_t) {
            return sum * first.value[0] * second.value[0];
          });
  graph_t g(fp8);
  tensor_t left = g.in(a), right = g.in(b),
           sum = g.matmul(left, right, matmul_t());
  sum = g.op(PointwiseMode_t::MUL, sum, g.in(first));
  g.out(g.op(PointwiseMode_t::MUL, sum, g.in(second)), c, "c");
  g.finish();
}

// Rows and members of the first matrix are left out. Without a split: a slice
// is no piece, and the execution by which the frontend warms a plan up,
// captured with pointers that differ, is refused in the whole view.
static void sliced() {
  if (std::getenv("LAYER_VIEW"))
    return;
  array_t all = matrices({11, 23, 64}, f16, false),
          part{{8, 16, 64}, f16, false, false, {}, nullptr},
          b = matrices({8, 64, 32}, f16, false);
  for (int64_t i = 0; i < count(part.dim); i++)
    part.value.push_back(
        all.value[((i / 1024 + 1) * 23 + i / 64 % 16 + 3) * 64 + i % 64]);
  array_t c = multiplied(part, b, f16,
                         [](double sum, int64_t) { return std::max(0., sum); });
  graph_t g(f16), again(f16);
  std::vector<uint8_t> text;
  tensor_t left = g.slice(g.in(all), fe::graph::Slice_attributes().set_slices(
                                         {{1, 9}, {3, 19}, {0, 64}}));
  left->set_data_type(f16);
  tensor_t right = g.in(b);
  g.out(g.op(PointwiseMode_t::RELU_FWD, g.matmul(left, right, matmul_t())), c);
  check(g.build(handle, {fe::HeurMode_t::A}));
  check(g.serialize(text));
  check(again.deserialize(handle, text));
  again.pack = g.pack;
  again.run();
  compare("c", c);
}

// ---- plans -----------------------------------------------------------------

static void one_product(graph_t &g, array_t &c) {
  array_t a = matrices({4, 32, 128}, bf16),
          b = matrices({4, 128, 64}, bf16, false);
  c = multiplied(a, b, bf16);
  tensor_t left = g.in(a), right = g.in(b);
  g.out(g.matmul(left, right, matmul_t()), c);
  check(g.validate());
  check(g.build_operation_graph(handle));
}

// The program writes every engine's plan itself.
static void every_engine() {
  array_t c;
  graph_t g(bf16);
  int64_t engines;
  one_product(g, c);
  check(g.get_engine_count(engines));
  for (int64_t id = 0; id < engines; id++) {
    std::vector<fe::Knob> knobs;
    std::unordered_map<fe::KnobType_t, int64_t> choice;
    if (g.get_knobs_for_engine(id, knobs).is_bad())
      continue;
    for (auto &knob : knobs)
      choice[knob.type] = knob.minValue + knob.stride;
    (void)g.create_execution_plan(id, choice);
  }
  check(g.check_support());
  check(g.build_plans(fe::BuildPlanPolicy_t::ALL));
  check(g.get_execution_plan_count() > 0, "no plan");
  for (int64_t i = 0; i < g.get_execution_plan_count(); i++) {
    void *workspace = memory(size_t(g.get_workspace_size_plan_at_index(i)));
    check(cudaMemset(c.device, 0x7f, 64));
    check(g.execute_plan_at_index(handle, g.pack, workspace, i));
    compare("plan " + std::to_string(i), c);
  }
}

// Plans are built by threads, and timed by the program.
static void timed() {
  array_t c;
  graph_t g(bf16);
  cudaEvent_t start, stop;
  one_product(g, c);
  check(g.create_execution_plans({fe::HeurMode_t::A}));
  g.deselect_workspace_greater_than(1 << 20);
  check(g.check_support());
  int64_t plans = g.get_execution_plan_count(), best = 0;
  std::vector<std::thread> builders;
  std::vector<float> ms(size_t(plans), 1e9F);
  for (int64_t i = 0; i < plans; i++)
    builders.emplace_back([&g, i] { (void)g.build_plan_at_index(i); });
  for (auto &builder : builders)
    builder.join();
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&stop));
  for (int64_t i = 0; i < plans; i++) {
    void *workspace = memory(size_t(g.get_workspace_size_plan_at_index(i)));
    if (g.execute_plan_at_index(handle, g.pack, workspace, i).is_bad())
      continue;
    check(cudaDeviceSynchronize());
    check(cudaEventRecord(start, nullptr));
    for (int repeat = 0; repeat < 10; repeat++)
      check(g.execute_plan_at_index(handle, g.pack, workspace, i));
    check(cudaEventRecord(stop, nullptr));
    check(cudaEventSynchronize(stop));
    check(cudaEventElapsedTime(&ms[size_t(i)], start, stop));
    if (ms[size_t(i)] < ms[size_t(best)])
      best = i;
  }
  check(g.build_plan_at_index(best));
  check(cudaMemset(c.device, 0x7f, 64));
  g.run();
  compare("c", c);
}

// A plan for a device of which only a description is here.
static void without_device() {
  array_t x = random({2, 8, 24, 8}, f16),
          w = random({16, 8, 3, 3}, f16, true, false, 0.3),
          y = convolved(x, w, same(2), f16);
  auto here = std::make_shared<fe::DeviceProperties>(),
       there = std::make_shared<fe::DeviceProperties>();
  std::vector<uint8_t> text, plan;
  here->set_device_id(0);
  check(here->build());
  check(here->serialize(text));
  check(there->deserialize(text));
  graph_t g(f16), again(f16);
  g.set_device_properties(there);
  tensor_t image = g.in(x), filter = g.in(w);
  g.out(g.conv_fprop(image, filter,
                     fe::graph::Conv_fprop_attributes()
                         .set_padding({1, 1})
                         .set_stride({1, 1})
                         .set_dilation({1, 1})),
        y);
  check(g.build({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
  check(g.serialize(plan));
  check(again.deserialize(handle, plan));
  again.pack = g.pack;
  again.run();
  compare("y", y);
}

// A node of a larger CUDA graph, whose executable then gets other memory.
// Where a split is asked for in pieces, no engine has the note.
static void native_graph() {
  array_t a = matrices({8, 32, 8}, f16), b = matrices({8, 8, 16}, f16, false),
          c = multiplied(a, b, f16,
                         [](double sum, int64_t) { return sum / 2 + 2; });
  graph_t g(f16);
  const uint16_t two = 0x4000;
  tensor_t left = g.op(PointwiseMode_t::MUL, g.in(a), g.tensor(0.5F));
  left->set_data_type(f16);
  tensor_t right = g.in(b), sum = g.matmul(left, right, matmul_t()),
           bias = g.tensor(fe::graph::Tensor_attributes()
                               .set_dim({1, 1, 1})
                               .set_stride({1, 1, 1})
                               .set_is_pass_by_value(true)
                               .set_uid(77));
  g.out(g.op(PointwiseMode_t::ADD, sum, bias), c);
  g.pack[77] = const_cast<uint16_t *>(&two);
  check(g.validate());
  check(g.build_operation_graph(handle));
  check(g.create_execution_plans({fe::HeurMode_t::A}));
  g.select_behavior_notes({fe::BehaviorNote_t::SUPPORTS_CUDA_GRAPH_NATIVE_API});
  if (pieces) {
    check(g.check_support().is_bad(), "an engine makes nodes of CUDA graphs");
    return;
  }
  check(g.check_support());
  check(g.build_plans());
  cudaGraph_t all, own;
  cudaGraphNode_t node;
  cudaGraphExec_t executable;
  void *workspace = memory(size_t(g.get_workspace_size()));
  check(cudaGraphCreate(&all, 0));
  check(cudaGraphCreate(&own, 0));
  check(g.populate_cuda_graph(handle, g.pack, workspace, own));
  check(cudaGraphAddChildGraphNode(&node, all, nullptr, 0, own));
  check(cudaGraphDestroy(own));
  check(cudaGraphInstantiate(&executable, all, nullptr, nullptr, 0));
  check(cudaGraphLaunch(executable, nullptr));
  compare("c", c);
  for (auto &[uid, at] : g.pack)
    if (at == c.device)
      at = output(c);
  check(cudaGraphChildGraphNodeGetGraph(node, &own));
  check(g.update_cuda_graph(handle, g.pack, workspace, own));
  check(cudaGraphExecChildGraphNodeSetParams(executable, node, own));
  check(cudaGraphLaunch(executable, nullptr));
  compare("c elsewhere", c);
  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(all));
}

// ---- values ----------------------------------------------------------------

static void largest(bool absolute) {
  array_t x = random({4, 8, 12, 8}, f32), scale = random({1, 1, 1, 1}, f32),
          most{{1, 1, 1, 1}, f32, true, false, {-10}, nullptr},
          y = mapped(x, [&](double v, int64_t) { return v * scale.value[0]; });
  scale.is_cut = false;
  for (double v : x.value)
    most.value[0] = std::max(most.value[0], absolute ? std::fabs(v) : v);
  graph_t g(f32);
  tensor_t in = g.in(x);
  g.out(g.reduction(in, fe::graph::Reduction_attributes().set_mode(
                            absolute ? fe::ReductionMode_t::AMAX
                                     : fe::ReductionMode_t::MAX)),
        most, "most");
  if (absolute) {
    y.type = fp8;
    g.out(g.op(PointwiseMode_t::MUL, in, g.in(scale)), y, "scaled");
  }
  g.finish();
}

static void plus_number() {
  array_t x = random({4, 4, 4}, f16, false, false),
          y = mapped(x, [](double v, int64_t) { return v + 5; });
  graph_t g(f16);
  g.out(g.op(PointwiseMode_t::ADD, g.in(x), g.tensor(5.F)), y, "y");
  g.finish();
}

// Rows of which no window begins in another rank's: pieces of 4 rows of y.
static void pooled(bool is_maximum, bool with_index) {
  array_t x = random({4, 8, 48, 20}, f16),
          y{{4, 8, 12, 5}, f16, true, true, {}, nullptr}, index = y;
  index.type = i8;
  index.value.resize(size_t(count(y.dim)));
  for (int64_t at = 0; at < count(y.dim); at++) {
    int64_t row = at / 5 % 12 * 4, column = at % 5 * 4, best = 0;
    double most = -10, sum = 0;
    for (int64_t i = 0; i < 6; i++) {
      double v = x.value[(at / 60 * 48 + row + i / 3) * 20 + column + i % 3];
      sum += v;
      if (v > most) {
        most = v;
        best = i;
      }
    }
    y.value.push_back(is_maximum ? most : sum / 6);
    index.value[at] = double(best);
  }
  graph_t g(f16);
  tensor_t in = g.in(x);
  auto how = pool_t()
                 .set_generate_index(with_index)
                 .set_resampling_mode(
                     is_maximum ? fe::ResampleMode_t::MAXPOOL
                                : fe::ResampleMode_t::AVGPOOL_INCLUDE_PADDING)
                 .set_padding_mode(is_maximum ? fe::PaddingMode_t::NEG_INF_PAD
                                              : fe::PaddingMode_t::ZERO_PAD)
                 .set_window({2, 3})
                 .set_stride({4, 4})
                 .set_pre_padding({0, 0})
                 .set_post_padding({0, 0});
  auto [out, where] = g.resample(in, how);
  g.out(out, y, "y");
  if (with_index)
    g.out(where, index, "index");
  g.finish();
}

static const std::vector<std::pair<std::string, std::function<void()>>>
    matrix_cases{
        {"product", [] { product(bf16, false); }},
        {"product, dynamic shapes", [] { product(bf16, true); }},
        {"product of halves", [] { product(f16, false); }},
        {"operations before a product", before},
        {"operations behind a product", behind},
        {"product of integers", of_integers},
        {"product of mixed types", mixed},
        {"product of 8-bit floats", of_bytes},
        {"product of a slice", sliced},
        {"plans of every engine", every_engine},
        {"plans that threads build", timed},
        {"plan without a device", without_device},
        {"nodes of a CUDA graph", native_graph},
        {"maximum", [] { largest(false); }},
        {"absolute maximum", [] { largest(true); }},
        {"plus a number", plus_number},
        {"pool max", [] { pooled(true, false); }},
        {"pool max, index", [] { pooled(true, true); }},
        {"pool mean", [] { pooled(false, false); }},
    };
