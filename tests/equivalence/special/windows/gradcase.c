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
#include "gradcase.h"

#include <float.h>
#include <math.h>
#include <string.h>

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

static void compare(const grad_conv_t *c, grad_tensor_t *t,
                    const grad_exact_t *e, const int whole[GRAD_DIMS],
                    const char *name, int number) {
  int at[GRAD_DIMS] = {0}, global[GRAD_DIMS], shown = 0;
  CHECK(cudaMemcpy(t->host, t->device, (size_t)t->span * grad_size_of(t->type),
                   cudaMemcpyDeviceToHost));
  do {
    for (int d = 0; d < GRAD_DIMS; d++)
      global[d] = t->first[d] + at[d];
    long i = grad_dense(whole, global);
    double old = c->beta * grad_value(SALT_OLD, global);
    double right = e->sum[i] + old,
           is = grad_get(t->type, t->host, grad_offset(t, at));
    double most = 4 * eps_of(t->type) * (e->terms[i] + fabs(old));
    if (fabs(is - right) <= most || shown++ > 2)
      continue;
    wrong = 1;
    fprintf(stderr,
            "gradcase: case %d: %s[%d,%d,%d,%d,%d] is %.9g, not %.9g (type %d, "
            "beta %g)\n",
            number, name, global[0], global[1], global[2], global[3], global[4],
            is, right, (int)t->type, c->beta);
  } while (grad_next(t->extent, at));
}

/* What a call needs besides tensors. */
typedef struct {
  const grad_conv_t *c;
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
    CHECK(cudaMalloc(&workspace, bytes));
  return workspace;
}

/* Of an activation. */
static void load(const call_t *k, grad_tensor_t *t,
                 cudnnTensorDescriptor_t desc, int salt) {
  const double wide = 2;
  const float two = 2;
  grad_tensor_fill(t, salt, k->doubles ? 0.5 : 1);
  if (k->doubles)
    CHECK(cudnnScaleTensor(handle, desc, t->device,
                           t->type == CUDNN_DATA_DOUBLE ? (const void *)&wide
                                                        : &two));
}

static void dgrad(const call_t *k, const grad_tensor_t *w,
                  const grad_tensor_t *y, grad_tensor_t *x) {
  cudnnConvolutionBwdDataAlgoPerf_t perf[8];
  int found;
  size_t bytes;
  if (k->finds == 0)
    CHECK(cudnnGetConvolutionBackwardDataAlgorithm_v7(
        handle, k->w, k->y, k->conv, k->x, 8, &found, perf));
  else if (k->finds == 1)
    CHECK(cudnnFindConvolutionBackwardDataAlgorithm(handle, k->w, k->y, k->conv,
                                                    k->x, 8, &found, perf));
  else
    CHECK(cudnnFindConvolutionBackwardDataAlgorithmEx(
        handle, k->w, w->device, k->y, y->device, k->conv, k->x, x->device, 8,
        &found, perf, NULL, 0));
  load(k, x, k->x, SALT_OLD);
  CHECK(found < 1 || perf[0].status);
  CHECK(cudnnGetConvolutionBackwardDataWorkspaceSize(
      handle, k->w, k->y, k->conv, k->x, perf[0].algo, &bytes));
  void *workspace = workspace_make(bytes);
  CHECK(cudnnConvolutionBackwardData(
      handle, scalar(k, 0), k->w, w->device, k->y, y->device, k->conv,
      perf[0].algo, workspace, bytes, scalar(k, 1), k->x, x->device));
  CHECK(cudaFree(workspace));
}

static void wgrad(const call_t *k, const grad_tensor_t *x,
                  const grad_tensor_t *y, grad_tensor_t *w) {
  cudnnConvolutionBwdFilterAlgoPerf_t perf[8];
  int found;
  size_t bytes;
  if (k->finds == 0)
    CHECK(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        handle, k->x, k->y, k->conv, k->w, 8, &found, perf));
  else if (k->finds == 1)
    CHECK(cudnnFindConvolutionBackwardFilterAlgorithm(
        handle, k->x, k->y, k->conv, k->w, 8, &found, perf));
  else
    CHECK(cudnnFindConvolutionBackwardFilterAlgorithmEx(
        handle, k->x, x->device, k->y, y->device, k->conv, k->w, w->device, 8,
        &found, perf, NULL, 0));
  grad_tensor_fill(w, SALT_OLD, 1);
  CHECK(found < 1 || perf[0].status);
  CHECK(cudnnGetConvolutionBackwardFilterWorkspaceSize(
      handle, k->x, k->y, k->conv, k->w, perf[0].algo, &bytes));
  void *workspace = workspace_make(bytes);
  CHECK(cudnnConvolutionBackwardFilter(
      handle, scalar(k, 0), k->x, x->device, k->y, y->device, k->conv,
      perf[0].algo, workspace, bytes, scalar(k, 1), k->w, w->device));
  CHECK(cudaFree(workspace));
}

static void call_make(const grad_conv_t *c, const grad_tensor_t *x,
                      const grad_tensor_t *y, const grad_tensor_t *b,
                      call_t *k) {
  int w[GRAD_DIMS], pad[GRAD_DIMS], stride[GRAD_DIMS], dilation[GRAD_DIMS],
      skip = 7 - c->dims;
  *k = (call_t){.c = c,
                .alpha = (float)c->alpha,
                .beta = (float)c->beta,
                .alpha_wide = c->alpha,
                .beta_wide = c->beta};
  k->x = grad_tensor_describe(c, x);
  k->y = grad_tensor_describe(c, y);
  k->b = grad_tensor_describe(c, b);
  grad_squeeze(c, c->w, w);
  for (int i = 0; i < c->dims - 2; i++) {
    pad[i] = c->pad[skip + i];
    stride[i] = c->stride[skip + i];
    dilation[i] = c->dilation[skip + i];
  }
  CHECK(cudnnCreateFilterDescriptor(&k->w));
  CHECK(cudnnSetFilterNdDescriptor(
      k->w, c->type, c->last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, c->dims,
      w));
  CHECK(cudnnCreateConvolutionDescriptor(&k->conv));
  CHECK(cudnnSetConvolutionNdDescriptor(
      k->conv, c->dims - 2, pad, stride, dilation, c->mode,
      c->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  CHECK(cudnnSetConvolutionGroupCount(k->conv, c->groups));
}

static void call_free(call_t *k) {
  CHECK(cudnnDestroyTensorDescriptor(k->x));
  CHECK(cudnnDestroyTensorDescriptor(k->y));
  CHECK(cudnnDestroyTensorDescriptor(k->b));
  CHECK(cudnnDestroyFilterDescriptor(k->w));
  CHECK(cudnnDestroyConvolutionDescriptor(k->conv));
}

static void run(const grad_task_t *task, const grad_conv_t *c, int number) {
  static const int zero[GRAD_DIMS] = {0};
  int x_first[GRAD_DIMS], x_extent[GRAD_DIMS], y_first[GRAD_DIMS],
      y_extent[GRAD_DIMS];
  int bias[GRAD_DIMS] = {1, c->y[1], 1, 1, 1};
  for (int d = 0; d < GRAD_DIMS; d++) {
    const int *x = &c->x_first[d][task->piece[d]];
    const int *y = &c->y_first[d][task->piece[d]];
    x_first[d] = x[0];
    x_extent[d] = x[1] - x[0];
    y_first[d] = y[0];
    y_extent[d] = y[1] - y[0];
  }
  grad_tensor_t x, y, w, b;
  call_t k;
  grad_tensor_make(c, x_first, x_extent, c->gap, &x);
  grad_tensor_make(c, y_first, y_extent, c->gap, &y);
  grad_tensor_make(c, zero, c->w, 0, &w);
  grad_tensor_make(c, zero, bias, 0, &b);
  call_make(c, &x, &y, &b, &k);
  k.doubles = task->doubles;
  k.finds = number % 3;
  grad_exact_t ex = grad_exact_make(c->x), ew = grad_exact_make(c->w),
               eb = grad_exact_make(bias);
  int first[GRAD_DIMS] = {0}, extent[GRAD_DIMS];
  memcpy(extent, c->y, sizeof extent);
  for (int d = 0; d < (task->sums_here ? GRAD_DIMS : task->sums_batch); d++) {
    first[d] = y_first[d];
    extent[d] = y_extent[d];
  }
  grad_exact_fill(c, task, first, extent, &ex, &ew, &eb);
  load(&k, &y, k.y, SALT_Y);
  if (strchr(task->what, 'w')) {
    load(&k, &x, k.x, SALT_X);
    wgrad(&k, &x, &y, &w);
    compare(c, &w, &ew, c->w, "dw", number);
  }
  if (strchr(task->what, 'b')) {
    grad_tensor_fill(&b, SALT_OLD, 1);
    CHECK(cudnnConvolutionBackwardBias(handle, scalar(&k, 0), k.y, y.device,
                                       scalar(&k, 1), k.b, b.device));
    compare(c, &b, &eb, bias, "db", number);
  }
  if (strchr(task->what, 'x')) {
    grad_tensor_fill(&w, SALT_W, 1);
    dgrad(&k, &w, &y, &x);
    compare(c, &x, &ex, c->x, "dx", number);
  }
  grad_exact_free(&ex);
  grad_exact_free(&ew);
  grad_exact_free(&eb);
  call_free(&k);
  grad_tensor_free(&x);
  grad_tensor_free(&y);
  grad_tensor_free(&w);
  grad_tensor_free(&b);
}

/* Row-major: the last of the dimensions varies fastest. */
static void task_read(char **argv, grad_task_t *task) {
  int pieces[GRAD_DIMS], dims[GRAD_DIMS], n = 0;
  memset(task, 0, sizeof *task);
  for (int d = 0; d < GRAD_DIMS; d++)
    task->pieces[d] = 1;
  task->rank = atoi(argv[1]);
  for (char *at = argv[2]; n < GRAD_DIMS; at++) {
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
  grad_task_t task;
  task_read(argv, &task);
  CHECK(cudnnCreate(&handle));
  int cases = atoi(argv[6]);
  for (int i = 0; i < cases && !wrong; i++) {
    grad_conv_t conv;
    grad_seed((unsigned long long)atoll(argv[5]) * 1000003u + (unsigned)i);
    grad_conv_draw(&task, &conv);
    run(&task, &conv, i);
  }
  CHECK(cudnnDestroy(handle));
  return wrong;
}
