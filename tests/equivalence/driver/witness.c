/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded after libsundog.so, so that sundog finds its vendors' functions
 * here: counts what sundog allocates, and writes the order in which it gives
 * work to NCCL and to cuDNN.
 *
 * A program calls witness_mark("NAME") to learn what happened since the last
 * mark; the file $WITNESS gets the line
 *   NAME heap=N device=N order=TEXT
 * heap: allocations of libsundog.so from the C library. device: all allocations
 * on the device, events and streams included. order: "G" a group of messages,
 * "R" a reduction, "C" a convolution or a pooling that cuDNN gets. */
#include <cudnn.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

enum { ORDER_BYTES = 1 << 16, FRAMES = 24, RANGES = 16 };

static atomic_int watching;
static atomic_ulong heap, device;
static _Thread_local int inside; /* in backtrace(), which may allocate */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char order[ORDER_BYTES];
static size_t orders;

static void note(char what) {
  pthread_mutex_lock(&lock);
  if (orders + 1 < sizeof order)
    order[orders++] = what;
  pthread_mutex_unlock(&lock);
}

/* ---- who allocates ------------------------------------------------------- */

typedef struct range {
  uintptr_t lo, hi;
  int sundog; /* if not, a library that allocates for its caller */
} range_t;
static range_t range[RANGES];
static int ranges;

static int library_note(struct dl_phdr_info *info, size_t bytes, void *unused) {
  (void)bytes, (void)unused;
  const char *slash = strrchr(info->dlpi_name, '/');
  const char *file = slash ? slash + 1 : info->dlpi_name;
  int sundog = !strncmp(file, "libsundog", 9);
  if (!sundog && strncmp(file, "libc.", 5) != 0 &&
      strncmp(file, "libwitness", 10) != 0)
    return 0;
  for (int i = 0; i < info->dlpi_phnum && ranges < RANGES; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t lo = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_LOAD && part->p_flags & PF_X)
      range[ranges++] = (range_t){lo, lo + part->p_memsz, sundog};
  }
  return 0;
}

/* Returns whether the first caller outside the C library and this library is
 * sundog. */
static int is_sundog(void *const *frame, int frames) {
  for (int f = 0; f < frames; f++) {
    const range_t *in = NULL;
    for (int r = 0; r < ranges; r++)
      if ((uintptr_t)frame[f] >= range[r].lo &&
          (uintptr_t)frame[f] < range[r].hi)
        in = &range[r];
    if (!in || in->sundog)
      return in != NULL;
  }
  return 0;
}

static void allocated(void) {
  void *frame[FRAMES];
  if (inside || !atomic_load(&watching))
    return;
  inside = 1;
  if (is_sundog(frame, backtrace(frame, FRAMES)))
    atomic_fetch_add(&heap, 1);
  inside = 0;
}

/* These names of glibc need no dlsym(), which allocates. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

PUBLIC void *malloc(size_t bytes) {
  allocated();
  return __libc_malloc(bytes);
}

PUBLIC void *calloc(size_t count, size_t bytes) {
  allocated();
  return __libc_calloc(count, bytes);
}

PUBLIC void *realloc(void *memory, size_t bytes) {
  allocated();
  return __libc_realloc(memory, bytes);
}

PUBLIC void *aligned_alloc(size_t alignment, size_t bytes) {
  allocated();
  return __libc_memalign(alignment, bytes);
}

/* ---- the vendors' functions ---------------------------------------------- */

static void *next(const char *library, const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  void *handle = found ? NULL : dlopen(library, RTLD_NOW);
  if (!found && handle)
    found = dlsym(handle, name);
  if (!found) {
    fprintf(stderr, "witness: no %s\n", name);
    abort();
  }
  return found;
}

#define CALL(library, result, name, arguments)                                 \
  static __typeof__(&name) real;                                               \
  if (!real) {                                                                 \
    void *found = next(library, #name);                                        \
    memcpy(&real, &found, sizeof real);                                        \
  }                                                                            \
  result real arguments

#define CUDA(name, parameters, arguments)                                      \
  PUBLIC cudaError_t name parameters {                                         \
    atomic_fetch_add(&device, 1);                                              \
    CALL("libcudart.so.13", return, name, arguments);                          \
  }
CUDA(cudaMalloc, (void **out, size_t bytes), (out, bytes))
CUDA(cudaFree, (void *memory), (memory))
CUDA(cudaEventCreate, (cudaEvent_t * out), (out))
CUDA(cudaEventCreateWithFlags, (cudaEvent_t * out, unsigned flags),
     (out, flags))
CUDA(cudaStreamCreateWithFlags, (cudaStream_t * out, unsigned flags),
     (out, flags))

ncclResult_t pncclGroupEnd(void);
PUBLIC ncclResult_t pncclGroupEnd(void) {
  note('G');
  CALL("libnccl.so.2", return, pncclGroupEnd, ());
}

__typeof__(ncclAllReduce) pncclAllReduce;
PUBLIC ncclResult_t pncclAllReduce(const void *from, void *to, size_t count,
                                   ncclDataType_t type, ncclRedOp_t op,
                                   ncclComm_t comm, cudaStream_t stream) {
  note('R');
  CALL("libnccl.so.2", return, pncclAllReduce,
       (from, to, count, type, op, comm, stream));
}

#define CUDNN(name, parameters, arguments)                                     \
  PUBLIC cudnnStatus_t name parameters {                                       \
    note('C');                                                                 \
    CALL("libcudnn.so.9", return, name, arguments);                            \
  }
#define TENSOR(name) const cudnnTensorDescriptor_t name
#define FILTER(name) const cudnnFilterDescriptor_t name
CUDNN(cudnnConvolutionForward,
      (cudnnHandle_t h, const void *alpha, TENSOR(x), const void *x_data,
       FILTER(w), const void *w_data, const cudnnConvolutionDescriptor_t conv,
       cudnnConvolutionFwdAlgo_t algo, void *space, size_t bytes,
       const void *beta, TENSOR(y), void *y_data),
      (h, alpha, x, x_data, w, w_data, conv, algo, space, bytes, beta, y,
       y_data))
CUDNN(cudnnConvolutionBiasActivationForward,
      (cudnnHandle_t h, const void *alpha1, TENSOR(x), const void *x_data,
       FILTER(w), const void *w_data, const cudnnConvolutionDescriptor_t conv,
       cudnnConvolutionFwdAlgo_t algo, void *space, size_t bytes,
       const void *alpha2, TENSOR(z), const void *z_data, TENSOR(b),
       const void *b_data, const cudnnActivationDescriptor_t act, TENSOR(y),
       void *y_data),
      (h, alpha1, x, x_data, w, w_data, conv, algo, space, bytes, alpha2, z,
       z_data, b, b_data, act, y, y_data))
CUDNN(cudnnConvolutionBackwardData,
      (cudnnHandle_t h, const void *alpha, FILTER(w), const void *w_data,
       TENSOR(dy), const void *dy_data, const cudnnConvolutionDescriptor_t conv,
       cudnnConvolutionBwdDataAlgo_t algo, void *space, size_t bytes,
       const void *beta, TENSOR(dx), void *dx_data),
      (h, alpha, w, w_data, dy, dy_data, conv, algo, space, bytes, beta, dx,
       dx_data))
CUDNN(cudnnConvolutionBackwardFilter,
      (cudnnHandle_t h, const void *alpha, TENSOR(x), const void *x_data,
       TENSOR(dy), const void *dy_data, const cudnnConvolutionDescriptor_t conv,
       cudnnConvolutionBwdFilterAlgo_t algo, void *space, size_t bytes,
       const void *beta, FILTER(dw), void *dw_data),
      (h, alpha, x, x_data, dy, dy_data, conv, algo, space, bytes, beta, dw,
       dw_data))
CUDNN(cudnnPoolingForward,
      (cudnnHandle_t h, const cudnnPoolingDescriptor_t pool, const void *alpha,
       TENSOR(x), const void *x_data, const void *beta, TENSOR(y),
       void *y_data),
      (h, pool, alpha, x, x_data, beta, y, y_data))
CUDNN(cudnnPoolingBackward,
      (cudnnHandle_t h, const cudnnPoolingDescriptor_t pool, const void *alpha,
       TENSOR(y), const void *y_data, TENSOR(dy), const void *dy_data,
       TENSOR(x), const void *x_data, const void *beta, TENSOR(dx),
       void *dx_data),
      (h, pool, alpha, y, y_data, dy, dy_data, x, x_data, beta, dx, dx_data))

/* ---- marks --------------------------------------------------------------- */

static __attribute__((constructor)) void begin(void) {
  void *frame[FRAMES];
  dl_iterate_phdr(library_note, NULL);
  (void)backtrace(frame, FRAMES); /* loads its library now */
  atomic_store(&watching, 1);
}

PUBLIC int witness_mark(const char *name);
int witness_mark(const char *name) {
  static FILE *file;
  atomic_store(&watching, 0);
  if (!file)
    file = fopen(getenv("WITNESS"), "w");
  if (!file)
    return -1;
  order[orders] = '\0';
  fprintf(file, "%s heap=%lu device=%lu order=%s\n", name, heap, device, order);
  fflush(file);
  orders = 0;
  atomic_store(&heap, 0);
  atomic_store(&device, 0);
  atomic_store(&watching, 1);
  return 0;
}
