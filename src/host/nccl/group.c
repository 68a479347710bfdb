// SPDX-License-Identifier: Apache-2.0
// Groups: collects the calls of a thread and launches them together.
#include "src/host/nccl/group.h"

#include <stdlib.h>

#include "src/host/nccl/reduce.h"
#include "src/host/nccl/work.h"

typedef struct entry {
  ncclComm_t comm; // NULL after the launch
  host_op_t op;
} entry_t;

typedef struct group {
  int depth;
  ncclResult_t error; // the first error since the outermost start
  entry_t *entries;
  int entries_count;
  int entries_room;
  ncclComm_t *
      *joins; // addresses of the program's variables for new communicators
  int joins_count;
  int joins_room;
} group_t;

static _Thread_local group_t group;

// Makes room for one more element.
static void *grow(void *array, int count, int *room, size_t size) {
  if (count < *room)
    return array;
  int more = 2 * *room + 8;
  void *grown = realloc(array, (size_t)more * size);
  if (grown)
    *room = more;
  return grown;
}

ncclResult_t host_group_start(void) {
  group.depth++;
  return ncclSuccess;
}

ncclResult_t host_group_fail(ncclResult_t error) {
  if (group.depth > 0 && group.error == ncclSuccess)
    group.error = error;
  return error;
}

// Returns whether this rank sends itself as many messages as it receives, with
// equal sizes.
static bool self_matches(ncclComm_t comm, const host_op_t *ops, int count) {
  int r = 0;
  for (int s = 0; s <= count; s++) {
    bool more = s < count;
    if (more && (ops[s].kind != HOST_OP_SEND || ops[s].root != comm->rank))
      continue;
    while (r < count &&
           (ops[r].kind != HOST_OP_RECV || ops[r].root != comm->rank))
      r++;
    if (!more || r == count)
      return !more && r == count;
    if (ops[s].count * host_type_bytes(ops[s].type) !=
        ops[r].count * host_type_bytes(ops[r].type))
      return false;
    r++;
  }
  return true;
}

static ncclResult_t launch(ncclComm_t comm, host_op_t *ops, int count) {
  if (!self_matches(comm, ops, count)) {
    host_comm_say(NULL, "a send to the rank itself has no receive of its size "
                        "in the same group, or the reverse");
    free(ops);
    return ncclInvalidUsage;
  }
  return host_work_launch(comm, ops, count);
}

ncclResult_t host_group_op(ncclComm_t comm, const host_op_t *op) {
  if (group.depth == 0) {
    host_op_t *ops = malloc(sizeof *ops);
    if (!ops)
      return ncclSystemError;
    *ops = *op;
    return launch(comm, ops, 1);
  }
  entry_t *entries = grow(group.entries, group.entries_count,
                          &group.entries_room, sizeof *entries);
  if (!entries)
    return host_group_fail(ncclSystemError);
  group.entries = entries;
  group.entries[group.entries_count++] = (entry_t){comm, *op};
  return ncclSuccess;
}

// Launches all operations of the communicator of entry `first`.
static ncclResult_t launch_comm(int first) {
  ncclComm_t comm = group.entries[first].comm;
  size_t room = (size_t)(group.entries_count - first);
  host_op_t *ops = malloc(room * sizeof *ops);
  if (!ops)
    return ncclSystemError;
  int count = 0;
  for (int i = first; i < group.entries_count; i++)
    if (group.entries[i].comm == comm) {
      ops[count++] = group.entries[i].op;
      group.entries[i].comm = NULL;
    }
  return launch(comm, ops, count);
}

static ncclResult_t launch_ops(void) {
  ncclResult_t result = ncclSuccess;
  for (int i = 0; i < group.entries_count; i++) {
    if (!group.entries[i].comm)
      continue;
    ncclResult_t launched = launch_comm(i);
    if (result == ncclSuccess)
      result = launched;
  }
  return result;
}

static void join_discard(ncclComm_t *comm) {
  host_comm_abort(*comm);
  *comm = NULL;
}

// Joins all new communicators of the group at the same time.
static ncclResult_t run_joins(void) {
  ncclResult_t result = ncclSuccess;
  bool pending = false;
  for (int i = 0; i < group.joins_count; i++) {
    ncclComm_t *comm = group.joins[i];
    if (host_comm_join_begin(*comm) != ncclSuccess) {
      join_discard(comm);
      group.joins[i] = NULL;
      result = ncclSystemError;
    }
  }
  for (int i = 0; i < group.joins_count; i++) {
    ncclComm_t *comm = group.joins[i];
    if (!comm)
      continue;
    if (!(*comm)->blocking) {
      pending = true;
      continue;
    }
    ncclResult_t joined = host_comm_joined(*comm);
    if (joined != ncclSuccess)
      join_discard(comm);
    if (result == ncclSuccess)
      result = joined;
  }
  return result == ncclSuccess && pending ? ncclInProgress : result;
}

ncclResult_t host_group_join(ncclComm_t *comm) {
  if (group.depth > 0) {
    ncclComm_t **joins =
        grow(group.joins, group.joins_count, &group.joins_room, sizeof *joins);
    if (!joins) {
      join_discard(comm);
      return host_group_fail(ncclSystemError);
    }
    group.joins = joins;
    group.joins[group.joins_count++] = comm;
    return ncclSuccess;
  }
  ncclResult_t result =
      (*comm)->blocking ? host_comm_join(*comm) : host_comm_join_begin(*comm);
  if (result != ncclSuccess)
    join_discard(comm);
  else if (!(*comm)->blocking)
    result = ncclInProgress;
  return result;
}

ncclResult_t host_group_end(void) {
  if (group.depth == 0) {
    host_comm_say(NULL, "no group has been started");
    return ncclInvalidUsage;
  }
  if (--group.depth > 0)
    return ncclSuccess;
  ncclResult_t result = group.error;
  if (result != ncclSuccess) {
    for (int i = 0; i < group.joins_count; i++)
      join_discard(group.joins[i]);
  } else {
    result = run_joins();
    if (result == ncclSuccess)
      result = launch_ops();
  }
  // Freed after the outermost group, so that threads need no destructor.
  free(group.entries);
  free(group.joins);
  group = (group_t){.depth = 0};
  return result;
}
