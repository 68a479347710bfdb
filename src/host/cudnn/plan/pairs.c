// SPDX-License-Identifier: Apache-2.0
// Which graphs with several products of matrices an engine of cuDNN 9.19 takes,
// if they are no attention: two, one behind the other, in the types, orders and
// extents of attention with 64 elements in each head. That engine is the same
// on an H100, an A100 and a B200.
#include "src/host/cudnn/plan/families.h"

enum { A, B, C, MATRICES, ROWS = 2, COLUMNS = 3, DIMS = 4, HEAD = 64 };

static const sdg_graph_tensor_t *matrix(const host_facts_t *f, int product,
                                        int which) {
  static const cudnnBackendAttributeName_t names[MATRICES] = {
      CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
      CUDNN_ATTR_OPERATION_MATMUL_CDESC};
  return &f->graph->tensor[sdg_graph_operand(f->pair[product], names[which])];
}

static bool two_products(const host_facts_t *f) {
  return f->products == 2;
}

static bool no_sums(const host_facts_t *f) {
  return f->sums == 0;
}

static bool four_dimensions(const host_facts_t *f) {
  for (int i = 0; i < 2 * MATRICES; i++)
    if (matrix(f, i / MATRICES, i % MATRICES)->rank != DIMS)
      return false;
  return true;
}

static bool is_half(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}

// The first one's result may be of any type, if something is between them.
static bool of_halves(const host_facts_t *f) {
  return is_half(matrix(f, 0, A)->type) && is_half(matrix(f, 0, B)->type) &&
         is_half(matrix(f, 1, A)->type) && is_half(matrix(f, 1, B)->type);
}

static bool result_fits(const host_facts_t *f) {
  cudnnDataType_t type = matrix(f, 1, C)->type;
  return type == CUDNN_DATA_HALF ||
         (matrix(f, 1, A)->type == CUDNN_DATA_BFLOAT16 &&
          (type == CUDNN_DATA_BFLOAT16 || type == CUDNN_DATA_FLOAT));
}

static bool in_float(const host_facts_t *f) {
  for (int i = 0; i < 2; i++)
    if (sdg_graph_integer(f->pair[i], CUDNN_ATTR_MATMUL_COMP_TYPE,
                          CUDNN_DATA_FLOAT) != CUDNN_DATA_FLOAT)
      return false;
  return true;
}

static bool heads_of_64(const host_facts_t *f) {
  return matrix(f, 0, A)->dim[COLUMNS] == HEAD &&
         matrix(f, 1, C)->dim[COLUMNS] == HEAD;
}

static bool first_of_memory(const host_facts_t *f) {
  const sdg_graph_tensor_t *a = matrix(f, 0, A), *b = matrix(f, 0, B);
  return !a->is_virtual && a->stride[COLUMNS] == 1 && !b->is_virtual &&
         b->stride[ROWS] == 1;
}

static bool second_by_rows(const host_facts_t *f) {
  const sdg_graph_tensor_t *b = matrix(f, 1, B);
  return b->is_virtual || b->stride[COLUMNS] == 1;
}

// facts->before marks what the second one needs.
static bool one_behind_the_other(const host_facts_t *f) {
  return f->before[f->pair[0] - f->graph->node];
}

static bool second_ends_it(const host_facts_t *f) {
  int c = sdg_graph_operand(f->pair[1], CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  for (int n = 0; n < f->graph->node_count; n++)
    if (host_node_reads(&f->graph->node[n], c))
      return false;
  return !f->graph->tensor[c].is_virtual;
}

static const host_rule_t rules[] = {
    {two_products, "two products of matrices at most, but for attention"},
    {no_sums, "no reductions beside two products"},
    {four_dimensions, "two products of matrices of 4 dimensions"},
    {of_halves, "two products of f16 or bf16"},
    {result_fits,
     "two products with a result in f16 (of a second a in bf16: in "
     "bf16 or f32, too)"},
    {in_float, "two products computed in float"},
    {one_behind_the_other, "two products one of which needs the other"},
    {first_of_memory,
     "of two products, a first one of a by rows and b by columns in memory"},
    {heads_of_64,
     "two products whose first sums and last rows have 64 elements"},
    {second_by_rows, "of two products, a second b by rows"},
    {second_ends_it, "nothing behind the second product"},
};

const char *host_pairs_refuse(const host_facts_t *facts) {
  return facts->products > 1
             ? host_rules_broken(rules, sizeof rules / sizeof *rules, facts)
             : NULL;
}
