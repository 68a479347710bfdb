// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime and an NCCL of host functions; tests drain the streams.
#include "tests/unit/fake_cuda.h"

#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/vendor.h"
#include "src/job/job.h"
#include "tests/unit/random.h"
#include "tests/unit/job.h"

enum {
  STREAMS = 64,
  OPS = 4096,
  EVENTS = 16,
  MESSAGES = 256,
  COMMS = 16,
  SPLITS = 4,
  SLOTS = 32,
  SLOT_BYTES = 1 << 14,
};

typedef struct message {
  bool is_send;
  int peer;
  char *data;
  size_t bytes;
} message_t;

typedef struct comm {
  int id, ranks, me, splits;
  bool connected[FAKE_CUDA_RANKS]; // by messages
  bool sums;                       // connected by a sum
} comm_t;

// Communicators are made in a thread of their own. What that one enqueues is
// not carried out: it only connects ranks.
static bool connects(void) {
  return gettid() != getpid();
}

typedef struct group {
  const comm_t *comm;
  int count;
  message_t message[MESSAGES];
  // An all-reduce is messages from each rank to each, combined after all
  // arrived.
  float *sum;
  size_t sums;
  ncclRedOp_t combine;
  float *theirs; // [ranks][sums]; [me] is unused
} group_t;

typedef enum op_kind { OP_COPY, OP_SET, OP_WAIT, OP_GROUP, OP_CALL } op_kind_t;

typedef struct op {
  op_kind_t kind;
  char *to;
  const char *from;
  size_t to_pitch, from_pitch, to_slice, from_slice;
  size_t width, height, depth;
  int value;
  int queue;  // OP_WAIT: waits until this queue
  int length; // has completed this many operations
  group_t *group;
  void (*run)(void *argument);
  void *argument;
} op_t;

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

// Messages between processes: a ring of slots for each pair of ranks.
typedef struct mailbox {
  _Atomic(unsigned) written, read;
  size_t bytes[SLOTS];
  char data[SLOTS][SLOT_BYTES];
} mailbox_t;
static struct shared {
  _Atomic(int) comms;
  // Of each split: a rank's colour + 1, and the part's number + 1.
  _Atomic(int) color[COMMS][SPLITS][FAKE_CUDA_RANKS];
  _Atomic(int) part[COMMS][SPLITS][FAKE_CUDA_RANKS];
  mailbox_t mail[COMMS][FAKE_CUDA_RANKS][FAKE_CUDA_RANKS]; // [from][to]
} * shared;

static int queue_make(void) {
  REQUIRE(queue_count < STREAMS);
  queues[queue_count] = calloc(1, sizeof(queue_t));
  return queue_count++;
}

static queue_t *queue_of(cudaStream_t stream) {
  return queues[queue_of_handle[(uintptr_t)stream]];
}

static op_t *op_add(cudaStream_t stream, op_kind_t kind) {
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

static void device_check(void) {
  REQUIRE(current_device == RANKS_DEVICE);
}

static cudaError_t fake_memcpy_3d(const struct cudaMemcpy3DParms *p,
                                  cudaStream_t stream) {
  op_t *op = op_add(stream, OP_COPY);
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
  op_t *op = op_add(stream, OP_COPY);
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
  op_t *op = op_add(stream, OP_SET);
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
    *op_add(stream, graph->op[i].kind) = graph->op[i];
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

static cudaError_t fake_priority_range(int *least, int *greatest) {
  *least = LEAST;
  *greatest = GREATEST;
  return cudaSuccess;
}

static cudaError_t fake_stream_create(cudaStream_t *out, unsigned flags,
                                      int priority) {
  *out = NULL;
  if (connects())
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
  REQUIRE(event && connects());
  return cudaSuccess;
}

static cudaError_t fake_destroy_stream(cudaStream_t stream) {
  (void)stream;
  REQUIRE(connects());
  return cudaSuccess;
}

static cudaError_t fake_event_record(cudaEvent_t event, cudaStream_t stream) {
  if (connects() && !stream)
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
  device_check();
  return cudaSuccess;
}

static cudaError_t fake_stream_wait(cudaStream_t stream, cudaEvent_t event,
                                    unsigned flags) {
  (void)flags;
  op_t *op = op_add(stream, OP_WAIT);
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

// ---- NCCL -----------------------------------------------------------------

static group_t *open_group;

static ncclResult_t fake_unique_id(ncclUniqueId *out) {
  memset(out, 0, sizeof *out);
  out->internal[0] = (char)atomic_fetch_add(&shared->comms, 1);
  REQUIRE(out->internal[0] < COMMS);
  return ncclSuccess;
}

static ncclResult_t fake_comm_init(ncclComm_t *out, int ranks, ncclUniqueId id,
                                   int me, ncclConfig_t *config) {
  REQUIRE(config->blocking == 1 && config->splitShare == 1);
  REQUIRE(config->maxCTAs == 4 && ranks <= FAKE_CUDA_RANKS && connects());
  device_check();
  comm_t *comm = malloc(sizeof *comm);
  *comm = (comm_t){.id = id.internal[0], .ranks = ranks, .me = me};
  *out = (ncclComm_t)(void *)comm;
  return ncclSuccess;
}

// Keys are the ranks' numbers.
static ncclResult_t fake_comm_split(ncclComm_t from, int color, int key,
                                    ncclComm_t *out, ncclConfig_t *config) {
  comm_t *all = (comm_t *)(void *)from;
  REQUIRE(key == all->me && !config && all->splits < SPLITS && connects());
  _Atomic(int) *colors = shared->color[all->id][all->splits];
  _Atomic(int) *part = &shared->part[all->id][all->splits++][color];
  comm_t *comm = calloc(1, sizeof *comm);
  atomic_store(&colors[all->me], color + 1);
  for (int r = 0; r < all->ranks; r++) {
    int theirs;
    while ((theirs = atomic_load(&colors[r])) == 0)
      sched_yield();
    comm->ranks += theirs == color + 1;
    comm->me += theirs == color + 1 && r < all->me;
  }
  if (comm->me == 0)
    atomic_store(part, atomic_fetch_add(&shared->comms, 1) + 1);
  while ((comm->id = atomic_load(part) - 1) < 0)
    sched_yield();
  REQUIRE(comm->id < COMMS);
  *out = (ncclComm_t)(void *)comm;
  return ncclSuccess;
}

static ncclResult_t fake_group_start(void) {
  open_group = calloc(1, sizeof *open_group);
  return ncclSuccess;
}

static cudaStream_t group_stream;

static ncclResult_t message_add(bool is_send, void *data, size_t bytes,
                                int peer, ncclComm_t comm,
                                cudaStream_t stream) {
  comm_t *own = (comm_t *)(void *)comm;
  REQUIRE(open_group && open_group->count < MESSAGES && bytes <= SLOT_BYTES);
  if (connects()) {
    own->connected[peer] |= is_send;
    return ncclSuccess;
  }
  // Otherwise NCCL would wait on the host for the peer.
  REQUIRE(open_group->sum ? own->sums : own->connected[peer]);
  // NCCL gets none of the program's: two of these are the legacy stream's and
  // the per-thread stream's handles.
  REQUIRE(comm_handle && (int)(uintptr_t)stream == comm_handle);
  open_group->comm = (const comm_t *)(const void *)comm;
  open_group->message[open_group->count++] =
      (message_t){is_send, peer, data, bytes};
  group_stream = stream;
  return ncclSuccess;
}

static ncclResult_t fake_send(const void *data, size_t bytes,
                              ncclDataType_t type, int peer, ncclComm_t comm,
                              cudaStream_t stream) {
  REQUIRE(type == ncclInt8);
  return message_add(true, (void *)(uintptr_t)data, bytes, peer, comm, stream);
}

static ncclResult_t fake_recv(void *data, size_t bytes, ncclDataType_t type,
                              int peer, ncclComm_t comm, cudaStream_t stream) {
  REQUIRE(type == ncclInt8);
  return message_add(false, data, bytes, peer, comm, stream);
}

static ncclResult_t fake_group_end(void) {
  if (connects()) {
    free(open_group);
    open_group = NULL;
    return ncclSuccess;
  }
  op_add(group_stream, OP_GROUP)->group = open_group;
  open_group = NULL;
  return ncclSuccess;
}

static ncclResult_t fake_all_reduce(const void *from, void *to, size_t count,
                                    ncclDataType_t type, ncclRedOp_t op,
                                    ncclComm_t comm, cudaStream_t stream) {
  comm_t *own = (comm_t *)(void *)comm;
  size_t bytes = count * sizeof(float);
  REQUIRE(from == to && type == ncclFloat32 && !open_group);
  own->sums |= connects();
  if (connects())
    return ncclSuccess;
  fake_group_start();
  open_group->sum = to;
  open_group->sums = count;
  open_group->combine = op;
  open_group->theirs = calloc((size_t)own->ranks, bytes);
  for (int r = 0; r < own->ranks; r++) {
    if (r == own->me)
      continue;
    message_add(true, to, bytes, r, comm, stream);
    message_add(false, open_group->theirs + (size_t)r * count, bytes, r, comm,
                stream);
  }
  return fake_group_end();
}

static void group_combine(group_t *group) {
  for (int r = 0; group->sum && r < group->comm->ranks; r++)
    for (size_t i = 0; r != group->comm->me && i < group->sums; i++) {
      float theirs = group->theirs[(size_t)r * group->sums + i];
      float *sum = &group->sum[i];
      if (group->combine == ncclSum)
        *sum += theirs;
      else if ((group->combine == ncclMax) == (theirs > *sum))
        *sum = theirs;
    }
  free(group->theirs);
  group->theirs = NULL;
  group->sum = NULL;
}

// Sends and receives what is possible now; returns true when all is done.
static bool group_go(group_t *group) {
  const comm_t *comm = group->comm;
  bool waits[2][FAKE_CUDA_RANKS] = {
      {false}}; // messages of a pair keep their order
  int left = 0;
  for (int i = 0; i < group->count; i++) {
    message_t *m = &group->message[i];
    if (!m->data)
      continue;
    int from = m->is_send ? comm->me : m->peer;
    int to = m->is_send ? m->peer : comm->me;
    mailbox_t *mail = &shared->mail[comm->id][from][to];
    unsigned written = atomic_load(&mail->written);
    unsigned read = atomic_load(&mail->read);
    unsigned slot = (m->is_send ? written : read) % SLOTS;
    bool *wait = &waits[m->is_send][m->peer];
    *wait |= m->is_send ? written - read == SLOTS : written == read;
    if (*wait) {
      left++;
      continue;
    }
    if (m->is_send) {
      mail->bytes[slot] = m->bytes;
      memcpy(mail->data[slot], m->data, m->bytes);
      atomic_store(&mail->written, written + 1);
    } else {
      REQUIRE(mail->bytes[slot] == m->bytes);
      memcpy(m->data, mail->data[slot], m->bytes);
      atomic_store(&mail->read, read + 1);
    }
    m->data = NULL;
  }
  if (left == 0)
    group_combine(group);
  return left == 0;
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
    if (!group_go(op->group))
      return false;
    free(op->group);
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
  op_t *op = op_add(stream, OP_CALL);
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
      JOB_FAKE(ncclCommSplit, fake_comm_split),
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
      JOB_FAKE(ncclGetUniqueId, fake_unique_id),
      JOB_FAKE(ncclCommInitRankConfig, fake_comm_init),
      JOB_FAKE(ncclGroupStart, fake_group_start),
      JOB_FAKE(ncclGroupEnd, fake_group_end),
      JOB_FAKE(ncclAllReduce, fake_all_reduce),
      JOB_FAKE(ncclSend, fake_send),
      JOB_FAKE(ncclRecv, fake_recv),
  };
  return job_fake_find(table, sizeof table / sizeof table[0], name);
}

void fake_cuda_install(void) {
  sdg_library_set_finder(fake_cuda_find);
  queue_make(); // the default stream
}

void fake_cuda_ranks_run(const char *mesh, void (*body)(int rank)) {
  current_device = RANKS_DEVICE; // of the ranks' first threads, too
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(shared, MAP_FAILED);
  sdg_axes_t axes = 1;
  for (const char *at = mesh; (at = strchr(at, ',')); at++)
    axes = axes << 1 | 1;
  job_run(mesh, axes, "20", body);
  munmap(shared, sizeof *shared);
}
