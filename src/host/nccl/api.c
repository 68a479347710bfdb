// SPDX-License-Identifier: Apache-2.0
// The exported functions for communicators and groups. They check arguments and
// return NCCL's codes.
#include "src/host/nccl/api.h"

#include <limits.h>
#include <stddef.h>

#include "src/host/nccl/config.h"
#include "src/host/nccl/group.h"
#include "src/host/nccl/net/join.h"

// NCCL 2.32 says by macros that these do nothing; programs call functions.
#undef ncclResetDebugInit
#undef pncclResetDebugInit

// The header declares these without their parameter lists.
ncclResult_t pncclGroupStart(void);
ncclResult_t pncclGroupEnd(void);
void pncclResetDebugInit(void);

static ncclResult_t invalid(const char *function, const char *what) {
  host_comm_say(NULL, "%s: %s", function, what);
  return host_group_fail(ncclInvalidArgument);
}

ncclResult_t pncclGetVersion(int *version) {
  if (!version)
    return invalid("ncclGetVersion", "NULL argument");
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
NCCL_API(ncclGetVersion);

ncclResult_t pncclGetUniqueId(ncclUniqueId *id) {
  if (!id)
    return invalid("ncclGetUniqueId", "NULL argument");
  return host_join_offer(id);
}
NCCL_API(ncclGetUniqueId);

const char *pncclGetErrorString(ncclResult_t code) {
  static const char *const text[] = {
      "no error",
      "error of a CUDA call",
      "error of a system call",
      "internal error",
      "invalid argument",
      "invalid usage",
      "a remote process has ended or its communicator has failed",
      "operation in progress",
  };
  return (unsigned)code < ncclNumResults ? text[code] : "unknown result code";
}
NCCL_API(ncclGetErrorString);

const char *pncclGetLastError(ncclComm_t comm) {
  return host_comm_said(comm);
}
NCCL_API(ncclGetLastError);

// The other members are about GPUs.
bool host_config_read(const ncclConfig_t *config, bool *out_blocking) {
  *out_blocking = true;
  if (!config)
    return true;
  if (config->magic != 0xcafebeef || config->size < sizeof(size_t) + 12)
    return false;
  if (config->blocking == NCCL_CONFIG_UNDEF_INT)
    return true;
  *out_blocking = config->blocking == 1;
  return config->blocking == 0 || config->blocking == 1;
}

static ncclResult_t init(const char *function, ncclComm_t *comm, int ranks,
                         const ncclUniqueId *id, int rank,
                         const ncclConfig_t *config) {
  bool blocking;
  if (!comm)
    return invalid(function, "NULL argument");
  *comm = NULL;
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return invalid(function, "no such rank");
  if (!host_config_read(config, &blocking))
    return invalid(function, "not a configuration");
  if (ranks > HOST_RANKS_MAX) {
    host_comm_say(NULL, "%s: more than %d ranks", function, HOST_RANKS_MAX);
    return host_group_fail(ncclInvalidUsage);
  }
  ncclResult_t result = host_comm_create(id, rank, ranks, blocking, comm);
  return result == ncclSuccess ? host_group_join(comm)
                               : host_group_fail(result);
}

ncclResult_t pncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id,
                               int rank) {
  return init("ncclCommInitRank", comm, nranks, &id, rank, NULL);
}
NCCL_API(ncclCommInitRank);

ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int nranks,
                                     ncclUniqueId id, int rank,
                                     ncclConfig_t *config) {
  return init("ncclCommInitRankConfig", comm, nranks, &id, rank, config);
}
NCCL_API(ncclCommInitRankConfig);

ncclResult_t pncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank,
                                       int ids, ncclUniqueId *id,
                                       ncclConfig_t *config) {
  if (ids < 1 || !id)
    return invalid("ncclCommInitRankScalable", "no unique id");
  return init("ncclCommInitRankScalable", comm, nranks, id, rank, config);
}
NCCL_API(ncclCommInitRankScalable);

ncclResult_t pncclCommInitAll(ncclComm_t *comm, int ndev, const int *devices) {
  int there;
  if (!comm || ndev < 1)
    return invalid("ncclCommInitAll", "no communicator asked for");
  if (cudaGetDeviceCount(&there) != cudaSuccess)
    return host_group_fail(ncclUnhandledCudaError);
  for (int i = 0; i < ndev && devices; i++)
    if (devices[i] < 0 || devices[i] >= there)
      return invalid("ncclCommInitAll", "no such device");
  if (ndev > 1) {
    host_comm_say(NULL, "ncclCommInitAll: a process has one device");
    return host_group_fail(ndev > there && !devices ? ncclInvalidArgument
                                                    : ncclInvalidUsage);
  }
  ncclUniqueId id;
  ncclResult_t result = host_join_offer(&id);
  return result == ncclSuccess ? init("ncclCommInitAll", comm, 1, &id, 0, NULL)
                               : host_group_fail(result);
}
NCCL_API(ncclCommInitAll);

// Checks a communicator that is to be destroyed; ncclInvalidArgument while it
// joins.
static ncclResult_t check_idle(ncclComm_t comm) {
  ncclResult_t result = host_comm_check(comm);
  if (result != ncclSuccess)
    return host_group_fail(result);
  pthread_mutex_lock(&comm->lock);
  bool joining = comm->state == HOST_COMM_JOINING;
  pthread_mutex_unlock(&comm->lock);
  return joining ? invalid("communicator", "still being initialised")
                 : ncclSuccess;
}

ncclResult_t pncclCommFinalize(ncclComm_t comm) {
  if (!comm)
    return ncclSuccess;
  ncclResult_t result = check_idle(comm);
  if (result == ncclSuccess)
    result = host_comm_usable(comm);
  if (result != ncclSuccess)
    return result;
  pthread_mutex_lock(&comm->lock);
  comm->finalized = true;
  bool done = comm->ended == comm->issued;
  pthread_mutex_unlock(&comm->lock);
  if (!comm->blocking)
    return done ? ncclSuccess : ncclInProgress;
  host_comm_drain(comm);
  return host_comm_error(comm);
}
NCCL_API(ncclCommFinalize);

ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  if (!comm)
    return ncclSuccess;
  ncclResult_t result = check_idle(comm);
  if (result == ncclSuccess)
    host_comm_destroy(comm);
  return result;
}
NCCL_API(ncclCommDestroy);

ncclResult_t pncclCommAbort(ncclComm_t comm) {
  if (!comm)
    return ncclSuccess;
  ncclResult_t result = host_comm_check(comm);
  if (result == ncclSuccess)
    host_comm_abort(comm);
  return result;
}
NCCL_API(ncclCommAbort);

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  ncclResult_t result = host_comm_check(comm);
  if (result != ncclSuccess)
    return result;
  if (!error)
    return invalid("ncclCommGetAsyncError", "NULL argument");
  *error = host_comm_error(comm);
  return ncclSuccess;
}
NCCL_API(ncclCommGetAsyncError);

// Reads the int at `offset` of a communicator that has joined.
static ncclResult_t query(const char *function, ncclComm_t comm, size_t offset,
                          int *out_number) {
  ncclResult_t result = check_idle(comm);
  if (result != ncclSuccess)
    return result;
  if (!out_number)
    return invalid(function, "NULL argument");
  *out_number = *(const int *)((const char *)comm + offset);
  return ncclSuccess;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int *count) {
  return query("ncclCommCount", comm, offsetof(struct ncclComm, ranks), count);
}
NCCL_API(ncclCommCount);

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device) {
  return query("ncclCommCuDevice", comm, offsetof(struct ncclComm, device),
               device);
}
NCCL_API(ncclCommCuDevice);

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank) {
  return query("ncclCommUserRank", comm, offsetof(struct ncclComm, rank), rank);
}
NCCL_API(ncclCommUserRank);

ncclResult_t pncclGroupStart(void) {
  return host_group_start();
}
NCCL_API(ncclGroupStart);

ncclResult_t pncclGroupEnd(void) {
  return host_group_end();
}
NCCL_API(ncclGroupEnd);

ncclResult_t pncclMemAlloc(void **pointer, size_t size) {
  if (!pointer || size == 0)
    return invalid("ncclMemAlloc", "nothing to allocate");
  return cudaMalloc(pointer, size) == cudaSuccess ? ncclSuccess
                                                  : ncclUnhandledCudaError;
}
NCCL_API(ncclMemAlloc);

ncclResult_t pncclMemFree(void *pointer) {
  return cudaFree(pointer) == cudaSuccess ? ncclSuccess
                                          : ncclUnhandledCudaError;
}
NCCL_API(ncclMemFree);

// Does nothing: the environment is read for each message.
void pncclResetDebugInit(void) {
}
NCCL_API(ncclResetDebugInit);
