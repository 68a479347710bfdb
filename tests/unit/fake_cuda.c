// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime of host functions; tests drain the streams.
#include "tests/unit/fake_cuda.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/vendor.h"
#include "src/job/job.h"
#include "tests/unit/fake_queue.h"
#include "tests/unit/random.h"
#include "tests/unit/job.h"

enum {
  STREAMS = 64,
  OPS = 4096,
  EVENTS = 16,
};

bool fake_connects(void) {
  return gettid() != getpid();
}

typedef struct queue {
  op_t op[OPS];
  int head, tail;
} queue_t;

// A queue lives longer than its handle: a renewed stream gets a new queue.
static queue_t *queues[STREAMS];
static int queue_count;
static int queue_of_handle[STREAMS];
static int handle_count = 1; // 0: the default stream, the program's first
static struct { int queue, length; } events[EVENTS];
static int event_count;
static fake_cuda_order_t drain_order;
// The watching thread records its event on a stream: guards tails and events.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int queue_make(void) {
  REQUIRE(queue_count < STREAMS);
  queues[queue_count] = calloc(1, sizeof(queue_t));
  return queue_count++;
}

static queue_t *queue_of(cudaStream_t stream) {
  return queues[queue_of_handle[(uintptr_t)stream]];
}

op_t *fake_op_add(cudaStream_t stream, op_kind_t kind) {
  queue_t *queue = queue_of(stream);
  if (queue->head == queue->tail && queue->tail > OPS / 2)
    fake_cuda_drain(); // restarts the counts of empty queues
  REQUIRE(queue->tail < OPS);
  op_t *op = &queue->op[queue->tail];
  *op = (op_t){.kind = kind};
  pthread_mutex_lock(&lock);
  queue->tail++;
  pthread_mutex_unlock(&lock);
  return op;
}

// ---- the CUDA runtime -----------------------------------------------------

// A thread begins with device 0; the rank's is another one.
enum { RANKS_DEVICE = 3 };
static _Thread_local int current_device;

void fake_cuda_device(int device) {
  current_device = device;
}

static cudaError_t fake_device(int *out) {
  *out = current_device;
  return cudaSuccess;
}

static cudaError_t fake_set_device(int device) {
  current_device = device;
  return cudaSuccess;
}

void fake_device_check(void) {
  REQUIRE(current_device == RANKS_DEVICE);
}

static cudaError_t fake_memcpy_3d(const struct cudaMemcpy3DParms *p,
                                  cudaStream_t stream) {
  op_t *op = fake_op_add(stream, OP_COPY);
  op->to = p->dstPtr.ptr;
  op->from = p->srcPtr.ptr;
  op->to_pitch = p->dstPtr.pitch;
  op->from_pitch = p->srcPtr.pitch;
  op->to_slice = p->dstPtr.pitch * p->dstPtr.ysize;
  op->from_slice = p->srcPtr.pitch * p->srcPtr.ysize;
  op->width = p->extent.width;
  op->height = p->extent.height;
  op->depth = p->extent.depth;
  return cudaSuccess;
}

static cudaError_t fake_memcpy_2d(void *to, size_t to_pitch, const void *from,
                                  size_t from_pitch, size_t width,
                                  size_t height, enum cudaMemcpyKind kind,
                                  cudaStream_t stream) {
  (void)kind;
  op_t *op = fake_op_add(stream, OP_COPY);
  op->to = to;
  op->from = from;
  op->to_pitch = to_pitch;
  op->from_pitch = from_pitch;
  op->width = width;
  op->height = height;
  op->depth = 1;
  return cudaSuccess;
}

static cudaError_t fake_memcpy(void *to, const void *from, size_t bytes,
                               enum cudaMemcpyKind kind, cudaStream_t stream) {
  return fake_memcpy_2d(to, bytes, from, bytes, bytes, 1, kind, stream);
}

static cudaError_t fake_memset_2d(void *to, size_t pitch, int value,
                                  size_t width, size_t height,
                                  cudaStream_t stream) {
  op_t *op = fake_op_add(stream, OP_SET);
  op->to = to;
  op->to_pitch = pitch;
  op->value = value;
  op->width = width;
  op->height = height;
  return cudaSuccess;
}

static cudaError_t fake_memset(void *to, int value, size_t bytes,
                               cudaStream_t stream) {
  return fake_memset_2d(to, bytes, value, bytes, 1, stream);
}

// Fresh memory is NaN in every floating type.
static cudaError_t fake_malloc(void **out, size_t bytes) {
  *out = malloc(bytes);
  memset(*out, 0xff, bytes);
  return cudaSuccess;
}

static cudaError_t fake_free(void *data) {
  fake_cuda_drain(); // like CUDA
  free(data);
  return cudaSuccess;
}

// ---- graphs: what is added to a stream meanwhile ----

struct CUgraph_st {
  int count;
  op_t op[];
};

static int captured_from;
static bool captures_fail;

void fake_cuda_captures_fail(bool fail) {
  captures_fail = fail;
}

static cudaError_t fake_begin_capture(cudaStream_t stream,
                                      enum cudaStreamCaptureMode mode) {
  REQUIRE(mode == cudaStreamCaptureModeRelaxed);
  captured_from = queue_of(stream)->tail;
  return cudaSuccess;
}

static cudaError_t fake_end_capture(cudaStream_t stream, cudaGraph_t *out) {
  queue_t *queue = queue_of(stream);
  int count = queue->tail - captured_from;
  cudaGraph_t graph = malloc(sizeof *graph + (size_t)count * sizeof(op_t));
  graph->count = count;
  memcpy(graph->op, &queue->op[captured_from], (size_t)count * sizeof(op_t));
  queue->tail = captured_from;
  *out = graph;
  return cudaSuccess;
}

static cudaError_t fake_nodes(cudaGraph_t graph, cudaGraphNode_t *out,
                              size_t *out_count) {
  REQUIRE(!out);
  *out_count = (size_t)graph->count;
  return cudaSuccess;
}

static cudaError_t fake_instantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                    unsigned long long flags) {
  REQUIRE(flags == 0);
  size_t bytes = sizeof *graph + (size_t)graph->count * sizeof(op_t);
  if (captures_fail)
    return cudaErrorStreamCaptureInvalidated;
  *out = memcpy(malloc(bytes), graph, bytes);
  return cudaSuccess;
}

static cudaError_t fake_graph_launch(cudaGraphExec_t exec,
                                     cudaStream_t stream) {
  cudaGraph_t graph = (cudaGraph_t)(void *)exec;
  for (int i = 0; i < graph->count; i++)
    *fake_op_add(stream, graph->op[i].kind) = graph->op[i];
  return cudaSuccess;
}

static cudaError_t fake_graph_destroy(cudaGraph_t graph) {
  free(graph);
  return cudaSuccess;
}

static cudaError_t fake_exec_destroy(cudaGraphExec_t exec) {
  free(exec);
  return cudaSuccess;
}

static cudaError_t fake_last_error(void) {
  return cudaSuccess;
}

enum { LEAST = 0, GREATEST = -3 };
static int comm_handle; // the newest communication stream; 0: none

bool fake_is_comm_stream(cudaStream_t stream) {
  return comm_handle && (int)(uintptr_t)stream == comm_handle;
}

static cudaError_t fake_priority_range(int *least, int *greatest) {
  *least = LEAST;
  *greatest = GREATEST;
  return cudaSuccess;
}

static cudaError_t fake_stream_create(cudaStream_t *out, unsigned flags,
                                      int priority) {
  *out = NULL;
  if (fake_connects())
    return cudaSuccess;
  // sundog makes the communication stream, and one to capture on.
  REQUIRE(flags == cudaStreamDefault || flags == cudaStreamNonBlocking);
  queue_of_handle[handle_count] = queue_make();
  if (flags == cudaStreamNonBlocking && priority == GREATEST)
    comm_handle = handle_count;
  *out = (cudaStream_t)(uintptr_t)handle_count++;
  return cudaSuccess;
}

static cudaError_t fake_event_create(cudaEvent_t *out, unsigned flags) {
  (void)flags;
  REQUIRE(event_count + 1 < EVENTS);
  *out = (cudaEvent_t)(uintptr_t)++event_count;
  return cudaSuccess;
}

static cudaError_t fake_destroy_event(cudaEvent_t event) {
  REQUIRE(event && fake_connects());
  return cudaSuccess;
}

static cudaError_t fake_destroy_stream(cudaStream_t stream) {
  (void)stream;
  REQUIRE(fake_connects());
  return cudaSuccess;
}

static cudaError_t fake_event_record(cudaEvent_t event, cudaStream_t stream) {
  if (fake_connects() && !stream)
    return cudaSuccess;
  int queue = queue_of_handle[(uintptr_t)stream];
  pthread_mutex_lock(&lock);
  events[(uintptr_t)event].queue = queue;
  events[(uintptr_t)event].length = queues[queue]->tail;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

// The watching thread calls it, too, so it must not change anything.
static cudaError_t fake_event_query(cudaEvent_t event) {
  (void)event;
  fake_device_check();
  return cudaSuccess;
}

static cudaError_t fake_stream_wait(cudaStream_t stream, cudaEvent_t event,
                                    unsigned flags) {
  (void)flags;
  op_t *op = fake_op_add(stream, OP_WAIT);
  op->queue = events[(uintptr_t)event].queue;
  op->length = events[(uintptr_t)event].length;
  return cudaSuccess;
}

// A renewed stream has another queue.
static cudaError_t fake_stream_id(cudaStream_t stream, unsigned long long *id) {
  *id = (unsigned long long)(uintptr_t)queue_of(stream);
  return cudaSuccess;
}

static cudaError_t fake_capture_mode(enum cudaStreamCaptureMode *mode) {
  (void)mode;
  return cudaSuccess;
}

static const char *fake_error_string(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error";
}

// ---- work -----------------------------------------------------------------

static void op_copy(const op_t *op) {
  for (size_t z = 0; z < op->depth; z++)
    for (size_t y = 0; y < op->height; y++)
      memcpy(op->to + z * op->to_slice + y * op->to_pitch,
             op->from + z * op->from_slice + y * op->from_pitch, op->width);
}

// Carries out the queue's next operation; returns false if it must wait.
static bool queue_step(queue_t *queue) {
  if (queue->head == queue->tail)
    return false;
  op_t *op = &queue->op[queue->head];
  switch (op->kind) {
  case OP_COPY:
    op_copy(op);
    break;
  case OP_SET:
    for (size_t y = 0; y < op->height; y++)
      memset(op->to + y * op->to_pitch, op->value, op->width);
    break;
  case OP_WAIT:
    if (queues[op->queue]->head < op->length)
      return false;
    break;
  case OP_GROUP:
    if (!fake_group_go(op->group))
      return false;
    break;
  case OP_CALL:
    op->run(op->argument);
    break;
  }
  queue->head++;
  return true;
}

static bool one_step(void) {
  int first =
      drain_order == FAKE_CUDA_RANDOM ? (int)random_in(0, queue_count - 1) : 0;
  for (int i = 0; i < queue_count; i++) {
    int q = (first + i) % queue_count;
    if (drain_order == FAKE_CUDA_COMM_EARLY)
      q = queue_count - 1 - q;
    if (queue_step(queues[q]))
      return true;
  }
  return false;
}

void fake_cuda_drain(void) {
  for (;;) {
    bool empty = true;
    for (int q = 0; q < queue_count; q++)
      empty &= queues[q]->head == queues[q]->tail;
    if (empty)
      break;
    if (!one_step())
      sched_yield(); // waits for other ranks; an alarm ends it
  }
  pthread_mutex_lock(&lock);
  for (int q = 0; q < queue_count; q++)
    queues[q]->head = queues[q]->tail = 0;
  for (int e = 0; e < EVENTS; e++)
    events[e].length = 0;
  pthread_mutex_unlock(&lock);
}

void fake_cuda_order(fake_cuda_order_t order) {
  drain_order = order;
}

cudaStream_t fake_cuda_stream(int index) {
  while (handle_count <= index) {
    cudaStream_t stream;
    (void)fake_stream_create(&stream, cudaStreamDefault, LEAST);
  }
  return (cudaStream_t)(uintptr_t)index;
}

void fake_cuda_stream_renew(int index) {
  queue_of_handle[index] = queue_make();
}

void fake_cuda_enqueue(cudaStream_t stream, void (*run)(void *argument),
                       void *argument) {
  op_t *op = fake_op_add(stream, OP_CALL);
  op->run = run;
  op->argument = argument;
}

static bool one_gpu;

void fake_cuda_share_gpu(void) {
  one_gpu = true;
}

static cudaError_t fake_bus(char *out, int bytes, int device) {
  REQUIRE(device == RANKS_DEVICE);
  snprintf(out, (size_t)bytes, "0000:%02X:00.0",
           one_gpu ? 7 : (unsigned)sdg_job_rank());
  return cudaSuccess;
}

// ---- the job --------------------------------------------------------------

void *fake_cuda_find(sdg_library_t library, const char *name) {
  (void)library;
  static const job_fake_t table[] = {
      JOB_FAKE(cudaMemcpyAsync, fake_memcpy),
      JOB_FAKE(cudaMemcpy2DAsync, fake_memcpy_2d),
      JOB_FAKE(cudaMemcpy3DAsync, fake_memcpy_3d),
      JOB_FAKE(cudaMemsetAsync, fake_memset),
      JOB_FAKE(cudaMemset2DAsync, fake_memset_2d),
      JOB_FAKE(cudaGetDevice, fake_device),
      JOB_FAKE(cudaDeviceGetPCIBusId, fake_bus),
      JOB_FAKE(cudaSetDevice, fake_set_device),
      JOB_FAKE(cudaEventDestroy, fake_destroy_event),
      JOB_FAKE(cudaStreamDestroy, fake_destroy_stream),
      JOB_FAKE(cudaMalloc, fake_malloc),
      JOB_FAKE(cudaFree, fake_free),
      JOB_FAKE(cudaDeviceGetStreamPriorityRange, fake_priority_range),
      JOB_FAKE(cudaStreamCreateWithPriority, fake_stream_create),
      JOB_FAKE(cudaEventCreateWithFlags, fake_event_create),
      JOB_FAKE(cudaEventRecord, fake_event_record),
      JOB_FAKE(cudaEventQuery, fake_event_query),
      JOB_FAKE(cudaThreadExchangeStreamCaptureMode, fake_capture_mode),
      JOB_FAKE(cudaStreamGetId, fake_stream_id),
      JOB_FAKE(cudaStreamWaitEvent, fake_stream_wait),
      JOB_FAKE(cudaGetErrorString, fake_error_string),
      JOB_FAKE(cudaGetLastError, fake_last_error),
      JOB_FAKE(cudaGraphDestroy, fake_graph_destroy),
      JOB_FAKE(cudaGraphExecDestroy, fake_exec_destroy),
      JOB_FAKE(cudaGraphGetNodes, fake_nodes),
      JOB_FAKE(cudaGraphInstantiateWithFlags, fake_instantiate),
      JOB_FAKE(cudaGraphLaunch, fake_graph_launch),
      JOB_FAKE(cudaStreamBeginCapture, fake_begin_capture),
      JOB_FAKE(cudaStreamEndCapture, fake_end_capture),
  };
  return strncmp(name, "nccl", 4) == 0
             ? fake_nccl_find(name)
             : job_fake_find(table, sizeof table / sizeof table[0], name);
}

void fake_cuda_install(void) {
  sdg_library_set_finder(fake_cuda_find);
  queue_make(); // the default stream
}

void fake_cuda_ranks_run(const char *mesh, void (*body)(int rank)) {
  current_device = RANKS_DEVICE; // of the ranks' first threads, too
  fake_nccl_open();
  sdg_axes_t axes = 1;
  for (const char *at = mesh; (at = strchr(at, ',')); at++)
    axes = axes << 1 | 1;
  job_run(mesh, axes, "20", body);
  fake_nccl_close();
}
