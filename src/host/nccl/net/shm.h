/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the ranks of one communicator share, and one rank's end of
 * it: rings, doorbells, the fault word, and which ranks are alive. On several
 * machines each rank has such memory of its own, and a wire (wire.h) copies
 * between them. */
#ifndef SDG_SRC_HOST_NCCL_NET_SHM_H
#define SDG_SRC_HOST_NCCL_NET_SHM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nccl.h>

enum {
  HOST_SLOTS = 4, /* per ordered pair of ranks */
  HOST_SLOT_BYTES = 128 << 10,
  HOST_RANKS_MAX = 128,
};

/* Beyond ncclResult_t: the local rank aborted (ncclCommAbort). */
#define HOST_STOPPED ncclNumResults

/* Head of one slot, in a cache line of its own. `turn` is 2k while the sender
 * may fill the slot for the k-th time, 2k+1 while the receiver may read it. The
 * side whose turn it is owns the other fields. */
typedef struct host_slot {
  _Alignas(64) _Atomic uint32_t turn;
  uint32_t bytes;     /* in this slot */
  uint32_t signature; /* the kind of operation that the message is part of */
  uint32_t unused;
  uint64_t total; /* bytes of the whole message */
} host_slot_t;

/* The futex on which rank r sleeps. */
typedef struct host_bell {
  _Alignas(64) _Atomic uint32_t rung; /* futex word: how often it was rung */
  _Atomic uint32_t asleep; /* ringing needs a system call only then */
  _Atomic uint32_t left;   /* r has destroyed its communicator */
} host_bell_t;

typedef struct host_header {
  _Alignas(64) _Atomic uint64_t fault; /* 0, or the first fault; see below */
  host_bell_t bell[];                  /* one per rank */
} host_header_t;

/* What broke the communicator for everybody. */
typedef enum host_fault_kind {
  HOST_FAULT_NONE,
  HOST_FAULT_DIED,    /* culprit's process ended */
  HOST_FAULT_LEFT,    /* culprit destroyed or aborted while origin waited */
  HOST_FAULT_SIZE,    /* culprit sent another size than origin expects */
  HOST_FAULT_MIXED,   /* culprit runs another operation than origin */
  HOST_FAULT_ADDRESS, /* origin was given an address that is not device memory
                       */
  HOST_FAULT_SKIPPED, /* origin's device error kept work from running */
  HOST_FAULT_INIT,    /* origin could not finish its initialisation */
} host_fault_kind_t;

typedef struct host_fault {
  host_fault_kind_t kind;
  int origin; /* the rank that found it */
  int culprit;
} host_fault_t;

/* One direction to or from one peer. */
typedef struct host_flow {
  uint64_t position; /* number of slots used by this end */
} host_flow_t;

typedef struct host_wire host_wire_t;

/* One rank's end. One thread at a time runs work on it; other threads may call
 * _stop, _fault_get and _fault_set meanwhile. */
typedef struct host_endpoint {
  int rank;
  int ranks;
  int fd; /* of the segment; -1: the end of this rank is not detected, because
             the segment belongs to a wire or the ranks are threads */
  host_wire_t *wire; /* NULL on one machine */
  bool owns_map;
  void *map;
  size_t map_bytes;
  host_header_t *header;
  host_slot_t *slots; /* [source][destination][HOST_SLOTS] */
  char *data;         /* [source][destination][HOST_SLOTS][HOST_SLOT_BYTES] */
  host_flow_t *out;   /* per peer */
  host_flow_t *in;
  atomic_bool stopped;
} host_endpoint_t;

/* Creates a segment for `ranks` ranks, all zero and untouched; -1 with errno.
 * It has no name, cannot be resized, and is freed with its last descriptor and
 * mapping. */
int host_segment_create(int ranks);

/* Maps segment `fd` for `rank`; owns fd when successful. */
ncclResult_t host_endpoint_open(host_endpoint_t *endpoint, int fd, int rank,
                                int ranks);

/* Makes a segment in this process only, for a wire. */
ncclResult_t host_endpoint_mirror(host_endpoint_t *endpoint, int rank,
                                  int ranks);

/* Opens a further rank in the same process on the mapping of `other`, which
 * must outlive it. For tests with threads as ranks. */
ncclResult_t host_endpoint_share(host_endpoint_t *endpoint,
                                 const host_endpoint_t *other, int rank);

/* Announces this process as alive until it ends or closes the endpoint. The
 * process may have no other descriptor of the segment open. */
ncclResult_t host_endpoint_announce(host_endpoint_t *endpoint);

/* Tells the peers that this rank has left, and unmaps. */
void host_endpoint_close(host_endpoint_t *endpoint);

/* Ends every wait of this rank with HOST_STOPPED, now and later. */
void host_endpoint_stop(host_endpoint_t *endpoint);

/* Records a fault for all ranks; the first one stays. */
void host_fault_set(host_endpoint_t *endpoint, host_fault_t fault);
/* Records a fault that another machine recorded. */
void host_fault_hear(host_endpoint_t *endpoint, uint64_t word);
host_fault_t host_fault_get(const host_endpoint_t *endpoint);

/* Return the fault's result code for this rank, and its text. */
ncclResult_t host_fault_result(const host_endpoint_t *endpoint,
                               host_fault_t fault);
void host_fault_text(host_fault_t fault, char *text, size_t text_bytes);

/* Returns true when the process of `peer` has ended, reaped or not. */
bool host_endpoint_dead(const host_endpoint_t *endpoint, int peer);

/* Returns true when this rank may end: the data that it sent no longer needs
 * its segment. */
bool host_endpoint_settled(const host_endpoint_t *endpoint);

/* Wakes this rank if it sleeps. */
void host_bell_wake_own(host_endpoint_t *endpoint);

/* Wakes `peer` if it sleeps. Call it after the sequentially consistent store
 * for which the peer may wait. */
void host_bell_ring(host_endpoint_t *endpoint, int peer);

/* Sleeps until the bell rings (or has rung since `seen` was read), or until the
 * timeout. Returns true after a timeout. */
bool host_bell_sleep(host_endpoint_t *endpoint, uint32_t seen, long timeout_ms);

/* Returns the index of the slot at `position` of the flow from `source` to
 * `destination`. */
static inline size_t host_slot_index(const host_endpoint_t *endpoint,
                                     int source, int destination,
                                     uint64_t position) {
  return ((size_t)source * (size_t)endpoint->ranks + (size_t)destination) *
             HOST_SLOTS +
         (size_t)(position % HOST_SLOTS);
}

static inline uint32_t host_slot_turn(uint64_t position) {
  return (uint32_t)(position / HOST_SLOTS * 2);
}

#endif
