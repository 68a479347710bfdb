// SPDX-License-Identifier: Apache-2.0
// What cudnn-frontend's samples make of normalisations: layer, RMS, adaptive
// layer, instance and batch normalisation, their gradients, and operations
// around them.
#pragma once
#include "graph.hpp"

static const float epsilon = 1e-3F;

// ---- what is right ---------------------------------------------------------

// The index of an element of `all` in a tensor that has some of its extents,
// and 1 elsewhere.
static int64_t under(const dims_t &some, const dims_t &all, int64_t i) {
  int64_t index = 0, step = 1;
  for (size_t d = all.size(); d-- > 0; i /= all[d]) {
    index += some[d] == 1 ? 0 : i % all[d] * step;
    step *= some[d];
  }
  return index;
}

// An array beside one that is cut: it is cut, too, if it has these elements.
static array_t beside(array_t a, const array_t &other) {
  a.cut_at = rows_at(other);
  a.is_cut = other.is_cut && a.dim[size_t(a.cut_at)] > 1;
  return a;
}

static array_t zeros(const dims_t &dim, bool channels_last = true) {
  array_t a{dim, f32, channels_last, false, {}, nullptr};
  a.value.resize(size_t(count(dim)));
  return a;
}

// Means of f(index) over the elements of x that share a statistic.
static array_t means(const array_t &x, const dims_t &statistics,
                     const std::function<double(int64_t)> &f) {
  array_t mean = beside(zeros(statistics, x.channels_last), x);
  for (int64_t i = 0; i < count(x.dim); i++)
    mean.value[under(statistics, x.dim, i)] +=
        f(i) * double(count(statistics)) / double(count(x.dim));
  return mean;
}

struct normal_t {
  array_t mean, variance, inverse, value; // value: (x - mean) * inverse
};

static normal_t normalized(const array_t &x, const dims_t &statistics,
                           bool centred) {
  normal_t n;
  auto at = [&](const array_t &a, int64_t i) {
    return a.value[under(statistics, x.dim, i)];
  };
  n.mean =
      means(x, statistics, [&](int64_t i) { return centred ? x.value[i] : 0; });
  n.variance = means(x, statistics, [&](int64_t i) {
    return std::pow(x.value[i] - at(n.mean, i), 2);
  });
  n.inverse = mapped(n.variance, [](double v, int64_t) {
    return 1 / std::sqrt(v + double(epsilon));
  });
  n.value = mapped(x, [&](double v, int64_t i) {
    return (v - at(n.mean, i)) * at(n.inverse, i);
  });
  return n;
}

static array_t transformed(const array_t &x, const array_t &scale,
                           const array_t &bias) {
  return mapped(x, [&](double v, int64_t i) {
    return v * scale.value[under(scale.dim, x.dim, i)] +
           (bias.value.empty() ? 0 : bias.value[under(bias.dim, x.dim, i)]);
  });
}

struct gradients_t {
  array_t dx, dscale, dbias;
};

static gradients_t gradients_of(const normal_t &n, const array_t &scale,
                                const array_t &dy, bool centred) {
  array_t none = beside(zeros(scale.dim, scale.channels_last), dy);
  gradients_t g{dy, none, none};
  const dims_t &x = dy.dim, &few = n.inverse.dim;
  auto slope = [&](int64_t i) {
    return dy.value[i] * scale.value[under(scale.dim, x, i)];
  };
  array_t along =
      means(dy, few, [&](int64_t i) { return slope(i) * n.value.value[i]; });
  array_t shift =
      means(dy, few, [&](int64_t i) { return centred ? slope(i) : 0; });
  for (int64_t i = 0; i < count(x); i++) {
    int64_t at = under(few, x, i), parameter = under(scale.dim, x, i);
    g.dx.value[i] = n.inverse.value[at] * (slope(i) - shift.value[at] -
                                           n.value.value[i] * along.value[at]);
    g.dscale.value[parameter] += dy.value[i] * n.value.value[i];
    g.dbias.value[parameter] += dy.value[i];
  }
  return g;
}

// ---- cases -----------------------------------------------------------------

enum kind_t { LAYER, RMS, ADAPTIVE, INSTANCE, BATCH };

// Extents of x, the scale and the statistics. Each sample of an adaptive one
// has a scale and a bias of its own.
struct layer_t {
  kind_t kind;
  dims_t x, scale, statistics;
  int cut_at; // the dimension of x that is cut
  bool channels_last = true;
  bool is_centred() const {
    return kind != RMS;
  }
};
static const layer_t layer{
    LAYER, {96, 64, 1, 1}, {1, 64, 1, 1}, {96, 1, 1, 1}, 0},
    rms{RMS, {96, 64, 1, 1}, {1, 64, 1, 1}, {96, 1, 1, 1}, 0},
    adaptive{ADAPTIVE, {4, 24, 64}, {4, 1, 64}, {4, 24, 1}, 1, false},
    instance{INSTANCE, {4, 32, 8, 8}, {1, 32, 1, 1}, {4, 32, 1, 1}, 2},
    batch{BATCH, {4, 32, 8, 8}, {1, 32, 1, 1}, {1, 32, 1, 1}, 2};

// What a case has, or has not.
enum {
  INFERENCE = 1 << 0, // without statistics
  UNBIASED = 1 << 1,
  ONE_MORE = 1 << 2, // the program has the scale less 1
  SUM = 1 << 3,      // another tensor is added to y
  MASK = 1 << 4,    // y is cut at 0, and its gradient by a mask of what was not
  BYTES = 1 << 5,   // a number times y, as 8-bit floats
  RUNNING = 1 << 6, // running statistics
  PEERS = 1 << 7    // memory that two GPUs would share, of which there is one,
                    // on a part of its processors
};

struct norm_t {
  const layer_t &layer;
  DataType_t type;
  int what = 0;
  bool has(int flag) const {
    return what & flag;
  }
};

static array_t parameters(const layer_t &l) {
  return random(l.scale, f32, l.channels_last, false);
}

static array_t activations(const layer_t &l, DataType_t type) {
  array_t a = random(l.x, type, l.channels_last, true, 2);
  a.cut_at = l.cut_at;
  return a;
}

static array_t typed(array_t a, DataType_t type) {
  a.type = type;
  return a;
}

// dy, or what a mask that another graph wrote leaves of it: the mask's bits are
// not looked at here.
static tensor_t masked(graph_t &g, array_t &dy, array_t *mask) {
  tensor_t loss = g.in(dy);
  if (!mask)
    return loss;
  void *written = mask->device;
  tensor_t kept = g.in(*mask);
  kept->set_data_type(DataType_t::BOOLEAN);
  g.pack[kept->get_uid()] = written;
  return g.op(PointwiseMode_t::MUL, loss, kept);
}

static array_t cut(const array_t &dy, const array_t *mask) {
  return mapped(
      dy, [&](double v, int64_t i) { return mask ? v * mask->value[i] : v; });
}

template <typename attributes_t>
static attributes_t saved(tensor_t mean, tensor_t inverse) {
  return attributes_t().set_saved_mean_and_inv_variance(mean, inverse);
}

static std::array<tensor_t, 3> gradients_op(graph_t &g, const norm_t &c,
                                            tensor_t loss, tensor_t x,
                                            tensor_t scale, tensor_t mean,
                                            tensor_t inverse) {
  using namespace fe::graph;
  switch (c.layer.kind) {
  case LAYER:
    return g.layernorm_backward(
        loss, x, scale, saved<Layernorm_backward_attributes>(mean, inverse));
  case RMS:
    return g.rmsnorm_backward(
        loss, x, scale, inverse,
        Rmsnorm_backward_attributes().has_dbias(!c.has(UNBIASED)));
  case ADAPTIVE:
    return g.adalayernorm_backward(
        loss, x, scale, saved<AdaLayernorm_backward_attributes>(mean, inverse));
  case INSTANCE:
    return g.instancenorm_backward(
        loss, x, scale, saved<Instancenorm_backward_attributes>(mean, inverse));
  default:
    return g.batchnorm_backward(
        loss, x, scale, saved<Batchnorm_backward_attributes>(mean, inverse));
  }
}

// What is left of dy behind a mask is a result, too, of a batch normalisation.
static void gradients(const norm_t &c, array_t *mask = nullptr) {
  const layer_t &l = c.layer;
  array_t x = activations(l, c.type), dy = activations(l, c.type),
          scale = parameters(l), left = cut(dy, mask);
  normal_t n = normalized(x, l.statistics, l.is_centred());
  gradients_t right = gradients_of(n, scale, left, l.is_centred());
  graph_t g(c.type);
  tensor_t loss = masked(g, dy, mask), in = g.in(x), by = g.in(scale),
           mean = l.is_centred() ? g.in(n.mean) : nullptr,
           inverse = g.in(n.inverse);
  if (mask && l.kind == BATCH)
    g.out(loss, left, "dy");
  auto [dx, dscale, dbias] = gradients_op(g, c, loss, in, by, mean, inverse);
  g.out(dx, right.dx, "dx");
  g.out(dscale, right.dscale, "dscale");
  if (!c.has(UNBIASED))
    g.out(dbias, right.dbias, "dbias");
  g.finish();
}

// Running statistics, of which the operation makes new ones.
struct running_t {
  static constexpr double momentum = 0.125;
  array_t old_mean, old_variance, mean, variance;
  running_t(const layer_t &l, const normal_t &n)
      : old_mean(parameters(l)),
        old_variance(mapped(parameters(l), [](double v, int64_t) {
          return double(float(1 + std::fabs(v)));
        })) {
    double elements = double(count(l.x) / count(l.statistics));
    mean = mapped(old_mean, [&](double v, int64_t i) {
      return v + momentum * (n.mean.value[i] - v);
    });
    variance = mapped(old_variance, [&](double v, int64_t i) {
      return v +
             momentum * (n.variance.value[i] * elements / (elements - 1) - v);
    });
  }
};

static std::array<tensor_t, 3> batch_norm_op(graph_t &g, const norm_t &c,
                                             tensor_t x, tensor_t scale,
                                             tensor_t bias,
                                             running_t &running) {
  tensor_t number = g.tensor(epsilon);
  auto how = fe::graph::Batchnorm_attributes().set_epsilon(number);
  if (c.has(RUNNING)) {
    tensor_t step = g.tensor(float(running_t::momentum)),
             mean = g.in(running.old_mean),
             variance = g.in(running.old_variance);
    how.set_previous_running_stats(mean, variance, step);
  }
  if (c.has(PEERS)) {
    array_t shared[] = {zeros({2, 4 * 32, 1, 1}), zeros({2, 4 * 32, 1, 1})};
    how.set_peer_stats({g.in(shared[0]), g.in(shared[1])});
    g.set_sm_count(8);
  }
  auto [y, mean, inverse, new_mean, new_variance] =
      g.batchnorm(x, scale, bias, how);
  if (c.has(RUNNING)) {
    g.out(new_mean, running.mean, "running mean");
    g.out(new_variance, running.variance, "running variance");
  }
  return {y, mean, inverse};
}

// The mean is nullptr where there is none.
static std::array<tensor_t, 3> forward_op(graph_t &g, const norm_t &c,
                                          tensor_t x, tensor_t scale,
                                          tensor_t bias, running_t &running) {
  using namespace fe::graph;
  auto phase = c.has(INFERENCE) ? fe::NormFwdPhase_t::INFERENCE
                                : fe::NormFwdPhase_t::TRAINING;
  tensor_t number = nullptr;
  switch (c.layer.kind) {
  case LAYER:
    return g.layernorm(
        x, scale, bias,
        Layernorm_attributes().set_forward_phase(phase).set_epsilon(epsilon));
  case RMS: {
    number = g.tensor(epsilon);
    auto how =
        Rmsnorm_attributes().set_forward_phase(phase).set_epsilon(number);
    if (bias)
      how.set_bias(bias);
    auto [y, inverse] = g.rmsnorm(x, scale, how);
    return {y, nullptr, inverse};
  }
  case ADAPTIVE:
    return g.adalayernorm(
        x, scale, bias,
        AdaLayernorm_attributes().set_forward_phase(phase).set_epsilon(
            g.tensor(epsilon)));
  case INSTANCE:
    number = g.tensor(epsilon);
    return g.instancenorm(
        x, scale, bias,
        Instancenorm_attributes().set_forward_phase(phase).set_epsilon(number));
  default:
    return batch_norm_op(g, c, x, scale, bias, running);
  }
}

static void forward(const norm_t &c) {
  const layer_t &l = c.layer;
  array_t x = activations(l, c.type), scale = parameters(l),
          bias = c.has(UNBIASED) ? array_t() : parameters(l),
          other = activations(l, c.type), factor = random({1, 1, 1, 1}, f32);
  factor.is_cut = false;
  normal_t n = normalized(x, l.statistics, l.is_centred());
  running_t running(l, n);
  array_t whole = mapped(
      scale, [&](double v, int64_t) { return v + (c.has(ONE_MORE) ? 1 : 0); });
  array_t y = transformed(n.value, whole, bias);
  if (c.has(SUM))
    y = mapped(y, [&](double v, int64_t i) { return v + other.value[i]; });
  array_t mask = typed(mapped(y, [](double v, int64_t) { return v > 0; }), i8);
  if (c.has(MASK))
    y = mapped(y, [](double v, int64_t) { return std::max(v, 0.); });
  if (c.has(BYTES))
    y = typed(mapped(y, [&](double v, int64_t) { return v * factor.value[0]; }),
              fp8);
  graph_t g(c.type);
  tensor_t in = g.in(x), by = g.in(scale),
           plus = c.has(UNBIASED) ? nullptr : g.in(bias);
  if (c.has(ONE_MORE))
    by = g.op(PointwiseMode_t::ADD, by, g.tensor(1.F));
  auto [out, mean, inverse] = forward_op(g, c, in, by, plus, running);
  if (!c.has(INFERENCE)) {
    if (mean)
      g.out(mean, n.mean, "mean");
    g.out(inverse, n.inverse, "inverse deviation");
  }
  if (c.has(SUM))
    out = g.op(PointwiseMode_t::ADD, out, g.in(other));
  if (c.has(MASK))
    out = g.op(PointwiseMode_t::RELU_FWD, out);
  if (c.has(BYTES))
    out = g.op(PointwiseMode_t::MUL, out, g.in(factor));
  g.out(out, y, "y");
  if (c.has(MASK)) {
    tensor_t positive = g.op(PointwiseMode_t::CMP_GT, out, g.tensor(0.F));
    g.out(positive, mask);
    positive->set_data_type(DataType_t::BOOLEAN);
  }
  g.finish();
  if (c.has(MASK))
    gradients({l, c.type}, &mask);
}

// A convolution's data gradient goes back through a cut at 0 of a normalised
// tensor; of that normalisation, the gradients of its parameters, and what dx
// follows from: dx = of_dy dy + of_x x + constant.
static void weights_of_batch_norm() {
  array_t x = activations(batch, f16), w = weights({16, 32, 3, 3}, f16),
          dy = random({4, 16, 8, 8}, f16, true, false), back = typed(x, f16),
          scale = parameters(batch), bias = parameters(batch);
  back.value.assign(back.value.size(), 0);
  products(x.dim, w.dim, dy.dim, same(2), [&](int64_t i, int64_t j, int64_t o) {
    back.value[i] += w.value[j] * dy.value[o];
  });
  normal_t n = normalized(x, batch.statistics, true);
  array_t seen = transformed(n.value, scale, bias);
  for (size_t i = 0; i < back.value.size(); i++)
    back.value[i] = seen.value[i] > 0 ? back.value[i] : 0;
  gradients_t right = gradients_of(n, scale, back, true);
  array_t of_dy = zeros(batch.scale), of_x = of_dy, constant = of_dy;
  for (size_t c = 0; c < of_dy.value.size(); c++) {
    double inverse = n.inverse.value[c], elements = 4 * 8 * 8;
    double factor = scale.value[c] * inverse;
    double slope = inverse * right.dscale.value[c];
    of_dy.value[c] = factor;
    of_x.value[c] = -factor * slope / elements;
    constant.value[c] =
        factor * (n.mean.value[c] * slope - right.dbias.value[c]) / elements;
  }
  graph_t g(f16);
  tensor_t loss = g.in(dy), filter = g.in(w), in = g.in(x), mean = g.in(n.mean),
           inverse = g.in(n.inverse), by = g.in(scale), plus = g.in(bias);
  tensor_t value = g.op(PointwiseMode_t::SUB, in, mean);
  value = g.op(PointwiseMode_t::MUL, value, inverse);
  value = g.op(PointwiseMode_t::MUL, value, by);
  value = g.op(PointwiseMode_t::ADD, value, plus);
  tensor_t gradient = g.conv_dgrad(loss, filter,
                                   fe::graph::Conv_dgrad_attributes()
                                       .set_padding({1, 1})
                                       .set_stride({1, 1})
                                       .set_dilation({1, 1}));
  gradient->set_dim(x.dim);
  gradient = g.op(PointwiseMode_t::RELU_BWD, gradient, value);
  g.out(gradient, back, "dy");
  auto [dscale, dbias, for_dy, for_x, rest] = g.dbn_weight(
      gradient, in, mean, inverse, by, fe::graph::DBN_weight_attributes());
  g.out(dscale, right.dscale, "dscale");
  g.out(dbias, right.dbias, "dbias");
  g.out(for_dy, of_dy, "factor of dy");
  g.out(for_x, of_x, "factor of x");
  g.out(rest, constant, "constant");
  g.finish();
}

// Not of tensors in pieces.
static const std::vector<std::pair<std::string, std::function<void()>>>
    whole_norm_cases{
        {"batch norm of peers",
         [] {
           forward({batch, f16, RUNNING | PEERS});
         }},
        {"dgrad, batch norm's weights", weights_of_batch_norm},
    };

static const std::vector<std::pair<std::string, std::function<void()>>>
    norm_cases{
        {"layer norm",
         [] {
           forward({layer, f16});
         }},
        {"layer norm of floats",
         [] {
           forward({layer, f32});
         }},
        {"layer norm, inference",
         [] {
           forward({layer, bf16, INFERENCE});
         }},
        {"layer norm, centred gamma, mask",
         [] {
           forward({layer, f32, ONE_MORE | MASK});
         }},
        {"layer norm to 8-bit floats",
         [] {
           forward({layer, bf16, ONE_MORE | BYTES});
         }},
        {"layer norm, gradients",
         [] {
           gradients({layer, f16});
         }},
        {"RMS norm",
         [] {
           forward({rms, bf16, UNBIASED});
         }},
        {"RMS norm, bias",
         [] {
           forward({rms, bf16});
         }},
        {"RMS norm, inference",
         [] {
           forward({rms, bf16, INFERENCE | UNBIASED});
         }},
        {"RMS norm, gradients",
         [] {
           gradients({rms, bf16, UNBIASED});
         }},
        {"RMS norm, bias, gradients",
         [] {
           gradients({rms, bf16});
         }},
        {"adaptive norm",
         [] {
           forward({adaptive, bf16});
         }},
        {"adaptive norm, inference",
         [] {
           forward({adaptive, bf16, INFERENCE});
         }},
        {"adaptive norm, gradients",
         [] {
           gradients({adaptive, f16});
         }},
        {"instance norm",
         [] {
           forward({instance, f16});
         }},
        {"instance norm, inference",
         [] {
           forward({instance, f16, INFERENCE});
         }},
        {"instance norm, gradients",
         [] {
           gradients({instance, f16});
         }},
        {"batch norm",
         [] {
           forward({batch, f16, RUNNING});
         }},
        {"batch norm, no running",
         [] {
           forward({batch, f16});
         }},
        {"batch norm, sum, mask",
         [] {
           forward({batch, f16, RUNNING | SUM | MASK});
         }},
        {"batch norm, gradients",
         [] {
           gradients({batch, f16});
         }},
    };
