// SPDX-License-Identifier: Apache-2.0
// Keeps what captured calls use until no graph can launch them any more.
#include "src/exchange/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/vendor.h"
#include "src/comm/watch.h"
#include "src/job/job.h"
#include "src/job/thread.h"

// Each piece of a room's memory is larger than the one before.
enum { PIECES_MAX = 64, ALIGN = 512 };

typedef struct room {
  sdg_graph_room_t shown; // first: what others see of it
  struct room *next;
  unsigned long long capture; // its number; no other capture has it
  cudaGraph_t graph;          // NULL: destroyed
  atomic_bool unused;         // every graph with its calls is destroyed
  atomic_int announced;       // launches that have not begun
  struct {
    void *data;
    size_t bytes;
  } piece[PIECES_MAX];
  int pieces;
} room_t;

// An executable graph with tagged calls.
typedef struct runnable {
  struct runnable *next;
  cudaGraphExec_t exec;
  room_t *room;
  unsigned long long capture; // the room may have got another one since
} runnable_t;

// Rooms are never freed, because host functions of graphs refer to them; those
// that are unused get another capture.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static room_t *rooms;
static runnable_t *runnables;
static atomic_bool tidy_due; // a room has become unused
atomic_bool sdg_graph_used;

// ---- the runtime -----------------------------------------------------------

// Beside src/base/vendor.def: only programs that capture need them.
typedef struct cuda {
  __typeof__(&cudaGraphRetainUserObject) cudaGraphRetainUserObject;
  __typeof__(&cudaLaunchHostFunc) cudaLaunchHostFunc;
  __typeof__(&cudaRuntimeGetVersion) cudaRuntimeGetVersion;
  __typeof__(&cudaUserObjectCreate) cudaUserObjectCreate;
  __typeof__(&cudaUserObjectRelease) cudaUserObjectRelease;
  __typeof__(&cudaStreamGetCaptureInfo) info13;
  cudaError_t (*info12)(cudaStream_t, enum cudaStreamCaptureStatus *,
                        unsigned long long *, cudaGraph_t *,
                        const cudaGraphNode_t **, size_t *);
} cuda_t;

#define ROW(name)                                                              \
  { SDG_LIBRARY_CUDART, #name, offsetof(cuda_t, name) }

// CUDA 13 has another function under the name that CUDA 12 has an older one.
static sdg_status_t cuda_fill(cuda_t *table) {
  static const sdg_library_row_t rows[] = {
      ROW(cudaGraphRetainUserObject), ROW(cudaLaunchHostFunc),
      ROW(cudaRuntimeGetVersion),     ROW(cudaUserObjectCreate),
      ROW(cudaUserObjectRelease),
  };
  static const sdg_library_row_t info[] = {
      {SDG_LIBRARY_CUDART, "cudaStreamGetCaptureInfo_v2",
       offsetof(cuda_t, info12)},
      {SDG_LIBRARY_CUDART, "cudaStreamGetCaptureInfo",
       offsetof(cuda_t, info13)},
  };
  int version;
  SDG_TRY(sdg_library_fill(rows, sizeof rows / sizeof rows[0], table));
  SDG_TRY(sdg_vendor_check(table->cudaRuntimeGetVersion(&version),
                           "version of the runtime"));
  return sdg_library_fill(&info[version >= 13000], 1, table);
}

static sdg_status_t cuda_get(const cuda_t **out) {
  static cuda_t table;
  static bool filled;
  pthread_mutex_lock(&lock);
  sdg_status_t status = filled ? SDG_OK : cuda_fill(&table);
  filled = status == SDG_OK;
  pthread_mutex_unlock(&lock);
  *out = &table;
  return status;
}

static sdg_status_t capture_of(const cuda_t *cuda, cudaStream_t stream,
                               unsigned long long *out_id,
                               cudaGraph_t *out_graph) {
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  cudaError_t got =
      cuda->info13
          ? cuda->info13(stream, &state, out_id, out_graph, NULL, NULL, NULL)
          : cuda->info12(stream, &state, out_id, out_graph, NULL, NULL);
  SDG_TRY(sdg_vendor_check(got, "question about a capture"));
  return state == cudaStreamCaptureStatusActive
             ? SDG_OK
             : sdg_vendor_check(cudaErrorStreamCaptureInvalidated,
                                "question about a capture");
}

// Allocations are legal in a capture if the thread says that it knows what it
// does.
static void mode_change(enum cudaStreamCaptureMode *io_mode) {
  (void)sdg_vendor_get()->cudaThreadExchangeStreamCaptureMode(io_mode);
}

// ---- what runs at a launch, and at the end ----------------------------------

static bool announced_take(room_t *room) {
  int announced = atomic_load(&room->announced);
  while (announced > 0)
    if (atomic_compare_exchange_weak(&room->announced, &announced,
                                     announced - 1))
      return true;
  return false;
}

// Runs on the device's behalf at the head of each launch.
static void gate(void *user) {
  if (announced_take(user) || sdg_job_failed())
    return;
  (void)sdg_job_fail(sdg_fail(SDG_E_GRAPH_LAUNCH,
                              "a CUDA graph with tagged calls runs, and "
                              "sundog has not seen its launch"));
  sdg_watch_alarm();
}

// The last graph with the room's calls was destroyed, and its launches have
// ended. Must not call CUDA.
static void room_unused(void *user) {
  room_t *room = user;
  atomic_store(&room->unused, true);
  atomic_store(&tidy_due, true);
}

// ---- rooms -----------------------------------------------------------------

// Call with the lock held.
static room_t *room_find(unsigned long long capture) {
  room_t *room = rooms;
  while (room && (room->capture != capture || atomic_load(&room->unused)))
    room = room->next;
  return room;
}

// Call with the lock held.
static room_t *room_in(cudaGraph_t graph) {
  room_t *room = rooms;
  while (room &&
         (room->graph != graph || !room->capture || atomic_load(&room->unused)))
    room = room->next;
  return room;
}

// Call with the lock held.
static room_t *room_take(unsigned long long capture, cudaGraph_t graph) {
  room_t *room = rooms;
  while (room && !atomic_load(&room->unused))
    room = room->next;
  if (!room) {
    room = calloc(1, sizeof *room);
    if (!room)
      return NULL;
    room->next = rooms;
    rooms = room;
  }
  room->capture = capture;
  room->graph = graph;
  room->shown.channel = sdg_channel_get();
  room->shown.hash = 0;
  room->shown.begun = false;
  room->shown.outputs = 0;
  room->shown.rows = 0;
  atomic_store(&room->announced, 0);
  atomic_store(&room->unused, false);
  return room;
}

static sdg_status_t stream_and_events(room_t *room) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  sdg_lanes_t *lanes = &room->shown.lanes;
  cudaEvent_t *const each[] = {&lanes->lane[0], &lanes->lane[1], &lanes->done};
  for (int i = 0; i < 3; i++)
    if (!*each[i])
      SDG_TRY(sdg_vendor_check(
          cuda->cudaEventCreateWithFlags(each[i], cudaEventDisableTiming),
          "creation of an event"));
  int least, greatest;
  if (room->shown.comm)
    return SDG_OK;
  SDG_TRY(sdg_vendor_check(
      cuda->cudaDeviceGetStreamPriorityRange(&least, &greatest),
      "range of priorities"));
  return sdg_vendor_check(
      cuda->cudaStreamCreateWithPriority(&room->shown.comm,
                                         cudaStreamNonBlocking, greatest),
      "creation of a stream for captured transfers");
}

// The graph keeps the room, and its launches pass the gate before any transfer.
// The call that is captured next joins the streams.
static sdg_status_t graph_bind(const cuda_t *cuda, room_t *room,
                               cudaStream_t stream) {
  const sdg_vendor_t *vendor = sdg_vendor_get();
  cudaUserObject_t object;
  cudaError_t got = cuda->cudaUserObjectCreate(&object, room, room_unused, 1,
                                               cudaUserObjectNoDestructorSync);
  if (got != cudaSuccess)
    room_unused(room);
  SDG_TRY(sdg_vendor_check(got, "creation of a graph's object"));
  got = cuda->cudaGraphRetainUserObject(room->graph, object, 1,
                                        cudaGraphUserObjectMove);
  if (got != cudaSuccess)
    (void)cuda->cudaUserObjectRelease(object, 1); // the room is unused then
  SDG_TRY(sdg_vendor_check(got, "an object for a graph"));
  const sdg_lanes_t *lanes = &room->shown.lanes;
  SDG_TRY(sdg_vendor_check(vendor->cudaEventRecord(lanes->lane[0], stream),
                           "event record"));
  SDG_TRY(sdg_vendor_check(
      vendor->cudaStreamWaitEvent(room->shown.comm, lanes->lane[0], 0),
      "wait for an event"));
  return sdg_vendor_check(
      cuda->cudaLaunchHostFunc(room->shown.comm, gate, room),
      "a host function in a graph");
}

sdg_status_t sdg_graph_room_get(cudaStream_t stream, sdg_graph_room_t **out) {
  const cuda_t *cuda;
  unsigned long long id;
  cudaGraph_t graph;
  if (!sdg_vendor_get() || cuda_get(&cuda) != SDG_OK)
    return sdg_fail(SDG_E_CAPTURE, "the CUDA runtime is too old");
  SDG_TRY(capture_of(cuda, stream, &id, &graph));
  pthread_mutex_lock(&lock);
  room_t *room = room_find(id);
  bool second = !room && room_in(graph);
  room_t *made = room || second ? NULL : room_take(id, graph);
  pthread_mutex_unlock(&lock);
  // Nothing would order the transfers of the two.
  if (second)
    return sdg_fail(SDG_E_CAPTURE,
                    "two captures put tagged calls into the same graph");
  if (!room && !made)
    return sdg_fail(SDG_E_NO_MEMORY, "a captured call");
  *out = room ? &room->shown : &made->shown;
  if (room)
    return SDG_OK;
  atomic_store(&sdg_graph_used, true);
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  mode_change(&mode);
  sdg_status_t status = stream_and_events(made);
  if (status != SDG_OK)
    room_unused(made);
  else
    status = graph_bind(cuda, made, stream);
  mode_change(&mode);
  return status;
}

sdg_status_t sdg_graph_room_memory(sdg_graph_room_t *shown, size_t bytes,
                                   void **out) {
  room_t *room = (room_t *)shown;
  *out = NULL;
  if (bytes == 0)
    return SDG_OK;
  for (int i = 0; i < room->pieces && !*out; i++)
    if (room->piece[i].bytes >= bytes)
      *out = room->piece[i].data;
  if (*out)
    return SDG_OK;
  if (room->pieces == PIECES_MAX)
    return sdg_fail(SDG_E_DEVICE_MEMORY, "%d pieces of memory for one graph",
                    PIECES_MAX);
  // Work that is captured already uses the smaller pieces.
  size_t grown = (bytes + bytes / 4 + ALIGN - 1) / ALIGN * ALIGN;
  const sdg_vendor_t *cuda = sdg_vendor_get();
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  mode_change(&mode);
  cudaError_t got = cuda->cudaMalloc(out, grown);
  mode_change(&mode);
  if (got != cudaSuccess) {
    (void)cuda->cudaGetLastError();
    return sdg_fail(SDG_E_DEVICE_MEMORY, "%zu bytes for halos of a graph: %s",
                    grown, cuda->cudaGetErrorString(got));
  }
  pthread_mutex_lock(&lock);
  room->piece[room->pieces].data = *out;
  room->piece[room->pieces++].bytes = grown;
  pthread_mutex_unlock(&lock);
  return SDG_OK;
}

sdg_status_t sdg_graph_room_call(sdg_graph_room_t *room, uint32_t hash,
                                 sdg_report_row_t *row,
                                 const sdg_plan_t *plan) {
  int at = 0;
  room->hash = (room->hash ^ hash) * 16777619u + 1;
  while (at < room->rows && room->moves[at].row != row)
    at++;
  if (at == room->rows) {
    sdg_report_moves_t *grown =
        realloc(room->moves, ((size_t)at + 1) * sizeof *room->moves);
    if (!grown)
      return sdg_fail(SDG_E_NO_MEMORY, "a captured call");
    room->moves = grown;
    grown[room->rows++] = (sdg_report_moves_t){.row = row};
  }
  sdg_report_moves_add(&room->moves[at], plan);
  return SDG_OK;
}

sdg_status_t sdg_graph_room_output(sdg_graph_room_t *room,
                                   const sdg_graph_output_t *output) {
  size_t count = (size_t)room->outputs + 1;
  sdg_graph_output_t *grown =
      realloc(room->output, count * sizeof *room->output);
  if (!grown)
    return sdg_fail(SDG_E_NO_MEMORY, "a captured call");
  room->output = grown;
  grown[room->outputs++] = *output;
  return SDG_OK;
}

void sdg_graph_tidy(void) {
  if (!atomic_load_explicit(&tidy_due, memory_order_relaxed) ||
      !atomic_exchange(&tidy_due, false))
    return;
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  mode_change(&mode);
  pthread_mutex_lock(&lock);
  for (room_t *room = rooms; room; room = room->next) {
    if (!atomic_load(&room->unused))
      continue;
    // cudaFree waits for the work that uses the memory.
    for (int i = 0; i < room->pieces; i++)
      if (sdg_vendor_get()->cudaFree(room->piece[i].data) != cudaSuccess)
        (void)sdg_vendor_get()->cudaGetLastError();
    room->pieces = 0;
  }
  pthread_mutex_unlock(&lock);
  mode_change(&mode);
}

size_t sdg_graph_bytes(void) {
  size_t all = 0;
  pthread_mutex_lock(&lock);
  for (const room_t *room = rooms; room; room = room->next)
    for (int i = 0; i < room->pieces; i++)
      all += room->piece[i].bytes;
  pthread_mutex_unlock(&lock);
  return all;
}

void sdg_graph_forget(void) {
  pthread_mutex_lock(&lock);
  for (room_t *room = rooms; room; room = room->next) {
    room->pieces = 0;
    room->graph = NULL;
    room->capture = 0;
    room->shown.comm = NULL;
    room->shown.lanes = (sdg_lanes_t){.done = NULL};
  }
  pthread_mutex_unlock(&lock);
}

// ---- executable graphs -----------------------------------------------------

// Call with the lock held.
static runnable_t **runnable_find(cudaGraphExec_t exec) {
  runnable_t **at = &runnables;
  while (*at && (*at)->exec != exec)
    at = &(*at)->next;
  return at;
}

static void runnable_drop(cudaGraphExec_t exec) {
  runnable_t **at = runnable_find(exec), *found = *at;
  if (found)
    *at = found->next;
  free(found);
}

sdg_status_t sdg_graph_made(cudaGraphExec_t exec, cudaGraph_t graph) {
  sdg_status_t status = SDG_OK;
  pthread_mutex_lock(&lock);
  runnable_drop(exec);
  room_t *room = room_in(graph);
  runnable_t *made = room ? malloc(sizeof *made) : NULL;
  if (made) {
    *made = (runnable_t){runnables, exec, room, room->capture};
    runnables = made;
  } else if (room) {
    status = sdg_fail(SDG_E_NO_MEMORY, "an executable graph");
  }
  pthread_mutex_unlock(&lock);
  return status;
}

void sdg_graph_exec_dropped(cudaGraphExec_t exec) {
  pthread_mutex_lock(&lock);
  runnable_drop(exec);
  pthread_mutex_unlock(&lock);
}

// Another graph may get its address; executable graphs made from it remain.
void sdg_graph_dropped(cudaGraph_t graph) {
  pthread_mutex_lock(&lock);
  room_t *room = room_in(graph);
  if (room)
    room->graph = NULL;
  pthread_mutex_unlock(&lock);
}

sdg_graph_room_t *sdg_graph_room_of(cudaGraphExec_t exec) {
  pthread_mutex_lock(&lock);
  const runnable_t *found = *runnable_find(exec);
  room_t *room = found ? found->room : NULL;
  if (room && (room->capture != found->capture || atomic_load(&room->unused)))
    room = NULL;
  pthread_mutex_unlock(&lock);
  return room ? &room->shown : NULL;
}

void sdg_graph_announce(sdg_graph_room_t *room) {
  atomic_fetch_add(&((room_t *)room)->announced, 1);
}

void sdg_graph_withdraw(sdg_graph_room_t *room) {
  (void)announced_take((room_t *)room);
}
