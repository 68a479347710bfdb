// SPDX-License-Identifier: Apache-2.0
// Attention of cudnn-frontend, forward and backward, as its samples ask for it:
// masks, biases, lengths, groups of heads, statistics; plans that are kept and
// deserialized. In pieces each rank has its part of the sequences, of those cases
// that sundog splits.
#pragma once
#include "graph.hpp"

#include <limits>

struct attention_t {
  const char *name;
  DataType_t type = f16;
  int64_t b = 2, heads = 4, groups = 4, rows = 48, columns = 48, d = 64,
          d_v = 64;
  int64_t left = 0, right = -1; // bounds of the band; 0 and -1: none
  bool bottom_right = false, bias = false, alibi = false, padded = false;
  bool heads_outside = false; // memory is B H S D, else B S H D
};

// ---- what is right ---------------------------------------------------------

// Element (b, h, s, c) of an array of heads.
static int64_t at(const attention_t &c, const array_t &a, int64_t b, int64_t h,
                  int64_t s, int64_t e) {
  const dims_t &d = a.dim;
  return c.heads_outside ? ((b * d[1] + h) * d[2] + s) * d[3] + e
                         : ((b * d[1] + s) * d[2] + h) * d[3] + e;
}

static array_t of_heads(const attention_t &c, int64_t h, int64_t s, int64_t d,
                        bool is_input) {
  dims_t dim = c.heads_outside ? dims_t{c.b, h, s, d} : dims_t{c.b, s, h, d};
  array_t a{dim, c.type, false, true, {}, nullptr};
  if (is_input)
    a = random(dim, c.type, false);
  a.value.resize(size_t(count(dim)));
  a.cut_at = c.heads_outside ? 2 : 1;
  return a;
}

struct solution_t {
  array_t q, k, v, o, stats, bias, rows, columns;
  array_t d_o, d_q, d_k, d_v, d_bias;
  double scale;
};

static bool is_seen(const attention_t &c, const solution_t &s, int64_t b,
                    int64_t i, int64_t j) {
  int64_t rows = c.rows, columns = c.columns;
  if (c.padded) {
    rows = int64_t(s.rows.value[size_t(b)]);
    columns = int64_t(s.columns.value[size_t(b)]);
  }
  int64_t row = c.bottom_right ? i + columns - rows : i;
  return i < rows && j < columns && (c.right < 0 || row + c.right >= j) &&
         (c.left == 0 || j + c.left > row);
}

// Slopes of ALiBi (Press et al., 2022) for a power of two of heads.
static double slope(const attention_t &c, int64_t h) {
  return std::pow(2., -8. * double(h + 1) / double(c.heads));
}

// One head: scores, weights, and what their gradients are.
static void head_solve(const attention_t &c, solution_t &s, int64_t b,
                       int64_t h) {
  int64_t g = h / (c.heads / c.groups), n = c.columns;
  std::vector<double> p(size_t(n), 0.), dp(size_t(n), 0.);
  for (int64_t i = 0; i < c.rows; i++) {
    double most = -std::numeric_limits<double>::infinity(), sum = 0, delta = 0;
    for (int64_t j = 0; j < n; j++) {
      p[j] = most - 1;
      if (!is_seen(c, s, b, i, j))
        continue;
      double score = 0;
      for (int64_t e = 0; e < c.d; e++)
        score += s.q.value[at(c, s.q, b, h, i, e)] *
                 s.k.value[at(c, s.k, b, g, j, e)];
      score *= s.scale;
      score += c.bias ? s.bias.value[(h * c.rows + i) * n + j] : 0;
      score += c.alibi ? slope(c, h) * double(j - i) : 0;
      p[j] = score;
      most = std::max(most, score);
    }
    for (int64_t j = 0; j < n; j++) {
      p[j] = is_seen(c, s, b, i, j) ? std::exp(p[j] - most) : 0;
      sum += p[j];
    }
    s.stats.value[(b * c.heads + h) * c.rows + i] =
        sum > 0 ? most + std::log(sum) : 0;
    for (int64_t j = 0; j < n && sum > 0; j++) {
      p[j] /= sum;
      dp[j] = 0;
      for (int64_t e = 0; e < c.d_v; e++) {
        double d_o = s.d_o.value[at(c, s.d_o, b, h, i, e)];
        double v = s.v.value[at(c, s.v, b, g, j, e)];
        s.o.value[at(c, s.o, b, h, i, e)] += p[j] * v;
        s.d_v.value[at(c, s.d_v, b, g, j, e)] += p[j] * d_o;
        dp[j] += d_o * v;
      }
      delta += p[j] * dp[j];
    }
    for (int64_t j = 0; j < n && sum > 0; j++) {
      double ds = p[j] * (dp[j] - delta);
      s.d_bias.value[(h * c.rows + i) * n + j] += ds;
      for (int64_t e = 0; e < c.d; e++) {
        s.d_q.value[at(c, s.d_q, b, h, i, e)] +=
            s.scale * ds * s.k.value[at(c, s.k, b, g, j, e)];
        s.d_k.value[at(c, s.d_k, b, g, j, e)] +=
            s.scale * ds * s.q.value[at(c, s.q, b, h, i, e)];
      }
    }
  }
}

static solution_t solved(const attention_t &c) {
  solution_t s;
  s.scale = 1 / std::sqrt(double(c.d));
  s.q = of_heads(c, c.heads, c.rows, c.d, true);
  s.k = of_heads(c, c.groups, c.columns, c.d, true);
  s.v = of_heads(c, c.groups, c.columns, c.d_v, true);
  s.d_o = of_heads(c, c.heads, c.rows, c.d_v, true);
  s.o = of_heads(c, c.heads, c.rows, c.d_v, false);
  s.d_q = of_heads(c, c.heads, c.rows, c.d, false);
  s.d_k = of_heads(c, c.groups, c.columns, c.d, false);
  s.d_v = of_heads(c, c.groups, c.columns, c.d_v, false);
  s.stats = {{c.b, c.heads, c.rows, 1}, f32, false, true, {}, nullptr};
  s.stats.value.resize(size_t(count(s.stats.dim)));
  s.bias = random({1, c.heads, c.rows, c.columns}, c.type, false, false);
  s.d_bias = s.bias;
  s.d_bias.value.assign(s.bias.value.size(), 0);
  s.rows = s.columns = {{c.b, 1, 1, 1}, i32, false, false, {}, nullptr};
  for (int64_t b = 0; b < c.b; b++) {
    s.rows.value.push_back(double(c.rows - 5 * b - 3));
    s.columns.value.push_back(double(c.columns - 7 * b));
  }
  for (int64_t b = 0; b < c.b; b++)
    for (int64_t h = 0; h < c.heads; h++)
      head_solve(c, s, b, h);
  return s;
}

// ---- graphs ----------------------------------------------------------------

struct attention_graph_t : graph_t {
  const attention_t &c;
  explicit attention_graph_t(const attention_t &of) : graph_t(of.type), c(of) {
  }

  // An array of heads as B H S D.
  tensor_t turned(tensor_t t) {
    dims_t dim = t->get_dim(), stride = t->get_stride();
    if (!c.heads_outside) {
      std::swap(dim[1], dim[2]);
      std::swap(stride[1], stride[2]);
    }
    return t->set_dim(dim).set_stride(stride), t;
  }
  tensor_t heads(array_t &a) {
    return turned(in(a));
  }
  void heads(tensor_t t, array_t &a) {
    out(t, a);
    turned(t);
  }
  template <typename options_t> options_t options(solution_t &s) {
    options_t o;
    o.set_name("attention").set_attn_scale(float(s.scale));
    o.set_diagonal_alignment(c.bottom_right
                                 ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                 : fe::DiagonalAlignment_t::TOP_LEFT);
    if (c.right >= 0)
      o.set_diagonal_band_right_bound(c.right);
    if (c.left > 0)
      o.set_diagonal_band_left_bound(c.left);
    if (c.bias)
      o.set_bias(in(s.bias));
    if (c.alibi)
      o.set_alibi_mask(true);
    if (c.padded)
      o.set_padding_mask(true)
          .set_seq_len_q(in(s.rows))
          .set_seq_len_kv(in(s.columns));
    return o;
  }
  void forward(solution_t &s, bool with_stats) {
    tensor_t q = heads(s.q), k = heads(s.k), v = heads(s.v);
    auto how = options<fe::graph::SDPA_attributes>(s);
    how.set_generate_stats(with_stats);
    auto [o, stats] = sdpa(q, k, v, how);
    heads(o, s.o);
    if (with_stats)
      out(stats, s.stats);
  }
  void backward(solution_t &s) {
    tensor_t q = heads(s.q), k = heads(s.k), v = heads(s.v), o = heads(s.o),
             d_o = heads(s.d_o), stats = in(s.stats);
    auto how = options<fe::graph::SDPA_backward_attributes>(s);
    if (c.bias) {
      tensor_t d_bias = tensor(fe::graph::Tensor_attributes());
      out(d_bias, s.d_bias);
      how.set_dbias(d_bias);
    }
    auto [d_q, d_k, d_v] = sdpa_backward(q, k, v, o, d_o, stats, how);
    heads(d_q, s.d_q);
    heads(d_k, s.d_k);
    heads(d_v, s.d_v);
  }
};

// Rows of queries beyond a length have no statistics.
static void compare_stats(const attention_t &c, solution_t &s) {
  std::vector<float> got(size_t(count(local_dim(s.stats))));
  check(cudaMemcpy(got.data(), s.stats.device, got.size() * 4,
                   cudaMemcpyDeviceToHost));
  each(s.stats, [&](int64_t i, int64_t offset) {
    int64_t batch = i / c.rows / c.heads;
    if (c.padded && i % c.rows >= int64_t(s.rows.value[size_t(batch)]))
      return;
    check(std::fabs(got[offset] - s.stats.value[i]) <= 2e-3,
          "stats: " + std::to_string(got[offset]) + " for " +
              std::to_string(s.stats.value[i]));
  });
}

static void attend(const attention_t &c) {
  solution_t s = solved(c);
  for (bool with_stats : {false, true}) {
    attention_graph_t g(c);
    g.forward(s, with_stats);
    g.plan();
    g.run();
    compare("o", s.o);
    if (with_stats)
      compare_stats(c, s);
  }
}

static void attend_backward(const attention_t &c) {
  solution_t s = solved(c);
  attention_graph_t g(c);
  g.backward(s);
  g.plan();
  g.run();
  compare("dq", s.d_q);
  compare("dk", s.d_k);
  compare("dv", s.d_v);
  if (c.bias)
    compare("dbias", s.d_bias);
}

// A plan's text, read by another graph; its executions give the same bits.
static void attend_again(const attention_t &c, bool backward) {
  solution_t s = solved(c);
  attention_graph_t g(c);
  graph_t again(c.type);
  std::vector<uint8_t> text;
  backward ? g.backward(s) : g.forward(s, true);
  g.plan();
  g.run();
  check(g.serialize(text));
  check(again.deserialize(handle, text));
  again.pack = g.pack;
  array_t &result = backward ? s.d_q : s.o;
  size_t size = size_t(count(local_dim(result))) * bytes(result.type);
  std::vector<char> first(size), second(size);
  check(cudaMemcpy(first.data(), result.device, size, cudaMemcpyDeviceToHost));
  check(cudaMemset(result.device, 0x7f, size));
  again.run();
  compare("again", result);
  check(cudaMemcpy(second.data(), result.device, size, cudaMemcpyDeviceToHost));
  check(first == second, "other bits");
}

static attention_t causal(attention_t c) {
  c.right = 0;
  return c;
}

static std::vector<attention_t> attention_list() {
  std::vector<attention_t> list;
  auto add = [&list](const char *name, std::function<void(attention_t &)> set) {
    attention_t c{};
    c.name = name;
    set(c);
    list.push_back(c);
  };
  add("plain", [](attention_t &) {});
  add("plain, B H S D", [](attention_t &c) { c.heads_outside = true; });
  add("bf16, causal", [](attention_t &c) {
    c.type = bf16;
    c.right = 0;
  });
  add("causal, more keys", [](attention_t &c) {
    c.right = 0;
    c.columns = 80;
  });
  add("causal from the bottom", [](attention_t &c) {
    c.right = 0;
    c.columns = 83;
    c.bottom_right = true;
  });
  add("sliding window", [](attention_t &c) {
    c.right = 0;
    c.left = 9;
  });
  add("band", [](attention_t &c) {
    c.right = 5;
    c.left = 7;
    c.columns = 64;
    c.bottom_right = true;
  });
  add("bias", [](attention_t &c) { c.bias = true; });
  add("alibi, causal", [](attention_t &c) {
    c.alibi = true;
    c.right = 0;
  });
  add("lengths", [](attention_t &c) { c.padded = true; });
  add("lengths, causal", [](attention_t &c) {
    c.padded = true;
    c.right = 0;
    c.type = bf16;
  });
  add("lengths, causal from the bottom", [](attention_t &c) {
    c.padded = true;
    c.right = 0;
    c.bottom_right = true;
    c.columns = 96;
  });
  add("groups of heads, causal", [](attention_t &c) {
    c.groups = 2;
    c.right = 0;
  });
  add("one head of keys", [](attention_t &c) { c.groups = 1; });
  add("narrow values", [](attention_t &c) {
    c.d = 128;
    c.d_v = 64;
    c.right = 0;
  });
  return list;
}

static std::vector<std::pair<std::string, std::function<void()>>>
attention_cases() {
  std::vector<std::pair<std::string, std::function<void()>>> cases;
  for (const attention_t &c : attention_list()) {
    if (pieces && (c.bias || c.alibi || c.padded)) // refused then
      continue;
    std::string name = c.name;
    cases.push_back({"attention, " + name, [c] { attend(c); }});
    cases.push_back(
        {"attention backward, " + name, [c] { attend_backward(c); }});
  }
  attention_t last{}, plain{};
  last.rows = 1;
  if (!pieces)
    cases.push_back({"attention, one query", [last] { attend(last); }});
  for (bool backward : {false, true})
    cases.push_back({backward ? "attention backward, deserialized"
                              : "attention, deserialized",
                     [=] { attend_again(causal(plain), backward); }});
  cases.push_back({"attention, plain, deserialized",
                   [plain] { attend_again(plain, false); }});
  return cases;
}
