// SPDX-License-Identifier: Apache-2.0
// Operations of cuDNN's backend API other than convolutions, from descriptors
// to results in memory: by the program's plan, and by one read from its text.
#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/backend/descriptor.h"
#include "tests/unit/harness.h"
#include "tests/workspace.h"

/* Packed, last dimension innermost. */
static descriptor_t tensor(int64_t uid, int type, int rank,
                           const int64_t *dim) {
  descriptor_t made = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  int64_t stride[8], at = 1, alignment = 4;
  for (int d = rank - 1; d >= 0; at *= dim[d--])
    stride[d] = at;
  SET(made, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
  SET(made, TENSOR_DIMENSIONS, INT64, rank, dim);
  SET(made, TENSOR_STRIDES, INT64, rank, stride);
  SET(made, TENSOR_UNIQUE_ID, INT64, 1, &uid);
  SET(made, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  OK(cudnnBackendFinalize(made));
  return made;
}

/* A plan for a graph of one operation, which is destroyed. */
static descriptor_t plan_of(cudnnHandle_t handle, descriptor_t op) {
  descriptor_t graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  descriptor_t heuristic = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  descriptor_t config = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  descriptor_t made = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  int mode = CUDNN_HEUR_MODE_A;
  int64_t count = 0;
  GIVE(graph, OPERATIONGRAPH_OPS, op);
  SET(graph, OPERATIONGRAPH_HANDLE, HANDLE, 1, &handle);
  OK(cudnnBackendFinalize(graph));
  SET(heuristic, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode);
  GIVE(heuristic, ENGINEHEUR_OPERATION_GRAPH, graph);
  OK(cudnnBackendFinalize(heuristic));
  OK(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                              &config));
  ck_assert_int_eq(count, 1);
  OK(cudnnBackendDestroyDescriptor(heuristic));
  SET(made, EXECUTION_PLAN_HANDLE, HANDLE, 1, &handle);
  GIVE(made, EXECUTION_PLAN_ENGINE_CONFIG, config);
  OK(cudnnBackendFinalize(made));
  return made;
}

static descriptor_t plan_again(cudnnHandle_t handle, descriptor_t plan) {
  descriptor_t made = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  int64_t length = 0;
  OK(cudnnBackendGetAttribute(plan,
                              CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                              CUDNN_TYPE_CHAR, 0, &length, NULL));
  char *text = malloc((size_t)length);
  OK(cudnnBackendGetAttribute(plan,
                              CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                              CUDNN_TYPE_CHAR, length, &length, text));
  SET(made, EXECUTION_PLAN_HANDLE, HANDLE, 1, &handle);
  SET(made, EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, length, text);
  OK(cudnnBackendFinalize(made));
  free(text);
  return made;
}

enum { MEMORY = 1024 }; /* bytes of a tensor */

/* Executes the operation's plan, and the plan made of its text, on tensors 1 ..
 * `count`, which begin MEMORY bytes apart. Tensor t reads in[t] and writes
 * out[t]; the bytes of both plans' results must be the same. */
static void run(descriptor_t op, int count, const void *const *in,
                const size_t *bytes, void *const *out) {
  cudnnHandle_t handle;
  char *memory, first[8][MEMORY];
  void *data[8], *work = workspace();
  int64_t uid[8];
  OK(cudnnCreate(&handle));
  OK(cudaMalloc((void **)&memory, (size_t)count * MEMORY));
  descriptor_t plan[2];
  plan[0] = plan_of(handle, op);
  plan[1] = plan_again(handle, plan[0]);
  for (int t = 0; t < count; t++) {
    uid[t] = t + 1;
    data[t] = memory + t * MEMORY;
  }
  descriptor_t pack = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  SET(pack, VARIANT_PACK_UNIQUE_IDS, INT64, count, uid);
  SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, count, data);
  SET(pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &work);
  OK(cudnnBackendFinalize(pack));
  for (int p = 0; p < 2; p++) {
    OK(cudaMemset(memory, 0xff, (size_t)count * MEMORY));
    for (int t = 0; t < count; t++)
      if (in[t])
        OK(cudaMemcpy(data[t], in[t], bytes[t], cudaMemcpyHostToDevice));
    OK(cudnnBackendExecute(handle, plan[p], pack));
    OK(cudaDeviceSynchronize());
    for (int t = 0; t < count; t++) {
      if (!out[t])
        continue;
      OK(cudaMemcpy(out[t], data[t], bytes[t], cudaMemcpyDeviceToHost));
      if (p == 0)
        memcpy(first[t], out[t], bytes[t]);
      ck_assert_mem_eq(first[t], out[t], bytes[t]);
    }
    OK(cudnnBackendDestroyDescriptor(plan[p]));
  }
  OK(cudnnBackendDestroyDescriptor(pack));
  OK(cudaFree(memory));
  OK(cudnnDestroy(handle));
}

/* Two matrices, each times one that both share. */
START_TEST(a_product_of_matrices_has_its_numbers) {
  enum { M = 3, N = 5, DEPTH = 4 };
  const int64_t a_dim[] = {2, M, DEPTH}, b_dim[] = {1, DEPTH, N},
                c_dim[] = {2, M, N};
  float a[2 * M * DEPTH], b[DEPTH * N], c[2 * M * N];
  for (int i = 0; i < 2 * M * DEPTH; i++)
    a[i] = (float)(i % 7 - 3);
  for (int i = 0; i < DEPTH * N; i++)
    b[i] = (float)(i % 5 - 1);
  descriptor_t how = create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  descriptor_t op = create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  int type = CUDNN_DATA_FLOAT;
  double padding = 0;
  SET(how, MATMUL_COMP_TYPE, DATA_TYPE, 1, &type);
  SET(how, MATMUL_PADDING_VALUE, DOUBLE, 1, &padding);
  OK(cudnnBackendFinalize(how));
  GIVE(op, OPERATION_MATMUL_ADESC, tensor(1, type, 3, a_dim));
  GIVE(op, OPERATION_MATMUL_BDESC, tensor(2, type, 3, b_dim));
  GIVE(op, OPERATION_MATMUL_CDESC, tensor(3, type, 3, c_dim));
  GIVE(op, OPERATION_MATMUL_DESC, how);
  OK(cudnnBackendFinalize(op));
  run(op, 3, (const void *[]){a, b, NULL},
      (size_t[]){sizeof a, sizeof b, sizeof c}, (void *[]){NULL, NULL, c});
  for (int i = 0; i < 2 * M; i++)
    for (int j = 0; j < N; j++) {
      float sum = 0;
      for (int k = 0; k < DEPTH; k++)
        sum += a[i * DEPTH + k] * b[k * N + j];
      ck_assert_float_eq(c[i * N + j], sum);
    }
}
END_TEST

/* `spans`: windows, strides and paddings of two dimensions. */
static descriptor_t resample(cudnnResampleMode_t mode,
                             cudnnPaddingMode_t padding,
                             const cudnnFraction_t span[4]) {
  descriptor_t how = create(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  int type = CUDNN_DATA_FLOAT;
  int64_t rank = 2;
  cudnnFraction_t both[4][2];
  for (int i = 0; i < 4; i++)
    both[i][0] = both[i][1] = span[i];
  SET(how, RESAMPLE_MODE, RESAMPLE_MODE, 1, &mode);
  SET(how, RESAMPLE_PADDING_MODE, PADDING_MODE, 1, &padding);
  SET(how, RESAMPLE_COMP_TYPE, DATA_TYPE, 1, &type);
  SET(how, RESAMPLE_SPATIAL_DIMS, INT64, 1, &rank);
  SET(how, RESAMPLE_WINDOW_DIMS, FRACTION, 2, both[0]);
  SET(how, RESAMPLE_STRIDES, FRACTION, 2, both[1]);
  SET(how, RESAMPLE_PRE_PADDINGS, FRACTION, 2, both[2]);
  SET(how, RESAMPLE_POST_PADDINGS, FRACTION, 2, both[3]);
  OK(cudnnBackendFinalize(how));
  return how;
}

START_TEST(pooling_has_its_numbers_and_positions) {
  const int64_t x_dim[] = {1, 1, 4, 4}, y_dim[] = {1, 1, 2, 2};
  const float x[] = {1, 2, 9, 3, 4, 0, 5, 5, 7, 7, -1, -2, 6, 7, -3, -1};
  const float largest[] = {4, 9, 7, -1};
  const signed char at[] = {2, 0, 0, 0};
  float y[4];
  signed char index[4];
  const cudnnFraction_t span[] = {{2, 1}, {2, 1}, {0, 1}, {0, 1}};
  descriptor_t op = create(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
  GIVE(op, OPERATION_RESAMPLE_FWD_DESC,
       resample(CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD, span));
  GIVE(op, OPERATION_RESAMPLE_FWD_XDESC, tensor(1, CUDNN_DATA_FLOAT, 4, x_dim));
  GIVE(op, OPERATION_RESAMPLE_FWD_YDESC, tensor(2, CUDNN_DATA_FLOAT, 4, y_dim));
  GIVE(op, OPERATION_RESAMPLE_FWD_IDXDESC,
       tensor(3, CUDNN_DATA_INT8, 4, y_dim));
  OK(cudnnBackendFinalize(op));
  run(op, 3, (const void *[]){x, NULL, NULL},
      (size_t[]){sizeof x, sizeof y, sizeof index}, (void *[]){NULL, y, index});
  ck_assert_mem_eq(y, largest, sizeof y);
  ck_assert_mem_eq(index, at, sizeof index);
}
END_TEST

/* Windows that begin at halves of elements. */
START_TEST(upsampling_by_fractions_has_its_numbers) {
  const int64_t x_dim[] = {1, 1, 1, 2}, y_dim[] = {1, 1, 2, 4};
  const float x[] = {4, 8}, want[] = {4, 5, 7, 8, 4, 5, 7, 8};
  float y[8];
  const cudnnFraction_t span[] = {{2, 1}, {1, 2}, {1, 2}, {1, 1}};
  descriptor_t op = create(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
  GIVE(op, OPERATION_RESAMPLE_FWD_DESC,
       resample(CUDNN_RESAMPLE_BILINEAR, CUDNN_EDGE_VAL_PAD, span));
  GIVE(op, OPERATION_RESAMPLE_FWD_XDESC, tensor(1, CUDNN_DATA_FLOAT, 4, x_dim));
  GIVE(op, OPERATION_RESAMPLE_FWD_YDESC, tensor(2, CUDNN_DATA_FLOAT, 4, y_dim));
  OK(cudnnBackendFinalize(op));
  run(op, 2, (const void *[]){x, NULL}, (size_t[]){sizeof x, sizeof y},
      (void *[]){NULL, y});
  ck_assert_mem_eq(y, want, sizeof y);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("backend_nodes");
  TCase *tests = tcase_create("nodes");
  tcase_add_test(tests, a_product_of_matrices_has_its_numbers);
  tcase_add_test(tests, pooling_has_its_numbers_and_positions);
  tcase_add_test(tests, upsampling_by_fractions_has_its_numbers);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
