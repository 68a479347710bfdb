/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cuDNN program that carries out the actions in its arguments; some of them
 * are faulty.
 *
 * usage: actor RANK WORD...
 *   R:WORD     WORD for rank R only
 *   name=value one of the settings below; `set` puts them into descriptors
 *   otherwise  an action of actions[]; name=count repeats it
 * At the first call that fails, the program prints the call and its status to
 * stdout and ends with status 1; after `careless` it continues. */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/sundog.h"

enum { SETTINGS = 18 };
typedef struct {
  const char *name;
  int value;
} setting_t;

/* first: the global index of the first row; out: rows of y, -1 asks cuDNN;
 * algo: -1 asks cuDNN; type, layout: cuDNN's numbers; seed: for `scribble`. */
static setting_t settings[SETTINGS] = {
    {"n", 1},      {"c", 2},      {"h", 8},      {"w", 8},        {"k", 2},
    {"kernel", 3}, {"pad", 1},    {"stride", 1}, {"dilation", 1}, {"groups", 1},
    {"type", 0},   {"layout", 0}, {"first", 0},  {"out", -1},     {"algo", -1},
    {"beta", 0},   {"alpha", 1},  {"seed", 0}};

static int get(const char *name) {
  for (int i = 0; i < SETTINGS; i++)
    if (strcmp(settings[i].name, name) == 0)
      return settings[i].value;
  abort();
}

static struct {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  int out[4]; /* extents of y */
  size_t y_count;
  char *dx, *dy, *dw;
  void *space;
  size_t space_bytes;
  cudnnConvolutionFwdAlgo_t algo;
} g;
static int careless, rank;

static int bytes_of_type(void) {
  return get("type") == CUDNN_DATA_DOUBLE ? 8 : 4;
}

/* Prints what failed. Returns 1 if the program must stop. */
static int failed(const char *what, const char *text) {
  printf("actor %d: %s: %s\n", rank, what, text);
  fflush(stdout);
  return !careless;
}

static int dnn_failed(const char *what, cudnnStatus_t status) {
  char text[4096] = "";
  if (status == CUDNN_STATUS_SUCCESS)
    return 0;
  cudnnGetLastErrorString(text, sizeof text);
  printf("actor %d: last error: %s\n", rank, text);
  return failed(what, cudnnGetErrorString(status));
}

static int cuda_failed(const char *what, cudaError_t status) {
  return status != cudaSuccess && failed(what, cudaGetErrorName(status));
}

#define DNN(call)                                                              \
  do {                                                                         \
    if (dnn_failed(#call, call))                                               \
      return 1;                                                                \
  } while (0)
#define CUDA(call)                                                             \
  do {                                                                         \
    if (cuda_failed(#call, call))                                              \
      return 1;                                                                \
  } while (0)

static int act_create(void) {
  DNN(cudnnCreate(&g.cudnn));
  DNN(cudnnCreateTensorDescriptor(&g.x));
  DNN(cudnnCreateTensorDescriptor(&g.y));
  DNN(cudnnCreateFilterDescriptor(&g.w));
  DNN(cudnnCreateConvolutionDescriptor(&g.conv));
  DNN(cudnnCreatePoolingDescriptor(&g.pool));
  return 0;
}

static int upload(char **device, const float *value, size_t count) {
  int wide = bytes_of_type() == 8;
  char *host = malloc(count * 8);
  for (size_t i = 0; i < count; i++)
    if (wide)
      ((double *)(void *)host)[i] = (double)value[i];
    else
      ((float *)(void *)host)[i] = value[i];
  size_t bytes = count * (size_t)bytes_of_type();
  cudaError_t got = cudaMalloc((void **)device, bytes);
  if (got == cudaSuccess)
    got = cudaMemcpy(*device, host, bytes, cudaMemcpyHostToDevice);
  free(host);
  CUDA(got);
  return 0;
}

/* Small whole numbers, so that sums are exact in any order. */
static float value_at(int n, int c, int h, int w) {
  return (float)((n * 31 + c * 17 + h * 7 + w * 3 + h * w) % 11 - 5);
}

static int fill(void) {
  int n = get("n"), c = get("c"), h = get("h"), w = get("w");
  size_t count = (size_t)n * (size_t)c * (size_t)h * (size_t)w, at = 0;
  float *value = malloc(count * sizeof *value);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < c; j++)
      for (int k = 0; k < h; k++)
        for (int l = 0; l < w; l++)
          value[at++] = value_at(i, j, k + get("first"), l);
  int status = upload(&g.dx, value, count);
  free(value);
  size_t taps = (size_t)get("k") * (size_t)(c / get("groups")) *
                (size_t)get("kernel") * (size_t)get("kernel");
  value = malloc(taps * sizeof *value);
  for (size_t i = 0; i < taps; i++)
    value[i] = (float)(i * i % 7) - 3;
  if (status == 0)
    status = upload(&g.dw, value, taps);
  free(value);
  value = calloc(g.y_count, sizeof *value);
  if (status == 0)
    status = upload(&g.dy, value, g.y_count);
  free(value);
  return status;
}

static int act_set(void) {
  cudnnDataType_t type = (cudnnDataType_t)get("type");
  cudnnTensorFormat_t format = (cudnnTensorFormat_t)get("layout");
  int kernel = get("kernel");
  DNN(cudnnSetTensor4dDescriptor(g.x, format, type, get("n"), get("c"),
                                 get("h"), get("w")));
  DNN(cudnnSetFilter4dDescriptor(g.w, type, format, get("k"),
                                 get("c") / get("groups"), kernel, kernel));
  DNN(cudnnSetConvolution2dDescriptor(
      g.conv, get("pad"), get("pad"), get("stride"), get("stride"),
      get("dilation"), get("dilation"), CUDNN_CROSS_CORRELATION,
      type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  DNN(cudnnSetConvolutionGroupCount(g.conv, get("groups")));
  int *o = g.out;
  DNN(cudnnGetConvolution2dForwardOutputDim(g.conv, g.x, g.w, &o[0], &o[1],
                                            &o[2], &o[3]));
  if (get("out") >= 0)
    o[2] = get("out");
  DNN(cudnnSetTensor4dDescriptor(g.y, format, type, o[0], o[1], o[2], o[3]));
  g.y_count = (size_t)o[0] * (size_t)o[1] * (size_t)o[2] * (size_t)o[3];
  if (fill())
    return 1;
  cudnnConvolutionFwdAlgoPerf_t found = {.algo = 0};
  int count;
  if (get("algo") >= 0)
    found.algo = (cudnnConvolutionFwdAlgo_t)get("algo");
  else
    DNN(cudnnGetConvolutionForwardAlgorithm_v7(g.cudnn, g.x, g.w, g.conv, g.y,
                                               1, &count, &found));
  g.algo = found.algo;
  DNN(cudnnGetConvolutionForwardWorkspaceSize(g.cudnn, g.x, g.w, g.conv, g.y,
                                              g.algo, &g.space_bytes));
  CUDA(cudaMalloc(&g.space, g.space_bytes ? g.space_bytes : 1));
  return 0;
}

/* Sets x again with the same values: a new generation, so the ranks agree
 * again. */
static int act_again(void) {
  DNN(cudnnSetTensor4dDescriptor(g.x, (cudnnTensorFormat_t)get("layout"),
                                 (cudnnDataType_t)get("type"), get("n"),
                                 get("c"), get("h"), get("w")));
  return 0;
}

typedef union {
  float f;
  double d;
} scale_t;

static scale_t scale(const char *name) {
  scale_t s;
  if (get("type") == CUDNN_DATA_DOUBLE)
    s.d = get(name);
  else
    s.f = (float)get(name);
  return s;
}

static int act_conv(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionForward(g.cudnn, &alpha, g.x, g.dx, g.w, g.dw, g.conv,
                              g.algo, g.space, g.space_bytes, &beta, g.y,
                              g.dy));
  return 0;
}

static int act_capture(void) {
  cudaStream_t stream;
  cudaGraph_t graph;
  CUDA(cudaStreamCreate(&stream));
  DNN(cudnnSetStream(g.cudnn, stream));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  int wrong = act_conv();
  CUDA(cudaStreamEndCapture(stream, &graph));
  DNN(cudnnSetStream(g.cudnn, NULL));
  return wrong;
}

static int act_query(void) {
  int o[4];
  DNN(cudnnGetConvolution2dForwardOutputDim(g.conv, g.x, g.w, &o[0], &o[1],
                                            &o[2], &o[3]));
  return 0;
}

static int act_dropout(void) {
  size_t bytes;
  DNN(cudnnDropoutGetReserveSpaceSize(g.y, &bytes));
  return 0;
}

static int act_pool(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnSetPooling2dDescriptor(g.pool, CUDNN_POOLING_MAX,
                                  CUDNN_NOT_PROPAGATE_NAN, 3, 3, 1, 1, 1, 1));
  DNN(cudnnPoolingForward(g.cudnn, g.pool, &alpha, g.x, g.dx, &beta, g.y,
                          g.dy));
  return 0;
}

static int act_softmax(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnSoftmaxForward(g.cudnn, CUDNN_SOFTMAX_ACCURATE,
                          CUDNN_SOFTMAX_MODE_CHANNEL, &alpha, g.x, g.dx, &beta,
                          g.y, g.dy));
  return 0;
}

static int act_backward(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionBackwardData(g.cudnn, &alpha, g.w, g.dw, g.y, g.dy,
                                   g.conv, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
                                   NULL, 0, &beta, g.x, g.dx));
  return 0;
}

static int act_gradient(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionBackwardFilter(
      g.cudnn, &alpha, g.x, g.dx, g.y, g.dy, g.conv,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, NULL, 0, &beta, g.w, g.dw));
  return 0;
}

static int act_scale(void) {
  scale_t two = scale("alpha");
  DNN(cudnnScaleTensor(g.cudnn, g.x, g.dx, &two));
  return 0;
}

static int act_null(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionForward(g.cudnn, &alpha, NULL, g.dx, g.w, g.dw, g.conv,
                              g.algo, g.space, g.space_bytes, &beta, g.y,
                              g.dy));
  return 0;
}

static int act_nullop(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionForward(g.cudnn, &alpha, g.x, g.dx, g.w, g.dw, NULL,
                              g.algo, g.space, g.space_bytes, &beta, g.y,
                              g.dy));
  return 0;
}

static int act_nulldata(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionForward(g.cudnn, &alpha, g.x, NULL, g.w, g.dw, g.conv,
                              g.algo, g.space, g.space_bytes, &beta, g.y,
                              g.dy));
  return 0;
}

static int act_nullscale(void) {
  DNN(cudnnConvolutionForward(g.cudnn, NULL, g.x, g.dx, g.w, g.dw, g.conv,
                              g.algo, g.space, g.space_bytes, NULL, g.y, g.dy));
  return 0;
}

static int act_sync(void) {
  CUDA(cudaDeviceSynchronize());
  return 0;
}

/* Writes y to the file y-RANK. */
static int act_write(void) {
  size_t bytes = g.y_count * (size_t)bytes_of_type();
  void *host = calloc(1, bytes);
  char name[32];
  cudaError_t got = cudaMemcpy(host, g.dy, bytes, cudaMemcpyDeviceToHost);
  if (cuda_failed("cudaMemcpy", got)) {
    free(host);
    return 1;
  }
  snprintf(name, sizeof name, "y-%d", rank);
  FILE *file = fopen(name, "wb");
  int wrong = !file || fwrite(host, 1, bytes, file) != bytes || fclose(file);
  free(host);
  return wrong;
}

/* The same by an asynchronous copy; polls until it has ended. */
static int act_poll(void) {
  size_t bytes = g.y_count * (size_t)bytes_of_type();
  void *host;
  CUDA(cudaMallocHost(&host, bytes));
  CUDA(cudaMemcpyAsync(host, g.dy, bytes, cudaMemcpyDeviceToHost, NULL));
  cudaError_t got;
  while ((got = cudaStreamQuery(NULL)) == cudaErrorNotReady)
    usleep(1000);
  CUDA(got);
  return act_write();
}

/* Fills the disk on which the run keeps its files. */
static int act_fill(void) {
  char name[4096];
  const char *folder = getenv("SUNDOG_REPORT");
  snprintf(name, sizeof name, "%s/filler-%d", folder ? folder : ".", rank);
  FILE *file = fopen(name, "wb");
  for (int i = 0; file && i < 1 << 20 && fputc(0, file) == 0; i++)
    ;
  if (file)
    (void)!fclose(file);
  return 0;
}

static int act_print(void) {
  printf("actor %d: here\n", rank);
  fflush(stdout);
  return 0;
}

static int act_careless(void) {
  careless = 1;
  return 0;
}

static int act_nap(void) {
  struct timespec time = {0, 100000000};
  nanosleep(&time, NULL);
  return 0;
}

static int act_hang(void) {
  return pause();
}

static int act_stop(void) {
  return raise(SIGSTOP);
}

static int act_kill(void) {
  return raise(SIGKILL);
}

/* The signal that the rank gets while NCCL makes a communicator for it, in
 * another thread than this one. */
static volatile int signal_in_nccl;

static int act_ncclkill(void) {
  signal_in_nccl = SIGKILL;
  return 0;
}

static int act_ncclstop(void) {
  signal_in_nccl = SIGSTOP;
  return 0;
}

/* The program's definition is the one that NCCL's work-alike calls. */
__attribute__((visibility("default"))) cudaError_t cudaGetDevice(int *device) {
  if (signal_in_nccl && gettid() != getpid())
    raise(signal_in_nccl);
  *device = 0;
  return cudaSuccess;
}

static int act_abort(void) {
  abort();
}

static int act_segv(void) {
  return raise(SIGSEGV);
}

static int act_exit0(void) {
  exit(0);
}

static int act_exit3(void) {
  exit(3);
}

static int act__exit0(void) {
  _exit(0);
}

static int act_quick(void) {
  quick_exit(0);
}

static int act_thread_exit(void) {
  pthread_exit(NULL);
}

static void *thread_sleep(void *unused) {
  (void)unused;
  const struct timespec pause = {0, 100000000};
  for (int i = 0; i < 1200; i++)
    nanosleep(&pause, NULL);
  return NULL;
}

/* The first thread ends; only SIGKILL ends the process. */
static int act_zombie(void) {
  pthread_t thread;
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  pthread_create(&thread, NULL, thread_sleep, NULL);
  printf("actor: rank %d is a zombie\n", rank);
  fflush(stdout);
  pthread_exit(NULL);
}

/* Makes a tagged call that needs no device. */
static cudnnStatus_t ask(void) {
  int n, c, h, w;
  cudnnSetTensor4dDescriptor(g.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 8,
                             8);
  cudnnSetFilter4dDescriptor(g.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 2, 3,
                             3);
  cudnnSetConvolution2dDescriptor(g.conv, 1, 1, 1, 1, 1, 1,
                                  CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  return cudnnGetConvolution2dForwardOutputDim(g.conv, g.x, g.w, &n, &c, &h,
                                               &w);
}

static void *thread_ask(void *unused) {
  (void)unused;
  ask();
  pthread_testcancel();
  return NULL;
}

/* A thread of rank 0 is cancelled while it waits for the others to join. */
static int act_cancel(void) {
  pthread_t thread;
  void *result;
  const struct timespec pause = {0, 300000000}, longer = {0, 600000000};
  if (rank != 0) {
    nanosleep(&longer, NULL);
    return ask() != CUDNN_STATUS_SUCCESS;
  }
  pthread_create(&thread, NULL, thread_ask, NULL);
  nanosleep(&pause, NULL);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  return result != PTHREAD_CANCELED;
}

static void *thread_conv(void *unused) {
  (void)unused;
  return act_conv() ? &g : NULL;
}

static void *thread_set(void *unused) {
  (void)unused;
  return act_set() ? &g : NULL;
}

static int thread_run(void *(*body)(void *), const char *argument) {
  pthread_t thread;
  void *result;
  pthread_create(&thread, NULL, body, (void *)(uintptr_t)argument);
  pthread_join(thread, &result);
  return result != NULL;
}

static int act_thread(void) {
  return thread_run(thread_conv, NULL);
}

static int act_threadset(void) {
  return thread_run(thread_set, NULL);
}

static int name_say(const char *name) {
  __typeof__(&sundog_thread) say;
  *(void **)&say = dlsym(RTLD_DEFAULT, "sundog_thread");
  return say && say(name) != 0 &&
         failed("sundog_thread", name ? name : "no name");
}

static int tag(cudnnTensorDescriptor_t descriptor, const char *split) {
  __typeof__(&sundog_tag) say;
  *(void **)&say = dlsym(RTLD_DEFAULT, "sundog_tag");
  return say && say(descriptor, split) != 0 && failed("sundog_tag", split);
}

static int act_tagh(void) {
  return tag(g.x, "H");
}

static int act_tagw(void) {
  return tag(g.x, "W");
}

static int act_tagd(void) {
  return tag(g.x, "D");
}

static int act_tagy(void) {
  return tag(g.y, "W");
}

static void *thread_named(void *name) {
  return name_say(name) || act_conv() ? &g : NULL;
}

static int named_run(const char *name) {
  return thread_run(thread_named, name);
}

static int act_alice(void) {
  return named_run("alice");
}

/* Takes a name and gives it back: now several threads may make calls. */
static int act_share(void) {
  return name_say("alice") || name_say(NULL);
}

static int act_bob(void) {
  return named_run("bob");
}

static int act_crowd(void) {
  int wrong = 0;
  char name[16];
  for (int i = 1; i <= 8 && !wrong; i++) {
    snprintf(name, sizeof name, "of-%d", i);
    wrong = named_run(name);
  }
  return wrong;
}

static int act_misnamed(void) {
  return name_say("no name");
}

/* A second living thread takes the main thread's name. */
static int act_twice(void) {
  return name_say("alice") || act_conv() || act_alice();
}

/* The main thread takes several names, one after the other. */
static int act_renamed(void) {
  return name_say("alice") || act_conv() || act_bob() || name_say("bob") ||
         act_conv() || name_say(NULL) || act_conv() || act_alice();
}

/* Two threads make calls under a lock, which they get in another order on rank
 * 0 than on other ranks. */
static struct {
  pthread_mutex_t lock;
  pthread_barrier_t start;
} locked = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *thread_locked(void *name) {
  void *wrong = NULL;
  int first = (rank == 0) == (strcmp(name, "alice") == 0);
  pthread_mutex_lock(&locked.lock);
  wrong = thread_named(name);
  pthread_mutex_unlock(&locked.lock);
  pthread_barrier_wait(&locked.start);
  if (!first)
    usleep(200000);
  pthread_mutex_lock(&locked.lock);
  if (!wrong && act_conv())
    wrong = &g;
  pthread_mutex_unlock(&locked.lock);
  return wrong;
}

static int act_locked(void) {
  pthread_t thread[2];
  void *result[2];
  if (act_alice() || act_bob()) // the ranks know both and their descriptors
    return 1;
  pthread_barrier_init(&locked.start, NULL, 2);
  pthread_mutex_lock(&locked.lock);
  pthread_create(&thread[0], NULL, thread_locked, (void *)"alice");
  pthread_create(&thread[1], NULL, thread_locked, (void *)"bob");
  pthread_mutex_unlock(&locked.lock);
  for (int i = 0; i < 2; i++)
    pthread_join(thread[i], &result[i]);
  return result[0] || result[1];
}

static void *thread_set_conv(void *unused) {
  (void)unused;
  if (act_set() == 0)
    while (act_conv() == 0 && act_sync() == 0)
      ;
  return NULL;
}

/* Starts a thread that still makes calls when the program ends. */
static int act_runaway(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, thread_set_conv, NULL);
  return pthread_detach(thread);
}

/* A child ends by exit(), which runs the destructors of inherited libraries. */
static int act_fork(void) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0)
    exit(0);
  int status;
  waitpid(child, &status, 0);
  return status != 0;
}

/* A child without exec makes a tagged query. */
static int act_child(void) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    cudnnStatus_t status = ask();
    fprintf(stderr, "child %d\n", (int)status);
    exit(0);
  }
  waitpid(child, NULL, 0);
  return 0;
}

static int act_system(void) {
  return system("true") != 0;
}

/* Runs another process with the same rank that calls cuDNN, too. */
static int act_second(void) {
  char command[4096], self[2048] = "";
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  snprintf(command, sizeof command, "'%s' 9 create h=8 set conv print write",
           n > 0 ? self : "");
  return system(command) != 0;
}

static int act_become(void) {
  return execl("/bin/true", "true", (char *)NULL);
}

static int act_clearenv(void) {
  return clearenv();
}

static int act_close(void) {
  for (int fd = 3; fd < 1024; fd++)
    close(fd);
  return 0;
}

/* Damages a word of the memory that ranks share, mostly one in use: flips a bit
 * or writes another value. */
static int act_scribble(void) {
  static unsigned long long state;
  char line[512];
  unsigned long long begin = 0, end = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "memfd:sundog-control"))
      sscanf(line, "%llx-%llx", &begin, &end);
  if (maps)
    fclose(maps);
  if (!begin)
    return 0; /* not joined */
  if (!state)
    state = (unsigned long long)get("seed") * 2 + 1;
  unsigned long long *word = (unsigned long long *)begin, random[3];
  size_t count = (size_t)(end - begin) / sizeof *word;
  for (int i = 0; i < 3; i++) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    random[i] = state >> 33;
  }
  size_t at = (size_t)random[0] * 7919 % count;
  for (size_t i = 0; i < count && random[1] % 4; i++)
    if (word[(at + i) % count]) {
      at = (at + i) % count;
      break;
    }
  const unsigned long long values[] = {word[at] ^ 1ULL << random[2] % 64,
                                       0,
                                       ~0ULL,
                                       random[1] << 32 | random[2],
                                       word[at] + 1,
                                       word[at] - 1};
  ((volatile unsigned long long *)word)[at] =
      values[random[2] % (sizeof values / sizeof *values)];
  return 0;
}

static void *scribble_on(void *unused) {
  (void)unused;
  for (;;) {
    act_scribble();
    usleep(20);
  }
  return NULL;
}

/* Does the same all the time in a second thread. */
static int act_scribbler(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, scribble_on, NULL) ||
         pthread_detach(thread);
}

static const struct {
  const char *name;
  int (*act)(void);
} actions[] = {
#define ACTION(name)                                                           \
  { #name, act_##name }
    ACTION(create),   ACTION(set),         ACTION(again),    ACTION(conv),
    ACTION(query),    ACTION(pool),        ACTION(softmax),  ACTION(backward),
    ACTION(gradient), ACTION(scale),       ACTION(null),     ACTION(nullop),
    ACTION(nulldata), ACTION(nullscale),   ACTION(sync),     ACTION(write),
    ACTION(poll),     ACTION(print),       ACTION(careless), ACTION(nap),
    ACTION(hang),     ACTION(stop),        ACTION(kill),     ACTION(abort),
    ACTION(segv),     ACTION(exit0),       ACTION(exit3),    ACTION(_exit0),
    ACTION(quick),    ACTION(thread_exit), ACTION(thread),   ACTION(runaway),
    ACTION(fork),     ACTION(system),      ACTION(second),   ACTION(close),
    ACTION(alice),    ACTION(bob),         ACTION(crowd),    ACTION(misnamed),
    ACTION(twice),    ACTION(renamed),     ACTION(locked),   ACTION(threadset),
    ACTION(scribble), ACTION(scribbler),   ACTION(capture),  ACTION(share),
    ACTION(clearenv), ACTION(child),       ACTION(zombie),   ACTION(cancel),
    ACTION(become),   ACTION(tagh),        ACTION(tagw),     ACTION(tagd),
    ACTION(tagy),     ACTION(dropout),     ACTION(fill),     ACTION(ncclkill),
    ACTION(ncclstop),
};

static int word_run(const char *word) {
  const char *equals = strchr(word, '=');
  size_t length = equals ? (size_t)(equals - word) : strlen(word);
  int value = equals ? atoi(equals + 1) : 1;
  for (int i = 0; equals && i < SETTINGS; i++)
    if (strlen(settings[i].name) == length &&
        strncmp(settings[i].name, word, length) == 0) {
      settings[i].value = value;
      return 0;
    }
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
    if (strlen(actions[i].name) == length &&
        strncmp(actions[i].name, word, length) == 0) {
      int wrong = 0;
      for (; value > 0 && !wrong; value--)
        wrong = actions[i].act();
      return wrong;
    }
  printf("actor: what is %s?\n", word);
  return 2;
}

int main(int argc, char **argv) {
  rank = argc > 1 ? atoi(argv[1]) : 0;
  for (int i = 2; i < argc; i++) {
    const char *word = argv[i], *colon = strchr(word, ':');
    if (colon && atoi(word) != rank)
      continue;
    int wrong = word_run(colon ? colon + 1 : word);
    if (wrong)
      return wrong;
  }
  return 0;
}
