// SPDX-License-Identifier: Apache-2.0
// An NCCL of host functions, whose messages go through mailboxes.
#include <nccl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/fake_cuda.h"
#include "tests/unit/fake_queue.h"
#include "tests/unit/harness.h"
#include "tests/unit/job.h"

enum {
  MESSAGES = 256,
  COMMS = 16,
  SPLITS = 4,
  SLOTS = 32,
  SLOT_BYTES = 1 << 14
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

struct group {
  const comm_t *comm;
  int count;
  message_t message[MESSAGES];
  // An all-reduce is messages from each rank to each, combined after all
  // arrived.
  float *sum;
  size_t sums;
  ncclRedOp_t combine;
  float *theirs; // [ranks][sums]; [me] is unused
};

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
  REQUIRE(config->maxCTAs == 4 && ranks <= FAKE_CUDA_RANKS && fake_connects());
  fake_device_check();
  comm_t *comm = malloc(sizeof *comm);
  *comm = (comm_t){.id = id.internal[0], .ranks = ranks, .me = me};
  *out = (ncclComm_t)(void *)comm;
  return ncclSuccess;
}

// Keys are the ranks' numbers.
static ncclResult_t fake_comm_split(ncclComm_t from, int color, int key,
                                    ncclComm_t *out, ncclConfig_t *config) {
  comm_t *all = (comm_t *)(void *)from;
  REQUIRE(key == all->me && !config && all->splits < SPLITS && fake_connects());
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
  if (fake_connects()) {
    own->connected[peer] |= is_send;
    return ncclSuccess;
  }
  // Otherwise NCCL would wait on the host for the peer.
  REQUIRE(open_group->sum ? own->sums : own->connected[peer]);
  // NCCL gets none of the program's: two of these are the legacy stream's and
  // the per-thread stream's handles.
  REQUIRE(fake_is_comm_stream(stream));
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
  if (fake_connects()) {
    free(open_group);
    open_group = NULL;
    return ncclSuccess;
  }
  fake_op_add(group_stream, OP_GROUP)->group = open_group;
  open_group = NULL;
  return ncclSuccess;
}

static ncclResult_t fake_all_reduce(const void *from, void *to, size_t count,
                                    ncclDataType_t type, ncclRedOp_t op,
                                    ncclComm_t comm, cudaStream_t stream) {
  comm_t *own = (comm_t *)(void *)comm;
  size_t bytes = count * sizeof(float);
  REQUIRE(from == to && type == ncclFloat32 && !open_group);
  own->sums |= fake_connects();
  if (fake_connects())
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

bool fake_group_go(group_t *group) {
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
  if (left > 0)
    return false;
  group_combine(group);
  free(group);
  return true;
}

// ---- the job --------------------------------------------------------------

void *fake_nccl_find(const char *name) {
  static const job_fake_t table[] = {
      JOB_FAKE(ncclCommSplit, fake_comm_split),
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

void fake_nccl_open(void) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(shared, MAP_FAILED);
}

void fake_nccl_close(void) {
  munmap(shared, sizeof *shared);
}
