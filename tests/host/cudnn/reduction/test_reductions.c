// SPDX-License-Identifier: Apache-2.0
// Softmax and reductions through the API against their definitions in doubles.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/blended.h"

/* Whether two values share a softmax. */
static bool together(const tensor_t *t, int mode, int64_t i, int64_t j) {
  int a[8], b[8];
  tensor_index(t, i, a);
  tensor_index(t, j, b);
  if (a[0] != b[0])
    return false;
  for (int d = 2; d < t->rank && mode == CUDNN_SOFTMAX_MODE_CHANNEL; d++)
    if (a[d] != b[d])
      return false;
  return true;
}

static void softmax_case(int number) {
  case_seed((uint64_t)number);
  int dim[5], rank = draw_shape(dim, 5);
  int algo = case_range(0, 2), mode = case_range(0, 1);
  cudnnDataType_t type = types[case_range(0, 3)];
  tensor_t x, y, dy, dx;
  tensor_create(&x, type, rank, dim, 0);
  for (int64_t i = 0; i < x.count && algo != CUDNN_SOFTMAX_FAST; i++)
    x.value[i] += i % 2 ? 192 : 128; /* exp() of it alone is too much */
  tensor_upload(&x);
  tensor_download(&x);
  tensor_create(&y, type, rank, dim, 0);
  tensor_create(&dy, type, rank, dim, 0);
  tensor_create(&dx, type, rank, dim, 0);
  double alpha = 0.75, beta = draw_beta(&y);
  scalar_t a = scalar(type, alpha), b = scalar(type, beta);
  OK(cudnnSoftmaxForward(handle, algo, mode, &a, x.desc, x.device, &b, y.desc,
                         y.device));
  double *want = zeros(x.count), *scale = zeros(x.count);
  for (int64_t i = 0; i < x.count; i++) {
    double sum = 0; /* of exp(x_j - x_i): no overflow for these values */
    for (int64_t j = 0; j < x.count; j++)
      if (together(&x, mode, i, j))
        sum += exp(x.value[j] - x.value[i]);
    double v = algo == CUDNN_SOFTMAX_LOG ? -log(sum) : 1 / sum;
    want[i] = blend(alpha, v, beta, y.value[i]);
    scale[i] = fabs(want[i]) + 1e-9;
  }
  check(&y, want, scale, 1, "softmax", number);

  double beta2 = draw_beta(&dx);
  b = scalar(type, beta2);
  tensor_download(&y);
  OK(cudnnSoftmaxBackward(handle, algo, mode, &a, y.desc, y.device, dy.desc,
                          dy.device, &b, dx.desc, dx.device));
  for (int64_t i = 0; i < x.count; i++) {
    double sum = 0, terms = 0, yi = y.value[i];
    for (int64_t j = 0; j < x.count; j++)
      if (together(&x, mode, i, j)) {
        double term =
            dy.value[j] * (algo == CUDNN_SOFTMAX_LOG ? 1 : y.value[j]);
        sum += term;
        terms += fabs(term);
      }
    double v = algo == CUDNN_SOFTMAX_LOG ? dy.value[i] - exp(yi) * sum
                                         : yi * (dy.value[i] - sum);
    want[i] = blend(alpha, v, beta2, dx.value[i]);
    scale[i] = fabs(want[i]) + terms + fabs(dy.value[i]);
  }
  check(&dx, want, scale, 1, "softmax backward", number);
  free(want);
  free(scale);
  tensor_destroy(&x);
  tensor_destroy(&y);
  tensor_destroy(&dy);
  tensor_destroy(&dx);
}

START_TEST(softmax_equals_its_definition) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 120; i++)
    softmax_case(i);
  OK(cudnnDestroy(handle));
}
END_TEST

static void reduce_case(int number, cudnnReduceTensorDescriptor_t desc) {
  case_seed((uint64_t)number + 10000);
  int dim[5], out[5], rank = draw_shape(dim, 5);
  for (int i = 0; i < rank; i++)
    out[i] = case_range(0, 1) ? 1 : dim[i];
  bool reduces = memcmp(dim, out, (size_t)rank * sizeof *dim) != 0;
  cudnnReduceTensorOp_t op = case_range(0, 8);
  int nan = case_range(0, 1), indices = case_range(0, 1);
  cudnnDataType_t type = types[case_range(0, 3)];
  OK(cudnnSetReduceTensorDescriptor(
      desc, op, type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT, nan,
      indices, CUDNN_32BIT_INDICES));
  bool chooses = op == CUDNN_REDUCE_TENSOR_MIN ||
                 op == CUDNN_REDUCE_TENSOR_MAX ||
                 op == CUDNN_REDUCE_TENSOR_AMAX;
  tensor_t a, c;
  tensor_create(&a, type, rank, dim, chooses && case_range(0, 1) ? 9 : 0);
  for (int64_t i = 0; i < a.count; i++)
    if (op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS || case_range(0, 3) == 0)
      a.value[i] = floor(a.value[i]); /* zeros and ties */
  tensor_upload(&a);
  tensor_create(&c, type, rank, out, 0);
  double alpha = case_range(0, 1) ? 1 : 0.75, beta = draw_beta(&c);
  scalar_t sa = scalar(type, alpha), sb = scalar(type, beta);
  size_t bytes = 9, work = 9;
  OK(cudnnGetReductionIndicesSize(handle, desc, a.desc, c.desc, &bytes));
  OK(cudnnGetReductionWorkspaceSize(handle, desc, a.desc, c.desc, &work));
  ck_assert_uint_eq(bytes, indices && chooses ? (size_t)c.count * 4 : 0);
  void *index = NULL;
  OK(cudaMalloc(&index, bytes + 4));
  IS(cudnnReduceTensor(handle, desc, index, bytes, NULL, 0, &sa, a.desc,
                       a.device, &sb, c.desc, c.device),
     reduces ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM);
  if (!reduces) {
    OK(cudaFree(index));
    tensor_destroy(&a);
    tensor_destroy(&c);
    return;
  }
  uint32_t *chosen = malloc(bytes + 4);
  OK(cudaMemcpy(chosen, index, bytes + 4, cudaMemcpyDeviceToHost));
  double *want = zeros(c.count), *scale = zeros(c.count);
  for (int64_t i = 0; i < c.count; i++) {
    double sum = 0, size = 0, squares = 0, product = 1, nonzero = 1;
    double best = NAN;
    uint32_t seen = 0, at_best = 0;
    bool poisoned = false;
    for (int64_t j = 0; j < a.count; j++) {
      int from[8], to[8];
      tensor_index(&a, j, from);
      for (int d = 0; d < rank; d++)
        to[d] = out[d] == 1 ? 0 : from[d];
      if (tensor_at(&c, to) != i)
        continue;
      double v = a.value[j];
      double key = op == CUDNN_REDUCE_TENSOR_MIN    ? -v
                   : op == CUDNN_REDUCE_TENSOR_AMAX ? fabs(v)
                                                    : v;
      if (!poisoned && isnan(v) && nan == CUDNN_PROPAGATE_NAN) {
        poisoned = true;
        best = NAN;
        at_best = seen;
      } else if (!poisoned && !isnan(v) && (isnan(best) || key > best)) {
        best = key;
        at_best = seen;
      }
      sum += v;
      size += fabs(v);
      squares += v * v;
      product *= v;
      nonzero *= v == 0 ? 1 : v;
      seen++;
    }
    double r = op == CUDNN_REDUCE_TENSOR_ADD            ? sum
               : op == CUDNN_REDUCE_TENSOR_MUL          ? product
               : op == CUDNN_REDUCE_TENSOR_MIN          ? -best
               : op == CUDNN_REDUCE_TENSOR_AVG          ? sum / seen
               : op == CUDNN_REDUCE_TENSOR_NORM1        ? size
               : op == CUDNN_REDUCE_TENSOR_NORM2        ? sqrt(squares)
               : op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS ? nonzero
                                                        : best;
    want[i] = blend(alpha, r, beta, c.value[i]);
    scale[i] = fabs(want[i]) + (isfinite(size) ? size : 0) + fabs(product);
    if (bytes)
      ck_assert_msg(chosen[i] == at_best, "index of case %d", number);
  }
  check(&c, want, scale, 1, op == 5 ? "avg" : "reduction", number);
  free(want);
  free(scale);
  free(chosen);
  OK(cudaFree(index));
  tensor_destroy(&a);
  tensor_destroy(&c);
}

START_TEST(reductions_equal_their_definition) {
  cudnnReduceTensorDescriptor_t desc;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateReduceTensorDescriptor(&desc));
  for (int i = 0; i < 300; i++)
    reduce_case(i, desc);
  OK(cudnnDestroyReduceTensorDescriptor(desc));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(bad_calls_return_the_vendors_status) {
  cudnnReduceTensorDescriptor_t reduce;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateReduceTensorDescriptor(&reduce));
  tensor_t a, b;
  tensor_create(&a, 0, 4, (int[]){2, 3, 4, 4}, 0);
  tensor_create(&b, 0, 4, (int[]){2, 2, 1, 1}, 0);
  const float one = 1;
  int host[4];
  IS(cudnnSoftmaxForward(handle, 0, 0, &one, a.desc, a.device, &one, b.desc,
                         b.device),
     CUDNN_STATUS_BAD_PARAM);
  IS(cudnnSoftmaxForward(handle, 9, 0, &one, a.desc, a.device, &one, a.desc,
                         a.device),
     CUDNN_STATUS_BAD_PARAM);
  IS(cudnnSoftmaxForward(handle, 0, 0, &one, a.desc, host, &one, a.desc,
                         a.device),
     CUDNN_STATUS_EXECUTION_FAILED);
  OK(cudnnSetReduceTensorDescriptor(reduce, CUDNN_REDUCE_TENSOR_MAX, 0, 0,
                                    CUDNN_REDUCE_TENSOR_FLATTENED_INDICES,
                                    CUDNN_32BIT_INDICES));
  IS(cudnnReduceTensor(handle, reduce, NULL, 0, NULL, 0, &one, a.desc, a.device,
                       &one, b.desc, b.device),
     CUDNN_STATUS_BAD_PARAM);
  OK(cudnnSetTensor4dDescriptor(b.desc, 0, 0, 2, 1, 1, 1));
  IS(cudnnReduceTensor(handle, reduce, NULL, 0, NULL, 0, &one, a.desc, a.device,
                       &one, b.desc, b.device),
     CUDNN_STATUS_BAD_PARAM);
  OK(cudnnSetReduceTensorDescriptor(reduce, CUDNN_REDUCE_TENSOR_MAX, 0, 0,
                                    CUDNN_REDUCE_TENSOR_FLATTENED_INDICES,
                                    CUDNN_64BIT_INDICES));
  IS(cudnnReduceTensor(handle, reduce, NULL, 0, NULL, 0, &one, a.desc, a.device,
                       &one, b.desc, b.device),
     CUDNN_STATUS_NOT_SUPPORTED);
  tensor_destroy(&a);
  tensor_destroy(&b);
  OK(cudnnDestroyReduceTensorDescriptor(reduce));
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn reductions");
  TCase *cases = tcase_create("reductions");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, softmax_equals_its_definition);
  tcase_add_test(cases, reductions_equal_their_definition);
  tcase_add_test(cases, bad_calls_return_the_vendors_status);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
