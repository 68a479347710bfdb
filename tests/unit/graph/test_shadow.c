// SPDX-License-Identifier: Apache-2.0
// Graphs with attributes of later versions of cuDNN are not split as if they
// had none.
#include "interpose/graph/shadow.h"

#include <string.h>

#include "tests/unit/harness.h"

enum { X, Y, OP, OPERATOR, GRAPH, ENGINE, CONFIG, PLAN, PACK, DESCRIPTORS };
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

// A sum over rows. *out_lacks: what of it cannot be split; NULL: nothing.
static void graph_read(int changed, int attribute, int64_t value,
                       const char **out_lacks) {
  cudnnReduceTensorOp_t sum = CUDNN_REDUCE_TENSOR_ADD;
  sdg_graph_execution_t use;
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
  ck_assert(sdg_shadow_use(&descriptor[PLAN], &descriptor[PACK], &use));
  *out_lacks = use.pattern->lacks;
  sdg_graph_pattern_release(use.pattern);
  for (int i = 0; i < DESCRIPTORS; i++)
    sdg_shadow_destroyed(&descriptor[i]);
}

START_TEST(a_sum_of_known_attributes_can_be_split) {
  const char *lacks = "not read";
  graph_read(OP, -1, 0, &lacks);
  ck_assert_msg(lacks == NULL, "%s", lacks);
  graph_read(OPERATOR, CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC, 1, &lacks);
  ck_assert_msg(lacks == NULL, "%s", lacks);
  graph_read(X, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1, &lacks);
  ck_assert_msg(lacks == NULL, "%s", lacks);
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
    const char *lacks = NULL;
    graph_read(later[i].of, later[i].name, 1, &lacks);
    ck_assert_msg(lacks && strstr(lacks, "not known"), "attribute %d: %s",
                  later[i].name, lacks ? lacks : "split");
  }
}
END_TEST

START_TEST(a_graph_with_a_type_of_a_later_version_is_not_split) {
  for (int type = 22; type < 40; type++) { // 23: FP8_E5M3 of cuDNN 9.26
    const char *lacks = NULL;
    graph_read(X, CUDNN_ATTR_TENSOR_DATA_TYPE, type, &lacks);
    ck_assert_msg(lacks && strstr(lacks, "not known"), "type %d: %s", type,
                  lacks ? lacks : "split");
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("graph_shadow");
  TCase *cases = tcase_create("graph_shadow");
  tcase_add_test(cases, a_sum_of_known_attributes_can_be_split);
  tcase_add_test(cases,
                 a_graph_with_an_attribute_of_a_later_version_is_not_split);
  tcase_add_test(cases, a_graph_with_a_type_of_a_later_version_is_not_split);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
