/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator: its states from joining to the last reference, its errors,
 * and the order of its work. */
#ifndef SDG_SRC_HOST_NCCL_COMM_H
#define SDG_SRC_HOST_NCCL_COMM_H

#include <pthread.h>

#include "src/host/nccl/collective.h"

typedef enum host_comm_state {
  HOST_COMM_JOINING,
  HOST_COMM_READY,
  HOST_COMM_FAILED, /* joining failed; see `broken` */
  HOST_COMM_CLOSED, /* endpoint closed; only queued work still refers to it */
} host_comm_state_t;

enum { HOST_REDOPS_MAX = 64 };

/* A reduction made by the program: multiplies by a number, then sums. */
typedef struct host_redop {
  bool used;
  ncclDataType_t type;
  const void *at;  /* the number's address in device memory or, if NULL, */
  uint64_t factor; /* its bits */
} host_redop_t;

struct ncclComm {
  uint64_t magic;
  int rank;
  int ranks;
  int device;
  bool blocking;
  unsigned generation; /* number of forks at its creation */
  ncclUniqueId id;
  atomic_bool stop_joining;
  pthread_t joiner;
  bool has_joiner;
  host_endpoint_t endpoint;

  /* Held while work gets its ticket and its place in a stream, so that both
   * have the order of launches. Its holder may wait for room in the stream.
   * Taken before `lock`. */
  pthread_mutex_t launch;
  pthread_mutex_t lock; /* guards what follows; innermost */
  pthread_cond_t changed;
  host_comm_state_t state;
  ncclResult_t broken; /* first error of this rank; ncclSuccess if none */
  bool finalized;
  bool aborted;
  bool closing; /* a thread is destroying it */
  bool running; /* work is moving data */
  uint64_t issued;
  uint64_t turn; /* the ticket that may run next */
  uint64_t ended;
  unsigned references;
  host_redop_t redop[HOST_REDOPS_MAX]; /* number ncclNumOps + its index */
  char text[256];                      /* about `broken` */
};

/* Creates a communicator that has not joined, with one reference. */
ncclResult_t host_comm_create(const ncclUniqueId *id, int rank, int ranks,
                              bool blocking, ncclComm_t *out_comm);

/* Joins in this thread and returns the result. */
ncclResult_t host_comm_join(ncclComm_t comm);

/* Joins in a thread of its own; host_comm_joined waits for it. */
ncclResult_t host_comm_join_begin(ncclComm_t comm);
ncclResult_t host_comm_joined(ncclComm_t comm);

/* Returns ncclInvalidArgument if `comm` is no communicator, ncclInvalidUsage if
 * the process forked after its creation. */
ncclResult_t host_comm_check(ncclComm_t comm);

/* Checks as host_comm_check does. Also returns ncclInvalidArgument while the
 * communicator joins, its error if it has failed, and ncclInvalidUsage after
 * finalize. */
ncclResult_t host_comm_usable(ncclComm_t comm);

/* Returns ncclInProgress, the first error, or ncclSuccess. */
ncclResult_t host_comm_error(ncclComm_t comm);

/* Waits until all work issued so far has ended. */
void host_comm_drain(ncclComm_t comm);

/* Waits for the work, tells the peers, and drops the caller's reference. */
void host_comm_destroy(ncclComm_t comm);

/* Destroys without waiting: waits end now, and queued work will do nothing. */
void host_comm_abort(ncclComm_t comm);

/* Drops a reference; the last one frees. */
void host_comm_drop(ncclComm_t comm);

/* Stores a text for ncclGetLastError (comm may be NULL), and prints it if
 * NCCL_DEBUG asks for warnings. */
__attribute__((format(printf, 2, 3))) void
host_comm_say(ncclComm_t comm, const char *format, ...);

/* Returns the communicator's last text, else the process's. Valid until the
 * thread's next call. */
const char *host_comm_said(ncclComm_t comm);

#endif
