// SPDX-License-Identifier: Apache-2.0
// Which graphs with one product of matrices an engine of cuDNN 9.19 takes on an
// H100: any extents, broadcasts and reductions, but not any types and strides.
#include "src/host/cudnn/plan/families.h"

#define BIT(type) (1u << CUDNN_DATA_##type)
#define HALVES    (BIT(HALF) | BIT(BFLOAT16))
#define BYTES     (BIT(INT8) | BIT(FP8_E4M3) | BIT(FP8_E5M2))

static bool is_one_of(cudnnDataType_t type, unsigned types) {
  return (unsigned)type < 32 && (types >> type & 1);
}

static cudnnDataType_t type_of(const sdg_graph_node_t *node,
                               cudnnBackendAttributeName_t name) {
  return (cudnnDataType_t)sdg_graph_integer(node, name, CUDNN_DATA_FLOAT);
}

static const sdg_graph_node_t *end_of(const host_facts_t *f) {
  return f->graph->node + f->graph->node_count;
}

// ---- the product -----------------------------------------------------------

enum { A, B, C, MATRICES };

static const sdg_graph_tensor_t *matrix(const host_facts_t *f, int which) {
  static const cudnnBackendAttributeName_t names[MATRICES] = {
      CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
      CUDNN_ATTR_OPERATION_MATMUL_CDESC};
  int tensor = sdg_graph_operand(f->product, names[which]);
  return tensor < 0 ? NULL : &f->graph->tensor[tensor];
}

static bool three_dimensions(const host_facts_t *f) {
  for (int i = 0; i < MATRICES; i++)
    if (!matrix(f, i) || matrix(f, i)->rank != 3)
      return false;
  return true;
}

static bool batches_fit(const host_facts_t *f) {
  int64_t all = matrix(f, C)->dim[0];
  int64_t a = matrix(f, A)->dim[0], b = matrix(f, B)->dim[0];
  return (a == all && (b == all || b == 1)) || (a == 1 && b == all);
}

static bool inputs_alike(const host_facts_t *f) {
  static const unsigned sets[] = {BIT(FLOAT), BIT(HALF), BIT(BFLOAT16),
                                  BIT(INT8), BIT(FP8_E4M3) | BIT(FP8_E5M2)};
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    if (is_one_of(matrix(f, A)->type, sets[i]) &&
        is_one_of(matrix(f, B)->type, sets[i]))
      return true;
  return false;
}

static bool product_math(const host_facts_t *f) {
  cudnnDataType_t type = matrix(f, A)->type;
  cudnnDataType_t math = type_of(f->product, CUDNN_ATTR_MATMUL_COMP_TYPE);
  if (type == CUDNN_DATA_INT8)
    return math == CUDNN_DATA_INT32;
  return math == CUDNN_DATA_FLOAT ||
         (math == CUDNN_DATA_HALF && type == CUDNN_DATA_HALF);
}

// ---- other operations ------------------------------------------------------

static bool is_logical(int64_t mode) {
  return mode == CUDNN_POINTWISE_LOGICAL_AND ||
         mode == CUDNN_POINTWISE_LOGICAL_OR ||
         mode == CUDNN_POINTWISE_LOGICAL_NOT;
}

static bool is_of_integers(int64_t mode) {
  switch (mode) {
  case CUDNN_POINTWISE_ADD:
  case CUDNN_POINTWISE_ADD_SQUARE:
  case CUDNN_POINTWISE_SUB:
  case CUDNN_POINTWISE_MUL:
  case CUDNN_POINTWISE_DIV:
  case CUDNN_POINTWISE_MOD:
  case CUDNN_POINTWISE_MAX:
  case CUDNN_POINTWISE_MIN:
  case CUDNN_POINTWISE_ABS:
  case CUDNN_POINTWISE_NEG:
  case CUDNN_POINTWISE_CEIL:
  case CUDNN_POINTWISE_FLOOR:
  case CUDNN_POINTWISE_CMP_EQ:
  case CUDNN_POINTWISE_CMP_NEQ:
  case CUDNN_POINTWISE_CMP_GT:
  case CUDNN_POINTWISE_CMP_GE:
  case CUDNN_POINTWISE_CMP_LT:
  case CUDNN_POINTWISE_CMP_LE:
  case CUDNN_POINTWISE_GEN_INDEX:
  case CUDNN_POINTWISE_BINARY_SELECT:
    return true;
  }
  return is_logical(mode);
}

static bool computes(const sdg_graph_node_t *node) {
  int64_t mode = sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MODE, -1);
  if (mode == CUDNN_POINTWISE_IDENTITY)
    return true;
  if (host_node_is_reduction(node))
    return type_of(node, CUDNN_ATTR_REDUCTION_COMP_TYPE) == CUDNN_DATA_FLOAT;
  switch ((int)type_of(node, CUDNN_ATTR_POINTWISE_MATH_PREC)) {
  case CUDNN_DATA_FLOAT:
    return !is_logical(mode);
  case CUDNN_DATA_INT32:
    return is_of_integers(mode);
  case CUDNN_DATA_BOOLEAN:
    return is_logical(mode);
  }
  return false;
}

static bool arithmetic(const host_facts_t *f) {
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f); node++)
    if (node != f->product && !computes(node))
      return false;
  return true;
}

static bool front_unwritten(const host_facts_t *f) {
  for (int n = 0; n < f->graph->node_count; n++)
    if (f->before[n] &&
        !host_node_result(f->graph, &f->graph->node[n])->is_virtual)
      return false;
  return true;
}

// ---- strides ---------------------------------------------------------------

// Tensors in memory with as many rows and columns as the product's operand
// beside which they are: `before`, a and b and what pointwise operations in
// front of them read; otherwise c and what those behind it read and write.
typedef bool visit_t(const sdg_graph_tensor_t *tensor, bool is_read);

static bool is_matrix(const sdg_graph_tensor_t *t,
                      const sdg_graph_tensor_t *like) {
  return !t->is_virtual && !t->is_by_value && t->rank == 3 &&
         t->dim[1] == like->dim[1] && t->dim[2] == like->dim[2];
}

static bool all_around(const host_facts_t *f, bool before, visit_t *visit) {
  for (int n = 0; n < f->graph->node_count; n++) {
    const sdg_graph_node_t *node = &f->graph->node[n];
    if (f->before[n] != before || !host_node_is_pointwise(node))
      continue;
    const sdg_graph_tensor_t *like = host_node_result(f->graph, node);
    for (int i = 0; i < node->operand_count; i++) {
      const sdg_graph_tensor_t *t = &f->graph->tensor[node->operand[i].tensor];
      if (is_matrix(t, like) &&
          !visit(t, !sdg_graph_writes(node, node->operand[i].name)))
        return false;
    }
  }
  for (int i = before ? A : C; i < (before ? C : MATRICES); i++)
    if (!matrix(f, i)->is_virtual && !visit(matrix(f, i), false))
      return false;
  return true;
}

static bool is_dense(const sdg_graph_tensor_t *t, bool is_read) {
  (void)is_read;
  return t->stride[1] == 1 || t->stride[2] == 1;
}

static bool inputs_dense(const host_facts_t *f) {
  return all_around(f, true, is_dense);
}

// Which neighbours in memory are: of one row or column, the strides say which.
typedef enum { EITHER, BY_ROWS, BY_COLUMNS } order_t;

static order_t order_of(const sdg_graph_tensor_t *t) {
  if (t->dim[1] == 1 && t->dim[2] == 1)
    return EITHER;
  if (t->dim[2] == 1)
    return t->stride[2] == 1 ? BY_ROWS : BY_COLUMNS;
  return t->stride[1] > t->stride[2] ? BY_ROWS : BY_COLUMNS;
}

// One engine takes any strides behind the product, but neither bytes nor halves
// that do not come in words of 4 bytes.
static bool is_words(const sdg_graph_tensor_t *t, bool is_read) {
  int inner = order_of(t) == BY_COLUMNS ? 1 : 2;
  bool batch_inside = t->dim[0] > 1 && t->stride[0] < t->stride[inner];
  (void)is_read;
  return !is_one_of(t->type, HALVES) ||
         (t->dim[inner] % 2 == 0 && !batch_inside);
}

static bool any_strides(const host_facts_t *f) {
  return !is_one_of(matrix(f, A)->type, BYTES) &&
         is_words(matrix(f, A), true) && is_words(matrix(f, B), true) &&
         all_around(f, false, is_words);
}

static bool results_dense(const host_facts_t *f) {
  return all_around(f, false, is_dense) || any_strides(f);
}

static bool is_by_rows(const sdg_graph_tensor_t *t, bool is_read) {
  (void)is_read;
  return order_of(t) != BY_COLUMNS;
}

static bool is_by_columns(const sdg_graph_tensor_t *t, bool is_read) {
  (void)is_read;
  return order_of(t) != BY_ROWS;
}

static bool one_order(const host_facts_t *f) {
  return all_around(f, false, is_by_rows) ||
         all_around(f, false, is_by_columns);
}

// A tensor of one row by columns has neighbouring columns, one of one column by
// rows neighbouring rows; both strides of what is read are equal then.
static bool is_thin(const sdg_graph_tensor_t *t, bool is_read) {
  order_t thin = t->dim[2] == 1 ? BY_ROWS : BY_COLUMNS;
  return !is_read || order_of(t) != thin || t->stride[1] == t->stride[2];
}

static bool reads_vectors(const host_facts_t *f) {
  for (int n = 0; n < f->graph->node_count; n++) {
    const sdg_graph_node_t *node = &f->graph->node[n];
    int operands =
        f->before[n] || !host_node_is_pointwise(node) ? 0 : node->operand_count;
    for (int i = 0; i < operands; i++) {
      const sdg_graph_tensor_t *t = &f->graph->tensor[node->operand[i].tensor];
      if (!t->is_virtual && !sdg_graph_writes(node, node->operand[i].name) &&
          t->dim[0] * t->dim[1] * t->dim[2] > 1)
        return true;
    }
  }
  return false;
}

// A virtual c of one row by columns, or of one column by rows, wants what is in
// memory behind it in that order; the engine of any strides does not, but reads
// nothing beside it then.
static bool lines_in_order(const host_facts_t *f) {
  const sdg_graph_tensor_t *c = matrix(f, C);
  bool row = c->dim[1] == 1, column = c->dim[2] == 1;
  if (f->graph->node_count == 1 || row == column)
    return true;
  if (!all_around(f, false, is_thin))
    return false;
  if (!c->is_virtual || c->stride[2] != 1 || (row && c->stride[1] != 1))
    return true;
  bool fits = column ? all_around(f, false, is_by_rows)
                     : !all_around(f, false, is_by_rows);
  return fits || (any_strides(f) && !reads_vectors(f));
}

// ---- the table -------------------------------------------------------------

static const host_rule_t rules[] = {
    {three_dimensions, "products of matrices of 3 dimensions"},
    {batches_fit, "products whose a and b have c's batch, one of them or 1"},
    {inputs_alike, "products of two f32, f16, bf16 or i8, or of fp8"},
    {product_math,
     "products computed in float (of f16: or in f16; of i8: in i32)"},
    {arithmetic,
     "around products, reductions in float and pointwise operations in float, "
     "integer ones in i32, logical ones in i32 or boolean"},
    {front_unwritten, "no result in memory in front of a product"},
    {inputs_dense,
     "products of matrices whose rows or columns lie together, and so for what "
     "operations in front of them read"},
    {results_dense,
     "behind products, matrices whose rows or columns lie together (of f32, "
     "and of f16 and bf16 in words of 4 bytes, any)"},
    {one_order, "behind products, matrices all by rows or all by columns"},
    {lines_in_order,
     "products of one row or column that lie as what is beside them"},
};

const char *host_product_refuses(const host_facts_t *facts) {
  return facts->product
             ? host_rules_broken(rules, sizeof rules / sizeof *rules, facts)
             : NULL;
}
