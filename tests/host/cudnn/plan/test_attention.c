// SPDX-License-Identifier: Apache-2.0
// The rules of the planner for attention: graphs that are taken, and for each
// rule one beyond it. tests/host/planner asks NVIDIA's planner the same.
#include "src/host/cudnn/plan/plan.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/attention/attend.h"
#include "tests/host/cudnn/plan/judge.h"
#include "tests/unit/harness.h"

typedef enum { FORWARD, BACKWARD, ONE } form_t;

static attended_t make(made_t *m, form_t form, const attend_t *a) {
  return form == FORWARD    ? attend_forward(m, a)
         : form == BACKWARD ? attend_backward(m, a)
                            : attend_as_one(m, a);
}

static attend_t plain(void) {
  return (attend_t){.io = CUDNN_DATA_HALF,
                    .b = 2,
                    .heads = 4,
                    .groups = 4,
                    .rows = 9,
                    .columns = 11,
                    .d = 64,
                    .d_v = 64,
                    .stats = true};
}

// ---- what is taken ---------------------------------------------------------

static void check_taken(form_t form, const attend_t *a, const char *what) {
  made_t m;
  (void)make(&m, form, a);
  const char *text = host_plan_refuses(&m.graph);
  ck_assert_msg(!text, "%s, %d: %s", what, (int)form, text);
  made_destroy(&m);
}

START_TEST(attention_of_every_kind_is_taken) {
  form_t form = (form_t)_i;
  case_seed(1);
  for (int i = 0; i < 10; i++) {
    attend_t a = plain();
    a.io = i == 1 ? CUDNN_DATA_BFLOAT16 : a.io;
    a.causal = form != ONE && i % 3 == 1;
    a.bottom = i == 4;
    a.left = form != ONE && i == 2 ? 5 : 0;
    a.lengths = i == 3 || i == 4;
    a.bias = form != ONE && i == 5;
    a.groups = i == 6 ? 2 : a.groups;
    a.d = i == 7 ? 8 : i == 8 ? 256 : a.d;
    a.d_v = i == 8 ? 128 : a.d_v;
    a.rows = i == 9 ? 1 : a.rows;
    check_taken(form, &a, "variant");
  }
  attend_t a = plain();
  a.io = CUDNN_DATA_FLOAT;
  a.d = a.d_v = 512;
  if (form != BACKWARD)
    check_taken(form, &a, "f32");
}
END_TEST

/* The gradient of queries before that of keys, of which each has three
 * operations in groups of heads. */
START_TEST(gradients_are_taken_in_any_order) {
  enum { EACH = 3 };
  attend_t a = plain();
  made_t m;
  a.groups = 2;
  case_seed(1);
  (void)attend_backward(&m, &a);
  for (int n = m.graph.node_count - 2 * EACH; n < m.graph.node_count - EACH;
       n++) {
    sdg_graph_node_t keys = m.graph.node[n];
    m.graph.node[n] = m.graph.node[n + EACH];
    m.graph.node[n + EACH] = keys;
  }
  const char *text = host_plan_refuses(&m.graph);
  ck_assert_msg(!text, "%s", text);
  made_destroy(&m);
}
END_TEST

// ---- what is refused -------------------------------------------------------

typedef enum {
  AS_IT_IS,
  ONE_MORE,        // operation behind it
  FLAT,            // three dimensions
  VIRTUAL,         // queries
  WRITTEN,         // scores
  MIXED,           // keys of another type
  IN_HALF,         // the first product
  PLAINLY_IN_HALF, // the pointwise operations
  APART,           // elements of a query
  SMALLEST,        // score instead of the largest one
  TANH,            // instead of exponentials
} change_t;

static sdg_graph_node_t *node_of(made_t *m, cudnnBackendDescriptorType_t kind) {
  for (int n = 0; n < m->graph.node_count; n++)
    if (m->graph.node[n].kind == kind)
      return &m->graph.node[n];
  return NULL;
}

static void set(sdg_graph_node_t *node, cudnnBackendAttributeName_t name,
                int64_t from, int64_t to) {
  for (int i = 0; i < node->parameter_count; i++)
    if (node->parameter[i].name == name &&
        node->parameter[i].value[0].integer == from)
      node->parameter[i].value[0].integer = to;
}

static void change(made_t *m, const attended_t *t, change_t how) {
  sdg_graph_tensor_t *tensor = m->graph.tensor;
  sdg_graph_node_t *product =
      node_of(m, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  sdg_graph_tensor_t o = tensor[t->o];
  switch (how) {
  case AS_IT_IS:
    return;
  case ONE_MORE:
    made_pointwise(m, CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, t->o, -1, -1,
                   made_virtual(m, o.type, o.rank, o.dim));
    return;
  case FLAT:
    tensor[t->q].rank = 3;
    return;
  case VIRTUAL:
    tensor[t->q].is_virtual = true;
    return;
  case WRITTEN:
    tensor[sdg_graph_operand(product, CUDNN_ATTR_OPERATION_MATMUL_CDESC)]
        .is_virtual = false;
    return;
  case MIXED:
    tensor[product
               ? sdg_graph_operand(product, CUDNN_ATTR_OPERATION_MATMUL_BDESC)
               : t->k]
        .type = CUDNN_DATA_BFLOAT16;
    return;
  case IN_HALF:
    set(product, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT,
        CUDNN_DATA_HALF);
    return;
  case PLAINLY_IN_HALF:
    for (int n = 0; n < m->graph.node_count; n++)
      set(&m->graph.node[n], CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT,
          CUDNN_DATA_HALF);
    return;
  case APART:
    tensor[t->q].stride[3] = 2;
    return;
  case SMALLEST:
    set(node_of(m, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR),
        CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_REDUCE_TENSOR_MAX,
        CUDNN_REDUCE_TENSOR_MIN);
    return;
  case TANH:
    for (int n = 0; n < m->graph.node_count; n++)
      set(&m->graph.node[n], CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_EXP,
          CUDNN_POINTWISE_TANH_FWD);
  }
}

static const struct {
  const char *rule; // how its text begins
  form_t form;
  change_t change;
  cudnnDataType_t io; // 0: half
  int64_t d;          // 0: 64
  bool single, no_statistics;
} rows[] = {
    {"attention as one operation", ONE, .change = ONE_MORE},
    {"attention on tensors of 4", ONE, .change = FLAT},
    {"attention on tensors in memory", FORWARD, .change = VIRTUAL},
    {"no operation behind attention", FORWARD, .change = ONE_MORE},
    {"scores of attention", FORWARD, .change = WRITTEN},
    {"attention on f16 and bf16", FORWARD, .io = CUDNN_DATA_DOUBLE},
    {"attention on f16 and bf16", ONE, .io = CUDNN_DATA_FP8_E4M3},
    {"attention on f16 and bf16", BACKWARD, .single = true},
    {"attention on queries, keys", FORWARD, .change = MIXED},
    {"attention on queries, keys", ONE, .change = MIXED},
    {"products of attention", FORWARD, .change = IN_HALF},
    {"products of attention", BACKWARD, .change = PLAINLY_IN_HALF},
    {"attention on vectors of a multiple", FORWARD, .d = 12},
    {"attention on vectors of a multiple", BACKWARD, .d = 4},
    {"gradients of attention on vectors", BACKWARD, .d = 264},
    {"attention on vectors whose", ONE, .change = APART},
    {"no operation that reads", FORWARD, .change = SMALLEST},
    {"no operation that reads", FORWARD, .change = TANH},
    {"no operation that reads", BACKWARD, .change = TANH},
    {"no operation that reads", FORWARD, .no_statistics = true},
};
enum { ROWS = sizeof rows / sizeof *rows };

START_TEST(attention_beyond_a_rule_is_refused_for_it) {
  attend_t a = plain();
  a.io = rows[_i].single ? CUDNN_DATA_FLOAT : rows[_i].io ? rows[_i].io : a.io;
  a.d = rows[_i].d ? rows[_i].d : a.d;
  a.stats = !rows[_i].no_statistics;
  made_t m;
  case_seed(1);
  attended_t t = make(&m, rows[_i].form, &a);
  change(&m, &t, rows[_i].change);
  judge_refused(_i, rows[_i].rule, host_plan_refuses(&m.graph));
  made_destroy(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudnn plan attention");
  TCase *tests = tcase_create("attention");
  tcase_add_loop_test(tests, attention_of_every_kind_is_taken, 0, 3);
  tcase_add_test(tests, gradients_are_taken_in_any_order);
  tcase_add_loop_test(tests, attention_beyond_a_rule_is_refused_for_it, 0,
                      ROWS);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
