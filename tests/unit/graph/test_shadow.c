// SPDX-License-Identifier: Apache-2.0
// Graphs with attributes of later versions of cuDNN are not split as if they
// had none.
#include "interpose/graph/shadow.h"

#include <string.h>

#include "rules/graph/product/product.h"
#include "tests/unit/harness.h"

enum { X, B, Y, OP, OPERATOR, GRAPH, ENGINE, CONFIG, PLAN, PACK, DESCRIPTORS };
static char descriptor[DESCRIPTORS]; // shadows know their addresses only

static void set(int of, int name, cudnnBackendAttributeType_t type,
                int64_t count, const void *value) {
  sdg_shadow_set(&descriptor[of], (cudnnBackendAttributeName_t)name, type,
                 count, value);
}

static void number_set(int of, int name, int64_t value) {
  set(of, name, CUDNN_TYPE_INT64, 1, &value);
}

static void refer(int of, int name, int to) {
  const void *value = &descriptor[to];
  set(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void create(int which, cudnnBackendDescriptorType_t kind) {
  sdg_shadow_created(&descriptor[which], kind);
}

static void tensor_create(int which, int64_t rows) {
  int64_t extent[] = {2, 3, rows, 8}, stride[] = {24 * rows, 8 * rows, 8, 1};
  create(which, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(which, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, extent);
  set(which, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
  number_set(which, CUDNN_ATTR_TENSOR_UNIQUE_ID, which + 1);
}

static void plan_create(void) {
  create(GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  refer(GRAPH, CUDNN_ATTR_OPERATIONGRAPH_OPS, OP);
  create(ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  refer(ENGINE, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, GRAPH);
  create(CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  refer(CONFIG, CUDNN_ATTR_ENGINECFG_ENGINE, ENGINE);
  create(PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  refer(PLAN, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CONFIG);
  create(PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  for (int i = GRAPH; i <= PACK; i++)
    sdg_shadow_finalized(&descriptor[i]);
}

static void destroy_all(void) {
  for (int i = 0; i < DESCRIPTORS; i++)
    sdg_shadow_destroyed(&descriptor[i]);
}

typedef struct {
  const char *lacks; // NULL: it can be split
  int bytes;         // of an element of X
} reading_t;

static reading_t use_read(void) {
  sdg_graph_execution_t use;
  sdg_call_t call;
  ck_assert(sdg_shadow_use(&descriptor[PLAN], &descriptor[PACK], &use));
  reading_t reading = {use.pattern->lacks, 0};
  if (!reading.lacks) {
    ck_assert(sdg_graph_call_init(&use, 0, NULL, &call) == SDG_OK);
    reading.bytes = call.operand[0].elem_bytes;
  }
  sdg_graph_pattern_release(use.pattern);
  return reading;
}

// A sum over rows, with one more attribute somewhere; -1: without.
static reading_t graph_read(int changed, int attribute, int64_t value) {
  cudnnReduceTensorOp_t sum = CUDNN_REDUCE_TENSOR_ADD;
  tensor_create(X, 6);
  tensor_create(Y, 1);
  create(OPERATOR, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  set(OPERATOR, CUDNN_ATTR_REDUCTION_OPERATOR,
      CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &sum);
  create(OP, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  refer(OP, CUDNN_ATTR_OPERATION_REDUCTION_DESC, OPERATOR);
  refer(OP, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, X);
  refer(OP, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, Y);
  if (attribute >= 0)
    number_set(changed, attribute, value);
  plan_create();
  reading_t reading = use_read();
  destroy_all();
  return reading;
}

START_TEST(a_sum_of_known_attributes_can_be_split) {
  static const struct {
    int of, name;
  } known[] = {{X, -1},
               {OPERATOR, CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC},
               {X, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    reading_t reading = graph_read(known[i].of, known[i].name, 1);
    ck_assert_msg(!reading.lacks, "attribute %d: %s", known[i].name,
                  reading.lacks);
    ck_assert_int_eq(reading.bytes, 4);
  }
}
END_TEST

// Attributes of cuDNN 9.22 and later, whose headers this need not be built
// with: a tensor's constant value; offsets of a reduction's groups, and what it
// begins with.
START_TEST(a_graph_with_an_attribute_of_a_later_version_is_not_split) {
  static const struct {
    int of, name;
  } later[] = {{X, 910}, {Y, 910}, {OP, 1613}, {OP, 1641}, {OPERATOR, 1605}};
  for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
    reading_t reading = graph_read(later[i].of, later[i].name, 1);
    ck_assert_msg(reading.lacks && strstr(reading.lacks, "not known"),
                  "attribute %d: %s", later[i].name,
                  reading.lacks ? reading.lacks : "split");
  }
}
END_TEST

// Boxes of them cannot be copied: tensors of 0 bytes an element are refused
// where they are split.
START_TEST(elements_of_half_a_byte_or_a_later_type_have_no_size) {
  ck_assert_int_eq(
      graph_read(X, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_HALF).bytes, 2);
  for (int type = 0; type < 40; type++) // 23: FP8_E5M3 of cuDNN 9.26
    if (type == CUDNN_DATA_FP4_E2M1 || type == CUDNN_DATA_INT4 ||
        type == CUDNN_DATA_UINT4 || type > 21)
      ck_assert_int_eq(graph_read(X, CUDNN_ATTR_TENSOR_DATA_TYPE, type).bytes,
                       0);
}
END_TEST

static void matrix_create(int which, int64_t rows, int64_t columns, int type) {
  int64_t extent[] = {1, rows, columns},
          stride[] = {rows * columns, columns, 1};
  create(which, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(which, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 3, extent);
  set(which, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 3, stride);
  number_set(which, CUDNN_ATTR_TENSOR_UNIQUE_ID, which + 1);
  number_set(which, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
}

// Whether ranks that have all of the matrices can share out a dimension of the
// product of a matrix of floats and one of another type.
static bool is_shared_out(int dim, int type) {
  sdg_graph_execution_t use;
  sdg_call_t call;
  sdg_tagging_t tagging = {.ranks = 2};
  matrix_create(X, 4, 8, CUDNN_DATA_FLOAT);
  matrix_create(B, 8, 16, type);
  matrix_create(Y, 4, 16, CUDNN_DATA_FLOAT);
  create(OPERATOR, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  create(OP, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  refer(OP, CUDNN_ATTR_OPERATION_MATMUL_DESC, OPERATOR);
  refer(OP, CUDNN_ATTR_OPERATION_MATMUL_ADESC, X);
  refer(OP, CUDNN_ATTR_OPERATION_MATMUL_BDESC, B);
  refer(OP, CUDNN_ATTR_OPERATION_MATMUL_CDESC, Y);
  plan_create();
  ck_assert(sdg_shadow_use(&descriptor[PLAN], &descriptor[PACK], &use));
  ck_assert_msg(!use.pattern->lacks, "%s", use.pattern->lacks);
  ck_assert(sdg_graph_call_init(&use, 0, NULL, &call) == SDG_OK);
  int product = sdg_graph_product_index(use.pattern);
  sdg_placement_t *placement = &tagging.placement[product];
  ck_assert(sdg_placement_init(SDG_PRODUCT_DIMS, call.operand[product].extent,
                               placement) == SDG_OK);
  placement->split[dim].axes = 1;
  bool can = sdg_graph_product_can(&call, &tagging);
  sdg_placement_fini(placement);
  sdg_graph_pattern_release(use.pattern);
  destroy_all();
  return can;
}

// Their part has no address that is a number of bytes.
START_TEST(a_matrix_of_half_bytes_is_not_shared_out) {
  ck_assert(is_shared_out(SDG_N, CUDNN_DATA_FLOAT));
  ck_assert(!is_shared_out(SDG_N, CUDNN_DATA_INT4));
  ck_assert(is_shared_out(SDG_M, CUDNN_DATA_INT4)); // all ranks read all of it
}
END_TEST

int main(void) {
  Suite *suite = suite_create("graph_shadow");
  TCase *cases = tcase_create("graph_shadow");
  tcase_add_test(cases, a_sum_of_known_attributes_can_be_split);
  tcase_add_test(cases,
                 a_graph_with_an_attribute_of_a_later_version_is_not_split);
  tcase_add_test(cases, elements_of_half_a_byte_or_a_later_type_have_no_size);
  tcase_add_test(cases, a_matrix_of_half_bytes_is_not_shared_out);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
