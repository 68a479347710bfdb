// SPDX-License-Identifier: Apache-2.0
// The loop that moves messages: fills free slots, empties full ones, and waits
// for peers without using a core, while it checks that they live.
#include "src/host/nccl/net/progress.h"

#include <sched.h>
#include <string.h>

#include "src/host/nccl/reduce.h"

// Waiting: spin as long as a peer on another core needs to answer, then yield
// to peers that share the core, then sleep.
enum { SPINS = 64, YIELDS = 200, WATCH_MS = 100 };

typedef struct run {
  host_endpoint_t *endpoint;
  host_lane_t *send[HOST_RANKS_MAX]; // first unfinished lane, per peer
  host_lane_t *recv[HOST_RANKS_MAX];
  host_lane_t *reduce; // NULL once finished
  int unfinished;
  bool faulty; // a fault was found; the segment holds it
} run_t;

static size_t chunk_bytes(const host_lane_t *lane) {
  size_t rest = lane->bytes - lane->done;
  return rest < HOST_SLOT_BYTES ? rest : HOST_SLOT_BYTES;
}

static void lane_advance(run_t *run, host_lane_t *lane, size_t bytes) {
  lane->done += bytes;
  if (lane->done == lane->bytes) {
    lane->finished = true;
    run->unfinished--;
  }
}

static void run_fault(run_t *run, host_fault_kind_t kind, int culprit) {
  host_fault_set(run->endpoint,
                 (host_fault_t){kind, run->endpoint->rank, culprit});
  run->faulty = true;
}

// Returns the slot that this rank fills next for `peer`, NULL while it is not
// free.
static host_slot_t *slot_to_fill(const run_t *run, int peer, char **data) {
  host_endpoint_t *e = run->endpoint;
  uint64_t position = e->out[peer].position;
  size_t index = host_slot_index(e, e->rank, peer, position);
  *data = e->data + index * HOST_SLOT_BYTES;
  return atomic_load(&e->slots[index].turn) == host_slot_turn(position)
             ? &e->slots[index]
             : NULL;
}

// Returns the slot that this rank reads next from `peer`, NULL while it is
// empty.
static host_slot_t *slot_to_read(const run_t *run, int peer, char **data) {
  host_endpoint_t *e = run->endpoint;
  uint64_t position = e->in[peer].position;
  size_t index = host_slot_index(e, peer, e->rank, position);
  *data = e->data + index * HOST_SLOT_BYTES;
  return atomic_load(&e->slots[index].turn) == host_slot_turn(position) + 1
             ? &e->slots[index]
             : NULL;
}

static void slot_release(run_t *run, host_slot_t *slot, int peer) {
  host_endpoint_t *e = run->endpoint;
  atomic_store(&slot->turn, host_slot_turn(e->in[peer].position) + 2);
  e->in[peer].position++;
  host_bell_ring(e, peer);
}

static bool slot_matches(run_t *run, const host_slot_t *slot,
                         const host_lane_t *lane, int peer) {
  if (slot->signature != lane->signature)
    run_fault(run, HOST_FAULT_MIXED, peer);
  else if (slot->total != lane->bytes || slot->bytes != chunk_bytes(lane))
    run_fault(run, HOST_FAULT_SIZE, peer);
  return !run->faulty;
}

static bool send_chunk(run_t *run, int peer) {
  host_lane_t *lane = run->send[peer];
  size_t bytes = chunk_bytes(lane);
  if (lane->after && lane->after->done < lane->done + bytes)
    return false;
  char *data;
  host_slot_t *slot = slot_to_fill(run, peer, &data);
  if (!slot)
    return false;
  if (bytes > 0)
    memcpy(data, lane->source + lane->done, bytes);
  slot->bytes = (uint32_t)bytes;
  slot->signature = lane->signature;
  slot->total = lane->bytes;
  host_endpoint_t *e = run->endpoint;
  atomic_store(&slot->turn, host_slot_turn(e->out[peer].position) + 1);
  e->out[peer].position++;
  host_bell_ring(e, peer);
  lane_advance(run, lane, bytes);
  if (lane->finished)
    run->send[peer] = lane->next;
  return true;
}

static bool recv_chunk(run_t *run, int peer) {
  char *data;
  host_lane_t *lane = run->recv[peer];
  host_slot_t *slot = slot_to_read(run, peer, &data);
  if (!slot || !slot_matches(run, slot, lane, peer))
    return false;
  size_t bytes = slot->bytes;
  if (bytes > 0)
    memcpy(lane->target + lane->done, data, bytes);
  slot_release(run, slot, peer);
  lane_advance(run, lane, bytes);
  if (lane->finished)
    run->recv[peer] = lane->next;
  return true;
}

// Reads the same chunk of all peers directly from their rings, in one pass, and
// combines in the order of ranks whatever the order of arrival.
static bool reduce_chunk(run_t *run) {
  host_endpoint_t *e = run->endpoint;
  host_lane_t *lane = run->reduce;
  const void *input[HOST_RANKS_MAX];
  host_slot_t *slot[HOST_RANKS_MAX];
  for (int peer = 0; lane->last && peer < e->ranks; peer++)
    if (run->send[peer])
      return false;
  for (int peer = 0; peer < e->ranks; peer++) {
    if (peer == e->rank) {
      input[peer] = lane->bytes > 0 ? lane->source + lane->done : NULL;
      continue;
    }
    char *data;
    slot[peer] = slot_to_read(run, peer, &data);
    if (!slot[peer] || !slot_matches(run, slot[peer], lane, peer))
      return false;
    input[peer] = data;
  }
  size_t bytes = chunk_bytes(lane);
  if (bytes > 0)
    host_reduce(lane->type, lane->op, e->ranks, input,
                lane->target + lane->done, bytes / host_type_bytes(lane->type));
  for (int peer = 0; peer < e->ranks; peer++)
    if (peer != e->rank)
      slot_release(run, slot[peer], peer);
  lane_advance(run, lane, bytes);
  if (lane->finished)
    run->reduce = NULL;
  return true;
}

// Moves one chunk of every lane that can move. Returns false if no lane could.
// Starts with the rank after this one, so that not all ranks write to the same
// rank.
static bool run_pass(run_t *run) {
  bool moved = run->reduce && reduce_chunk(run);
  int ranks = run->endpoint->ranks;
  for (int i = 1; i < ranks && !run->faulty; i++) {
    int ahead = (run->endpoint->rank + i) % ranks;
    int behind = (run->endpoint->rank + ranks - i) % ranks;
    if (run->send[ahead])
      moved |= send_chunk(run, ahead);
    if (run->recv[behind] && !run->reduce)
      moved |= recv_chunk(run, behind);
  }
  return moved;
}

// Returns true if only `peer` can make one of its lanes move again.
static bool run_needs(const run_t *run, int peer) {
  char *data;
  const host_lane_t *send = run->send[peer];
  if (send &&
      (!send->after || send->after->done >= send->done + chunk_bytes(send)) &&
      !slot_to_fill(run, peer, &data))
    return true;
  return (run->reduce || run->recv[peer]) && !slot_to_read(run, peer, &data);
}

// Looks for peers that will never answer. Data that they sent before their end
// still counts: so the test whether they are needed comes after the test
// whether they have ended.
static void run_watch(run_t *run, bool processes) {
  host_endpoint_t *e = run->endpoint;
  for (int peer = 0; peer < e->ranks && !run->faulty; peer++) {
    if (peer == e->rank)
      continue;
    bool left = atomic_load(&e->header->bell[peer].left);
    bool dead = !left && processes && host_endpoint_dead(e, peer);
    if ((left || dead) && run_needs(run, peer))
      run_fault(run, left ? HOST_FAULT_LEFT : HOST_FAULT_DIED, peer);
  }
}

// Between machines the sent data must also have arrived, because this process
// may end.
static bool run_done(const run_t *run) {
  return run->unfinished == 0 && host_endpoint_settled(run->endpoint);
}

// Waits for a change. Returns true if something moved.
static bool run_sleep(run_t *run, bool *watch) {
  host_endpoint_t *e = run->endpoint;
  host_bell_t *bell = &e->header->bell[e->rank];
  uint32_t seen = atomic_load(&bell->rung);
  atomic_store(&bell->asleep, 1);
  // Test once more after announcing the sleep: a peer that publishes later
  // rings the bell.
  bool moved = run_pass(run) || run_done(run);
  if (!moved && !run->faulty) {
    run_watch(run, *watch);
    if (!run->faulty && !atomic_load(&e->stopped) &&
        atomic_load(&e->header->fault) == 0)
      *watch = host_bell_sleep(e, seen, WATCH_MS);
  }
  atomic_store(&bell->asleep, 0);
  return moved;
}

static void cpu_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static ncclResult_t run_loop(run_t *run) {
  host_endpoint_t *e = run->endpoint;
  int idle = 0;
  bool watch = false;
  while (!run_done(run)) {
    if (atomic_load_explicit(&e->stopped, memory_order_relaxed))
      return HOST_STOPPED;
    // After a fault elsewhere, what arrives may belong to another operation.
    if (run->faulty ||
        atomic_load_explicit(&e->header->fault, memory_order_relaxed) != 0)
      return host_fault_result(e, host_fault_get(e));
    if (run_pass(run)) {
      idle = 0;
    } else if (run->faulty || idle++ < SPINS) {
      cpu_pause();
    } else if (idle < SPINS + YIELDS) {
      sched_yield();
    } else if (run_sleep(run, &watch)) {
      idle = 0;
    }
  }
  return ncclSuccess;
}

static void lane_append(host_lane_t **list, host_lane_t **last,
                        host_lane_t *lane) {
  if (!*list)
    *list = lane;
  else
    (*last)->next = lane;
  *last = lane;
}

ncclResult_t host_lanes_run(host_endpoint_t *endpoint, host_lane_t *lanes,
                            int count) {
  run_t run = {.endpoint = endpoint, .unfinished = count};
  host_lane_t *last_send[HOST_RANKS_MAX];
  host_lane_t *last_recv[HOST_RANKS_MAX];
  for (int i = 0; i < count; i++) {
    host_lane_t *lane = &lanes[i];
    lane->done = 0;
    lane->finished = false;
    lane->next = NULL;
    if (lane->kind == HOST_LANE_REDUCE)
      run.reduce = lane;
    else if (lane->kind == HOST_LANE_SEND)
      lane_append(&run.send[lane->peer], &last_send[lane->peer], lane);
    else
      lane_append(&run.recv[lane->peer], &last_recv[lane->peer], lane);
  }
  ncclResult_t result = run_loop(&run);
  if (result != ncclSuccess)
    for (int i = 0; i < count; i++)
      if (!lanes[i].finished && lanes[i].kind != HOST_LANE_SEND &&
          lanes[i].bytes > 0)
        memset(lanes[i].target, 0xff, lanes[i].bytes);
  return result;
}
