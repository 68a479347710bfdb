// SPDX-License-Identifier: Apache-2.0
// Networks that train on cudnn-frontend: every op is a graph, which is planned
// once and executed in each step. Loops in float64 take the same steps, and
// each loss and, at the end, each parameter is compared with theirs.
#pragma once
#include "graph.hpp"

#include <deque>

// How a graph gets its plan. FRONTEND: the heuristic's first one. XLA: under a
// limit of workspace, without nondeterministic engines; engine and knobs are
// kept as an autotuning cache keeps them, a plan is made of these, and goes
// through text.
enum class manner_t { FRONTEND, XLA };

struct net_t {
  using make_t = std::function<void(graph_t &)>;
  struct op_t {
    std::unique_ptr<graph_t> graph;
    std::function<void()> right;
  };
  manner_t manner;
  std::deque<array_t> arrays; // stay where they are
  std::vector<op_t> ops;
  std::vector<std::pair<array_t *, array_t *>> parameters; // and gradients

  explicit net_t(manner_t how) : manner(how) {
  }

  // unit: of its pieces (arrays.hpp).
  array_t &array(dims_t dim, bool is_cut = true, int64_t unit = 0) {
    arrays.push_back({dim, f32, true, is_cut,
                      std::vector<double>(size_t(count(dim))), nullptr, -1,
                      unit});
    output(arrays.back());
    return arrays.back();
  }
  // Half as many rows as one with pieces of two rows.
  array_t &half(dims_t dim) {
    return array(dim, true, 1);
  }
  array_t &like(const array_t &a) {
    return array(a.dim, a.is_cut, a.unit);
  }
  // Is not learned.
  array_t &constant(dims_t dim, double value) {
    array_t &a = array(dim, false);
    a.value.assign(a.value.size(), value);
    upload(a);
    return a;
  }
  array_t &parameter(dims_t dim) {
    array_t &a = array(dim, false), &gradient = array(dim, false);
    fill(a, 0.3);
    parameters.push_back({&a, &gradient});
    return a;
  }
  array_t &gradient(const array_t &parameter) {
    for (auto &[a, gradient] : parameters)
      if (a == &parameter)
        return *gradient;
    throw std::runtime_error("no parameter");
  }
  static void fill(array_t &a, double scale = 1) {
    for (double &v : a.value)
      v = double(float(drawn() * scale));
    upload(a);
  }

  // ---- plans ----

  static void keep_few(graph_t &g) {
    check(g.validate());
    check(g.build_operation_graph(handle));
    check(g.create_execution_plans(
        {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
    g.deselect_workspace_greater_than(1 << 24);
    g.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
    g.deselect_engines({"eng100000"}); // there is no such engine
    check(g.check_support());
  }

  static std::unique_ptr<graph_t> made_as_xla(const make_t &make) {
    graph_t first(f32), chosen(f32);
    auto read = std::make_unique<graph_t>(f32);
    std::vector<uint8_t> text;
    std::unordered_map<fe::KnobType_t, int64_t> knobs;
    int64_t engine = -1, plans;
    make(first);
    keep_few(first);
    plans = first.get_execution_plan_count();
    for (int64_t i = 0; i < plans && engine < 0; i++)
      if (first.build_plan_at_index(i).is_good())
        check(first.get_engine_and_knobs_at_index(i, engine, knobs));
    check(engine >= 0, "no plan");
    make(chosen);
    check(chosen.validate());
    check(chosen.build_operation_graph(handle));
    check(chosen.create_execution_plan(engine, knobs));
    check(chosen.check_support());
    check(chosen.build_plans());
    check(chosen.serialize(text));
    check(read->deserialize(handle, text));
    read->pack = chosen.pack;
    return read;
  }

  void add(const make_t &make, std::function<void()> right) {
    if (manner == manner_t::XLA) {
      ops.push_back({made_as_xla(make), right});
      return;
    }
    auto graph = std::make_unique<graph_t>(f32);
    make(*graph);
    graph->plan();
    ops.push_back({std::move(graph), right});
  }

  void step() {
    for (op_t &op : ops) {
      op.graph->run();
      op.right();
    }
  }

  // ---- ops; what they are given has to live as long as the net ----

  // y = relu(conv(x, w) + bias + z), without what is null; `relu` no: y is what
  // is under it.
  void conv(array_t &x, array_t &w, array_t &bias, const window_t &v,
            array_t &y, bool relu, array_t *z = nullptr) {
    add(
        [=, &x, &w, &bias, &y](graph_t &g) {
          tensor_t in = g.use(x), filter = g.use(w),
                   t = g.conv_fprop(in, filter, as<forward_t>(v));
          t = g.op(PointwiseMode_t::ADD, t, g.use(bias));
          t = z ? g.op(PointwiseMode_t::ADD, t, g.use(*z)) : t;
          g.give(relu ? g.op(PointwiseMode_t::RELU_FWD, t) : t, y);
        },
        [=, &x, &w, &bias, &y] {
          y.value = convolved(x, w, v, f32).value;
          finish(y, bias, relu, z);
        });
  }

  // The same with the transposed convolution.
  void rise(array_t &x, array_t &w, array_t &bias, const window_t &v,
            array_t &y, array_t *z) {
    add(
        [=, &x, &w, &bias, &y](graph_t &g) {
          tensor_t in = g.use(x), filter = g.use(w),
                   t = g.conv_dgrad(in, filter, as<data_t>(v));
          t->set_dim(local_dim(y));
          t = g.op(PointwiseMode_t::ADD, t, g.use(bias));
          t = z ? g.op(PointwiseMode_t::ADD, t, g.use(*z)) : t;
          g.give(g.op(PointwiseMode_t::RELU_FWD, t), y);
        },
        [=, &x, &w, &bias, &y] {
          transposed(x, w, v, y);
          finish(y, bias, true, z);
        });
  }

  // dw of the convolution of x whose result has the gradient dy.
  void filter_gradient(array_t &x, array_t &dy, const window_t &v,
                       array_t &dw) {
    add(
        [=, &x, &dy, &dw](graph_t &g) {
          tensor_t loss = g.use(dy), image = g.use(x);
          g.give(g.conv_wgrad(loss, image, as<filter_t>(v)), dw);
        },
        [=, &x, &dy, &dw] {
          dw.value.assign(dw.value.size(), 0);
          products(x.dim, dw.dim, dy.dim, v,
                   [&](int64_t i, int64_t j, int64_t o) {
                     dw.value[j] += x.value[i] * dy.value[o];
                   });
        });
  }

  // The sum of each channel; of dy, it is the gradient of a bias.
  void channel_sums(array_t &x, array_t &y) {
    add(
        [&](graph_t &g) {
          auto how = fe::graph::Reduction_attributes().set_mode(
              fe::ReductionMode_t::ADD);
          g.give(g.reduction(g.use(x), how), y);
        },
        [&] {
          y.value.assign(y.value.size(), 0);
          for (size_t i = 0; i < x.value.size(); i++)
            y.value[size_t(channel(x, int64_t(i)))] += x.value[i];
        });
  }

  // dx of the convolution, and then, where `seen` is given, of the relu whose
  // result that is.
  void data_gradient(array_t &dy, array_t &w, const window_t &v, array_t &dx,
                     array_t *seen, array_t *more = nullptr) {
    add(
        [=, &dy, &w, &dx](graph_t &g) {
          tensor_t loss = g.use(dy), filter = g.use(w),
                   t = g.conv_dgrad(loss, filter, as<data_t>(v));
          t->set_dim(local_dim(dx));
          t = more ? g.op(PointwiseMode_t::ADD, t, g.use(*more)) : t;
          g.give(seen ? g.op(PointwiseMode_t::RELU_BWD, t, g.use(*seen)) : t,
                 dx);
        },
        [=, &dy, &w, &dx] {
          transposed(dy, w, v, dx);
          for (size_t i = 0; i < dx.value.size(); i++) {
            dx.value[i] += more ? more->value[i] : 0;
            dx.value[i] *= !seen || seen->value[i] > 0;
          }
        });
  }

  // The gradient of a rise() is a convolution.
  void rise_gradient(array_t &dy, array_t &w, const window_t &v, array_t &dx,
                     array_t &seen) {
    add(
        [=, &dy, &w, &dx, &seen](graph_t &g) {
          tensor_t in = g.use(dy), filter = g.use(w),
                   t = g.conv_fprop(in, filter, as<forward_t>(v));
          g.give(g.op(PointwiseMode_t::RELU_BWD, t, g.use(seen)), dx);
        },
        [=, &dy, &w, &dx, &seen] {
          dx.value = convolved(dy, w, v, f32).value;
          for (size_t i = 0; i < dx.value.size(); i++)
            dx.value[i] *= seen.value[i] > 0;
        });
  }

  // Of dy, whose spatial extents may be 1: then it is the same everywhere.
  void relu_gradient(array_t &dy, array_t &seen, array_t &dx) {
    add(
        [&](graph_t &g) {
          tensor_t loss = g.use(dy);
          g.give(g.op(PointwiseMode_t::RELU_BWD, loss, g.use(seen)), dx);
        },
        [&] {
          int64_t space = count(dx.dim) / count(dy.dim);
          for (size_t i = 0; i < dx.value.size(); i++)
            dx.value[i] = dy.value[i / size_t(space)] * (seen.value[i] > 0);
        });
  }

  // Means of 2 x 2 elements.
  void pool(array_t &x, array_t &y) {
    add(
        [&](graph_t &g) {
          auto how = fe::graph::Resample_attributes()
                         .set_generate_index(false)
                         .set_resampling_mode(
                             fe::ResampleMode_t::AVGPOOL_INCLUDE_PADDING)
                         .set_padding_mode(fe::PaddingMode_t::ZERO_PAD)
                         .set_window({2, 2})
                         .set_stride({2, 2})
                         .set_pre_padding({0, 0})
                         .set_post_padding({0, 0});
          g.give(g.resample(g.use(x), how)[0], y);
        },
        [&] {
          int64_t w = y.dim[3];
          for (int64_t i = 0; i < count(y.dim); i++) {
            int64_t at = (i / w * 2 * w + i % w) * 2;
            y.value[size_t(i)] =
                (x.value[size_t(at)] + x.value[size_t(at + 1)] +
                 x.value[size_t(at + 2 * w)] +
                 x.value[size_t(at + 2 * w + 1)]) /
                4;
          }
        });
  }

  void scale(array_t &x, float by, array_t &y) {
    add(
        [&, by](graph_t &g) {
          g.give(g.op(PointwiseMode_t::MUL, g.use(x), g.tensor(by)), y);
        },
        [&, by] {
          for (size_t i = 0; i < x.value.size(); i++)
            y.value[i] = x.value[i] * double(by);
        });
  }

  // off = x - right, and the sum of its squares.
  void loss(array_t &x, array_t &right, array_t &off, array_t &sum) {
    add(
        [&](graph_t &g) {
          tensor_t in = g.use(x),
                   d = g.op(PointwiseMode_t::SUB, in, g.use(right)),
                   squares = g.op(PointwiseMode_t::MUL, d, d);
          g.give(d, off);
          g.give(
              g.reduction(squares, fe::graph::Reduction_attributes().set_mode(
                                       fe::ReductionMode_t::ADD)),
              sum);
        },
        [&] {
          sum.value[0] = 0;
          for (size_t i = 0; i < x.value.size(); i++) {
            off.value[i] = x.value[i] - right.value[i];
            sum.value[0] += off.value[i] * off.value[i];
          }
        });
  }

  // Every parameter less `rate` times its gradient, in place.
  void learn(float rate) {
    for (auto &[at, down] : parameters) {
      array_t *w = at, *dw = down;
      add(
          [=](graph_t &g) {
            tensor_t old = g.use(*w), less = g.use(*dw);
            less = g.op(PointwiseMode_t::MUL, less, g.tensor(rate));
            g.give(g.op(PointwiseMode_t::SUB, old, less), *w);
          },
          [=] {
            for (size_t i = 0; i < w->value.size(); i++)
              w->value[i] -= double(rate) * dw->value[i];
          });
    }
  }

  void train(array_t &x, array_t &right, array_t &loss) {
    for (int number = 1; number <= 3; number++) {
      fill(x);
      fill(right);
      step();
      compare("loss " + std::to_string(number), loss, 1e-5);
    }
    for (size_t i = 0; i < parameters.size(); i++)
      compare("parameter " + std::to_string(i), *parameters[i].first, 1e-5);
  }

private:
  static void finish(array_t &y, const array_t &bias, bool relu,
                     const array_t *z) {
    for (size_t i = 0; i < y.value.size(); i++) {
      y.value[i] +=
          bias.value[size_t(channel(y, int64_t(i)))] + (z ? z->value[i] : 0);
      y.value[i] = relu ? std::max(0., y.value[i]) : y.value[i];
    }
  }
  static void transposed(const array_t &dy, const array_t &w, const window_t &v,
                         array_t &dx) {
    dx.value.assign(dx.value.size(), 0);
    products(dx.dim, w.dim, dy.dim, v, [&](int64_t i, int64_t j, int64_t o) {
      dx.value[i] += w.value[j] * dy.value[o];
    });
  }
};

// ---- networks --------------------------------------------------------------

static const window_t halving{{1, 1}, {1, 1}, {2, 2}, {1, 1}},
    pairs{{0, 0}, {0, 0}, {2, 2}, {1, 1}};
static const dims_t per_8{1, 8, 1, 1}, per_16{1, 16, 1, 1};

// A classifier: two convolutions with a pooling between them and a residual,
// the mean over all of space, and a head that is the same on every rank.
static void classifier(manner_t manner) {
  net_t n(manner);
  array_t &x = n.array({1, 8, 28, 8}), &y1 = n.array({1, 16, 28, 8}),
          &pooled = n.half({1, 16, 14, 4}), &y2 = n.like(pooled),
          &total = n.array(per_16, false), &mean = n.like(total),
          &out = n.array(per_8, false), &right = n.like(out),
          &off = n.like(out), &loss = n.array({1, 1, 1, 1}, false),
          &dout = n.like(out), &dmean = n.like(mean), &dtotal = n.like(total),
          &d2 = n.like(y2), &dpooled = n.like(pooled), &d1 = n.like(y1),
          &quarter = n.constant({16, 1, 2, 2}, 0.25),
          &w1 = n.parameter({16, 8, 3, 3}), &b1 = n.parameter(per_16),
          &w2 = n.parameter({16, 16, 3, 3}), &b2 = n.parameter(per_16),
          &head = n.parameter({8, 16, 1, 1}), &b3 = n.parameter(per_8);
  n.conv(x, w1, b1, same(2), y1, true);
  n.pool(y1, pooled);
  n.conv(pooled, w2, b2, same(2), y2, true, &pooled);
  n.channel_sums(y2, total);
  n.scale(total, 1.F / (14 * 4), mean);
  n.conv(mean, head, b3, same(2, 0), out, false);
  n.loss(out, right, off, loss);

  n.scale(off, 1, dout);
  n.filter_gradient(mean, dout, same(2, 0), n.gradient(head));
  n.scale(dout, 1, n.gradient(b3));
  n.data_gradient(dout, head, same(2, 0), dmean, nullptr);
  n.scale(dmean, 1.F / (14 * 4), dtotal);
  n.relu_gradient(dtotal, y2, d2);
  n.filter_gradient(pooled, d2, same(2), n.gradient(w2));
  n.channel_sums(d2, n.gradient(b2));
  n.data_gradient(d2, w2, same(2), dpooled, nullptr, &d2);
  n.data_gradient(dpooled, quarter, pairs, d1, &y1); // of the pooling
  n.filter_gradient(x, d1, same(2), n.gradient(w1));
  n.channel_sums(d1, n.gradient(b1));
  n.learn(0.02F);
  n.train(x, right, loss);
}

// A U-Net: a convolution of stride 2 leads down, a transposed one up, where
// what lies beside is added.
static void u_net(manner_t manner) {
  net_t n(manner);
  const float slope = 2.F / (2 * 28 * 8);
  array_t &x = n.array({2, 8, 28, 8}), &y1 = n.like(x),
          &y2 = n.half({2, 16, 14, 4}), &y3 = n.like(y2), &up = n.like(y1),
          &y4 = n.like(up), &out = n.like(y4), &right = n.like(out),
          &off = n.like(out), &loss = n.array({1, 1, 1, 1}, false),
          &dout = n.like(out), &d4 = n.like(y4), &dup = n.like(up),
          &d3 = n.like(y3), &d2 = n.like(y2), &d1 = n.like(y1),
          &w1 = n.parameter({8, 8, 3, 3}), &b1 = n.parameter(per_8),
          &w2 = n.parameter({16, 8, 3, 3}), &b2 = n.parameter(per_16),
          &w3 = n.parameter({16, 16, 3, 3}), &b3 = n.parameter(per_16),
          &lift = n.parameter({16, 8, 2, 2}), &b4 = n.parameter(per_8),
          &w5 = n.parameter({8, 8, 5, 5}), &b5 = n.parameter(per_8),
          &last = n.parameter({8, 8, 1, 1}), &b6 = n.parameter(per_8);
  n.conv(x, w1, b1, same(2), y1, true);
  n.conv(y1, w2, b2, halving, y2, true);
  n.conv(y2, w3, b3, same(2), y3, true);
  n.rise(y3, lift, b4, pairs, up, &y1);
  n.conv(up, w5, b5, same(2, 2), y4, true);
  n.conv(y4, last, b6, same(2, 0), out, false);
  n.loss(out, right, off, loss);

  n.scale(off, slope, dout);
  n.filter_gradient(y4, dout, same(2, 0), n.gradient(last));
  n.channel_sums(dout, n.gradient(b6));
  n.data_gradient(dout, last, same(2, 0), d4, &y4);
  n.filter_gradient(up, d4, same(2, 2), n.gradient(w5));
  n.channel_sums(d4, n.gradient(b5));
  n.data_gradient(d4, w5, same(2, 2), dup, &up);
  n.filter_gradient(dup, y3, pairs, n.gradient(lift));
  n.channel_sums(dup, n.gradient(b4));
  n.rise_gradient(dup, lift, pairs, d3, y3);
  n.filter_gradient(y2, d3, same(2), n.gradient(w3));
  n.channel_sums(d3, n.gradient(b3));
  n.data_gradient(d3, w3, same(2), d2, &y2);
  n.filter_gradient(y1, d2, halving, n.gradient(w2));
  n.channel_sums(d2, n.gradient(b2));
  n.data_gradient(d2, w2, halving, d1, &y1, &dup);
  n.filter_gradient(x, d1, same(2), n.gradient(w1));
  n.channel_sums(d1, n.gradient(b1));
  n.learn(0.1F);
  n.train(x, right, loss);
}

static const std::vector<std::pair<std::string, std::function<void()>>>
    net_cases{
        {"net, classifier", [] { classifier(manner_t::FRONTEND); }},
        {"net, classifier as XLA", [] { classifier(manner_t::XLA); }},
        {"net, u", [] { u_net(manner_t::FRONTEND); }},
        {"net, u as XLA", [] { u_net(manner_t::XLA); }},
    };
