// SPDX-License-Identifier: Apache-2.0
// Communicators made from others: split by colour, or shrunk to fewer ranks.
// The ranks exchange what they need over the parent, in the order of its
// operations.
#include <stdlib.h>
#include <string.h>

#include "src/host/nccl/api.h"
#include "src/host/nccl/config.h"
#include "src/host/nccl/group.h"
#include "src/host/nccl/net/join.h"
#include "src/host/nccl/work.h"

// The words that each rank sends to all: its wishes, then the id if it leads.
typedef struct word {
  int color, key;
  ncclUniqueId id;
} word_t;

static ncclResult_t invalid(const char *function, const char *what) {
  host_comm_say(NULL, "%s: %s", function, what);
  return host_group_fail(ncclInvalidArgument);
}

// Runs operations on the parent at once, even if a group is open.
static ncclResult_t run_now(ncclComm_t comm, const host_op_t *ops, int count) {
  cudaStream_t stream;
  host_op_t *copy = malloc((size_t)count * sizeof *copy);
  if (!copy || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) !=
                   cudaSuccess) {
    free(copy);
    return ncclUnhandledCudaError;
  }
  memcpy(copy, ops, (size_t)count * sizeof *copy);
  for (int i = 0; i < count; i++)
    copy[i].stream = stream;
  ncclResult_t result = host_work_launch(comm, copy, count);
  if (result == ncclSuccess && cudaStreamSynchronize(stream) != cudaSuccess)
    result = ncclUnhandledCudaError;
  (void)cudaStreamDestroy(stream);
  ncclResult_t state = host_comm_error(comm);
  return state != ncclSuccess ? state : result;
}

// Every rank gets every rank's words. `words` has room for all, in memory that
// the device can use.
static ncclResult_t tell_all(ncclComm_t comm, word_t *words) {
  return run_now(comm,
                 &(host_op_t){.kind = HOST_OP_ALL_GATHER,
                              .send = &words[comm->rank],
                              .recv = words,
                              .count = sizeof(word_t),
                              .type = ncclUint8},
                 1);
}

static bool comes_before(const word_t *words, int a, int b) {
  return words[a].key != words[b].key ? words[a].key < words[b].key : a < b;
}

// Creates a communicator of `ranks` ranks in which this process is `rank`.
static ncclResult_t make(ncclComm_t parent, const ncclUniqueId *id, int rank,
                         int ranks, const ncclConfig_t *config,
                         ncclComm_t *out_comm) {
  bool blocking = parent->blocking;
  if (config && config->blocking != NCCL_CONFIG_UNDEF_INT)
    blocking = config->blocking == 1;
  ncclResult_t result = host_comm_create(id, rank, ranks, blocking, out_comm);
  return result == ncclSuccess ? host_group_join(out_comm)
                               : host_group_fail(result);
}

// Numbers the ranks of this rank's colour; the first of them makes the id.
static ncclResult_t split(ncclComm_t comm, word_t *words,
                          const ncclConfig_t *config, ncclComm_t *out_comm) {
  ncclResult_t result = tell_all(comm, words);
  if (result != ncclSuccess)
    return host_group_fail(result);
  const word_t *mine = &words[comm->rank];
  int rank = 0, ranks = 0, leader = comm->rank;
  for (int r = 0; r < comm->ranks; r++)
    if (words[r].color == mine->color) {
      ranks++;
      rank += comes_before(words, r, comm->rank);
      if (comes_before(words, r, leader))
        leader = r;
    }
  if (mine->color != NCCL_SPLIT_NOCOLOR && leader == comm->rank)
    result = host_join_offer(&words[comm->rank].id);
  // Also called after a failure, because the others wait.
  ncclResult_t told = tell_all(comm, words);
  if (result != ncclSuccess || told != ncclSuccess)
    return host_group_fail(result != ncclSuccess ? result : told);
  if (mine->color == NCCL_SPLIT_NOCOLOR)
    return ncclSuccess;
  return make(comm, &words[leader].id, rank, ranks, config, out_comm);
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key,
                            ncclComm_t *newcomm, ncclConfig_t *config) {
  bool blocking;
  ncclResult_t result = host_comm_usable(comm);
  if (result != ncclSuccess)
    return host_group_fail(result);
  if (!newcomm || color < NCCL_SPLIT_NOCOLOR)
    return invalid("ncclCommSplit", "no such colour, or NULL argument");
  if (!host_config_read(config, &blocking))
    return invalid("ncclCommSplit", "not a configuration");
  *newcomm = NULL;
  word_t *words;
  if (cudaMallocHost((void **)&words, (size_t)comm->ranks * sizeof *words) !=
      cudaSuccess)
    return host_group_fail(ncclUnhandledCudaError);
  memset(words, 0, (size_t)comm->ranks * sizeof *words);
  words[comm->rank].color = color;
  words[comm->rank].key = key;
  result = split(comm, words, config, newcomm);
  (void)cudaFreeHost(words);
  return result;
}
NCCL_API(ncclCommSplit);

// ---- shrinking: those left out do not take part ----

// The first remaining rank sends the id to the others. `id` is in memory that
// the device can use.
static ncclResult_t tell_those(ncclComm_t comm, const bool *stays, int leader,
                               ncclUniqueId *id) {
  host_op_t ops[HOST_RANKS_MAX];
  int count = 0;
  ncclResult_t result = ncclSuccess;
  if (leader == comm->rank)
    result = host_join_offer(id);
  for (int r = 0; r < comm->ranks; r++)
    if (stays[r] && r != leader && (leader == comm->rank || r == comm->rank))
      ops[count++] = (host_op_t){.kind = leader == comm->rank ? HOST_OP_SEND
                                                              : HOST_OP_RECV,
                                 .send = leader == comm->rank ? id : NULL,
                                 .recv = leader == comm->rank ? NULL : id,
                                 .count = sizeof *id,
                                 .type = ncclUint8,
                                 .root = leader == comm->rank ? r : leader};
  ncclResult_t told = count > 0 ? run_now(comm, ops, count) : ncclSuccess;
  return result != ncclSuccess ? result : told;
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int *excluded, int excluded_count,
                             ncclComm_t *newcomm, ncclConfig_t *config,
                             int shrinkFlags) {
  bool blocking, stays[HOST_RANKS_MAX];
  ncclResult_t result = host_comm_usable(comm);
  if (result != ncclSuccess)
    return host_group_fail(result);
  if (!newcomm || excluded_count < 1 || !excluded)
    return invalid("ncclCommShrink", "nobody to leave out, or NULL argument");
  if (!host_config_read(config, &blocking))
    return invalid("ncclCommShrink", "not a configuration");
  if (shrinkFlags != NCCL_SHRINK_DEFAULT) {
    host_comm_say(NULL, "ncclCommShrink: the parent must be in order");
    return host_group_fail(shrinkFlags == NCCL_SHRINK_ABORT
                               ? ncclInvalidUsage
                               : ncclInvalidArgument);
  }
  memset(stays, true, sizeof stays);
  for (int i = 0; i < excluded_count; i++) {
    int out = excluded[i];
    if (out < 0 || out >= comm->ranks || out == comm->rank)
      return invalid("ncclCommShrink", "no such rank, or this one");
    stays[out] = false;
  }
  int rank = 0, ranks = 0, leader = -1;
  for (int r = 0; r < comm->ranks; r++)
    if (stays[r]) {
      if (leader < 0)
        leader = r;
      rank += r < comm->rank;
      ranks++;
    }
  *newcomm = NULL;
  ncclUniqueId *id;
  if (cudaMallocHost((void **)&id, sizeof *id) != cudaSuccess)
    return host_group_fail(ncclUnhandledCudaError);
  result = tell_those(comm, stays, leader, id);
  result = result == ncclSuccess ? make(comm, id, rank, ranks, config, newcomm)
                                 : host_group_fail(result);
  (void)cudaFreeHost(id);
  return result;
}
NCCL_API(ncclCommShrink);
