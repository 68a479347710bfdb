// SPDX-License-Identifier: Apache-2.0
// Graphs of cuDNN's backend API, from tensors to results in memory.
#include <cudnn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/backend/descriptor.h"
#include "tests/unit/harness.h"
#include "tests/workspace.h"

enum { N = 2, C = 3, K = 4, SIDE = 7, KERNEL = 3 };
enum {
  X_COUNT = N * C * SIDE * SIDE,
  W_COUNT = K * C * KERNEL * KERNEL,
  Y_COUNT = N * K * SIDE * SIDE
};
enum { UID_X = 'x', UID_W = 'w', UID_B = 'b', UID_Y = 'y', UID_SCALE = 's' };
enum { UID_SUM = 'c', UID_SCALED = 'd', UID_BIASED = 'e' };

typedef enum { IN_MEMORY, VIRTUAL, BY_VALUE } place_t;

/* In NHWC, as an H100 wants it of chains. */
static descriptor_t tensor(int64_t uid, place_t place, int64_t n, int64_t c,
                           int64_t h, int64_t w) {
  descriptor_t made = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  int type = CUDNN_DATA_FLOAT;
  int64_t dim[] = {n, c, h, w}, stride[] = {c * h * w, 1, w * c, c};
  int64_t alignment = 4;
  bool yes = true;
  SET(made, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
  SET(made, TENSOR_DIMENSIONS, INT64, 4, dim);
  SET(made, TENSOR_STRIDES, INT64, 4, stride);
  SET(made, TENSOR_UNIQUE_ID, INT64, 1, &uid);
  SET(made, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  if (place == VIRTUAL)
    SET(made, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &yes);
  if (place == BY_VALUE)
    SET(made, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &yes);
  OK(cudnnBackendFinalize(made));
  return made;
}

static descriptor_t image(int64_t uid, place_t place) {
  return tensor(uid, place, N, K, SIDE, SIDE);
}

static descriptor_t convolution(void) {
  descriptor_t how = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  descriptor_t made =
      create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  int type = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
  int64_t rank = 2, one[] = {1, 1};
  SET(how, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &type);
  SET(how, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
  SET(how, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &rank);
  SET(how, CONVOLUTION_PRE_PADDINGS, INT64, 2, one);
  SET(how, CONVOLUTION_POST_PADDINGS, INT64, 2, one);
  SET(how, CONVOLUTION_FILTER_STRIDES, INT64, 2, one);
  SET(how, CONVOLUTION_DILATIONS, INT64, 2, one);
  OK(cudnnBackendFinalize(how));
  GIVE(made, OPERATION_CONVOLUTION_FORWARD_CONV_DESC, how);
  GIVE(made, OPERATION_CONVOLUTION_FORWARD_X,
       tensor(UID_X, IN_MEMORY, N, C, SIDE, SIDE));
  GIVE(made, OPERATION_CONVOLUTION_FORWARD_W,
       tensor(UID_W, IN_MEMORY, K, C, KERNEL, KERNEL));
  GIVE(made, OPERATION_CONVOLUTION_FORWARD_Y, image(UID_SUM, VIRTUAL));
  OK(cudnnBackendFinalize(made));
  return made;
}

/* b is NULL for modes of one operand. */
static descriptor_t pointwise(cudnnPointwiseMode_t mode, descriptor_t x,
                              descriptor_t b, descriptor_t y) {
  descriptor_t how = create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  descriptor_t made = create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  int type = CUDNN_DATA_FLOAT;
  SET(how, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
  SET(how, POINTWISE_MATH_PREC, DATA_TYPE, 1, &type);
  OK(cudnnBackendFinalize(how));
  GIVE(made, OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  GIVE(made, OPERATION_POINTWISE_XDESC, x);
  if (b)
    GIVE(made, OPERATION_POINTWISE_BDESC, b);
  GIVE(made, OPERATION_POINTWISE_YDESC, y);
  OK(cudnnBackendFinalize(made));
  return made;
}

static descriptor_t graph_of(cudnnHandle_t handle, int count,
                             descriptor_t *ops) {
  descriptor_t made = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  SET(made, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, count, ops);
  SET(made, OPERATIONGRAPH_HANDLE, HANDLE, 1, &handle);
  OK(cudnnBackendFinalize(made));
  for (int i = 0; i < count; i++)
    OK(cudnnBackendDestroyDescriptor(ops[i]));
  return made;
}

/* y = relu(s (x * w) + b). The operations are not in their order. */
static descriptor_t graph(cudnnHandle_t handle) {
  descriptor_t ops[] = {
      pointwise(CUDNN_POINTWISE_RELU_FWD, image(UID_BIASED, VIRTUAL), NULL,
                image(UID_Y, IN_MEMORY)),
      pointwise(CUDNN_POINTWISE_ADD, image(UID_SCALED, VIRTUAL),
                tensor(UID_B, IN_MEMORY, 1, K, 1, 1),
                image(UID_BIASED, VIRTUAL)),
      pointwise(CUDNN_POINTWISE_MUL, image(UID_SUM, VIRTUAL),
                tensor(UID_SCALE, BY_VALUE, 1, 1, 1, 1),
                image(UID_SCALED, VIRTUAL)),
      convolution(),
  };
  return graph_of(handle, 4, ops);
}

/* The first plan of the heuristics; the graph is destroyed. */
static descriptor_t plan(cudnnHandle_t handle, descriptor_t graph_) {
  descriptor_t heuristic = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  descriptor_t config = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  descriptor_t made = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  int mode = CUDNN_HEUR_MODE_A;
  int64_t count = 0;
  SET(heuristic, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode);
  GIVE(heuristic, ENGINEHEUR_OPERATION_GRAPH, graph_);
  OK(cudnnBackendFinalize(heuristic));
  OK(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL));
  ck_assert_int_ge(count, 1);
  OK(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                              &config));
  OK(cudnnBackendDestroyDescriptor(heuristic));
  SET(made, EXECUTION_PLAN_HANDLE, HANDLE, 1, &handle);
  GIVE(made, EXECUTION_PLAN_ENGINE_CONFIG, config);
  OK(cudnnBackendFinalize(made));
  return made;
}

static descriptor_t pack_of(int count, const int64_t *uid, void *const *data,
                            void *work) {
  descriptor_t made = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  SET(made, VARIANT_PACK_UNIQUE_IDS, INT64, count, uid);
  SET(made, VARIANT_PACK_DATA_POINTERS, VOID_PTR, count, data);
  SET(made, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &work);
  OK(cudnnBackendFinalize(made));
  return made;
}

static const int64_t uids[] = {UID_X, UID_W, UID_B, UID_Y, UID_SCALE};
enum { OPERANDS = sizeof uids / sizeof *uids };

static void execute(cudnnHandle_t handle, descriptor_t plan_,
                    void *const data[OPERANDS], void *work, int expected) {
  descriptor_t pack = pack_of(OPERANDS, uids, data, work);
  ck_assert_int_eq((int)cudnnBackendExecute(handle, plan_, pack), expected);
  OK(cudnnBackendDestroyDescriptor(pack));
}

static float x[X_COUNT], w[W_COUNT], b[K];

static float *device(const float *values, int count) {
  float *made;
  OK(cudaMalloc((void **)&made, (size_t)count * sizeof *made));
  OK(cudaMemset(made, 0xff, (size_t)count * sizeof *made));
  if (values)
    OK(cudaMemcpy(made, values, (size_t)count * sizeof *made,
                  cudaMemcpyHostToDevice));
  return made;
}

/* Small integers: every order of the sums has the same bits. */
static void fill(void *data[OPERANDS]) {
  for (int i = 0; i < X_COUNT; i++)
    x[i] = (float)(i * 7 % 11 - 5);
  for (int i = 0; i < W_COUNT; i++)
    w[i] = (float)(i * 5 % 7 - 3);
  for (int i = 0; i < K; i++)
    b[i] = (float)(i - 2);
  data[0] = device(x, X_COUNT);
  data[1] = device(w, W_COUNT);
  data[2] = device(b, K);
  data[3] = device(NULL, Y_COUNT);
}

static float at(int n, int k, int row, int column, float scale) {
  float sum = 0;
  for (int c = 0; c < C; c++)
    for (int i = 0; i < KERNEL; i++)
      for (int j = 0; j < KERNEL; j++) {
        int r = row + i - 1, s = column + j - 1;
        if (r >= 0 && r < SIDE && s >= 0 && s < SIDE)
          sum += x[((n * SIDE + r) * SIDE + s) * C + c] *
                 w[((k * KERNEL + i) * KERNEL + j) * C + c];
      }
  sum = scale * sum + b[k];
  return sum > 0 ? sum : 0;
}

static void check(const void *y, float scale) {
  static float found[Y_COUNT];
  OK(cudaMemcpy(found, y, sizeof found, cudaMemcpyDeviceToHost));
  for (int n = 0, i = 0; n < N; n++)
    for (int row = 0; row < SIDE; row++)
      for (int column = 0; column < SIDE; column++)
        for (int k = 0; k < K; k++, i++)
          REQUIRE_MSG(found[i] == at(n, k, row, column, scale),
                      "[%d,%d,%d,%d] is %g, not %g", n, k, row, column,
                      (double)found[i], (double)at(n, k, row, column, scale));
}

static void clear(void *y) {
  OK(cudaMemset(y, 0xff, Y_COUNT * sizeof(float)));
}

START_TEST(convolution_scale_bias_and_relu_have_their_numbers) {
  cudnnHandle_t handle;
  OK(cudnnCreate(&handle));
  descriptor_t made = plan(handle, graph(handle));
  void *data[OPERANDS];
  fill(data);
  for (float scale = 1; scale < 4; scale++) {
    /* The value is read during the call. */
    float value = scale;
    data[4] = &value;
    clear(data[3]);
    execute(handle, made, data, workspace(), CUDNN_STATUS_SUCCESS);
    value = 99;
    check(data[3], scale);
  }
  OK(cudnnBackendDestroyDescriptor(made));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(a_captured_graph_computes_at_each_launch) {
  cudnnHandle_t handle;
  cudaStream_t stream;
  cudaGraph_t captured;
  cudaGraphExec_t exec;
  float scale = 2;
  void *data[OPERANDS];
  fill(data);
  data[4] = &scale;
  OK(cudnnCreate(&handle));
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudnnSetStream(handle, stream));
  descriptor_t made = plan(handle, graph(handle));
  void *work = workspace();
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  execute(handle, made, data, work, CUDNN_STATUS_SUCCESS);
  OK(cudaStreamEndCapture(stream, &captured));
  OK(cudaGraphInstantiate(&exec, captured, 0));
  OK(cudaGraphDestroy(captured));
  OK(cudnnBackendDestroyDescriptor(made));
  scale = 5;
  for (int i = 0; i < 2; i++) {
    clear(data[3]);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    check(data[3], 2);
  }
  OK(cudaGraphExecDestroy(exec));
  OK(cudaStreamDestroy(stream));
  OK(cudnnDestroy(handle));
}
END_TEST

/* As a child of a larger graph, whose executable then gets other pointers and
 * another value. */
START_TEST(a_plan_becomes_a_node_of_a_graph) {
  cudnnHandle_t handle;
  cudaGraph_t all, own, child;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  float scale = 2;
  void *data[OPERANDS], *work = workspace();
  fill(data);
  data[4] = &scale;
  OK(cudnnCreate(&handle));
  descriptor_t made = plan(handle, graph(handle));
  descriptor_t pack = pack_of(OPERANDS, uids, data, work);
  OK(cudaGraphCreate(&all, 0));
  OK(cudaGraphCreate(&own, 0));
  OK(cudnnBackendPopulateCudaGraph(handle, made, pack, own));
  OK(cudaGraphAddChildGraphNode(&node, all, NULL, 0, own));
  OK(cudaGraphDestroy(own));
  OK(cudaGraphInstantiate(&exec, all, 0));
  clear(data[3]);
  scale = 7; /* the node has the 2 */
  OK(cudaGraphLaunch(exec, 0));
  check(data[3], 2);
  OK(cudnnBackendDestroyDescriptor(pack));
  void *first = data[3];
  data[3] = device(NULL, Y_COUNT);
  pack = pack_of(OPERANDS, uids, data, work);
  OK(cudaGraphChildGraphNodeGetGraph(node, &child));
  OK(cudnnBackendUpdateCudaGraph(handle, made, pack, child));
  OK(cudaGraphLaunch(exec, 0)); /* the executable is what it was */
  check(first, 2);
  OK(cudaGraphExecChildGraphNodeSetParams(exec, node, child));
  clear(first);
  OK(cudaGraphLaunch(exec, 0));
  check(data[3], 7);
  ck_assert_int_eq((int)cudnnBackendUpdateCudaGraph(handle, made, pack, all),
                   CUDNN_STATUS_BAD_PARAM); /* another node is in it */
  ck_assert_int_eq((int)cudnnBackendPopulateCudaGraph(handle, made, pack, NULL),
                   CUDNN_STATUS_BAD_PARAM);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(all));
  OK(cudnnBackendDestroyDescriptor(pack));
  OK(cudnnBackendDestroyDescriptor(made));
  OK(cudnnDestroy(handle));
}
END_TEST

/* cudnn-frontend does so when it reads a plan from text. */
START_TEST(one_pointer_for_all_tensors_does_no_harm) {
  cudnnHandle_t handle;
  cudaStream_t stream;
  cudaGraph_t captured;
  void *data[OPERANDS], *all;
  OK(cudnnCreate(&handle));
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudnnSetStream(handle, stream));
  descriptor_t made = plan(handle, graph(handle));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  OK(cudaMalloc(&all, 1 << 20));
  for (int i = 0; i < OPERANDS; i++)
    data[i] = all;
  descriptor_t pack = pack_of(OPERANDS, uids, data, all);
  (void)cudnnBackendExecute(handle, made, pack);
  OK(cudnnBackendDestroyDescriptor(pack));
  OK(cudaStreamEndCapture(stream, &captured));
  OK(cudaGraphDestroy(captured));
  OK(cudaFree(all));
  OK(cudnnBackendDestroyDescriptor(made));
  OK(cudaStreamDestroy(stream));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(what_cannot_be_executed_is_refused) {
  cudnnHandle_t handle;
  float scale = 1;
  void *data[OPERANDS], *other[OPERANDS];
  fill(data);
  data[4] = &scale;
  OK(cudnnCreate(&handle));
  descriptor_t made = plan(handle, graph(handle));
  memcpy(other, data, sizeof data);
  other[0] = x; /* not the device's */
  execute(handle, made, other, workspace(), CUDNN_STATUS_EXECUTION_FAILED);
  other[0] = (char *)data[2] + 8; /* too small */
  execute(handle, made, other, workspace(), CUDNN_STATUS_EXECUTION_FAILED);
  other[0] = NULL;
  execute(handle, made, other, workspace(),
          CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  other[0] = data[0];
  other[4] = data[2]; /* by value, but in device memory */
  execute(handle, made, other, workspace(), CUDNN_STATUS_BAD_PARAM);
  descriptor_t few = pack_of(2, uids, data, workspace());
  ck_assert_int_eq((int)cudnnBackendExecute(handle, made, few),
                   CUDNN_STATUS_BAD_PARAM);
  ck_assert_int_eq((int)cudnnBackendExecute(NULL, made, few),
                   CUDNN_STATUS_BAD_PARAM);
  ck_assert_int_eq((int)cudnnBackendExecute(handle, few, few),
                   CUDNN_STATUS_BAD_PARAM);
  cudaGraph_t empty;
  OK(cudaGraphCreate(&empty, 0));
  ck_assert_int_eq((int)cudnnBackendPopulateCudaGraph(handle, made, few, empty),
                   CUDNN_STATUS_BAD_PARAM);
  OK(cudaGraphDestroy(empty));
  OK(cudnnBackendDestroyDescriptor(few));
  OK(cudnnBackendDestroyDescriptor(made));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(a_graph_without_engine_is_explained) {
  cudnnHandle_t handle;
  OK(cudnnCreate(&handle));
  descriptor_t op = create(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  GIVE(op, OPERATION_GENSTATS_XDESC, image(1, IN_MEMORY));
  GIVE(op, OPERATION_GENSTATS_SUMDESC, tensor(2, IN_MEMORY, 1, K, 1, 1));
  GIVE(op, OPERATION_GENSTATS_SQSUMDESC, tensor(3, IN_MEMORY, 1, K, 1, 1));
  OK(cudnnBackendFinalize(op));
  descriptor_t heuristic = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  GIVE(heuristic, ENGINEHEUR_OPERATION_GRAPH, graph_of(handle, 1, &op));
  OK(cudnnBackendFinalize(heuristic));
  int64_t count = -1;
  char said[256] = "";
  OK(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL));
  ck_assert_int_eq(count, 0);
  cudnnGetLastErrorString(said, sizeof said);
  ck_assert_msg(strstr(said, "statistics") != NULL, "it said %s", said);
  OK(cudnnBackendDestroyDescriptor(heuristic));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(a_plan_is_read_from_its_text) {
  cudnnHandle_t handle;
  OK(cudnnCreate(&handle));
  descriptor_t first = plan(handle, graph(handle));
  int64_t bytes = 0;
  float scale = 3;
  void *data[OPERANDS];
  OK(cudnnBackendGetAttribute(first,
                              CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                              CUDNN_TYPE_CHAR, 0, &bytes, NULL));
  char *text = malloc((size_t)bytes);
  ck_assert_ptr_nonnull(text);
  OK(cudnnBackendGetAttribute(first,
                              CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                              CUDNN_TYPE_CHAR, bytes, &bytes, text));
  OK(cudnnBackendDestroyDescriptor(first));
  descriptor_t made = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  SET(made, EXECUTION_PLAN_HANDLE, HANDLE, 1, &handle);
  SET(made, EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, bytes, text);
  OK(cudnnBackendFinalize(made));
  free(text);
  fill(data);
  data[4] = &scale;
  execute(handle, made, data, workspace(), CUDNN_STATUS_SUCCESS);
  check(data[3], 3);
  /* The engine can be read back, too. */
  descriptor_t config = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  descriptor_t engine = create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  int64_t count = 0, index = -1;
  OK(cudnnBackendGetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                              &config));
  OK(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                              &engine));
  OK(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                              CUDNN_TYPE_INT64, 1, &count, &index));
  ck_assert_int_ge(index, 0);
  OK(cudnnBackendDestroyDescriptor(engine));
  OK(cudnnBackendDestroyDescriptor(config));
  OK(cudnnBackendDestroyDescriptor(made));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(what_is_not_computed_is_refused_by_name) {
  cudnnHandle_t handle;
  OK(cudnnCreate(&handle));
  descriptor_t op = create(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
  GIVE(op, OPERATION_SDPA_FWD_QDESC, tensor(1, IN_MEMORY, 1, 1, 8, 16));
  GIVE(op, OPERATION_SDPA_FWD_KDESC, tensor(2, IN_MEMORY, 1, 1, 8, 16));
  GIVE(op, OPERATION_SDPA_FWD_VDESC, tensor(3, IN_MEMORY, 1, 1, 8, 16));
  GIVE(op, OPERATION_SDPA_FWD_ODESC, tensor(4, IN_MEMORY, 1, 1, 8, 16));
  GIVE(op, OPERATION_SDPA_FWD_BLOCK_MASK_DESC,
       tensor(5, IN_MEMORY, 1, 1, 1, 1));
  OK(cudnnBackendFinalize(op));
  descriptor_t made = plan(handle, graph_of(handle, 1, &op));
  int64_t uid[] = {1, 2, 3, 4, 5};
  void *memory = workspace(),
       *data[] = {memory, memory, memory, memory, memory};
  descriptor_t pack = pack_of(5, uid, data, memory);
  char said[256] = "";
  ck_assert_int_eq((int)cudnnBackendExecute(handle, made, pack),
                   CUDNN_STATUS_NOT_SUPPORTED);
  cudnnGetLastErrorString(said, sizeof said);
  ck_assert_msg(strstr(said, "a mask of blocks") != NULL, "it said %s", said);
  OK(cudnnBackendDestroyDescriptor(pack));
  OK(cudnnBackendDestroyDescriptor(made));
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudnn_graph");
  TCase *tests = tcase_create("graph");
  tcase_add_test(tests, convolution_scale_bias_and_relu_have_their_numbers);
  tcase_add_test(tests, a_captured_graph_computes_at_each_launch);
  tcase_add_test(tests, a_plan_becomes_a_node_of_a_graph);
  tcase_add_test(tests, one_pointer_for_all_tensors_does_no_harm);
  tcase_add_test(tests, what_cannot_be_executed_is_refused);
  tcase_add_test(tests, a_graph_without_engine_is_explained);
  tcase_add_test(tests, a_plan_is_read_from_its_text);
  tcase_add_test(tests, what_is_not_computed_is_refused_by_name);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
