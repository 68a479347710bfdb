// SPDX-License-Identifier: Apache-2.0
// Passes the exchanges and reductions of a plan to NCCL.
#include "src/exchange/messages.h"

#include <stdlib.h>

#include "src/base/hash.h"
#include "src/base/vendor.h"
#include "src/comm/comm.h"
#include "src/exchange/device.h"
#include "src/comm/watch.h"
#include "src/job/job.h"
#include "src/job/launch_order.h"
#include "src/plan/combine.h"

static ncclResult_t parcels_enqueue(const sdg_exec_t *exec,
                                    const sdg_step_t *step,
                                    const sdg_comm_t *comm,
                                    cudaStream_t stream) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  ncclResult_t result = ncclSuccess;
  for (int i = 0; i < step->parcels && result == ncclSuccess; i++) {
    const sdg_parcel_t *parcel = &exec->plan->parcel[step->parcel + i];
    char *data =
        (char *)sdg_exec_address(exec, parcel->slab) + parcel->offset_bytes;
    int peer = comm->peer[parcel->peer];
    result = parcel->is_send ? nccl->ncclSend(data, parcel->bytes, ncclInt8,
                                              peer, comm->exchange, stream)
                             : nccl->ncclRecv(data, parcel->bytes, ncclInt8,
                                              peer, comm->exchange, stream);
    if (result == ncclInProgress)
      result = ncclSuccess;
  }
  return result;
}

// Enqueues all messages as one group; returns the first failure.
static ncclResult_t messages_enqueue(const sdg_exec_t *exec,
                                     const sdg_step_t *step,
                                     const sdg_parcels_t *more,
                                     const sdg_comm_t *comm,
                                     cudaStream_t stream) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  ncclResult_t result = nccl->ncclGroupStart();
  if (result != ncclSuccess)
    return result;
  result = parcels_enqueue(exec, step, comm, stream);
  if (more && result == ncclSuccess)
    result = parcels_enqueue(more->exec, more->step, comm, stream);
  ncclResult_t end = nccl->ncclGroupEnd();
  return result == ncclSuccess ? end : result;
}

static ncclResult_t reduction_enqueue(const sdg_exec_t *exec,
                                      const sdg_step_t *step, ncclComm_t comm,
                                      cudaStream_t stream) {
  ncclDataType_t type = ncclInt8;
  // succeeds: the plan was refused otherwise
  sdg_combine_type(step->type, &type);
  void *data = sdg_exec_element(exec, step->slab, &step->box);
  return sdg_vendor_get()->ncclAllReduce(
      data, data, (size_t)sdg_box_count(&step->box), type,
      sdg_combine_op(step->combine), comm, stream);
}

// A rank without messages in an exchange still takes its turn in the launch
// order, and then does nothing.
sdg_status_t sdg_messages_enqueue(const sdg_exec_t *exec,
                                  const sdg_step_t *step,
                                  const sdg_parcels_t *more,
                                  cudaStream_t stream) {
  bool reduces = step->kind == SDG_STEP_REDUCE;
  sdg_comm_t *comm;
  SDG_TRY(sdg_comm_get(step->axes, &comm));
  bool any = reduces ? comm->sum && !sdg_box_empty(&step->box)
                     : step->parcels + (more ? more->step->parcels : 0) > 0;
  SDG_TRY(sdg_launch_order_begin());
  sdg_status_t status = any ? sdg_watch_begin(exec->call->entry_name) : SDG_OK;
  bool watched = any && status == SDG_OK;
  if (watched)
    status = sdg_comm_lock();
  if (watched && status == SDG_OK) {
    ncclResult_t result =
        reduces ? reduction_enqueue(exec, step, comm->sum, stream)
                : messages_enqueue(exec, step, more, comm, stream);
    sdg_comm_unlock();
    status =
        sdg_comm_check(reduces ? comm->sum : comm->exchange, result,
                       reduces ? "a sum over ranks" : "the exchange of halos");
  }
  sdg_launch_order_end();
  // What is captured runs later; its launches are watched.
  return !watched     ? status
         : exec->room ? sdg_watch_enclosed(status)
                      : sdg_watch_end(status, stream);
}

// Rows that no message fills become visible as NaN.
sdg_status_t sdg_messages_poison(const sdg_exec_t *exec, const sdg_step_t *step,
                                 cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  for (int i = 0; i < step->parcels; i++) {
    const sdg_parcel_t *parcel = &exec->plan->parcel[step->parcel + i];
    char *data =
        (char *)sdg_exec_address(exec, parcel->slab) + parcel->offset_bytes;
    // All bits set is a NaN in every floating type.
    if (!parcel->is_send)
      SDG_TRY(sdg_vendor_check(
          cuda->cudaMemsetAsync(data, 0xff, parcel->bytes, stream),
          "fill of a receive buffer"));
  }
  return SDG_OK;
}

sdg_status_t sdg_messages_digest(const sdg_exec_t *exec, cudaStream_t stream,
                                 uint64_t *out) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  sdg_digest_t digest;
  sdg_digest_init(&digest);
  for (int i = 0; i < exec->plan->parcels; i++) {
    const sdg_parcel_t *parcel = &exec->plan->parcel[i];
    if (!parcel->is_send)
      continue;
    unsigned char *bytes = malloc(parcel->bytes + 1);
    if (!bytes)
      return sdg_fail(SDG_E_NO_MEMORY, "a message of %zu bytes", parcel->bytes);
    char *data =
        (char *)sdg_exec_address(exec, parcel->slab) + parcel->offset_bytes;
    cudaError_t result = cuda->cudaMemcpyAsync(bytes, data, parcel->bytes,
                                               cudaMemcpyDeviceToHost, stream);
    if (result == cudaSuccess)
      result = cuda->cudaStreamSynchronize(stream);
    if (result == cudaSuccess)
      sdg_digest_add(&digest, bytes, parcel->bytes);
    free(bytes);
    SDG_TRY(sdg_vendor_check(result, "copy of a message"));
  }
  *out = sdg_digest_value(&digest);
  return SDG_OK;
}
