/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator: its life from joining to the last reference, its errors, and
 * the order of its work. */
#ifndef SDG_SRC_HOST_NCCL_COMM_H
#define SDG_SRC_HOST_NCCL_COMM_H

#include <pthread.h>

#include "src/host/nccl/collective.h"

typedef enum host_comm_state {
  HOST_COMM_JOINING,
  HOST_COMM_READY,
  HOST_COMM_FAILED, /* joining failed; see `broken` */
  HOST_COMM_CLOSED, /* endpoint gone; only references of queued work remain */
} host_comm_state_t;

enum { HOST_REDOPS_MAX = 64 };

/* An operator of the program's: multiplies by a number, then sums. */
typedef struct host_redop {
  bool used;
  ncclDataType_t type;
  const void *at;  /* the number, in device memory, or NULL and */
  uint64_t factor; /* its bits */
} host_redop_t;

struct ncclComm {
  uint64_t magic;
  int rank;
  int ranks;
  int device;
  bool blocking;
  unsigned generation; /* of forks, at creation */
  ncclUniqueId id;
  atomic_bool stop_joining;
  pthread_t joiner;
  bool has_joiner;
  host_endpoint_t endpoint;

  /* Held while work gets its ticket and its place in a stream, so that both are
   * in the order of launches; may wait for room in the stream. Taken before
   * `lock`. */
  pthread_mutex_t launch;
  pthread_mutex_t lock; /* guards what follows; innermost */
  pthread_cond_t changed;
  host_comm_state_t state;
  ncclResult_t broken; /* first error of this rank; ncclSuccess if none */
  bool finalized;
  bool aborted;
  bool closing; /* a thread is in destroy */
  bool running; /* work is moving data now */
  uint64_t issued;
  uint64_t turn; /* ticket that may run next */
  uint64_t ended;
  unsigned references;
  host_redop_t redop[HOST_REDOPS_MAX]; /* number ncclNumOps + its index */
  char text[256];                      /* about `broken` */
};

/* A communicator that has not joined yet, with one reference, in *out_comm. */
ncclResult_t host_comm_create(const ncclUniqueId *id, int rank, int ranks,
                              bool blocking, ncclComm_t *out_comm);

/* Joins in this thread and returns the result. */
ncclResult_t host_comm_join(ncclComm_t comm);

/* Joins in a thread of its own; host_comm_joined waits for it. */
ncclResult_t host_comm_join_begin(ncclComm_t comm);
ncclResult_t host_comm_joined(ncclComm_t comm);

/* ncclInvalidArgument for what is no communicator, ncclInvalidUsage for one of
 * the parent of fork. */
ncclResult_t host_comm_check(ncclComm_t comm);

/* As _check; also ncclInvalidArgument while joining, the communicator's error
 * if it has one, ncclInvalidUsage after finalize. */
ncclResult_t host_comm_usable(ncclComm_t comm);

/* ncclInProgress, the first error, or ncclSuccess. */
ncclResult_t host_comm_error(ncclComm_t comm);

/* Waits until all work issued so far has ended. */
void host_comm_drain(ncclComm_t comm);

/* Drops the caller's reference after the work has ended, and tells the peers.
 */
void host_comm_destroy(ncclComm_t comm);

/* The same at once: waits end now, queued work will do nothing. */
void host_comm_abort(ncclComm_t comm);

/* Gives back a reference; the last one frees. */
void host_comm_drop(ncclComm_t comm);

/* Keeps a text for ncclGetLastError (comm may be NULL), and prints it if
 * NCCL_DEBUG asks for warnings. */
__attribute__((format(printf, 2, 3))) void
host_comm_say(ncclComm_t comm, const char *format, ...);

/* The last text, of the communicator if it has one; valid until the thread's
 * next call. */
const char *host_comm_said(ncclComm_t comm);

#endif
