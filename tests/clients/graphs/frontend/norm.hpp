// SPDX-License-Identifier: Apache-2.0
// What cudnn-frontend's samples make of normalisations: layer, RMS, adaptive
// layer, instance and batch normalisation, their gradients, and operations
// around them.
#pragma once
#include "graph.hpp"

using fe::NormFwdPhase_t;

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

static array_t zeros(const dims_t &dim, DataType_t type) {
  array_t a{dim, type, true, false, {}, nullptr};
  a.value.resize(size_t(count(dim)));
  return a;
}

// Means of f(index) over the elements of x that share a statistic.
static array_t means(const array_t &x, const dims_t &statistics,
                     const std::function<double(int64_t)> &f) {
  array_t mean = zeros(statistics, f32);
  for (int64_t i = 0; i < count(x.dim); i++)
    mean.value[under(statistics, x.dim, i)] +=
        f(i) * double(count(statistics)) / double(count(x.dim));
  return mean;
}

struct normal_t {
  array_t mean, variance, inverse, value; // value: (x - mean) * inverse
};

static normal_t normalized(const array_t &x, const dims_t &statistics,
                           bool centred = true) {
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
                                const array_t &dy, bool centred = true) {
  gradients_t g{dy, zeros(scale.dim, f32), zeros(scale.dim, f32)};
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

// ---- layers ----------------------------------------------------------------

// Extents of x, the scale and the statistics.
struct layer_t {
  dims_t x, scale, statistics;
};
static const layer_t rows{{96, 64, 1, 1}, {1, 64, 1, 1}, {96, 1, 1, 1}};
static const layer_t matrices_of_rows{{4, 24, 64}, {4, 1, 64}, {4, 24, 1}};
static const layer_t planes{{4, 32, 8, 8}, {1, 32, 1, 1}, {4, 32, 1, 1}};
static const layer_t batch{{4, 32, 8, 8}, {1, 32, 1, 1}, {1, 32, 1, 1}};

static array_t parameters(const layer_t &l, bool last = true) {
  return random(l.scale, f32, last, false);
}

static array_t activations(const layer_t &l, DataType_t type,
                           bool last = true) {
  return random(l.x, type, last, false, 2);
}

static array_t typed(array_t a, DataType_t type) {
  a.type = type;
  return a;
}

static void layer_norm(DataType_t type, bool training) {
  array_t x = activations(rows, type), scale = parameters(rows),
          bias = parameters(rows);
  normal_t n = normalized(x, rows.statistics);
  array_t y = transformed(n.value, scale, bias);
  graph_t g(type);
  tensor_t in = g.in(x), by = g.in(scale), plus = g.in(bias);
  auto [out, mean, inverse] =
      g.layernorm(in, by, plus,
                  fe::graph::Layernorm_attributes()
                      .set_forward_phase(training ? NormFwdPhase_t::TRAINING
                                                  : NormFwdPhase_t::INFERENCE)
                      .set_epsilon(epsilon));
  g.out(out, y);
  if (training) {
    g.out(mean, n.mean);
    g.out(inverse, n.inverse);
  }
  g.plan();
  g.run();
  compare("y", y);
  if (training) {
    compare("mean", n.mean);
    compare("inverse deviation", n.inverse);
  }
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

static void layer_norm_gradients(DataType_t type, array_t *mask = nullptr) {
  array_t x = activations(rows, type), dy = activations(rows, type),
          scale = parameters(rows);
  normal_t n = normalized(x, rows.statistics);
  gradients_t right = gradients_of(n, scale, cut(dy, mask));
  graph_t g(type);
  tensor_t loss = masked(g, dy, mask), in = g.in(x), by = g.in(scale),
           mean = g.in(n.mean), inverse = g.in(n.inverse);
  auto [dx, dscale, dbias] =
      g.layernorm_backward(loss, in, by,
                           fe::graph::Layernorm_backward_attributes()
                               .set_saved_mean_and_inv_variance(mean, inverse));
  g.out(dx, right.dx);
  g.out(dscale, right.dscale);
  g.out(dbias, right.dbias);
  g.plan();
  g.run();
  compare("dx", right.dx);
  compare("dscale", right.dscale);
  compare("dbias", right.dbias);
}

// The program has the scale less 1; y becomes 8-bit floats, or is cut at 0 with
// a mask of what was not, which the gradients take.
static void layer_norm_around(bool to_bytes) {
  DataType_t type = to_bytes ? bf16 : f32;
  array_t x = activations(rows, type), scale = parameters(rows),
          bias = parameters(rows), factor = random({1, 1, 1, 1}, f32),
          one_more = mapped(scale, [](double v, int64_t) { return v + 1; });
  factor.is_cut = false;
  normal_t n = normalized(x, rows.statistics);
  array_t y = transformed(n.value, one_more, bias);
  array_t mask = typed(mapped(y, [](double v, int64_t) { return v > 0; }), i8);
  y = typed(mapped(y,
                   [&](double v, int64_t) {
                     return to_bytes ? v * factor.value[0] : std::max(v, 0.);
                   }),
            to_bytes ? fp8 : f32);
  graph_t g(type);
  tensor_t in = g.in(x), by = g.in(scale), plus = g.in(bias);
  by = g.op(PointwiseMode_t::ADD, by, g.tensor(1.F));
  auto [out, mean, inverse] =
      g.layernorm(in, by, plus,
                  fe::graph::Layernorm_attributes()
                      .set_forward_phase(NormFwdPhase_t::TRAINING)
                      .set_epsilon(epsilon));
  g.out(mean, n.mean);
  g.out(inverse, n.inverse);
  out = to_bytes ? g.op(PointwiseMode_t::MUL, out, g.in(factor))
                 : g.op(PointwiseMode_t::RELU_FWD, out);
  g.out(out, y);
  if (!to_bytes) {
    tensor_t positive = g.op(PointwiseMode_t::CMP_GT, out, g.tensor(0.F));
    g.out(positive, mask);
    positive->set_data_type(DataType_t::BOOLEAN);
  }
  g.plan();
  g.run();
  compare("y", y);
  compare("inverse deviation", n.inverse);
  if (!to_bytes)
    layer_norm_gradients(f32, &mask);
}

static void rms_norm(bool training, bool biased) {
  array_t x = activations(rows, bf16), scale = parameters(rows),
          bias = biased ? parameters(rows) : array_t();
  normal_t n = normalized(x, rows.statistics, false);
  array_t y = transformed(n.value, scale, bias);
  graph_t g(bf16);
  tensor_t in = g.in(x), by = g.in(scale), number = g.tensor(epsilon);
  auto how = fe::graph::Rmsnorm_attributes()
                 .set_forward_phase(training ? NormFwdPhase_t::TRAINING
                                             : NormFwdPhase_t::INFERENCE)
                 .set_epsilon(number);
  tensor_t plus = biased ? g.in(bias) : nullptr;
  if (biased)
    how.set_bias(plus);
  auto [out, inverse] = g.rmsnorm(in, by, how);
  g.out(out, y);
  if (training)
    g.out(inverse, n.inverse);
  g.plan();
  g.run();
  compare("y", y);
  if (training)
    compare("inverse deviation", n.inverse);
}

static void rms_norm_gradients(bool biased) {
  array_t x = activations(rows, bf16), dy = activations(rows, bf16),
          scale = parameters(rows);
  normal_t n = normalized(x, rows.statistics, false);
  gradients_t right = gradients_of(n, scale, dy, false);
  graph_t g(bf16);
  tensor_t loss = g.in(dy), in = g.in(x), by = g.in(scale),
           inverse = g.in(n.inverse);
  auto [dx, dscale, dbias] = g.rmsnorm_backward(
      loss, in, by, inverse,
      fe::graph::Rmsnorm_backward_attributes().has_dbias(biased));
  g.out(dx, right.dx);
  g.out(dscale, right.dscale);
  if (biased)
    g.out(dbias, right.dbias);
  g.plan();
  g.run();
  compare("dx", right.dx);
  compare("dscale", right.dscale);
  if (biased)
    compare("dbias", right.dbias);
}

// Each sample has a scale and a bias of its own.
static void adaptive(bool training) {
  const layer_t &l = matrices_of_rows;
  array_t x = activations(l, bf16, false), scale = parameters(l, false),
          bias = parameters(l, false);
  normal_t n = normalized(x, l.statistics);
  n.mean.channels_last = n.inverse.channels_last = false;
  array_t y = transformed(n.value, scale, bias);
  graph_t g(bf16);
  tensor_t in = g.in(x), by = g.in(scale), plus = g.in(bias);
  auto [out, mean, inverse] = g.adalayernorm(
      in, by, plus,
      fe::graph::AdaLayernorm_attributes()
          .set_forward_phase(training ? NormFwdPhase_t::TRAINING
                                      : NormFwdPhase_t::INFERENCE)
          .set_epsilon(g.tensor(epsilon)));
  g.out(out, y);
  if (training) {
    g.out(mean, n.mean);
    g.out(inverse, n.inverse);
  }
  g.plan();
  g.run();
  compare("y", y);
  if (training) {
    compare("mean", n.mean);
    compare("inverse deviation", n.inverse);
  }
}

static void adaptive_gradients() {
  const layer_t &l = matrices_of_rows;
  array_t x = activations(l, f16, false), dy = activations(l, f16, false),
          scale = parameters(l, false);
  normal_t n = normalized(x, l.statistics);
  n.mean.channels_last = n.inverse.channels_last = false;
  gradients_t right = gradients_of(n, scale, dy);
  right.dscale.channels_last = right.dbias.channels_last = false;
  graph_t g(f16);
  tensor_t loss = g.in(dy), in = g.in(x), by = g.in(scale), mean = g.in(n.mean),
           inverse = g.in(n.inverse);
  auto [dx, dscale, dbias] = g.adalayernorm_backward(
      loss, in, by,
      fe::graph::AdaLayernorm_backward_attributes()
          .set_saved_mean_and_inv_variance(mean, inverse));
  g.out(dx, right.dx);
  g.out(dscale, right.dscale);
  g.out(dbias, right.dbias);
  g.plan();
  g.run();
  compare("dx", right.dx);
  compare("dscale", right.dscale);
  compare("dbias", right.dbias);
}

static void instance_norm(bool training) {
  array_t x = activations(planes, f16), scale = parameters(planes),
          bias = parameters(planes);
  normal_t n = normalized(x, planes.statistics);
  array_t y = transformed(n.value, scale, bias);
  graph_t g(f16);
  tensor_t in = g.in(x), by = g.in(scale), plus = g.in(bias),
           number = g.tensor(epsilon);
  auto [out, mean, inverse] = g.instancenorm(
      in, by, plus,
      fe::graph::Instancenorm_attributes()
          .set_forward_phase(training ? NormFwdPhase_t::TRAINING
                                      : NormFwdPhase_t::INFERENCE)
          .set_epsilon(number));
  g.out(out, y);
  if (training) {
    g.out(mean, n.mean);
    g.out(inverse, n.inverse);
  }
  g.plan();
  g.run();
  compare("y", y);
  if (training) {
    compare("mean", n.mean);
    compare("inverse deviation", n.inverse);
  }
}

static void instance_norm_gradients() {
  array_t x = activations(planes, f16), dy = activations(planes, f16),
          scale = parameters(planes);
  normal_t n = normalized(x, planes.statistics);
  gradients_t right = gradients_of(n, scale, dy);
  graph_t g(f16);
  tensor_t loss = g.in(dy), in = g.in(x), by = g.in(scale), mean = g.in(n.mean),
           inverse = g.in(n.inverse);
  auto [dx, dscale, dbias] = g.instancenorm_backward(
      loss, in, by,
      fe::graph::Instancenorm_backward_attributes()
          .set_saved_mean_and_inv_variance(mean, inverse));
  g.out(dx, right.dx);
  g.out(dscale, right.dscale);
  g.out(dbias, right.dbias);
  g.plan();
  g.run();
  compare("dx", right.dx);
  compare("dscale", right.dscale);
  compare("dbias", right.dbias);
}

// ---- batches ---------------------------------------------------------------

// What is left of dy behind a mask is a result, too.
static void batch_norm_gradients(array_t *mask = nullptr) {
  array_t x = activations(batch, f16), dy = activations(batch, f16),
          scale = parameters(batch), left = cut(dy, mask);
  normal_t n = normalized(x, batch.statistics);
  gradients_t right = gradients_of(n, scale, left);
  graph_t g(f16);
  tensor_t loss = masked(g, dy, mask), in = g.in(x), by = g.in(scale),
           mean = g.in(n.mean), inverse = g.in(n.inverse);
  if (mask)
    g.out(loss, left);
  auto [dx, dscale, dbias] =
      g.batchnorm_backward(loss, in, by,
                           fe::graph::Batchnorm_backward_attributes()
                               .set_saved_mean_and_inv_variance(mean, inverse));
  g.out(dx, right.dx);
  g.out(dscale, right.dscale);
  g.out(dbias, right.dbias);
  g.plan();
  g.run();
  if (mask)
    compare("dy", left);
  compare("dx", right.dx);
  compare("dscale", right.dscale);
  compare("dbias", right.dbias);
}

enum behind_t { NOTHING, ADDED, PEERS };

// With running statistics. Behind it: a sum that is cut at 0, with a mask
// that the gradients take; or
// memory that two GPUs would share, of which there is one, on a part of its
// processors.
static void batch_norm(behind_t behind, bool running) {
  array_t x = activations(batch, f16), scale = parameters(batch),
          bias = parameters(batch), other = activations(batch, f16),
          old_mean = parameters(batch),
          old_variance = mapped(parameters(batch), [](double v, int64_t) {
            return double(float(1 + std::fabs(v)));
          });
  const double momentum = 0.125, elements = 4 * 8 * 8;
  normal_t n = normalized(x, batch.statistics);
  array_t y = transformed(n.value, scale, bias);
  array_t new_mean = mapped(old_mean,
                            [&](double v, int64_t i) {
                              return v + momentum * (n.mean.value[i] - v);
                            }),
          new_variance = mapped(old_variance, [&](double v, int64_t i) {
            return v +
                   momentum *
                       (n.variance.value[i] * elements / (elements - 1) - v);
          });
  array_t mask = typed(y, i8);
  if (behind == ADDED)
    for (size_t i = 0; i < y.value.size(); i++) {
      double sum = y.value[i] + other.value[i];
      mask.value[i] = sum > 0;
      y.value[i] = std::max(sum, 0.);
    }
  graph_t g(f16);
  tensor_t in = g.in(x), by = g.in(scale), plus = g.in(bias),
           number = g.tensor(epsilon), step = g.tensor(float(momentum));
  auto how = fe::graph::Batchnorm_attributes().set_epsilon(number);
  tensor_t mean0 = running ? g.in(old_mean) : nullptr,
           variance0 = running ? g.in(old_variance) : nullptr;
  array_t shared[] = {zeros({2, 4 * 32, 1, 1}, f32),
                      zeros({2, 4 * 32, 1, 1}, f32)};
  if (running)
    how.set_previous_running_stats(mean0, variance0, step);
  if (behind == PEERS) {
    how.set_peer_stats({g.in(shared[0]), g.in(shared[1])});
    g.set_sm_count(8);
  }
  auto [out, mean, inverse, mean1, variance1] = g.batchnorm(in, by, plus, how);
  g.out(mean, n.mean);
  g.out(inverse, n.inverse);
  if (running) {
    g.out(mean1, new_mean);
    g.out(variance1, new_variance);
  }
  if (behind == ADDED) {
    out = g.op(PointwiseMode_t::RELU_FWD,
               g.op(PointwiseMode_t::ADD, out, g.in(other)));
    tensor_t positive = g.op(PointwiseMode_t::CMP_GT, out, g.tensor(0.F));
    g.out(positive, mask);
    positive->set_data_type(DataType_t::BOOLEAN);
  }
  g.out(out, y);
  g.plan();
  g.run();
  compare("y", y);
  compare("mean", n.mean);
  compare("inverse deviation", n.inverse);
  if (running) {
    compare("running mean", new_mean);
    compare("running variance", new_variance);
  }
  if (behind == ADDED)
    batch_norm_gradients(&mask);
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
  normal_t n = normalized(x, batch.statistics);
  array_t seen = transformed(n.value, scale, bias);
  for (size_t i = 0; i < back.value.size(); i++)
    back.value[i] = seen.value[i] > 0 ? back.value[i] : 0;
  gradients_t right = gradients_of(n, scale, back);
  array_t of_dy = zeros(batch.scale, f32), of_x = of_dy, constant = of_dy;
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
  g.out(gradient, back);
  auto [dscale, dbias, for_dy, for_x, rest] = g.dbn_weight(
      gradient, in, mean, inverse, by, fe::graph::DBN_weight_attributes());
  g.out(dscale, right.dscale);
  g.out(dbias, right.dbias);
  g.out(for_dy, of_dy);
  g.out(for_x, of_x);
  g.out(rest, constant);
  g.plan();
  g.run();
  compare("dy", back);
  compare("dscale", right.dscale);
  compare("dbias", right.dbias);
  compare("factor of dy", of_dy);
  compare("factor of x", of_x);
  compare("constant", constant);
}

static const std::vector<std::pair<std::string, std::function<void()>>>
    norm_cases{
        {"layer norm", [] { layer_norm(f16, true); }},
        {"layer norm of floats", [] { layer_norm(f32, true); }},
        {"layer norm, inference", [] { layer_norm(bf16, false); }},
        {"layer norm, centred gamma, mask", [] { layer_norm_around(false); }},
        {"layer norm to 8-bit floats", [] { layer_norm_around(true); }},
        {"layer norm, gradients", [] { layer_norm_gradients(f16); }},
        {"RMS norm", [] { rms_norm(true, false); }},
        {"RMS norm, bias", [] { rms_norm(true, true); }},
        {"RMS norm, inference", [] { rms_norm(false, false); }},
        {"RMS norm, gradients", [] { rms_norm_gradients(false); }},
        {"RMS norm, bias, gradients", [] { rms_norm_gradients(true); }},
        {"adaptive norm", [] { adaptive(true); }},
        {"adaptive norm, inference", [] { adaptive(false); }},
        {"adaptive norm, gradients", adaptive_gradients},
        {"instance norm", [] { instance_norm(true); }},
        {"instance norm, inference", [] { instance_norm(false); }},
        {"instance norm, gradients", instance_norm_gradients},
        {"batch norm", [] { batch_norm(NOTHING, true); }},
        {"batch norm, no running", [] { batch_norm(NOTHING, false); }},
        {"batch norm, sum, mask", [] { batch_norm(ADDED, true); }},
        {"batch norm of peers", [] { batch_norm(PEERS, true); }},
        {"batch norm, gradients", [] { batch_norm_gradients(); }},
        {"dgrad, batch norm's weights", weights_of_batch_norm},
    };
