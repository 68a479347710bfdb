// SPDX-License-Identifier: Apache-2.0
// A normalisation in training and its gradient, which reads the statistics that
// the first wrote, and what loops in double precision give. With
// LAYER_VIEW=shard each rank (SUNDOG_RANK of SUNDOG_SIZE) has its part of the
// dimension CUT: uneven ones.
//
// usage: normalise KIND CUT [HOW]
//   KIND       layer (over C), over (a layer norm over C, H and W), rms (over
//              C), batch or instance
//   CUT        N, C, H or W
//   HOW        what is different, and often wrong:
//     ones     every rank has one row
//     epsilon  the ranks have different numbers epsilon
//     scale    the ranks have different scales
//     mean     the ranks have different means when the gradient reads them
//     half     the scale is in half
//     peers    memory that GPUs share
//     text     plans are written as text and read again, as XLA does
//     capture  both are captured into a CUDA graph, which is launched
// Prints the status of both executions if there is a HOW, and checks values if
// they are 0.
#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "tests/clients/graphs/build.h"

enum { X, DY, SCALE, MEAN, INVERSE, Y, DX, DSCALE, TENSORS };
enum { N, C, H, W, DIMS };
enum { EPSILON = 50, PEERS = 60 };

typedef struct {
  int64_t whole[DIMS], dim[DIMS], first[DIMS], bytes;
  double *right; // of the whole
  void *device;
} tensor_t;

static tensor_t tensor[TENSORS];
static float epsilon = 1e-3F;
static int64_t rank, ranks = 1;
static const char *kind, *how = "";
static int cut;

static bool is_kind(const char *word) {
  return strcmp(kind, word) == 0;
}
static bool is_how(const char *word) {
  return strcmp(how, word) == 0;
}

// ---- what is right ---------------------------------------------------------

static bool shares(int d) {
  return is_kind("batch")      ? d != C
         : is_kind("instance") ? d > C
         : is_kind("over")     ? d != N
                               : d == C;
}

static int64_t extent_of(int t, int d) {
  static const int64_t all[] = {6, 8, 9, 7};
  int64_t x = d == cut && is_how("ones") ? ranks : all[d];
  bool scaled = d == C || (is_kind("over") && d != N);
  switch (t) {
  case SCALE:
  case DSCALE:
    return scaled ? x : 1;
  case MEAN:
  case INVERSE:
    return shares(d) ? 1 : x;
  default:
    return x;
  }
}

static int64_t count_of(const int64_t *dim) {
  return dim[N] * dim[C] * dim[H] * dim[W];
}

static void at_of(const int64_t *dim, int64_t i, int64_t *out) {
  for (int d = DIMS; d-- > 0; i /= dim[d])
    out[d] = i % dim[d];
}

// The element of a tensor beside element i of x.
static double *beside(int t, int64_t i) {
  int64_t at[DIMS], place = 0;
  at_of(tensor[X].whole, i, at);
  for (int d = 0; d < DIMS; d++)
    place = place * tensor[t].whole[d] + (tensor[t].whole[d] == 1 ? 0 : at[d]);
  return &tensor[t].right[place];
}

static double slope(int64_t i) {
  return *beside(DY, i) * *beside(SCALE, i);
}

static double normal(int64_t i) {
  return (*beside(X, i) - *beside(MEAN, i)) * *beside(INVERSE, i);
}

static void right_find(void) {
  int64_t count = count_of(tensor[X].whole);
  int64_t statistics = count_of(tensor[MEAN].whole);
  double each = (double)statistics / (double)count;
  double *along = calloc((size_t)statistics, sizeof *along);
  double *shift = calloc((size_t)statistics, sizeof *shift);
  CHECK(!along || !shift);
  for (int64_t i = 0; i < count && !is_kind("rms"); i++)
    *beside(MEAN, i) += *beside(X, i) * each;
  for (int64_t i = 0; i < count; i++)
    *beside(INVERSE, i) += pow(*beside(X, i) - *beside(MEAN, i), 2) * each;
  for (int64_t i = 0; i < statistics; i++)
    tensor[INVERSE].right[i] =
        1 / sqrt(tensor[INVERSE].right[i] + (double)epsilon);
  for (int64_t i = 0; i < count; i++) {
    int64_t k = beside(MEAN, i) - tensor[MEAN].right;
    *beside(Y, i) = normal(i) * *beside(SCALE, i);
    *beside(DSCALE, i) += *beside(DY, i) * normal(i);
    along[k] += slope(i) * normal(i) * each;
    shift[k] += is_kind("rms") ? 0 : slope(i) * each;
  }
  for (int64_t i = 0; i < count; i++) {
    int64_t k = beside(MEAN, i) - tensor[MEAN].right;
    *beside(DX, i) =
        *beside(INVERSE, i) * (slope(i) - shift[k] - normal(i) * along[k]);
  }
  free(along);
  free(shift);
}

// ---- pieces ----------------------------------------------------------------

// Where piece `r` begins: 9 of three ranks are 2, 3 and 4.
static int64_t begin(int64_t all, int64_t r) {
  return all * r / ranks - (r > 0 && r < ranks && all > 2 * ranks);
}

static cudnnDataType_t type_of(int t) {
  return (t == SCALE || t == DSCALE) && is_how("half") ? CUDNN_DATA_HALF
                                                       : CUDNN_DATA_FLOAT;
}

static void tensor_init(int t) {
  tensor_t *made = &tensor[t];
  for (int d = 0; d < DIMS; d++) {
    made->whole[d] = made->dim[d] = extent_of(t, d);
    if (d == cut && made->whole[d] > 1) {
      made->first[d] = begin(made->whole[d], rank);
      made->dim[d] = begin(made->whole[d], rank + 1) - made->first[d];
    }
  }
  made->bytes = count_of(made->dim) * (int64_t)sizeof(float);
  made->right = calloc((size_t)count_of(made->whole), sizeof *made->right);
  CHECK(!made->right);
  for (int64_t i = 0; i < count_of(made->whole) && t <= SCALE; i++)
    made->right[i] = (double)((i * 37 + i / 7 + t * 11) % 23 - 9) / 8;
  CHECK(cudaMalloc(&made->device, (size_t)made->bytes));
}

// Channels last.
static int64_t place_of(const int64_t *dim, const int64_t *at) {
  return ((at[N] * dim[H] + at[H]) * dim[W] + at[W]) * dim[C] + at[C];
}

// Copies what is right into the memory; `more` is added.
static void tensor_put(int t, double more) {
  const tensor_t *to = &tensor[t];
  float *piece = malloc((size_t)to->bytes);
  CHECK(!piece);
  for (int64_t i = 0; i < count_of(to->dim); i++) {
    int64_t at[DIMS], whole = 0;
    at_of(to->dim, i, at);
    int64_t place = place_of(to->dim, at);
    for (int d = 0; d < DIMS; d++)
      whole = whole * to->whole[d] + at[d] + to->first[d];
    piece[place] = t > INVERSE ? NAN : (float)(to->right[whole] + more);
  }
  CHECK(
      cudaMemcpy(to->device, piece, (size_t)to->bytes, cudaMemcpyHostToDevice));
  free(piece);
}

static double tensor_off(int t) {
  const tensor_t *from = &tensor[t];
  float *piece = malloc((size_t)from->bytes);
  double most = 0;
  CHECK(!piece);
  CHECK(cudaMemcpy(piece, from->device, (size_t)from->bytes,
                   cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < count_of(from->dim); i++) {
    int64_t at[DIMS], whole = 0;
    at_of(from->dim, i, at);
    double is = (double)piece[place_of(from->dim, at)];
    for (int d = 0; d < DIMS; d++)
      whole = whole * from->whole[d] + at[d] + from->first[d];
    double off = fabs(is - from->right[whole]);
    most = off <= most ? most : off; // also if it is NaN
  }
  free(piece);
  return most;
}

// ---- graphs ----------------------------------------------------------------

static build_t number_of(int64_t uid) {
  static const int64_t ones[] = {1, 1, 1, 1};
  build_t made = build_create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int64_t alignment = 4;
  const bool by_value = true;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  BUILD_SET(made, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(made, TENSOR_DIMENSIONS, INT64, DIMS, ones);
  BUILD_SET(made, TENSOR_STRIDES, INT64, DIMS, ones);
  BUILD_SET(made, TENSOR_UNIQUE_ID, INT64, 1, &uid);
  BUILD_SET(made, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  BUILD_SET(made, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &by_value);
  CHECK(cudnnBackendFinalize(made));
  return made;
}

static cudnnBackendNormMode_t mode_of(void) {
  return is_kind("batch")      ? CUDNN_BATCH_NORM
         : is_kind("instance") ? CUDNN_INSTANCE_NORM
         : is_kind("rms")      ? CUDNN_RMS_NORM
                               : CUDNN_LAYER_NORM;
}

static build_t forward_of(const build_t *t) {
  build_t op = build_create(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  build_t number = number_of(EPSILON), peers[2];
  cudnnBackendNormMode_t mode = mode_of();
  cudnnBackendNormFwdPhase_t phase = CUDNN_NORM_FWD_TRAINING;
  const int64_t shared[] = {2, 4 * tensor[X].whole[C], 1, 1};
  BUILD_SET(op, OPERATION_NORM_FWD_MODE, NORM_MODE, 1, &mode);
  BUILD_SET(op, OPERATION_NORM_FWD_PHASE, NORM_FWD_PHASE, 1, &phase);
  BUILD_GIVE(op, OPERATION_NORM_FWD_XDESC, t[X]);
  BUILD_GIVE(op, OPERATION_NORM_FWD_SCALE_DESC, t[SCALE]);
  BUILD_GIVE(op, OPERATION_NORM_FWD_EPSILON_DESC, number);
  if (!is_kind("rms"))
    BUILD_GIVE(op, OPERATION_NORM_FWD_MEAN_DESC, t[MEAN]);
  BUILD_GIVE(op, OPERATION_NORM_FWD_INV_VARIANCE_DESC, t[INVERSE]);
  BUILD_GIVE(op, OPERATION_NORM_FWD_YDESC, t[Y]);
  for (int i = 0; i < 2 && is_how("peers"); i++)
    peers[i] = build_tensor(PEERS + i, CUDNN_DATA_FLOAT, shared, 16);
  if (is_how("peers"))
    BUILD_SET(op, OPERATION_NORM_FWD_PEER_STAT_DESCS, BACKEND_DESCRIPTOR, 2,
              peers);
  CHECK(cudnnBackendFinalize(op));
  for (int i = 0; i < 2 && is_how("peers"); i++)
    build_destroy(peers[i]);
  build_destroy(number);
  return op;
}

static build_t backward_of(const build_t *t) {
  build_t op = build_create(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
  cudnnBackendNormMode_t mode = mode_of();
  BUILD_SET(op, OPERATION_NORM_BWD_MODE, NORM_MODE, 1, &mode);
  BUILD_GIVE(op, OPERATION_NORM_BWD_XDESC, t[X]);
  BUILD_GIVE(op, OPERATION_NORM_BWD_DYDESC, t[DY]);
  BUILD_GIVE(op, OPERATION_NORM_BWD_SCALE_DESC, t[SCALE]);
  if (!is_kind("rms"))
    BUILD_GIVE(op, OPERATION_NORM_BWD_MEAN_DESC, t[MEAN]);
  BUILD_GIVE(op, OPERATION_NORM_BWD_INV_VARIANCE_DESC, t[INVERSE]);
  BUILD_GIVE(op, OPERATION_NORM_BWD_DXDESC, t[DX]);
  BUILD_GIVE(op, OPERATION_NORM_BWD_DSCALE_DESC, t[DSCALE]);
  CHECK(cudnnBackendFinalize(op));
  return op;
}

// The plan that the text of `plan`, which is destroyed, describes.
static build_t read_again(cudnnHandle_t handle, build_t plan) {
  static char text[1 << 16];
  int64_t bytes = 0;
  BUILD_GET(plan, EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, sizeof text, &bytes,
            text);
  build_destroy(plan);
  build_t made = build_create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  BUILD_SET(made, EXECUTION_PLAN_HANDLE, HANDLE, 1, &handle);
  BUILD_SET(made, EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, bytes, text);
  CHECK(cudnnBackendFinalize(made));
  return made;
}

static build_t plan_of(cudnnHandle_t handle, bool backward, int64_t *bytes) {
  build_t t[TENSORS], config[BUILD_CONFIGS], plan = NULL;
  for (int i = 0; i < TENSORS; i++)
    t[i] = build_tensor(i + 1, type_of(i), tensor[i].dim, 16);
  build_t op = backward ? backward_of(t) : forward_of(t);
  build_t graph = build_graph(handle, &op, 1);
  int64_t configs = build_configs(graph, CUDNN_HEUR_MODE_A, config);
  for (int64_t i = 0; i < configs; i++) {
    if (!plan)
      plan = build_plan(handle, config[i], bytes);
    build_destroy(config[i]);
  }
  for (int i = 0; i < TENSORS; i++)
    build_destroy(t[i]);
  build_destroy(graph);
  CHECK(!plan);
  return is_how("text") ? read_again(handle, plan) : plan;
}

// ---- executing -------------------------------------------------------------

static cudnnStatus_t execute(cudnnHandle_t handle, build_t plan, bool backward,
                             void *workspace) {
  int64_t uid[TENSORS + 3], count = 0;
  void *pointer[TENSORS + 3];
  for (int t = 0; t < TENSORS; t++) {
    bool used = backward ? t != Y : t != DY && t != DX && t != DSCALE;
    if (!used || (t == MEAN && is_kind("rms")))
      continue;
    uid[count] = t + 1;
    pointer[count++] = tensor[t].device;
  }
  if (!backward) {
    uid[count] = EPSILON;
    pointer[count++] = &epsilon;
  }
  for (int i = 0; i < 2 && !backward && is_how("peers"); i++) {
    uid[count] = PEERS + i;
    pointer[count++] = tensor[Y].device; // nobody gets that far
  }
  return build_execute(handle, plan, uid, pointer, count, workspace);
}

static void run(cudnnHandle_t handle, cudnnStatus_t status[2]) {
  int64_t bytes[2] = {0};
  void *workspace[2];
  build_t plan[2];
  for (int i = 0; i < 2; i++) {
    plan[i] = plan_of(handle, i == 1, &bytes[i]);
    CHECK(cudaMalloc(&workspace[i], (size_t)bytes[i] + 1));
  }
  for (int again = 0; again < 2; again++) {
    status[0] = execute(handle, plan[0], false, workspace[0]);
    if (is_how("mean"))
      tensor_put(MEAN, (double)rank);
    status[1] = execute(handle, plan[1], true, workspace[1]);
  }
  if (is_how("capture")) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaDeviceSynchronize());
    for (int t = MEAN; t < TENSORS; t++)
      CHECK(cudaMemset(tensor[t].device, 0xff, (size_t)tensor[t].bytes));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudnnSetStream(handle, stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 2; i++)
      status[i] = execute(handle, plan[i], i == 1, workspace[i]);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(ready));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudnnSetStream(handle, NULL));
    CHECK(cudaStreamDestroy(stream));
  }
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 2; i++) {
    CHECK(cudaFree(workspace[i]));
    build_destroy(plan[i]);
  }
}

int main(int words, char **word) {
  const char *view = getenv("LAYER_VIEW");
  cudnnStatus_t status[2];
  cudnnHandle_t handle;
  CHECK(words < 3);
  kind = word[1];
  cut = (int)(strcspn("NCHW", word[2]));
  how = words > 3 ? word[3] : "";
  if (view && strcmp(view, "shard") == 0) {
    rank = strtoll(getenv("SUNDOG_RANK"), NULL, 10);
    ranks = strtoll(getenv("SUNDOG_SIZE"), NULL, 10);
  }
  CHECK(cudnnCreate(&handle));
  for (int t = 0; t < TENSORS; t++)
    tensor_init(t);
  right_find();
  for (int t = 0; t < TENSORS; t++)
    tensor_put(t, t == SCALE && is_how("scale") ? (double)rank : 0);
  if (is_how("epsilon"))
    epsilon += (float)rank;
  run(handle, status);
  if (*how)
    printf("status %d %d\n", (int)status[0], (int)status[1]);
  else
    CHECK(status[0] || status[1]);
  for (int t = MEAN; t < TENSORS && !status[0] && !status[1]; t++) {
    double off = t == MEAN && is_kind("rms") ? 0 : tensor_off(t);
    if (!(off <= 2e-4)) {
      fprintf(stderr, "tensor %d is off by %.1e\n", t, off);
      return EXIT_FAILURE;
    }
  }
  for (int t = 0; t < TENSORS; t++) {
    CHECK(cudaFree(tensor[t].device));
    free(tensor[t].right);
  }
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
