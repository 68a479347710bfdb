// SPDX-License-Identifier: Apache-2.0
// Multi-head attention through the API: forward against its definition in
// doubles, gradients against differences of that.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

enum { Q, K, V, O, PARTS };

static cudnnHandle_t handle;

typedef struct {
  cudnnDataType_t type;
  int heads, batch, beam, k_beam, time[PARTS];
  int size[PARTS], projected[PARTS];
  int seen[3]; /* extents of one head's vectors */
  bool biases, residual;
  double scale, dropout, post;
  int stride[PARTS][3]; /* time, batch, beam */
  int low[8], high[8], length[PARTS][16];
  cudnnAttnDescriptor_t attn;
  cudnnSeqDataDescriptor_t desc[PARTS];
  cudnnDropoutDescriptor_t drop[2];
  void *states[2], *reserve, *device_length[2];
  size_t states_bytes, reserve_bytes;
  tensor_t x[PARTS], d[PARTS], residuals, w, dw; /* x[O]: the output */
} attn_t;

static int beams(const attn_t *a, int part) {
  return part == K || part == V ? a->k_beam : a->beam;
}

/* Axes of time, batch and beam in any order. */
static void describe(attn_t *a, int part) {
  cudnnSeqDataAxis_t axis[4] = {0, 1, 2, 3};
  for (int i = 2; i > 0; i--) {
    int j = case_range(0, i);
    cudnnSeqDataAxis_t keep = axis[i];
    axis[i] = axis[j];
    axis[j] = keep;
  }
  int dim[4] = {a->time[part], a->batch, beams(a, part), a->size[part]};
  for (int i = 3, at = 1; i >= 0; at *= dim[axis[i--]])
    if (axis[i] != CUDNN_SEQDATA_VECT_DIM)
      a->stride[part][axis[i]] = at;
  OK(cudnnCreateSeqDataDescriptor(&a->desc[part]));
  OK(cudnnSetSeqDataDescriptor(a->desc[part], a->type, 4, dim, axis,
                               (size_t)(a->batch * beams(a, part)),
                               a->length[part], NULL));
}

static void create(attn_t *a, cudnnDataType_t type, double dropout) {
  *a = (attn_t){.type = type,
                .heads = case_range(1, 3),
                .batch = case_range(1, 3),
                .beam = case_range(1, 2),
                .k_beam = 1,
                .biases = case_range(0, 1),
                .scale = 0.7,
                .dropout = dropout,
                .post = dropout};
  a->time[Q] = a->time[O] = case_range(1, 4);
  a->time[K] = a->time[V] = case_range(1, 5);
  for (int i = 0; i < PARTS; i++)
    a->projected[i] = case_range(0, 2) ? case_range(1, 4) : 0;
  a->size[Q] = case_range(1, 5);
  a->size[V] = case_range(1, 5);
  int common = a->projected[Q] ? a->projected[Q] : a->size[Q];
  a->projected[K] = case_range(0, 1) ? common : 0;
  a->size[K] = a->projected[K] ? case_range(1, 5) : common;
  a->seen[Q] = a->seen[K] = common;
  a->seen[V] = a->projected[V] ? a->projected[V] : a->size[V];
  a->size[O] = a->projected[O] ? a->projected[O] : a->heads * a->seen[V];
  a->residual = a->size[O] == a->size[Q];
  for (int i = 0; i < 16; i++) {
    a->length[Q][i] = a->length[O][i] = case_range(1, a->time[Q]);
    a->length[K][i] = a->length[V][i] = case_range(1, a->time[K]);
  }
  for (int i = 0; i < 8; i++) {
    a->low[i] = case_range(0, 1);
    a->high[i] = case_range(0, 2) ? 1 << 20 : case_range(1, a->time[K]);
  }
  OK(cudnnDropoutGetStatesSize(handle, &a->states_bytes));
  for (int i = 0; i < 2; i++) {
    OK(cudnnCreateDropoutDescriptor(&a->drop[i]));
    OK(cudaMalloc(&a->states[i], a->states_bytes));
    OK(cudaMalloc(&a->device_length[i], 16 * sizeof(int)));
    OK(cudaMemcpy(a->device_length[i], a->length[i], 16 * sizeof(int),
                  cudaMemcpyHostToDevice));
    OK(cudnnSetDropoutDescriptor(a->drop[i], handle, (float)dropout,
                                 a->states[i], a->states_bytes, 5));
  }
  OK(cudnnCreateAttnDescriptor(&a->attn));
  OK(cudnnSetAttnDescriptor(
      a->attn, a->biases ? CUDNN_ATTN_ENABLE_PROJ_BIASES : 0, a->heads,
      a->scale, type,
      type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      CUDNN_DEFAULT_MATH, a->drop[0], a->drop[1], a->size[Q], a->size[K],
      a->size[V], a->projected[Q], a->projected[K], a->projected[V],
      a->projected[O], a->time[Q], a->time[K], a->batch, a->beam));
  for (int i = 0; i < PARTS; i++) {
    describe(a, i);
    int count = a->time[i] * a->batch * beams(a, i) * a->size[i];
    a->x[i] = tensor_vector(type, count);
    a->d[i] = tensor_vector(type, count);
  }
  a->residuals = tensor_vector(type, (int)a->x[Q].count);
  size_t bytes, work;
  OK(cudnnGetMultiHeadAttnBuffers(handle, a->attn, &bytes, &work,
                                  &a->reserve_bytes));
  a->w = tensor_vector(type, (int)(bytes / a->x[Q].unit) + 1);
  a->dw = tensor_vector(type, (int)(bytes / a->x[Q].unit) + 1);
  OK(cudaMalloc(&a->reserve, a->reserve_bytes));
}

static void destroy(attn_t *a) {
  for (int i = 0; i < PARTS; i++) {
    tensor_destroy(&a->x[i]);
    tensor_destroy(&a->d[i]);
    OK(cudnnDestroySeqDataDescriptor(a->desc[i]));
  }
  for (int i = 0; i < 2; i++) {
    OK(cudaFree(a->states[i]));
    OK(cudaFree(a->device_length[i]));
    OK(cudnnDestroyDropoutDescriptor(a->drop[i]));
  }
  tensor_destroy(&a->residuals);
  tensor_destroy(&a->w);
  tensor_destroy(&a->dw);
  OK(cudaFree(a->reserve));
  OK(cudnnDestroyAttnDescriptor(a->attn));
}

static cudnnStatus_t run(attn_t *a, bool trains, int only) {
  return cudnnMultiHeadAttnForward(
      handle, a->attn, only, a->low, a->high, a->device_length[0],
      a->device_length[1], a->desc[Q], a->x[Q].device,
      a->residual ? a->residuals.device : NULL, a->desc[K], a->x[K].device,
      a->desc[V], a->x[V].device, a->desc[O], a->x[O].device, a->w.bytes,
      a->w.device, 0, NULL, trains ? a->reserve_bytes : 0,
      trains ? a->reserve : NULL);
}

static void backward(attn_t *a, cudnnWgradMode_t mode) {
  OK(cudnnMultiHeadAttnBackwardData(
      handle, a->attn, a->low, a->high, a->device_length[0],
      a->device_length[1], a->desc[O], a->d[O].device, a->desc[Q],
      a->d[Q].device, a->x[Q].device, a->desc[K], a->d[K].device,
      a->x[K].device, a->desc[V], a->d[V].device, a->x[V].device, a->w.bytes,
      a->w.device, 0, NULL, a->reserve_bytes, a->reserve));
  OK(cudnnMultiHeadAttnBackwardWeights(
      handle, a->attn, mode, a->desc[Q], a->x[Q].device, a->desc[K],
      a->x[K].device, a->desc[V], a->x[V].device, a->desc[O], a->d[O].device,
      a->w.bytes, a->w.device, a->dw.device, 0, NULL, a->reserve_bytes,
      a->reserve));
}

/* ---- the definition ---- */

/* Returns element (head, to, from) of a parameter. A missing matrix is the
 * identity, a missing bias is 0. */
static double param(const attn_t *a, int kind, int head, int to, int from) {
  cudnnTensorDescriptor_t desc;
  void *at;
  int rank, dim[3] = {0}, stride[3] = {0};
  cudnnDataType_t type;
  OK(cudnnCreateTensorDescriptor(&desc));
  OK(cudnnGetMultiHeadAttnWeights(handle, a->attn,
                                  (cudnnMultiHeadAttnWeightKind_t)kind,
                                  a->w.bytes, a->w.device, desc, &at));
  OK(cudnnGetTensorNdDescriptor(desc, 3, &type, &rank, dim, stride));
  OK(cudnnDestroyTensorDescriptor(desc));
  if (!at)
    return kind < 4 && to == from;
  return a->w.value[((char *)at - (char *)a->w.device) / (long)a->w.unit +
                    head * stride[0] + to * stride[1] + from * stride[2]];
}

static const double *row(const attn_t *a, int part, const double *values,
                         int time, int batch, int beam) {
  const int *s = a->stride[part];
  return values + time * s[0] + batch * s[1] + beam * s[2];
}

/* Computes what a head sees of a vector. */
static void see(const attn_t *a, int part, int head, const double *in,
                double *out) {
  for (int j = 0; j < a->seen[part]; j++) {
    out[j] = param(a, 4 + part, head, j, 0);
    for (int i = 0; i < a->size[part]; i++)
      out[j] += param(a, part, head, j, i) * in[i];
  }
}

static void define(const attn_t *a, double *out) {
  memset(out, 0, (size_t)a->x[O].count * sizeof *out);
  for (int b = 0; b < a->batch; b++)
    for (int m = 0; m < a->beam; m++) {
      int n = b * a->beam + m, km = a->k_beam > 1 ? m : 0;
      int keys = a->length[K][b * a->k_beam + km];
      for (int t = 0; t < a->length[Q][n]; t++) {
        double *to = (double *)row(a, O, out, t, b, m);
        for (int h = 0; h < a->heads; h++) {
          double q[8], k[8], v[8], score[8], sum = 0, context[8] = {0};
          see(a, Q, h, row(a, Q, a->x[Q].value, t, b, m), q);
          for (int j = a->low[t]; j < keys && j < a->high[t]; j++) {
            see(a, K, h, row(a, K, a->x[K].value, j, b, km), k);
            double product = 0;
            for (int i = 0; i < a->seen[K]; i++)
              product += q[i] * k[i];
            sum += score[j] = exp(a->scale * product);
          }
          for (int j = a->low[t]; j < keys && j < a->high[t]; j++) {
            see(a, V, h, row(a, V, a->x[V].value, j, b, km), v);
            for (int i = 0; i < a->seen[V]; i++)
              context[i] += score[j] / sum * v[i];
          }
          for (int j = 0; j < a->size[O]; j++)
            for (int i = 0; i < a->seen[V]; i++)
              if (a->projected[O])
                to[j] += param(a, O, h, j, i) * context[i];
              else if (j == h * a->seen[V] + i)
                to[j] += context[i];
        }
        for (int j = 0; j < a->size[O]; j++) {
          to[j] += param(a, 4 + O, 0, j, 0);
          if (a->residual)
            to[j] += row(a, Q, a->residuals.value, t, b, m)[j];
        }
      }
    }
}

static double loss(const attn_t *a) {
  double *out = calloc((size_t)a->x[O].count, sizeof *out), sum = 0;
  define(a, out);
  for (int64_t i = 0; i < a->x[O].count; i++)
    sum += out[i] * a->d[O].value[i];
  free(out);
  return sum;
}

static const char *text(const attn_t *a) {
  static char line[200];
  snprintf(line, sizeof line,
           "type %d heads %d batch %d beam %d times %d %d sizes %d %d %d %d "
           "projected %d %d %d %d biases %d",
           (int)a->type, a->heads, a->batch, a->beam, a->time[Q], a->time[K],
           a->size[0], a->size[1], a->size[2], a->size[3], a->projected[0],
           a->projected[1], a->projected[2], a->projected[3], a->biases);
  return line;
}

static const cudnnDataType_t types[] = {CUDNN_DATA_DOUBLE, CUDNN_DATA_FLOAT,
                                        CUDNN_DATA_HALF};

START_TEST(forward_equals_the_definition) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 60; i++) {
    attn_t a;
    case_seed((uint64_t)i);
    create(&a, types[i % 3], 0);
    int64_t count = a.x[O].count;
    double *want = calloc((size_t)count, sizeof *want);
    double *size = calloc((size_t)count, sizeof *size);
    define(&a, want);
    for (int64_t j = 0; j < count; j++)
      size[j] = 32; /* sums of products of weights and vectors up to 2 */
    OK(run(&a, i % 2, -1));
    int64_t wrong =
        tensor_wrong(&a.x[O], want, size, a.type == CUDNN_DATA_DOUBLE ? 99 : 9);
    ck_assert_msg(wrong == -1, "case %d value %ld: %s", i, wrong, text(&a));
    free(want);
    free(size);
    destroy(&a);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(one_time_step_leaves_the_others_alone) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 10; i++) {
    attn_t a;
    case_seed((uint64_t)i + 500);
    create(&a, CUDNN_DATA_DOUBLE, 0);
    int64_t count = a.x[O].count;
    double *all = calloc((size_t)count, sizeof *all);
    double *want = calloc((size_t)count, sizeof *want);
    define(&a, all);
    memcpy(want, a.x[O].value, (size_t)count * sizeof *want);
    int only = case_range(0, a.time[Q] - 1);
    for (int b = 0; b < a.batch; b++)
      for (int m = 0; m < a.beam; m++)
        memcpy((double *)row(&a, O, want, only, b, m),
               row(&a, O, all, only, b, m), (size_t)a.size[O] * sizeof *want);
    OK(run(&a, false, only));
    for (int64_t j = 0; j < count; j++)
      all[j] = 32;
    ck_assert_msg(tensor_wrong(&a.x[O], want, all, 99) == -1, "%s", text(&a));
    IS(run(&a, false, a.time[Q]), CUDNN_STATUS_BAD_PARAM);
    free(all);
    free(want);
    destroy(&a);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

static void expect(const attn_t *a, const char *name, double have,
                   double want) {
  ck_assert_msg(fabs(have - want) <= 1e-6 * (1 + fabs(want)),
                "%s is %g, not %g: %s", name, have, want, text(a));
}

START_TEST(gradients_equal_differences_of_the_definition) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 40; i++) {
    attn_t a;
    case_seed((uint64_t)i + 1000);
    create(&a, CUDNN_DATA_DOUBLE, 0);
    bool adds = i % 2;
    double *before = calloc((size_t)a.dw.count, sizeof *before);
    memcpy(before, a.dw.value, (size_t)a.dw.count * sizeof *before);
    OK(run(&a, true, -1));
    backward(&a, adds ? CUDNN_WGRAD_MODE_ADD : CUDNN_WGRAD_MODE_SET);
    tensor_t *const of[] = {&a.x[Q], &a.x[K], &a.x[V], &a.w};
    tensor_t *const d[] = {&a.d[Q], &a.d[K], &a.d[V], &a.dw};
    static const char *const names[] = {"dq", "dk", "dv", "dw"};
    for (int p = 0; p < 4; p++) {
      tensor_download(d[p]);
      /* w has one element more, so that it is never empty. */
      int count = (int)of[p]->count - (p == 3);
      for (int k = 0; k < 6 && count; k++) {
        int at = case_range(0, count - 1);
        double *value = of[p]->value + at, keep = *value;
        *value = keep + 1e-6;
        double high = loss(&a);
        *value = keep - 1e-6;
        double low = loss(&a);
        *value = keep;
        double have = d[p]->value[at] - (p == 3 && adds ? before[at] : 0);
        expect(&a, names[p], have, (high - low) / 2e-6);
      }
    }
    free(before);
    destroy(&a);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

/* The forward call itself, always with the same masks. */
static double api_loss(attn_t *a) {
  for (int i = 0; i < 2; i++)
    OK(cudnnSetDropoutDescriptor(a->drop[i], handle, (float)a->dropout,
                                 a->states[i], a->states_bytes, 5));
  OK(run(a, true, -1));
  tensor_download(&a->x[O]);
  double sum = 0;
  for (int64_t i = 0; i < a->x[O].count; i++)
    sum += a->x[O].value[i] * a->d[O].value[i];
  return sum;
}

START_TEST(gradients_with_dropout_equal_differences) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 12; i++) {
    attn_t a;
    case_seed((uint64_t)i + 3000);
    create(&a, CUDNN_DATA_DOUBLE, 0.4);
    api_loss(&a);
    backward(&a, CUDNN_WGRAD_MODE_SET);
    tensor_t *const of[] = {&a.x[Q], &a.x[K], &a.x[V], &a.w};
    tensor_t *const d[] = {&a.d[Q], &a.d[K], &a.d[V], &a.dw};
    for (int p = 0; p < 4; p++) {
      tensor_download(d[p]);
      int count = (int)of[p]->count - (p == 3);
      for (int k = 0; k < 3 && count; k++) {
        int at = case_range(0, count - 1);
        double *value = of[p]->value + at, keep = *value;
        *value = keep + 1e-6;
        tensor_upload(of[p]);
        double high = api_loss(&a);
        *value = keep - 1e-6;
        tensor_upload(of[p]);
        double low = api_loss(&a);
        *value = keep;
        tensor_upload(of[p]);
        expect(&a, "gradient", d[p]->value[at], (high - low) / 2e-6);
      }
    }
    destroy(&a);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(wrong_arguments_are_refused) {
  OK(cudnnCreate(&handle));
  attn_t a;
  case_seed(7);
  create(&a, CUDNN_DATA_FLOAT, 0);
  OK(run(&a, true, -1));
  IS(run(&a, true, 0), CUDNN_STATUS_BAD_PARAM);
  void *keep = a.x[K].device;
  a.x[K].device = a.x[K].value;
  IS(run(&a, true, -1), CUDNN_STATUS_EXECUTION_FAILED);
  a.x[K].device = NULL;
  IS(run(&a, true, -1), CUDNN_STATUS_BAD_PARAM);
  a.x[K].device = keep;
  a.reserve_bytes--;
  IS(run(&a, true, -1), CUDNN_STATUS_BAD_PARAM);
  cudnnSeqDataDescriptor_t q = a.desc[Q];
  a.desc[Q] = NULL;
  IS(run(&a, false, -1), CUDNN_STATUS_BAD_PARAM);
  a.desc[Q] = q;
  OK(cudaDeviceSynchronize());
  destroy(&a);
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn attention");
  TCase *cases = tcase_create("attention");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, forward_equals_the_definition);
  tcase_add_test(cases, one_time_step_leaves_the_others_alone);
  tcase_add_test(cases, gradients_equal_differences_of_the_definition);
  tcase_add_test(cases, gradients_with_dropout_equal_differences);
  tcase_add_test(cases, wrong_arguments_are_refused);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
