// SPDX-License-Identifier: Apache-2.0
// Tests how multi-head attention on this device behaves where its documentation
// does not say: where parameters are, windows that are empty or exceed the
// keys, and which types work.
#include <cudnn.h>
#include <math.h>
#include <stdbool.h>

#include "tests/gpu/probe.h"

enum { TIME = 6, SIZE = 8, HEADS = 2, PROJECTED = 4, COUNT = TIME * SIZE };

static cudnnHandle_t cudnn;

static const char *word(cudnnStatus_t status) {
  return status ? cudnnGetErrorString(status) : "runs";
}

// One sequence of TIME vectors; queries, keys and values are the same.
typedef struct attention {
  cudnnAttnDescriptor_t desc;
  cudnnSeqDataDescriptor_t x, out;
  size_t weights_bytes, work_bytes, reserve_bytes;
  void *weights, *work, *reserve, *at, *to;
  int *length; // on the device
  int lo[TIME], hi[TIME];
} attention_t;

static cudnnSeqDataDescriptor_t sequence(cudnnDataType_t type, int size) {
  static const cudnnSeqDataAxis_t axes[] = {
      CUDNN_SEQDATA_BATCH_DIM, CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_BEAM_DIM,
      CUDNN_SEQDATA_VECT_DIM};
  int extent[CUDNN_SEQDATA_DIM_COUNT], length = TIME;
  extent[CUDNN_SEQDATA_TIME_DIM] = TIME;
  extent[CUDNN_SEQDATA_BATCH_DIM] = extent[CUDNN_SEQDATA_BEAM_DIM] = 1;
  extent[CUDNN_SEQDATA_VECT_DIM] = size;
  cudnnSeqDataDescriptor_t desc;
  PROBE_CUDNN(cudnnCreateSeqDataDescriptor(&desc));
  PROBE_CUDNN(cudnnSetSeqDataDescriptor(desc, type, CUDNN_SEQDATA_DIM_COUNT,
                                        extent, axes, 1, &length, NULL));
  return desc;
}

// With all projections and biases, or with none. Without them each head sees
// the whole vector, and the output has the heads' results side by side.
static cudnnStatus_t attention_create(attention_t *a, cudnnDataType_t type,
                                      bool projects) {
  const int length[2] = {TIME, TIME};
  int p = projects ? PROJECTED : 0, o = projects ? SIZE : 0;
  memset(a, 0, sizeof *a);
  PROBE_CUDNN(cudnnCreateAttnDescriptor(&a->desc));
  cudnnStatus_t status = cudnnSetAttnDescriptor(
      a->desc, projects ? CUDNN_ATTN_ENABLE_PROJ_BIASES : 0, HEADS, 0.5, type,
      type == CUDNN_DATA_HALF ? CUDNN_DATA_FLOAT : type, CUDNN_DEFAULT_MATH,
      NULL, NULL, SIZE, SIZE, SIZE, p, p, p, o, TIME, TIME, 1, 1);
  if (status == CUDNN_STATUS_SUCCESS)
    status = cudnnGetMultiHeadAttnBuffers(cudnn, a->desc, &a->weights_bytes,
                                          &a->work_bytes, &a->reserve_bytes);
  if (status != CUDNN_STATUS_SUCCESS)
    return status;
  a->x = sequence(type, SIZE);
  a->out = sequence(type, projects ? SIZE : HEADS * SIZE);
  a->weights = probe_device(a->weights_bytes);
  a->work = probe_device(a->work_bytes);
  a->reserve = probe_device(a->reserve_bytes);
  a->at = probe_device(8 * COUNT);
  a->to = probe_device(8 * HEADS * COUNT);
  a->length = probe_device(sizeof length);
  PROBE_CUDA(
      cudaMemcpy(a->length, length, sizeof length, cudaMemcpyHostToDevice));
  for (int t = 0; t < TIME; t++) {
    a->lo[t] = 0;
    a->hi[t] = TIME;
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t forward(attention_t *a, bool trains, int step) {
  cudnnStatus_t status = cudnnMultiHeadAttnForward(
      cudnn, a->desc, step, a->lo, a->hi, a->length, a->length + 1, a->x, a->at,
      NULL, a->x, a->at, a->x, a->at, a->out, a->to, a->weights_bytes,
      a->weights_bytes ? a->weights : NULL, a->work_bytes, a->work,
      trains ? a->reserve_bytes : 0, trains ? a->reserve : NULL);
  PROBE_CUDA(cudaDeviceSynchronize());
  return status;
}

static void types_probe(void) {
  static const struct {
    cudnnDataType_t type;
    const char *name;
  } types[] = {{CUDNN_DATA_FLOAT, "float"},
               {CUDNN_DATA_DOUBLE, "double"},
               {CUDNN_DATA_HALF, "half"}};
  for (int i = 0; i < 3; i++) {
    attention_t a;
    char point[64];
    snprintf(point, sizeof point, "attention in %s", types[i].name);
    cudnnStatus_t status = attention_create(&a, types[i].type, true);
    if (status != CUDNN_STATUS_SUCCESS) {
      probe_say(point, "is not described: %s", word(status));
      continue;
    }
    const char *alone = word(forward(&a, false, -1));
    const char *trains = word(forward(&a, true, -1));
    void *d[3] = {probe_device(8 * COUNT), probe_device(8 * COUNT),
                  probe_device(8 * COUNT)};
    void *dw = probe_device(a.weights_bytes);
    const char *data = word(cudnnMultiHeadAttnBackwardData(
        cudnn, a.desc, a.lo, a.hi, a.length, a.length + 1, a.out, a.to, a.x,
        d[0], a.at, a.x, d[1], a.at, a.x, d[2], a.at, a.weights_bytes,
        a.weights, a.work_bytes, a.work, a.reserve_bytes, a.reserve));
    const char *weights = word(cudnnMultiHeadAttnBackwardWeights(
        cudnn, a.desc, CUDNN_WGRAD_MODE_SET, a.x, a.at, a.x, a.at, a.x, a.at,
        a.out, a.to, a.weights_bytes, a.weights, dw, a.work_bytes, a.work,
        a.reserve_bytes, a.reserve));
    PROBE_CUDA(cudaDeviceSynchronize());
    probe_say(point,
              "inference %s, training %s, gradients of data %s, of parameters "
              "%s, one step %s",
              alone, trains, data, weights, word(forward(&a, false, 0)));
  }
}

// A parameter is [HEADS][projected size][size of the vectors], of the output's
// projection [HEADS][size of the output][projected size].
static void weights_probe(void) {
  static const struct {
    cudnnMultiHeadAttnWeightKind_t kind;
    const char *name;
  } kinds[] = {{CUDNN_MH_ATTN_Q_WEIGHTS, "of queries"},
               {CUDNN_MH_ATTN_K_WEIGHTS, "of keys"},
               {CUDNN_MH_ATTN_V_WEIGHTS, "of values"},
               {CUDNN_MH_ATTN_O_WEIGHTS, "of the output"},
               {CUDNN_MH_ATTN_Q_BIASES, "of queries, biases"},
               {CUDNN_MH_ATTN_O_BIASES, "of the output, biases"}};
  attention_t a;
  bool interleaved = true;
  PROBE_CUDNN(attention_create(&a, CUDNN_DATA_FLOAT, true));
  for (int i = 0; i < 6; i++) {
    cudnnTensorDescriptor_t desc;
    cudnnDataType_t type;
    void *at = NULL;
    int dims = 0, extent[8] = {0}, stride[8] = {0};
    char point[64];
    PROBE_CUDNN(cudnnCreateTensorDescriptor(&desc));
    PROBE_CUDNN(cudnnGetMultiHeadAttnWeights(
        cudnn, a.desc, kinds[i].kind, a.weights_bytes, a.weights, desc, &at));
    PROBE_CUDNN(
        cudnnGetTensorNdDescriptor(desc, 8, &type, &dims, extent, stride));
    snprintf(point, sizeof point, "parameters %s", kinds[i].name);
    probe_say(point, "%d dimensions, %dx%dx%d, strides %d %d %d, at %td", dims,
              extent[0], extent[1], extent[2], stride[0], stride[1], stride[2],
              (char *)at - (char *)a.weights);
    if (i < 3 && stride[2] != HEADS * PROJECTED)
      interleaved = false;
  }
  // sundog reads the strides; this one is from NVIDIA's sample.
  probe_say("heads of a projection are interleaved",
            interleaved ? "yes, stride[2] = heads * projected size" : "no");
}

static void windows_set(attention_t *a, int lo, int hi) {
  for (int t = 0; t < TIME; t++) {
    a->lo[t] = lo;
    a->hi[t] = hi;
  }
}

static void values_say(const char *point, cudnnStatus_t status,
                       const attention_t *a, float *out) {
  if (status != CUDNN_STATUS_SUCCESS) {
    probe_say(point, "%s", word(status));
    return;
  }
  int nan = 0, zero = 0;
  probe_download(a->to, out, HEADS * COUNT);
  for (int i = 0; i < HEADS * COUNT; i++) {
    nan += isnan(out[i]);
    zero += out[i] == 0;
  }
  probe_say(point, "runs; of %d values %d are NaN, %d zero", HEADS * COUNT, nan,
            zero);
}

static void windows_probe(void) {
  attention_t a;
  float x[COUNT], all[HEADS * COUNT], beyond[HEADS * COUNT];
  PROBE_CUDNN(attention_create(&a, CUDNN_DATA_FLOAT, false));
  for (unsigned i = 0; i < COUNT; i++)
    x[i] = probe_number(i);
  PROBE_CUDA(cudaMemcpy(a.at, x, sizeof x, cudaMemcpyHostToDevice));
  cudnnStatus_t status = forward(&a, false, -1);
  values_say("a window of all keys", status, &a, all);
  if (status != CUDNN_STATUS_SUCCESS)
    return;
  static const struct {
    const char *point;
    int lo, hi;
  } wide[] = {{"a window that begins before the keys (lo < 0)", -3, TIME},
              {"a window that ends behind the keys (hi > keys)", 0, TIME + 3}};
  for (int i = 0; i < 2; i++) {
    windows_set(&a, wide[i].lo, wide[i].hi);
    status = forward(&a, false, -1);
    values_say(wide[i].point, status, &a, beyond);
    if (status == CUDNN_STATUS_SUCCESS)
      probe_say(wide[i].point, "%s what the window of all keys gives",
                memcmp(all, beyond, sizeof all) ? "not" : "exactly");
  }
  windows_set(&a, 2, 2);
  values_say("an empty window (lo == hi)", forward(&a, false, -1), &a, beyond);
  windows_set(&a, 3, 2);
  values_say("a window of less than nothing (lo > hi)", forward(&a, false, -1),
             &a, beyond);
  // One key: each head returns its value.
  windows_set(&a, 4, 5);
  status = forward(&a, false, -1);
  bool right = status == CUDNN_STATUS_SUCCESS;
  if (right)
    probe_download(a.to, beyond, HEADS * COUNT);
  for (int i = 0; i < HEADS * COUNT && right; i++)
    right = fabsf(beyond[i] - x[4 * SIZE + i % SIZE]) < 1e-5f;
  probe_expect("a window of one key gives its value", right, "yes", "no");
}

int main(void) {
  PROBE_CUDNN(cudnnCreate(&cudnn));
  types_probe();
  weights_probe();
  windows_probe();
  PROBE_CUDNN(cudnnDestroy(cudnn));
  return probe_faults > 0;
}
