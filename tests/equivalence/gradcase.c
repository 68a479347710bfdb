/* SPDX-License-Identifier: Apache-2.0 */
/* Runs gradients of random convolutions with cuDNN on a piece of their tensors,
 * and compares them with the whole gradients in float64.
 *
 * usage: gradcase RANK PIECES DIMENSIONS WHAT SEED CASES
 *        PIECES of the DIMENSIONS, "2x3" of "HW": rank 4 has the second piece
 *        of H and the second of W. PIECES 1: all of it, in each rank. WHAT:
 *        letters of x, w, b: which gradients; p: H is periodic; s: gradients
 *        of w and b are of this rank's piece alone; n: of its piece of N; d:
 *        what goes in is doubled on the device first. Exits with 1 where one
 *        is wrong. */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 5, PIECES = 8 };
__extension__ typedef _Float16 half_t;

#define TRY(call)                                                              \
  do {                                                                         \
    int status_ = (int)(call);                                                 \
    if (status_ != 0) {                                                        \
      fprintf(stderr, "gradcase: %s: status %d\n", #call, status_);            \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

typedef struct {
  int rank, pieces[DIMS], piece[DIMS]; /* of N C D H W */
  int sums_here, sums_batch, periodic, doubles;
  const char *what;
} task_t;

/* One convolution: N C D H W, D is 1 where the descriptors have four. */
typedef struct {
  int dims, x[DIMS], y[DIMS], w[DIMS], groups;
  int pad[DIMS], stride[DIMS], dilation[DIMS];
  cudnnConvolutionMode_t mode;
  cudnnDataType_t type;
  int last, gap; /* channels last; gaps between lines */
  double alpha, beta;
  int x_first[DIMS][PIECES + 1], y_first[DIMS][PIECES + 1];
} conv_t;

/* ---- random numbers, the same on every rank --------------------------------
 */

static unsigned long long state;

static unsigned bits(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33);
}

static int in(int lo, int hi) {
  return lo + (int)(bits() % (unsigned)(hi - lo + 1));
}

/* Small numbers with few bits: exact in every type. */
static double value(int salt, const int at[DIMS]) {
  unsigned hash = (unsigned)salt * 2654435761u;
  for (int d = 0; d < DIMS; d++)
    hash = (hash ^ (unsigned)at[d]) * 16777619u + 97;
  return (double)((int)((hash >> 8) % 33) - 16) / 16;
}

/* ---- tensors ----------------------------------------------------------------
 */

static int size_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

static double get(cudnnDataType_t type, const void *data, long i) {
  float wide;
  unsigned high;
  switch (type) {
  case CUDNN_DATA_DOUBLE:
    return ((const double *)data)[i];
  case CUDNN_DATA_FLOAT:
    return ((const float *)data)[i];
  case CUDNN_DATA_HALF:
    return (double)((const half_t *)data)[i];
  default:
    high = (unsigned)((const unsigned short *)data)[i] << 16;
    memcpy(&wide, &high, sizeof wide);
    return wide;
  }
}

static void put(cudnnDataType_t type, void *data, long i, double to) {
  float wide = (float)to;
  unsigned high;
  switch (type) {
  case CUDNN_DATA_DOUBLE:
    ((double *)data)[i] = to;
    break;
  case CUDNN_DATA_FLOAT:
    ((float *)data)[i] = wide;
    break;
  case CUDNN_DATA_HALF:
    ((half_t *)data)[i] = (half_t)to;
    break;
  default: /* of numbers with few bits */
    memcpy(&high, &wide, sizeof high);
    ((unsigned short *)data)[i] = (unsigned short)(high >> 16);
  }
}

typedef struct {
  int first[DIMS], extent[DIMS];
  long stride[DIMS], span;
  cudnnDataType_t type;
  char *host, *device;
} tensor_t;

static void tensor_make(const conv_t *c, const int *first, const int *extent,
                        int gap, tensor_t *t) {
  static const int orders[2][DIMS] = {{0, 1, 2, 3, 4}, {0, 2, 3, 4, 1}};
  memcpy(t->first, first, sizeof t->first);
  memcpy(t->extent, extent, sizeof t->extent);
  t->type = c->type;
  t->span = 1;
  for (int i = DIMS - 1; i >= 0; i--) {
    int d = orders[c->last][i];
    t->stride[d] = t->span;
    t->span = t->span * extent[d] + (i == DIMS - 1 ? gap : 0);
  }
  size_t bytes = (size_t)t->span * (size_t)size_of(t->type);
  t->host = calloc(1, bytes);
  TRY(!t->host);
  TRY(cudaMalloc((void **)&t->device, bytes));
}

static void tensor_free(tensor_t *t) {
  free(t->host);
  TRY(cudaFree(t->device));
}

static int next(const int extent[DIMS], int at[DIMS]) {
  for (int d = DIMS - 1; d >= 0; d--) {
    if (++at[d] < extent[d])
      return 1;
    at[d] = 0;
  }
  return 0;
}

static long offset(const tensor_t *t, const int at[DIMS]) {
  long sum = 0;
  for (int d = 0; d < DIMS; d++)
    sum += at[d] * t->stride[d];
  return sum;
}

static void tensor_fill(tensor_t *t, int salt, double factor) {
  int at[DIMS] = {0}, global[DIMS];
  do {
    for (int d = 0; d < DIMS; d++)
      global[d] = t->first[d] + at[d];
    put(t->type, t->host, offset(t, at), factor * value(salt, global));
  } while (next(t->extent, at));
  TRY(cudaMemcpy(t->device, t->host, (size_t)t->span * size_of(t->type),
                 cudaMemcpyHostToDevice));
}

static void squeeze(const conv_t *c, const int *from, int *to) {
  for (int d = 0, i = 0; d < DIMS; d++)
    if (d != 2 || c->dims == 5)
      to[i++] = from[d];
}

static cudnnTensorDescriptor_t tensor_describe(const conv_t *c,
                                               const tensor_t *t) {
  cudnnTensorDescriptor_t desc;
  int extent[DIMS], stride[DIMS], wide[DIMS];
  for (int d = 0; d < DIMS; d++)
    wide[d] = (int)t->stride[d];
  squeeze(c, t->extent, extent);
  squeeze(c, wide, stride);
  TRY(cudnnCreateTensorDescriptor(&desc));
  TRY(cudnnSetTensorNdDescriptor(desc, t->type, c->dims, extent, stride));
  return desc;
}

/* ---- the whole gradients, in float64 ----------------------------------------
 */

typedef struct {
  double *sum, *terms; /* dense */
} exact_t;

static long dense(const int extent[DIMS], const int at[DIMS]) {
  long i = 0;
  for (int d = 0; d < DIMS; d++)
    i = i * extent[d] + at[d];
  return i;
}

static long count(const int extent[DIMS]) {
  long n = 1;
  for (int d = 0; d < DIMS; d++)
    n *= extent[d];
  return n;
}

static exact_t exact_make(const int extent[DIMS]) {
  exact_t e = {calloc((size_t)count(extent), sizeof(double)),
               calloc((size_t)count(extent), sizeof(double))};
  TRY(!e.sum || !e.terms);
  return e;
}

static void exact_free(exact_t *e) {
  free(e->sum);
  free(e->terms);
}

static void exact_add(exact_t *e, long at, double term) {
  e->sum[at] += term;
  e->terms[at] += fabs(term);
}

enum { SALT_X = 1, SALT_Y, SALT_W, SALT_OLD };

/* Where a tap on output `o` lies; 0 if in the padding. */
static int place(const conv_t *c, const task_t *task, const int o[DIMS],
                 const int tap[DIMS], int x[DIMS]) {
  x[0] = o[0];
  for (int d = 2; d < DIMS; d++) {
    x[d] = o[d] * c->stride[d] - c->pad[d] + tap[d] * c->dilation[d];
    if (task->periodic && d == 3)
      x[d] = (x[d] % c->x[d] + c->x[d]) % c->x[d];
    if (x[d] < 0 || x[d] >= c->x[d])
      return 0;
  }
  return 1;
}

/* Gradients of x, w and b over outputs `first` .. `first + extent`. */
static void exact_fill(const conv_t *c, const task_t *task, const int *first,
                       const int *extent, exact_t *ex, exact_t *ew,
                       exact_t *eb) {
  int at[DIMS] = {0}, o[DIMS], x[DIMS], bias[DIMS] = {0};
  do {
    for (int d = 0; d < DIMS; d++)
      o[d] = first[d] + at[d];
    double dy = value(SALT_Y, o);
    bias[1] = o[1];
    exact_add(eb, bias[1], c->alpha * dy);
    int tap[DIMS] = {0}, taps[DIMS] = {1, 1, c->w[2], c->w[3], c->w[4]};
    int group = o[1] / (c->w[0] / c->groups);
    do {
      if (!place(c, task, o, tap, x))
        continue;
      for (int k = 0; k < c->w[1]; k++) {
        int w[DIMS] = {o[1], k, tap[2], tap[3], tap[4]};
        for (int d = 2; d < DIMS && c->mode == CUDNN_CONVOLUTION; d++)
          w[d] = c->w[d] - 1 - w[d];
        x[1] = group * c->w[1] + k;
        exact_add(ex, dense(c->x, x), c->alpha * dy * value(SALT_W, w));
        exact_add(ew, dense(c->w, w), c->alpha * dy * value(SALT_X, x));
      }
    } while (next(taps, tap));
  } while (next(extent, at));
}

/* ---- drawing ----------------------------------------------------------------
 */

static int parts_draw(int extent, int pieces, int first[PIECES + 1]) {
  if (extent < pieces)
    return 0;
  for (int i = 0; i <= pieces; i++)
    first[i] = extent * i / pieces;
  for (int i = 1; i < pieces; i++)
    first[i] = in(first[i - 1] + 1, extent - (pieces - i));
  return 1;
}

/* By the owner of the window's centre; 0 where a piece is empty. */
static int parts_follow(const conv_t *c, int d, int pieces,
                        const int x[PIECES + 1], int y[PIECES + 1]) {
  y[0] = 0;
  y[pieces] = c->y[d];
  for (int i = 1; i < pieces; i++) {
    int centre = d < 2 ? 0 : c->dilation[d] * (c->w[d] - 1) / 2;
    int pad = d < 2 ? 0 : c->pad[d], stride = d < 2 ? 1 : c->stride[d];
    int at = x[i] + pad - centre;
    y[i] = at <= 0 ? 0 : (at + stride - 1) / stride;
    y[i] = y[i] > c->y[d] ? c->y[d] : y[i];
  }
  for (int i = 0; i < pieces; i++)
    if (y[i] >= y[i + 1])
      return 0;
  return 1;
}

static int conv_draw(const task_t *task, conv_t *c) {
  memset(c, 0, sizeof *c);
  c->dims = in(0, 3) || task->pieces[2] > 1 ? 4 : 5;
  if (task->pieces[2] > 1)
    c->dims = 5;
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                                          CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                          CUDNN_DATA_BFLOAT16};
  c->type = types[in(0, 4)];
  c->mode = in(0, 2) ? CUDNN_CROSS_CORRELATION : CUDNN_CONVOLUTION;
  c->groups = in(0, 3) ? 1 : 2;
  c->last = in(0, 3) == 0;
  c->gap = in(0, 3) ? 0 : 1;
  c->alpha = in(0, 2) ? 1 : 0.5;
  c->beta = in(0, 1) ? 0 : -0.5 * in(1, 3);
  c->x[0] = task->pieces[0] - 1 + in(1, 2);
  c->w[1] = in(1, 3);
  c->x[1] = c->w[1] * c->groups;
  c->w[0] = c->y[1] = in(1, 3) * c->groups;
  c->y[0] = c->x[0];
  for (int d = 2; d < DIMS; d++) {
    int there = d > 2 || c->dims == 5;
    c->w[d] = there ? in(1, 4) : 1;
    c->dilation[d] = there && in(0, 3) == 0 ? 2 : 1;
    c->stride[d] = there && in(0, 2) == 0 ? in(2, 3) : 1;
    c->pad[d] = there ? in(0, c->dilation[d] * (c->w[d] - 1) + in(0, 1)) : 0;
    c->x[d] = there ? in(task->pieces[d], c->dims == 5 ? 7 : 14) +
                          2 * (task->pieces[d] - 1)
                    : 1;
    int room = c->x[d] + 2 * c->pad[d] - c->dilation[d] * (c->w[d] - 1) - 1;
    if (room < 0)
      return 0;
    c->y[d] = room / c->stride[d] + 1;
  }
  for (int d = 0; d < DIMS; d++)
    if (!parts_draw(c->x[d], task->pieces[d], c->x_first[d]) ||
        !parts_follow(c, d, task->pieces[d], c->x_first[d], c->y_first[d]))
      return 0;
  return 1;
}

/* ---- running ----------------------------------------------------------------
 */

static cudnnHandle_t handle;
static int wrong;

static double eps_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE  ? DBL_EPSILON
         : type == CUDNN_DATA_FLOAT ? (double)FLT_EPSILON
         : type == CUDNN_DATA_HALF  ? 0x1p-10
                                    : 0x1p-7;
}

static void compare(const conv_t *c, tensor_t *t, const exact_t *e,
                    const int whole[DIMS], const char *name, int number) {
  int at[DIMS] = {0}, global[DIMS], shown = 0;
  TRY(cudaMemcpy(t->host, t->device, (size_t)t->span * size_of(t->type),
                 cudaMemcpyDeviceToHost));
  do {
    for (int d = 0; d < DIMS; d++)
      global[d] = t->first[d] + at[d];
    long i = dense(whole, global);
    double old = c->beta * value(SALT_OLD, global);
    double right = e->sum[i] + old, is = get(t->type, t->host, offset(t, at));
    double most = 4 * eps_of(t->type) * (e->terms[i] + fabs(old));
    if (fabs(is - right) <= most || shown++ > 2)
      continue;
    wrong = 1;
    fprintf(stderr,
            "gradcase: case %d: %s[%d,%d,%d,%d,%d] is %.9g, not %.9g (type %d, "
            "beta %g)\n",
            number, name, global[0], global[1], global[2], global[3], global[4],
            is, right, (int)t->type, c->beta);
  } while (next(t->extent, at));
}

/* What a call needs besides tensors. */
typedef struct {
  const conv_t *c;
  cudnnTensorDescriptor_t x, y, b;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  float alpha, beta;
  double alpha_wide, beta_wide;
  int doubles, finds; /* finds: algorithms by heuristics, by tries, in place */
} call_t;

static const void *scalar(const call_t *k, int beta) {
  if (k->c->type == CUDNN_DATA_DOUBLE)
    return beta ? &k->beta_wide : &k->alpha_wide;
  return beta ? &k->beta : &k->alpha;
}

static void *workspace_make(size_t bytes) {
  void *workspace = NULL;
  if (bytes)
    TRY(cudaMalloc(&workspace, bytes));
  return workspace;
}

/* Of an activation. */
static void load(const call_t *k, tensor_t *t, cudnnTensorDescriptor_t desc,
                 int salt) {
  const double wide = 2;
  const float two = 2;
  tensor_fill(t, salt, k->doubles ? 0.5 : 1);
  if (k->doubles)
    TRY(cudnnScaleTensor(handle, desc, t->device,
                         t->type == CUDNN_DATA_DOUBLE ? (const void *)&wide
                                                      : &two));
}

static void dgrad(const call_t *k, const tensor_t *w, const tensor_t *y,
                  tensor_t *x) {
  cudnnConvolutionBwdDataAlgoPerf_t perf[8];
  int found;
  size_t bytes;
  if (k->finds == 0)
    TRY(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, k->w, k->y, k->conv,
                                                    k->x, 8, &found, perf));
  else if (k->finds == 1)
    TRY(cudnnFindConvolutionBackwardDataAlgorithm(handle, k->w, k->y, k->conv,
                                                  k->x, 8, &found, perf));
  else
    TRY(cudnnFindConvolutionBackwardDataAlgorithmEx(
        handle, k->w, w->device, k->y, y->device, k->conv, k->x, x->device, 8,
        &found, perf, NULL, 0));
  load(k, x, k->x, SALT_OLD);
  TRY(found < 1 || perf[0].status);
  TRY(cudnnGetConvolutionBackwardDataWorkspaceSize(handle, k->w, k->y, k->conv,
                                                   k->x, perf[0].algo, &bytes));
  void *workspace = workspace_make(bytes);
  TRY(cudnnConvolutionBackwardData(handle, scalar(k, 0), k->w, w->device, k->y,
                                   y->device, k->conv, perf[0].algo, workspace,
                                   bytes, scalar(k, 1), k->x, x->device));
  TRY(cudaFree(workspace));
}

static void wgrad(const call_t *k, const tensor_t *x, const tensor_t *y,
                  tensor_t *w) {
  cudnnConvolutionBwdFilterAlgoPerf_t perf[8];
  int found;
  size_t bytes;
  if (k->finds == 0)
    TRY(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        handle, k->x, k->y, k->conv, k->w, 8, &found, perf));
  else if (k->finds == 1)
    TRY(cudnnFindConvolutionBackwardFilterAlgorithm(handle, k->x, k->y, k->conv,
                                                    k->w, 8, &found, perf));
  else
    TRY(cudnnFindConvolutionBackwardFilterAlgorithmEx(
        handle, k->x, x->device, k->y, y->device, k->conv, k->w, w->device, 8,
        &found, perf, NULL, 0));
  tensor_fill(w, SALT_OLD, 1);
  TRY(found < 1 || perf[0].status);
  TRY(cudnnGetConvolutionBackwardFilterWorkspaceSize(
      handle, k->x, k->y, k->conv, k->w, perf[0].algo, &bytes));
  void *workspace = workspace_make(bytes);
  TRY(cudnnConvolutionBackwardFilter(
      handle, scalar(k, 0), k->x, x->device, k->y, y->device, k->conv,
      perf[0].algo, workspace, bytes, scalar(k, 1), k->w, w->device));
  TRY(cudaFree(workspace));
}

static void call_make(const conv_t *c, const tensor_t *x, const tensor_t *y,
                      const tensor_t *b, call_t *k) {
  int w[DIMS], pad[DIMS], stride[DIMS], dilation[DIMS], skip = 7 - c->dims;
  *k = (call_t){.c = c,
                .alpha = (float)c->alpha,
                .beta = (float)c->beta,
                .alpha_wide = c->alpha,
                .beta_wide = c->beta};
  k->x = tensor_describe(c, x);
  k->y = tensor_describe(c, y);
  k->b = tensor_describe(c, b);
  squeeze(c, c->w, w);
  for (int i = 0; i < c->dims - 2; i++) {
    pad[i] = c->pad[skip + i];
    stride[i] = c->stride[skip + i];
    dilation[i] = c->dilation[skip + i];
  }
  TRY(cudnnCreateFilterDescriptor(&k->w));
  TRY(cudnnSetFilterNdDescriptor(
      k->w, c->type, c->last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, c->dims,
      w));
  TRY(cudnnCreateConvolutionDescriptor(&k->conv));
  TRY(cudnnSetConvolutionNdDescriptor(
      k->conv, c->dims - 2, pad, stride, dilation, c->mode,
      c->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  TRY(cudnnSetConvolutionGroupCount(k->conv, c->groups));
}

static void call_free(call_t *k) {
  TRY(cudnnDestroyTensorDescriptor(k->x));
  TRY(cudnnDestroyTensorDescriptor(k->y));
  TRY(cudnnDestroyTensorDescriptor(k->b));
  TRY(cudnnDestroyFilterDescriptor(k->w));
  TRY(cudnnDestroyConvolutionDescriptor(k->conv));
}

static void run(const task_t *task, const conv_t *c, int number) {
  static const int zero[DIMS] = {0};
  int x_first[DIMS], x_extent[DIMS], y_first[DIMS], y_extent[DIMS];
  int bias[DIMS] = {1, c->y[1], 1, 1, 1};
  for (int d = 0; d < DIMS; d++) {
    const int *x = &c->x_first[d][task->piece[d]];
    const int *y = &c->y_first[d][task->piece[d]];
    x_first[d] = x[0];
    x_extent[d] = x[1] - x[0];
    y_first[d] = y[0];
    y_extent[d] = y[1] - y[0];
  }
  tensor_t x, y, w, b;
  call_t k;
  tensor_make(c, x_first, x_extent, c->gap, &x);
  tensor_make(c, y_first, y_extent, c->gap, &y);
  tensor_make(c, zero, c->w, 0, &w);
  tensor_make(c, zero, bias, 0, &b);
  call_make(c, &x, &y, &b, &k);
  k.doubles = task->doubles;
  k.finds = number % 3;
  exact_t ex = exact_make(c->x), ew = exact_make(c->w), eb = exact_make(bias);
  int first[DIMS] = {0}, extent[DIMS];
  memcpy(extent, c->y, sizeof extent);
  for (int d = 0; d < (task->sums_here ? DIMS : task->sums_batch); d++) {
    first[d] = y_first[d];
    extent[d] = y_extent[d];
  }
  exact_fill(c, task, first, extent, &ex, &ew, &eb);
  load(&k, &y, k.y, SALT_Y);
  if (strchr(task->what, 'w')) {
    load(&k, &x, k.x, SALT_X);
    wgrad(&k, &x, &y, &w);
    compare(c, &w, &ew, c->w, "dw", number);
  }
  if (strchr(task->what, 'b')) {
    tensor_fill(&b, SALT_OLD, 1);
    TRY(cudnnConvolutionBackwardBias(handle, scalar(&k, 0), k.y, y.device,
                                     scalar(&k, 1), k.b, b.device));
    compare(c, &b, &eb, bias, "db", number);
  }
  if (strchr(task->what, 'x')) {
    tensor_fill(&w, SALT_W, 1);
    dgrad(&k, &w, &y, &x);
    compare(c, &x, &ex, c->x, "dx", number);
  }
  exact_free(&ex);
  exact_free(&ew);
  exact_free(&eb);
  call_free(&k);
  tensor_free(&x);
  tensor_free(&y);
  tensor_free(&w);
  tensor_free(&b);
}

/* Row-major: the last of the dimensions varies fastest. */
static void task_read(char **argv, task_t *task) {
  int pieces[DIMS], dims[DIMS], n = 0;
  memset(task, 0, sizeof *task);
  for (int d = 0; d < DIMS; d++)
    task->pieces[d] = 1;
  task->rank = atoi(argv[1]);
  for (char *at = argv[2]; n < DIMS; at++) {
    dims[n] = (int)(strchr("NCDHW", argv[3][n]) - "NCDHW");
    pieces[n++] = (int)strtol(at, &at, 10);
    if (*at != 'x')
      break;
  }
  int rest = task->rank;
  for (int i = n - 1; i >= 0; i--) {
    task->pieces[dims[i]] = pieces[i];
    task->piece[dims[i]] = rest % pieces[i];
    rest /= pieces[i];
  }
  task->what = argv[4];
  task->sums_here = strchr(argv[4], 's') != NULL;
  task->sums_batch = strchr(argv[4], 'n') != NULL;
  task->doubles = strchr(argv[4], 'd') != NULL;
  task->periodic = strchr(argv[4], 'p') != NULL;
}

int main(int argc, char **argv) {
  if (argc != 7) {
    fprintf(stderr, "usage: gradcase RANK PIECES DIMENSIONS WHAT SEED CASES\n");
    return 2;
  }
  task_t task;
  task_read(argv, &task);
  TRY(cudnnCreate(&handle));
  int cases = atoi(argv[6]);
  for (int i = 0; i < cases && !wrong; i++) {
    conv_t conv;
    state = (unsigned long long)atoll(argv[5]) * 1000003u + (unsigned)i;
    do
      (void)bits();
    while (!conv_draw(&task, &conv));
    run(&task, &conv, i);
  }
  TRY(cudnnDestroy(handle));
  return wrong;
}
