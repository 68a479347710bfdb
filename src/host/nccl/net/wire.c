// SPDX-License-Identifier: Apache-2.0
// The thread that carries slots between the segments of two machines.
#include "src/host/nccl/net/wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "src/host/nccl/net/fork.h"
#include "src/host/nccl/net/machine.h"
#include "src/host/thread.h"

enum { IDLE_MS = 500, FAREWELL_MS = 1000 };

typedef enum kind {
  KIND_SLOT = 1, // `bytes` bytes of data follow
  KIND_ARRIVED,  // value: slots received so far
  KIND_FREE,     // value: slots emptied so far
  KIND_FAULT,    // value: the fault word
  KIND_LEFT,
} kind_t;

typedef struct head {
  uint32_t kind;
  uint32_t bytes;
  uint32_t signature;
  uint32_t zero;
  uint64_t value; // SLOT: bytes of the whole message
} head_t;

// The connection with one peer. Only the wire's thread uses it, except
// `arrived` and `gone`.
typedef struct link {
  int fd; // -1: ended, or the rank itself
  // Out: the frame being sent, and what has been sent before.
  head_t out;
  const char *out_data;
  size_t out_bytes, out_done; // head included; 0 bytes: none
  uint64_t sent;              // slots
  uint64_t told_arrived, told_free;
  bool knows_fault, told_left;
  // In: the frame being received.
  head_t in;
  size_t in_done;
  uint64_t received; // slots
  uint64_t emptied;  // slots emptied of those received
  uint64_t freed;    // slots that the peer has emptied of those sent
  _Atomic uint64_t arrived;
  atomic_bool gone;
} link_t;

struct host_wire {
  host_endpoint_t *endpoint;
  pthread_t thread;
  int bell;
  atomic_bool poked;
  atomic_bool stop;
  struct pollfd *polls; // ranks + 1
  link_t link[];        // one per rank
};

static host_slot_t *slot_at(const host_endpoint_t *e, int source,
                            int destination, uint64_t position,
                            char **out_data) {
  size_t index = host_slot_index(e, source, destination, position);
  *out_data = e->data + index * HOST_SLOT_BYTES;
  return &e->slots[index];
}

static void link_end(host_wire_t *wire, int peer) {
  link_t *link = &wire->link[peer];
  if (link->fd < 0)
    return;
  host_fork_close(link->fd);
  link->fd = -1;
  atomic_store(&link->gone, true);
  host_bell_wake_own(wire->endpoint);
}

// ---- out ----------------------------------------------------------------

static void frame_set(link_t *link, kind_t kind, uint64_t value) {
  link->out = (head_t){.kind = (uint32_t)kind, .value = value};
  link->out_data = NULL;
  link->out_bytes = sizeof link->out;
  link->out_done = 0;
}

// Makes the next frame for the peer; returns false if nothing is new.
static bool frame_next(host_wire_t *wire, int peer) {
  host_endpoint_t *e = wire->endpoint;
  link_t *link = &wire->link[peer];
  char *data;
  while (link->emptied < link->received &&
         atomic_load(&slot_at(e, peer, e->rank, link->emptied, &data)->turn) ==
             host_slot_turn(link->emptied) + 2)
    link->emptied++;
  uint64_t fault = atomic_load(&e->header->fault);
  // Read before the slots below: nothing is filled after leaving.
  bool left = atomic_load(&e->header->bell[e->rank].left);
  if (link->told_arrived != link->received) {
    frame_set(link, KIND_ARRIVED, link->told_arrived = link->received);
    return true;
  }
  if (link->told_free != link->emptied) {
    frame_set(link, KIND_FREE, link->told_free = link->emptied);
    return true;
  }
  const host_slot_t *slot = slot_at(e, e->rank, peer, link->sent, &data);
  if (atomic_load(&slot->turn) == host_slot_turn(link->sent) + 1 &&
      link->sent < link->freed + HOST_SLOTS) {
    frame_set(link, KIND_SLOT, slot->total);
    link->out.bytes = slot->bytes;
    link->out.signature = slot->signature;
    link->out_data = data;
    link->out_bytes += slot->bytes;
    link->sent++;
    return true;
  }
  if (fault != 0 && !link->knows_fault) {
    frame_set(link, KIND_FAULT, fault);
    link->knows_fault = true;
    return true;
  }
  if (left && !link->told_left) {
    frame_set(link, KIND_LEFT, 0);
    link->told_left = true;
    return true;
  }
  return false;
}

// Sends as much as possible without waiting.
static void link_send(host_wire_t *wire, int peer) {
  link_t *link = &wire->link[peer];
  while (link->fd >= 0) {
    if (link->out_bytes == 0 && !frame_next(wire, peer))
      return;
    size_t in_head = link->out_done < sizeof link->out
                         ? sizeof link->out - link->out_done
                         : 0;
    size_t data_done = link->out_done - (sizeof link->out - in_head);
    struct iovec part[2] = {
        {(char *)&link->out + sizeof link->out - in_head, in_head}, {NULL, 0}};
    if (link->out_data)
      part[1] = (struct iovec){(void *)(link->out_data + data_done),
                               link->out_bytes - sizeof link->out - data_done};
    struct msghdr message = {.msg_iov = part, .msg_iovlen = 2};
    ssize_t n = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n < 0) {
      link_end(wire, peer);
      return;
    }
    link->out_done += (size_t)n;
    if (link->out_done == link->out_bytes)
      link->out_bytes = 0;
  }
}

// ---- in -----------------------------------------------------------------

// Handles a complete frame. Returns false if it is invalid.
static bool frame_take(host_wire_t *wire, int peer) {
  host_endpoint_t *e = wire->endpoint;
  link_t *link = &wire->link[peer];
  const head_t *in = &link->in;
  char *data;
  host_slot_t *slot;
  switch (in->kind) {
  case KIND_SLOT:
    slot = slot_at(e, peer, e->rank, link->received, &data);
    slot->bytes = in->bytes;
    slot->signature = in->signature;
    slot->total = in->value;
    atomic_store(&slot->turn, host_slot_turn(link->received) + 1);
    link->received++;
    break;
  case KIND_ARRIVED:
    if (in->value > link->sent || in->value < atomic_load(&link->arrived))
      return false;
    atomic_store(&link->arrived, in->value);
    break;
  case KIND_FREE:
    if (in->value > link->sent || in->value < link->freed)
      return false;
    for (; link->freed < in->value; link->freed++)
      atomic_store(&slot_at(e, e->rank, peer, link->freed, &data)->turn,
                   host_slot_turn(link->freed) + 2);
    break;
  case KIND_FAULT:
    link->knows_fault = true; // the peer knows this fault
    host_fault_hear(e, in->value);
    break;
  case KIND_LEFT:
    atomic_store(&e->header->bell[peer].left, 1);
    break;
  default:
    return false;
  }
  host_bell_wake_own(e);
  return true;
}

// Returns the address for the rest of the frame; NULL if the frame is invalid.
static char *data_room(host_wire_t *wire, int peer) {
  host_endpoint_t *e = wire->endpoint;
  const link_t *link = &wire->link[peer];
  char *data;
  const host_slot_t *slot = slot_at(e, peer, e->rank, link->received, &data);
  if (link->in.kind != KIND_SLOT || link->in.bytes > HOST_SLOT_BYTES ||
      atomic_load(&slot->turn) != host_slot_turn(link->received))
    return NULL;
  return data;
}

static void link_receive(host_wire_t *wire, int peer) {
  link_t *link = &wire->link[peer];
  while (link->fd >= 0) {
    // First the head, then its data directly into the slot.
    char *room = (char *)&link->in + link->in_done;
    size_t wanted = sizeof link->in - link->in_done;
    if (link->in_done >= sizeof link->in) {
      size_t data_done = link->in_done - sizeof link->in;
      room = data_room(wire, peer) + data_done;
      wanted = link->in.bytes - data_done;
    }
    ssize_t n = recv(link->fd, room, wanted, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    bool good = n > 0;
    if (good)
      link->in_done += (size_t)n;
    if (good && link->in_done == sizeof link->in)
      good = link->in.kind == KIND_SLOT ? data_room(wire, peer) != NULL
                                        : link->in.bytes == 0;
    if (good && link->in_done >= sizeof link->in &&
        link->in_done == sizeof link->in + link->in.bytes) {
      link->in_done = 0;
      good = frame_take(wire, peer);
    }
    if (!good)
      link_end(wire, peer);
  }
}

// ---- the thread ---------------------------------------------------------

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Returns whether every connected peer has received that this rank has left.
static bool farewell_said(const host_wire_t *wire) {
  for (int peer = 0; peer < wire->endpoint->ranks; peer++)
    if (wire->link[peer].fd >= 0 &&
        (!wire->link[peer].told_left || wire->link[peer].out_bytes > 0))
      return false;
  return true;
}

static void *wire_main(void *argument) {
  host_wire_t *wire = argument;
  int ranks = wire->endpoint->ranks;
  int64_t stopped_ms = 0;
  uint64_t rung;
  for (;;) {
    atomic_store(&wire->poked, false);
    for (int peer = 0; peer < ranks; peer++)
      link_send(wire, peer);
    if (atomic_load(&wire->stop)) {
      if (stopped_ms == 0)
        stopped_ms = now_ms();
      if (farewell_said(wire) || now_ms() - stopped_ms > FAREWELL_MS)
        break;
    }
    for (int peer = 0; peer < ranks; peer++)
      wire->polls[peer] = (struct pollfd){
          .fd = wire->link[peer].fd,
          .events =
              (short)(POLLIN | (wire->link[peer].out_bytes > 0 ? POLLOUT : 0))};
    wire->polls[ranks] = (struct pollfd){.fd = wire->bell, .events = POLLIN};
    if (poll(wire->polls, (nfds_t)ranks + 1, stopped_ms > 0 ? 50 : IDLE_MS) < 0)
      continue;
    if (wire->polls[ranks].revents != 0) {
      ssize_t got = read(wire->bell, &rung, sizeof rung);
      (void)got;
    }
    for (int peer = 0; peer < ranks; peer++)
      if (wire->polls[peer].revents & (POLLIN | POLLHUP | POLLERR))
        link_receive(wire, peer);
  }
  return NULL;
}

ncclResult_t host_wire_start(host_endpoint_t *endpoint, const int *sockets) {
  size_t ranks = (size_t)endpoint->ranks;
  host_wire_t *wire = calloc(1, sizeof *wire + ranks * sizeof(link_t));
  if (!wire)
    return ncclSystemError;
  wire->endpoint = endpoint;
  wire->polls = calloc(ranks + 1, sizeof *wire->polls);
  wire->bell = host_fork_guard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  for (size_t peer = 0; peer < ranks; peer++) {
    wire->link[peer].fd = sockets[peer];
    if (sockets[peer] >= 0)
      host_net_tune(sockets[peer]);
  }
  int error = !wire->polls || wire->bell < 0 ? ENOMEM : 0;
  if (error == 0) {
    endpoint->wire = wire;
    error = host_thread_start(&wire->thread, wire_main, wire);
  }
  if (error == 0)
    return ncclSuccess;
  endpoint->wire = NULL;
  host_fork_close(wire->bell);
  free(wire->polls);
  free(wire);
  return ncclSystemError;
}

void host_wire_stop(host_wire_t *wire) {
  atomic_store(&wire->stop, true);
  host_wire_poke(wire);
  pthread_join(wire->thread, NULL);
  for (int peer = 0; peer < wire->endpoint->ranks; peer++)
    host_fork_close(wire->link[peer].fd);
  host_fork_close(wire->bell);
  free(wire->polls);
  free(wire);
}

void host_wire_poke(host_wire_t *wire) {
  const uint64_t one = 1;
  if (atomic_exchange(&wire->poked, true))
    return;
  ssize_t written = write(wire->bell, &one, sizeof one);
  (void)written;
}

bool host_wire_gone(const host_wire_t *wire, int peer) {
  return atomic_load(&wire->link[peer].gone);
}

bool host_wire_settled(const host_wire_t *wire) {
  const host_endpoint_t *e = wire->endpoint;
  for (int peer = 0; peer < e->ranks; peer++)
    if (peer != e->rank && !atomic_load(&wire->link[peer].gone) &&
        atomic_load(&wire->link[peer].arrived) != e->out[peer].position)
      return false;
  return true;
}
