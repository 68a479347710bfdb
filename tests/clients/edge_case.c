/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does one thing that sundog must refuse in the whole view, because the ranks
 * may differ in it or sundog cannot see its effect; or one that it must
 * support.
 *
 * usage: edge_case WHAT [NUMBER]
 *   read      prints small and large copies of NUMBER from the device, and its
 *             norm by cuBLAS
 *   managed   convolves into managed memory
 *   small     convolves into too little memory
 *   library   convolves with the library of the file NUMBER loaded
 *   import    the same, loaded before the first call of cuDNN
 *   api       calls the function of the name NUMBER, without arguments
 *   reset     resets the device between NUMBER solutions, which it prints
 *   seeded    convolves values that NUMBER decides
 *   capture   convolves on a stream that is captured
 *   diverge   makes NUMBER convolutions
 *   order     copies and convolves in an order that depends on NUMBER
 *   refused   makes a call that is refused where NUMBER is 0, then others
 *   helpers   lets other threads copy, then convolve, while it waits for them
 *   pool      reuses memory that the device is done with, which is later where
 *             NUMBER is larger
 *   race      lets another thread copy while it convolves
 *   thread    convolves in a second thread, too */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/calls.h"

enum { ROWS = 40, COLUMNS = 64, COUNT = ROWS * COLUMNS };

static struct {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t field;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  float *x, *y, *w;
  void *work;
  size_t work_bytes;
} g;

static float *device(size_t count) {
  void *memory;
  CHECK(cudaMalloc(&memory, count * sizeof(float)));
  CHECK(cudaMemset(memory, 0, count * sizeof(float)));
  return memory;
}

static void setup(void) {
  CHECK(cudnnCreate(&g.cudnn));
  CHECK(cudnnCreateTensorDescriptor(&g.field));
  CHECK(cudnnSetTensor4dDescriptor(g.field, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, 1, ROWS, COLUMNS));
  CHECK(cudnnCreateFilterDescriptor(&g.filter));
  CHECK(cudnnSetFilter4dDescriptor(g.filter, CUDNN_DATA_FLOAT,
                                   CUDNN_TENSOR_NCHW, 1, 1, 3, 3));
  CHECK(cudnnCreateConvolutionDescriptor(&g.conv));
  CHECK(cudnnSetConvolution2dDescriptor(
      g.conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  g.x = device(COUNT);
  g.y = device(COUNT);
  g.w = device(9);
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(
      g.cudnn, g.field, g.filter, g.conv, g.field,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &g.work_bytes));
  if (g.work_bytes)
    CHECK(cudaMalloc(&g.work, g.work_bytes));
}

static int convolve(const float *x, float *y) {
  float one = 1, zero = 0;
  return (int)cudnnConvolutionForward(g.cudnn, &one, g.field, x, g.filter, g.w,
                                      g.conv,
                                      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                      g.work, g.work_bytes, &zero, g.field, y);
}

static void read_back(float number) {
  static float host[COUNT];
  float small, norm, wide, got;
  cublasHandle_t cublas;
  for (int i = 0; i < COUNT; i++)
    host[i] = number;
  CHECK(convolve(g.x, g.y));
  CHECK(cudaMemcpy(g.x, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(host, g.x, sizeof host, cudaMemcpyDeviceToHost));
  CHECK(cublasCreate(&cublas));
  CHECK(cublasSnrm2(cublas, 1, g.x, 1, &norm));
  CHECK(cublasNrm2Ex(cublas, 1, g.x, CUDA_R_32F, 1, &wide, CUDA_R_32F,
                     CUDA_R_32F));
  CHECK(cublasGetVector(1, sizeof got, g.x, 1, &got, 1));
  CHECK(
      cudaMemcpyAsync(&small, g.x, sizeof small, cudaMemcpyDeviceToHost, NULL));
  CHECK(cudaDeviceSynchronize());
  printf("large %g, small %g, norm %g %g, vector %g\n", (double)host[COUNT - 1],
         (double)small, (double)norm, (double)wide, (double)got);
  CHECK(cublasDestroy(cublas));
}

static void solve_and_reset(int number) {
  static float host[COUNT];
  static const float weights[9] = {0.1f, 0.2f, 0.3f,  -0.4f, 0.5f,
                                   0.6f, 0.7f, -0.8f, 0.9f};
  for (int i = 0; i < COUNT; i++)
    host[i] = (float)(i % 17 + number);
  CHECK(cudaMemcpy(g.x, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(g.w, weights, sizeof weights, cudaMemcpyHostToDevice));
  for (int i = 0; i < 3; i++) {
    CHECK(convolve(g.x, g.y));
    CHECK(convolve(g.y, g.x));
  }
  CHECK(cudaMemcpy(host, g.x, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < COUNT; i++)
    printf("%a\n", (double)host[i]);
  CHECK(cudaDeviceReset());
}

static void *second(void *argument) {
  (void)argument;
  CHECK(convolve(g.x, g.y));
  return NULL;
}

static void *copier(void *host) {
  CHECK(cudaMemcpy(host, g.y, COUNT * sizeof *g.y, cudaMemcpyDeviceToHost));
  return NULL;
}

static void run_thread(void *(*body)(void *), void *argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, body, argument));
  CHECK(pthread_join(thread, NULL));
}

static void *worker(void *host) {
  for (int i = 0; i < 4; i++) {
    CHECK(convolve(g.x, g.y));
    run_thread(copier, host);
    CHECK(convolve(g.y, g.x));
  }
  return NULL;
}

static void helpers(void) {
  static float host[COUNT];
  for (int i = 0; i < COUNT; i++)
    host[i] = (float)(i % 17);
  CHECK(cudaMemcpy(g.x, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(g.w, host + 3, 9 * sizeof *host, cudaMemcpyHostToDevice));
  for (int i = 0; i < 3; i++)
    run_thread(worker, host); /* each is the one that convolves */
  copier(host);
  for (int i = 0; i < COUNT; i++)
    printf("%a\n", (double)host[i]);
}

static void doze(void *ms) {
  usleep((unsigned)*(int *)ms * 1000);
}

/* Memory of which the last use has an event. */
typedef struct block {
  float *at;
  cudaEvent_t done;
  bool busy;
} block_t;

static block_t *block_get(block_t *blocks) {
  block_t *block = blocks;
  while (block->at &&
         (block->busy || cudaEventQuery(block->done) != cudaSuccess))
    block++;
  if (!block->at) {
    block->at = device(COUNT);
    CHECK(cudaEventCreateWithFlags(&block->done, cudaEventDisableTiming));
  }
  block->busy = true;
  return block;
}

static void pool(int number) {
  static float host[COUNT];
  static block_t blocks[64];
  struct cudaMemcpy3DParms any = {.extent = {4, 1, 1},
                                  .kind = cudaMemcpyDeviceToDevice};
  float *spare = device(64);
  any.srcPtr = (struct cudaPitchedPtr){spare, 4, 4, 1};
  any.dstPtr = (struct cudaPitchedPtr){spare + 32, 4, 4, 1};
  for (int i = 0; i < COUNT; i++)
    host[i] = (float)(i % 17) / 16;
  block_t *now = block_get(blocks);
  CHECK(cudaMemcpy(now->at, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(g.w, host + 3, 9 * sizeof *host, cudaMemcpyHostToDevice));
  for (int step = 0; step < 30; step++) {
    block_t *next = block_get(blocks);
    CHECK(convolve(now->at, next->at));
    CHECK(cudaLaunchHostFunc(NULL, doze, &number));
    CHECK(cudaEventRecord(now->done, NULL));
    now->busy = false;
    now = next;
    if (step % 5 == 4) /* may touch anything */
      CHECK(cudaMemcpy3DAsync(&any, NULL));
    usleep(1500);
  }
  CHECK(cudaMemcpy(host, now->at, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < COUNT; i++)
    printf("%a\n", (double)host[i]);
}

static atomic_bool copied, convolved;

static void *copier_until_convolved(void *host) {
  while (!atomic_load(&convolved)) {
    copier(host);
    atomic_store(&copied, true);
  }
  return NULL;
}

static void race(void) {
  static float host[COUNT];
  pthread_t thread;
  CHECK(convolve(g.x, g.y));
  CHECK(pthread_create(&thread, NULL, copier_until_convolved, host));
  while (!atomic_load(&copied))
    usleep(1);
  for (int i = 0; i < 4000; i++) {
    CHECK(convolve(g.x, g.y));
    if (i % 16 == 0) /* the copier gets its turn */
      usleep(1);
  }
  atomic_store(&convolved, true);
  CHECK(pthread_join(thread, NULL));
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  int number = argc > 2 ? atoi(argv[2]) : 0;
  float host[9];
  cudaStream_t stream;
  pthread_t thread;
  if (!strcmp(what, "import"))
    CHECK(dlopen(argv[2], RTLD_NOW) == NULL);
  setup();
  if (!strcmp(what, "read")) {
    read_back((float)number);
  } else if (!strcmp(what, "managed")) {
    CHECK(cudaMallocManaged((void **)&g.y, COUNT * sizeof *g.y,
                            cudaMemAttachGlobal));
    CHECK(convolve(g.x, g.y));
  } else if (!strcmp(what, "small")) {
    CHECK(cudaMalloc((void **)&g.y, 4));
    CHECK(convolve(g.x, g.y));
  } else if (!strcmp(what, "library")) {
    CHECK(convolve(g.x, g.y));
    CHECK(dlopen(argv[2], RTLD_NOW) == NULL);
    CHECK(convolve(g.x, g.y));
  } else if (!strcmp(what, "import")) {
    CHECK(convolve(g.x, g.y));
  } else if (!strcmp(what, "seeded")) {
    static float values[COUNT];
    values[COUNT / 2] = 1;
    CHECK(cudaMemcpy(g.x, values, sizeof values, cudaMemcpyHostToDevice));
    CHECK(convolve(g.x, g.y));
    CHECK(cudaMemcpy(g.y, &number, sizeof number, cudaMemcpyHostToDevice));
    CHECK(convolve(g.x, g.y)); /* overwrites it */
    values[COUNT / 2] = (float)number;
    CHECK(cudaMemcpy2DAsync(g.x + 1, 4 * COLUMNS, values, 4 * COLUMNS, 128,
                            ROWS, cudaMemcpyDefault, NULL));
    CHECK(convolve(g.x, g.y));
  } else if (!strcmp(what, "helpers")) {
    helpers();
  } else if (!strcmp(what, "pool")) {
    pool(number);
  } else if (!strcmp(what, "race")) {
    race();
  } else if (!strcmp(what, "reset")) {
    for (; number > 0; number--) {
      solve_and_reset(number);
      setup();
    }
  } else if (!strcmp(what, "api")) {
    cublasHandle_t cublas;
    CHECK(cublasCreate(&cublas));
    CHECK(convolve(g.x, g.y));
    void *found = dlsym(RTLD_DEFAULT, argv[2]);
    int (*function)(void *);
    memcpy(&function, &found, sizeof function);
    CHECK(function(&cublas));
  } else if (!strcmp(what, "capture")) {
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudnnSetStream(g.cudnn, stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK(convolve(g.x, g.y));
  } else if (!strcmp(what, "diverge")) {
    for (int i = 0; i < number; i++)
      CHECK(convolve(g.x, g.y));
  } else if (!strcmp(what, "order")) {
    CHECK(convolve(g.x, g.y));
    if (number == 0)
      CHECK(cudaMemcpy(host, g.y, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(convolve(g.y, g.x));
    CHECK(cudaMemcpy(host, g.x, sizeof host, cudaMemcpyDeviceToHost));
  } else if (!strcmp(what, "refused")) {
    float *w = g.w;
    CHECK(convolve(g.x, g.y));
    g.w = number == 0 ? host : w; /* not of the device */
    int status = convolve(g.y, g.x);
    g.w = w;
    for (int i = 0; i < 3; i++)
      status |= convolve(g.x, g.y);
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  } else if (!strcmp(what, "thread")) {
    CHECK(convolve(g.x, g.y));
    CHECK(pthread_create(&thread, NULL, second, NULL));
    CHECK(pthread_join(thread, NULL));
  } else {
    fprintf(stderr,
            "usage: edge_case "
            "read|managed|small|library|import|api|seeded|reset|helpers|pool|"
            "race|capture|diverge|order|refused|"
            "thread [NUMBER]\n");
    return 2;
  }
  return EXIT_SUCCESS;
}
