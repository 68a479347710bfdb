// SPDX-License-Identifier: Apache-2.0
// Pieces of attention are stated as cudnn-frontend states attention.
#include "rules/graph/attention/state.h"

#include <math.h>
#include <string.h>

#include "tests/unit/graph/attention/compute.h"
#include "tests/unit/graph/attention/drawn.h"
#include "tests/unit/graph/composite/forms.h"
#include "tests/unit/harness.h"

static const char *path;

// ---- the same graph --------------------------------------------------------

// The shape of a recorded graph; false if pieces never have it.
static bool shape_of(const sdg_graph_t *graph, sdg_attention_shape_t *s) {
  sdg_composite_t c;
  bool is;
  if (sdg_composite_read(graph, &is, &c) || c.bottom_right)
    return false;
  sdg_composite_extents_t e = sdg_composite_extents(&c, graph);
  *s = (sdg_attention_shape_t){.backward = c.backward,
                               .unified = c.unified,
                               .deterministic =
                                   c.tensor[SDG_COMPOSITE_DQ_SUM] < 0,
                               .batch = e.batch,
                               .heads = e.heads,
                               .k_heads = e.k_heads,
                               .v_heads = e.v_heads,
                               .queries = e.queries,
                               .keys = e.keys,
                               .depth = e.depth,
                               .v_depth = e.v_depth,
                               .right = c.right,
                               .left = c.left,
                               .right_bound = c.right_bound < 0 ? 0 : 3,
                               .left_bound = 4,
                               .scales = c.scale >= 0,
                               .scale_type = CUDNN_DATA_FLOAT,
                               .fill = -INFINITY};
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    int t = c.tensor[role];
    if (t < 0 || role == SDG_COMPOSITE_DELTA || role == SDG_COMPOSITE_DQ_SUM)
      continue;
    const sdg_graph_tensor_t *from = &graph->tensor[t];
    s->tensor[role] = (sdg_attention_tensor_t){
        .there = true, .type = from->type, .alignment = from->alignment};
    for (int d = 0; d < 4; d++)
      s->tensor[role].stride[d] =
          from->stride[c.turned[role] && d >= 2 ? 5 - d : d];
    if (role == SDG_COMPOSITE_BIAS)
      memcpy(s->bias_dim, from->dim, sizeof s->bias_dim);
  }
  return true;
}

static bool tensors_alike(const sdg_graph_tensor_t *a,
                          const sdg_graph_tensor_t *b) {
  bool alike = a->type == b->type && a->rank == b->rank &&
               a->is_virtual == b->is_virtual &&
               a->is_by_value == b->is_by_value;
  for (int d = 0; alike && d < a->rank; d++)
    alike = a->dim[d] == b->dim[d] &&
            (a->is_virtual || a->dim[d] == 1 || a->stride[d] == b->stride[d]);
  return alike;
}

static bool nodes_alike(const sdg_graph_t *a, const sdg_graph_t *b, int n) {
  static const cudnnBackendAttributeName_t parameters[] = {
      CUDNN_ATTR_POINTWISE_MODE,      CUDNN_ATTR_POINTWISE_MATH_PREC,
      CUDNN_ATTR_POINTWISE_AXIS,      CUDNN_ATTR_REDUCTION_OPERATOR,
      CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_ATTR_MATMUL_COMP_TYPE};
  const sdg_graph_node_t *x = &a->node[n], *y = &b->node[n];
  bool alike = x->kind == y->kind && x->operand_count == y->operand_count;
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
    alike &= sdg_graph_integer(x, parameters[i], -1) ==
             sdg_graph_integer(y, parameters[i], -1);
  for (int i = 0; alike && i < x->operand_count; i++) {
    int other = sdg_graph_operand(y, x->operand[i].name);
    alike = other >= 0 &&
            tensors_alike(&a->tensor[x->operand[i].tensor], &b->tensor[other]);
  }
  return alike;
}

START_TEST(pieces_are_stated_as_the_newest_frontend_does) {
  static form_t form[FORMS_MAX];
  int forms = forms_read(path, form), compared = 0;
  for (int i = 0; i < forms; i++) {
    sdg_attention_shape_t shape;
    sdg_attention_state_t state;
    const sdg_graph_t *graph = form[i].graph;
    if (strcmp(form[i].version, "1.32.0") != 0 || !shape_of(graph, &shape))
      continue;
    REQUIRE(sdg_attention_state_init(&shape, &state) == SDG_OK);
    REQUIRE_MSG(state.graph->node_count == graph->node_count,
                "%s has %d nodes for %d", form[i].name, state.graph->node_count,
                graph->node_count);
    for (int n = 0; n < graph->node_count; n++)
      REQUIRE_MSG(nodes_alike(graph, state.graph, n), "%s: node %d",
                  form[i].name, n);
    sdg_attention_state_fini(&state);
    compared++;
  }
  forms_free(form, forms);
  ck_assert_int_gt(compared, 20);
}
END_TEST

// ---- the same meaning ------------------------------------------------------

static void values_init(const drawn_t *d, const sdg_attention_state_t *state,
                        double *value[COMPUTE_TENSORS]) {
  memset(value, 0, COMPUTE_TENSORS * sizeof *value);
  for (int t = 0; t < state->graph->tensor_count; t++)
    value[t] = calloc((size_t)compute_elements(&state->graph->tensor[t]),
                      sizeof(double));
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    int t = state->tensor[role];
    if (t < 0 || !d->value[role])
      continue;
    const sdg_graph_tensor_t *tensor = &state->graph->tensor[t];
    int64_t dim[4], elements = drawn_elements(&d->shape, role);
    drawn_extents(&d->shape, role, dim);
    bool turned = role == SDG_COMPOSITE_K ||
                  (role == SDG_COMPOSITE_V && d->shape.backward);
    for (int64_t i = 0; i < elements; i++) {
      int64_t rest = i / (dim[2] * dim[3]), row = i / dim[3] % dim[2],
              column = i % dim[3];
      REQUIRE(tensor->dim[2] == dim[turned ? 3 : 2]);
      value[t][turned ? (rest * dim[3] + column) * dim[2] + row : i] =
          d->value[role][i];
    }
  }
  if (state->scale >= 0)
    value[state->scale][0] = d->scale;
  for (int i = 0; i < state->numbers; i++)
    value[state->number[i]][0] =
        state->graph->tensor[state->number[i]].type == CUDNN_DATA_INT32
            ? state->value[i].i32
            : (double)state->value[i].f32;
}

static void meaning_check(bool backward) {
  drawn_t d;
  sdg_attention_state_t state;
  sdg_composite_t c;
  double *value[COMPUTE_TENSORS], *right[SDG_COMPOSITE_ROLES];
  bool is;
  char text[256];
  drawn_create(&d, backward);
  d.shape.unified = false;
  REQUIRE(sdg_attention_state_init(&d.shape, &state) == SDG_OK);
  const char *lacks = sdg_composite_read(state.graph, &is, &c);
  REQUIRE_MSG(!lacks, "%s: %s", lacks, drawn_text(&d.shape, text));
  REQUIRE(memcmp(c.tensor, state.tensor, sizeof c.tensor) == 0);
  REQUIRE(c.right == d.shape.right && c.left == d.shape.left);
  values_init(&d, &state, value);
  REQUIRE(compute_graph(state.graph, value));
  drawn_solve(&d, right);
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    for (int64_t i = 0; right[role] && i < drawn_elements(&d.shape, role); i++)
      REQUIRE_MSG(isnan(right[role][i]) ||
                      fabs(value[state.tensor[role]][i] - right[role][i]) <=
                          1e-6 * (1 + fabs(right[role][i])),
                  "role %d: %s", role, drawn_text(&d.shape, text));
    free(right[role]);
  }
  for (int t = 0; t < state.graph->tensor_count; t++)
    free(value[t]);
  sdg_attention_state_fini(&state);
  drawn_destroy(&d);
}

START_TEST(pieces_compute_attention_and_are_recognised) {
  for (int64_t i = random_cases(100); i-- > 0;) {
    meaning_check(false);
    meaning_check(true);
  }
}
END_TEST

int main(int argc, char **argv) {
  if (argc != 2)
    return EXIT_FAILURE;
  path = argv[1];
  Suite *suite = suite_create("graph_attention");
  TCase *tcase = tcase_create("all");
  tcase_add_test(tcase, pieces_are_stated_as_the_newest_frontend_does);
  tcase_add_test(tcase, pieces_compute_attention_and_are_recognised);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
