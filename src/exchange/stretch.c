// SPDX-License-Identifier: Apache-2.0
// Captures stretches of plans, and launches them as graphs.
#include "src/exchange/stretch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/options.h"
#include "src/base/vendor.h"
#include "src/comm/device_wait.h"
#include "src/job/thread.h"

// Memories that one stretch touches; one with more is not replayed.
enum { MEMORIES_MAX = 8 };

// What a stretch's memories were at some execution.
typedef struct slot {
  const void *address[MEMORIES_MAX];
  cudaGraphExec_t exec;    // NULL: seen once, or `few`
  unsigned long long used; // when; 0: never
  bool few;                // it takes fewer launches than a graph is worth
} slot_t;

typedef struct stretch {
  int end; // the step behind it
  int memories;
  int slab[MEMORIES_MAX]; // one of each memory
  bool eager;             // a graph of it has failed, or does not pay
  int captures, launches;
  slot_t slot[SDG_STRETCH_SLOTS];
} stretch_t;

// The stretches of one plan.
struct sdg_stretches {
  struct sdg_stretches *next, **at; // the thread's others
  int channel;
  int count;
  stretch_t stretch[];
};

// Each thread uses its own; sdg_stretch_forget runs while no thread is in a
// tagged call.
typedef struct own {
  struct sdg_stretches *first;
  cudaStream_t stream; // for captures
  unsigned long long now;
  atomic_int graphs;
} own_t;
static own_t owns[SDG_CHANNEL_THREADS]; // index: the thread's channel

// ---- the runtime -----------------------------------------------------------

// Beside src/base/vendor.def: only plans with stretches need them.
typedef struct cuda {
  __typeof__(&cudaGraphDestroy) cudaGraphDestroy;
  __typeof__(&cudaGraphExecDestroy) cudaGraphExecDestroy;
  __typeof__(&cudaGraphGetNodes) cudaGraphGetNodes;
  __typeof__(&cudaGraphInstantiateWithFlags) cudaGraphInstantiateWithFlags;
  __typeof__(&cudaGraphLaunch) cudaGraphLaunch;
  __typeof__(&cudaStreamBeginCapture) cudaStreamBeginCapture;
  __typeof__(&cudaStreamEndCapture) cudaStreamEndCapture;
} cuda_t;
static cuda_t cuda;

#define ROW(name)                                                              \
  { SDG_LIBRARY_CUDART, #name, offsetof(cuda_t, name) }

static bool cuda_get(void) {
  static const sdg_library_row_t rows[] = {
      ROW(cudaGraphDestroy),     ROW(cudaGraphExecDestroy),
      ROW(cudaGraphGetNodes),    ROW(cudaGraphInstantiateWithFlags),
      ROW(cudaGraphLaunch),      ROW(cudaStreamBeginCapture),
      ROW(cudaStreamEndCapture),
  };
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static enum { UNKNOWN, FOUND, MISSING } state;
  pthread_mutex_lock(&lock);
  if (state == UNKNOWN)
    state =
        sdg_library_fill(rows, sizeof rows / sizeof rows[0], &cuda) == SDG_OK
            ? FOUND
            : MISSING;
  bool found = state == FOUND;
  pthread_mutex_unlock(&lock);
  return found;
}

// An error of a graph is not the program's.
static bool good(cudaError_t result) {
  if (result != cudaSuccess)
    (void)sdg_vendor_get()->cudaGetLastError();
  return result == cudaSuccess;
}

// Else it would spoil a capture that the program makes meanwhile.
static void mode_change(enum cudaStreamCaptureMode *io_mode) {
  (void)sdg_vendor_get()->cudaThreadExchangeStreamCaptureMode(io_mode);
}

// ---- graphs ----------------------------------------------------------------

// A launch that still runs ends first: the runtime sees to that.
static void exec_drop(own_t *own, slot_t *slot) {
  if (!slot->exec)
    return;
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  mode_change(&mode);
  (void)good(cuda.cudaGraphExecDestroy(slot->exec));
  mode_change(&mode);
  slot->exec = NULL;
  atomic_fetch_sub_explicit(&own->graphs, 1, memory_order_relaxed);
}

static void stretch_drop(own_t *own, stretch_t *stretch) {
  for (int i = 0; i < SDG_STRETCH_SLOTS; i++) {
    exec_drop(own, &stretch->slot[i]);
    stretch->slot[i].used = 0;
  }
}

static void all_drop(own_t *own, struct sdg_stretches *stretches) {
  for (int i = 0; i < stretches->count; i++)
    stretch_drop(own, &stretches->stretch[i]);
}

// Drops the graph of the thread that was launched longest ago.
static void oldest_drop(own_t *own) {
  slot_t *oldest = NULL;
  for (struct sdg_stretches *of = own->first; of; of = of->next)
    for (int s = 0; s < of->count; s++)
      for (int i = 0; i < SDG_STRETCH_SLOTS; i++) {
        slot_t *slot = &of->stretch[s].slot[i];
        if (slot->exec && (!oldest || slot->used < oldest->used))
          oldest = slot;
      }
  if (oldest) {
    exec_drop(own, oldest);
    oldest->used = 0;
  }
}

// Nothing of the program's runs on this stream.
static bool stream_get(own_t *own) {
  return own->stream || good(sdg_vendor_get()->cudaStreamCreateWithPriority(
                            &own->stream, cudaStreamNonBlocking, 0));
}

// Makes an executable graph of `graph`, or finds that it has too few nodes.
static bool instantiate(own_t *own, cudaGraph_t graph, slot_t *slot) {
  size_t nodes = 0;
  if (!good(cuda.cudaGraphGetNodes(graph, NULL, &nodes)))
    return false;
  slot->few = nodes < SDG_STRETCH_LAUNCHES;
  if (slot->few)
    return true;
  if (atomic_load_explicit(&own->graphs, memory_order_relaxed) >=
      SDG_STRETCH_GRAPHS)
    oldest_drop(own);
  if (!good(cuda.cudaGraphInstantiateWithFlags(&slot->exec, graph, 0))) {
    slot->exec = NULL;
    return false;
  }
  atomic_fetch_add_explicit(&own->graphs, 1, memory_order_relaxed);
  return true;
}

static bool capture(own_t *own, const sdg_exec_t *exec, int first, int end,
                    sdg_stretch_enqueue_t *enqueue, slot_t *slot) {
  cudaGraph_t graph = NULL;
  if (!cuda_get() || !stream_get(own) ||
      !good(cuda.cudaStreamBeginCapture(own->stream,
                                        cudaStreamCaptureModeRelaxed)))
    return false;
  bool done = enqueue(exec, first, end, own->stream) == SDG_OK;
  done = good(cuda.cudaStreamEndCapture(own->stream, &graph)) && done;
  done = done && instantiate(own, graph, slot);
  if (graph)
    (void)good(cuda.cudaGraphDestroy(graph));
  return done;
}

// ---- addresses -------------------------------------------------------------

static bool slot_is(const slot_t *slot, const slot_t *now) {
  return slot->used > 0 &&
         memcmp(slot->address, now->address, sizeof now->address) == 0;
}

// Returns the slot with the addresses of this execution, else the one to use
// for them: an empty one, or the one that was used longest ago.
static slot_t *slot_of(stretch_t *stretch, const slot_t *now) {
  slot_t *oldest = &stretch->slot[0];
  for (int i = 0; i < SDG_STRETCH_SLOTS; i++) {
    slot_t *slot = &stretch->slot[i];
    if (slot_is(slot, now))
      return slot;
    if (slot->used < oldest->used)
      oldest = slot;
  }
  return oldest;
}

// ---- stretches -------------------------------------------------------------

// Graphs have to be launched some times before they save time.
static bool pays(const stretch_t *stretch) {
  return stretch->captures < SDG_STRETCH_SLOTS ||
         stretch->launches >= 4 * stretch->captures;
}

static void give_up(own_t *own, stretch_t *stretch) {
  stretch_drop(own, stretch);
  stretch->eager = true;
}

// Makes the graph of a slot that has been seen before.
static void slot_capture(own_t *own, const sdg_exec_t *exec, int first,
                         stretch_t *stretch, slot_t *slot,
                         sdg_stretch_enqueue_t *enqueue) {
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  if (!pays(stretch)) {
    give_up(own, stretch);
    return;
  }
  if (!sdg_device_capture_begin())
    return; // another time
  mode_change(&mode);
  bool done = capture(own, exec, first, stretch->end, enqueue, slot);
  mode_change(&mode);
  sdg_device_capture_end();
  stretch->captures++;
  if (!done)
    give_up(own, stretch);
}

int sdg_stretch_launch(const sdg_exec_t *exec, int first, cudaStream_t stream,
                       sdg_stretch_enqueue_t *enqueue) {
  int index = exec->plan->step[first].stretch;
  struct sdg_stretches *stretches = exec->plan->stretches;
  // In the program's own capture the steps become a part of its graph.
  if (index == 0 || exec->room)
    return 0;
  stretch_t *stretch = &stretches->stretch[index - 1];
  own_t *own = &owns[stretches->channel];
  slot_t now = {.used = 0};
  if (stretch->eager)
    return 0;
  for (int i = 0; i < stretch->memories; i++)
    now.address[i] = sdg_exec_address(exec, stretch->slab[i]);
  slot_t *slot = slot_of(stretch, &now);
  bool seen = slot_is(slot, &now);
  if (!seen) {
    exec_drop(own, slot);
    *slot = now;
  }
  slot->used = ++own->now;
  if (!seen || slot->few)
    return 0;
  if (!slot->exec)
    slot_capture(own, exec, first, stretch, slot, enqueue);
  if (!slot->exec)
    return 0;
  if (!good(cuda.cudaGraphLaunch(slot->exec, stream))) {
    give_up(own, stretch);
    return 0;
  }
  stretch->launches++;
  return stretch->end - first;
}

static bool replays(const sdg_step_t *step) {
  return step->kind == SDG_STEP_COPY || step->kind == SDG_STEP_ZERO;
}

// The first step behind the stretch that begins at `first`.
static int stretch_end(const sdg_plan_t *plan, int first) {
  int end = first;
  while (end < plan->steps && replays(&plan->step[end]) &&
         plan->step[end].lane == plan->step[first].lane)
    end++;
  return end;
}

static bool copies_strip(const sdg_step_t *step) {
  return step->kind == SDG_STEP_COPY && step->lane == SDG_LANE_MAIN &&
         step->copy == SDG_COPY_STRIP;
}

// Moves a wait for messages ahead of copies of strips if these and the copies
// behind it become one stretch: strips are small, and wait for no call.
// Example: own rows into two strips, the wait, two halos into them.
static void joins_advance(sdg_plan_t *plan) {
  for (int i = 1; i + 1 < plan->steps; i++) {
    const sdg_step_t join = plan->step[i];
    int first = i;
    if (join.kind != SDG_STEP_JOIN || join.lane != SDG_LANE_MAIN ||
        plan->step[i + 1].lane != SDG_LANE_MAIN || !replays(&plan->step[i + 1]))
      continue;
    while (first > 0 && copies_strip(&plan->step[first - 1]))
      first--;
    if (stretch_end(plan, i + 1) - first - 1 < SDG_STRETCH_LAUNCHES)
      continue;
    memmove(&plan->step[first + 1], &plan->step[first],
            (size_t)(i - first) * sizeof join);
    plan->step[first] = join;
  }
}

static bool memory_add(const sdg_plan_t *plan, int slab, stretch_t *io) {
  for (int i = 0; i < io->memories; i++)
    if (plan->slab[io->slab[i]].operand == plan->slab[slab].operand)
      return true;
  if (io->memories == MEMORIES_MAX)
    return false;
  io->slab[io->memories++] = slab;
  return true;
}

static bool memories_find(const sdg_plan_t *plan, int first, stretch_t *io) {
  for (int i = first; i < io->end; i++) {
    const sdg_step_t *step = &plan->step[i];
    if (!memory_add(plan, step->slab, io) ||
        (step->kind == SDG_STEP_COPY && !memory_add(plan, step->to, io)))
      return false;
  }
  return true;
}

static void stretches_destroy(struct sdg_stretches *stretches) {
  all_drop(&owns[stretches->channel], stretches);
  *stretches->at = stretches->next;
  if (stretches->next)
    stretches->next->at = stretches->at;
  free(stretches);
}

// Puts the plan's stretches into `out`, if it is not NULL; returns how many.
static int stretches_put(sdg_plan_t *plan, struct sdg_stretches *out) {
  int count = 0;
  for (int first = 0, end; first < plan->steps; first = end) {
    stretch_t found = {.end = stretch_end(plan, first)};
    end = found.end > first ? found.end : first + 1;
    // Each step is one launch or more, but for copies that go together.
    if (found.end - first < SDG_STRETCH_LAUNCHES ||
        !memories_find(plan, first, &found))
      continue;
    if (out) {
      out->stretch[count] = found;
      plan->step[first].stretch = count + 1;
    }
    count++;
  }
  return count;
}

void sdg_stretch_find(sdg_plan_t *plan) {
  // Checked runs look at every step by itself.
  if (plan->stretches || sdg_options_get()->check ||
      sdg_options_get()->replay == SDG_REPLAY_OFF)
    return;
  joins_advance(plan);
  int count = stretches_put(plan, NULL);
  struct sdg_stretches *made =
      count > 0 ? calloc(1, sizeof *made + (size_t)count * sizeof(stretch_t))
                : NULL;
  if (!made)
    return;
  own_t *own = &owns[sdg_channel_get()];
  made->channel = sdg_channel_get();
  made->count = stretches_put(plan, made);
  made->at = &own->first;
  made->next = own->first;
  if (made->next)
    made->next->at = &made->next;
  own->first = made;
  plan->stretches = made;
  plan->stretches_destroy = stretches_destroy;
}

int sdg_stretch_graphs(void) {
  int all = 0;
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    all += atomic_load_explicit(&owns[channel].graphs, memory_order_relaxed);
  return all;
}

void sdg_stretch_forget(void) {
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++) {
    own_t *own = &owns[channel];
    for (struct sdg_stretches *of = own->first; of; of = of->next)
      all_drop(own, of);
    own->stream = NULL;
  }
}
