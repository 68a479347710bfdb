// SPDX-License-Identifier: Apache-2.0
// The plan executor: two lanes of ordered steps, joined by events.
#include "src/exec.h"

#include <string.h>

#include "src/combine.h"
#include "src/comm.h"
#include "src/device.h"
#include "src/job.h"
#include "src/options.h"
#include "src/scratch.h"
#include "src/thread.h"
#include "src/turn.h"
#include "src/vendor.h"
#include "src/waits.h"
#include "src/watch.h"

// Events are re-recorded from call to call: a wait refers to the record that
// precedes it, so one event per lane and purpose is enough.
typedef struct events {
  cudaEvent_t lane[2]; // how far a lane has come
  cudaEvent_t done;    // the last plan's end, for the next's stream
} events_t;
static events_t events[SDG_CONTROL_THREADS]; // by the thread's channel

void *sdg_exec_address(const sdg_exec_t *exec, int slab) {
  const sdg_slab_t *s = &exec->plan->slab[slab];
  char *base = s->operand == SDG_SLAB_SCRATCH
                   ? exec->scratch
                   : exec->call->operand[s->operand].data;
  return base + s->offset_bytes;
}

void *sdg_exec_element(const sdg_exec_t *exec, int slab, const sdg_box_t *box) {
  const sdg_slab_t *s = &exec->plan->slab[slab];
  int64_t offset = 0;
  for (int d = 0; d < box->dims; d++)
    offset += (box->dim[d].lo - s->box.dim[d].lo) * s->stride[d];
  return (char *)sdg_exec_address(exec, slab) + offset * s->elem_bytes;
}

static sdg_status_t events_get(const sdg_vendor_t *cuda, events_t **out) {
  events_t *own = &events[sdg_thread_channel()];
  cudaEvent_t *const each[] = {&own->lane[0], &own->lane[1], &own->done};
  for (int i = 0; i < 3; i++)
    if (!*each[i])
      SDG_TRY(sdg_device_check(
          cuda->cudaEventCreateWithFlags(each[i], cudaEventDisableTiming),
          "creation of an event"));
  *out = own;
  return SDG_OK;
}

// `stream` waits for what `other` has been given so far.
static sdg_status_t stream_join(const sdg_vendor_t *cuda, cudaStream_t stream,
                                cudaStream_t other, cudaEvent_t event) {
  SDG_TRY(
      sdg_device_check(cuda->cudaEventRecord(event, other), "event record"));
  return sdg_device_check(cuda->cudaStreamWaitEvent(stream, event, 0),
                          "wait for an event");
}

static void extent_of(const sdg_box_t *box, int64_t *out_extent) {
  for (int d = 0; d < box->dims; d++)
    out_extent[d] = box->dim[d].hi - box->dim[d].lo;
}

static sdg_status_t step_copy(const sdg_exec_t *exec, const sdg_step_t *step,
                              cudaStream_t stream) {
  const sdg_slab_t *from = &exec->plan->slab[step->slab];
  const sdg_slab_t *to = &exec->plan->slab[step->to];
  sdg_box_t moved = sdg_box_shift(&step->box, step->shift);
  int64_t extent[SDG_DIMS_MAX];
  extent_of(&step->box, extent);
  sdg_region_t source = {sdg_exec_element(exec, step->slab, &step->box),
                         from->stride};
  sdg_region_t target = {sdg_exec_element(exec, step->to, &moved), to->stride};
  return sdg_device_copy(&source, &target, extent, step->box.dims,
                         from->elem_bytes, stream);
}

static sdg_status_t step_zero(const sdg_exec_t *exec, const sdg_step_t *step,
                              cudaStream_t stream) {
  const sdg_slab_t *slab = &exec->plan->slab[step->slab];
  int64_t extent[SDG_DIMS_MAX];
  extent_of(&step->box, extent);
  sdg_region_t region = {sdg_exec_element(exec, step->slab, &step->box),
                         slab->stride};
  return sdg_device_zero(&region, extent, step->box.dims, slab->elem_bytes,
                         stream);
}

// All messages as one group; the first failure.
static ncclResult_t messages_enqueue(const sdg_exec_t *exec,
                                     const sdg_step_t *step, ncclComm_t comm,
                                     cudaStream_t stream) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  ncclResult_t result = nccl->ncclGroupStart();
  if (result != ncclSuccess)
    return result;
  for (int i = 0; i < step->parcels && result == ncclSuccess; i++) {
    const sdg_parcel_t *parcel = &exec->plan->parcel[step->parcel + i];
    char *data =
        (char *)sdg_exec_address(exec, parcel->slab) + parcel->offset_bytes;
    result = parcel->is_send ? nccl->ncclSend(data, parcel->bytes, ncclInt8,
                                              parcel->peer, comm, stream)
                             : nccl->ncclRecv(data, parcel->bytes, ncclInt8,
                                              parcel->peer, comm, stream);
    if (result == ncclInProgress)
      result = ncclSuccess;
  }
  ncclResult_t end = nccl->ncclGroupEnd();
  return result == ncclSuccess ? end : result;
}

static ncclResult_t reduction_enqueue(const sdg_exec_t *exec,
                                      const sdg_step_t *step, ncclComm_t comm,
                                      cudaStream_t stream) {
  ncclDataType_t type = ncclInt8;
  sdg_combine_type(step->type, &type); // one that can be, or no plan
  void *data = sdg_exec_element(exec, step->slab, &step->box);
  return sdg_vendor_get()->ncclAllReduce(
      data, data, (size_t)sdg_box_count(&step->box), type,
      sdg_combine_op(step->combine), comm, stream);
}

// Gives NCCL what this step has for other ranks. A rank without a message in an
// exchange waits for its turn like the others, and then has nothing to do.
static sdg_status_t step_communicate(const sdg_exec_t *exec,
                                     const sdg_step_t *step,
                                     cudaStream_t stream) {
  bool reduces = step->kind == SDG_STEP_REDUCE;
  bool any = reduces ? !sdg_box_empty(&step->box) : step->parcels > 0;
  sdg_comm_t *comm;
  SDG_TRY(sdg_comm_get(step->axes, &comm));
  SDG_TRY(sdg_turn_begin());
  sdg_status_t status = any ? sdg_comm_lock() : SDG_OK;
  if (any && status == SDG_OK) {
    ncclResult_t result =
        reduces ? reduction_enqueue(exec, step, comm->nccl, stream)
                : messages_enqueue(exec, step, comm->nccl, stream);
    sdg_comm_unlock();
    status = sdg_comm_check(
        comm, result, reduces ? "a sum over ranks" : "the exchange of halos");
  }
  sdg_turn_end();
  return any && status == SDG_OK
             ? sdg_watch_transfer(stream, exec->call->entry_name)
             : status;
}

// The program's stream stands still here if the messages are late.
static sdg_status_t lane_join(const sdg_exec_t *exec, cudaStream_t stream,
                              cudaStream_t other, cudaEvent_t event) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (stream != exec->stream)
    return stream_join(cuda, stream, other, event);
  SDG_TRY(sdg_waits_begin(exec->row, stream));
  SDG_TRY(stream_join(cuda, stream, other, event));
  return sdg_waits_end(stream);
}

// Here, too, it waits for other ranks.
static sdg_status_t step_reduce(const sdg_exec_t *exec, const sdg_step_t *step,
                                cudaStream_t stream) {
  SDG_TRY(sdg_waits_begin(exec->row, stream));
  SDG_TRY(step_communicate(exec, step, stream));
  return sdg_waits_end(stream);
}

// Rows that no message fills would show.
static sdg_status_t recvs_poison(const sdg_exec_t *exec, const sdg_step_t *step,
                                 cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  for (int i = 0; i < step->parcels; i++) {
    const sdg_parcel_t *parcel = &exec->plan->parcel[step->parcel + i];
    char *data =
        (char *)sdg_exec_address(exec, parcel->slab) + parcel->offset_bytes;
    // All bits set is a NaN in every floating type.
    if (!parcel->is_send)
      SDG_TRY(sdg_device_check(
          cuda->cudaMemsetAsync(data, 0xff, parcel->bytes, stream),
          "fill of a receive buffer"));
  }
  return SDG_OK;
}

// Whether a step that follows a refused sub-call is carried out all the same;
// notes if it writes to an operand.
static bool refused_goes_on(const sdg_plan_t *plan, const sdg_step_t *step,
                            sdg_outcome_t *out) {
  switch (step->kind) {
  case SDG_STEP_REDUCE:
    out->mixed |= plan->slab[step->slab].operand != SDG_SLAB_SCRATCH;
    return true;
  case SDG_STEP_EXCHANGE:
    for (int i = step->parcel; i < step->parcel + step->parcels; i++)
      out->mixed |=
          !plan->parcel[i].is_send &&
          plan->slab[plan->parcel[i].slab].operand != SDG_SLAB_SCRATCH;
    return true;
  case SDG_STEP_JOIN:
    return true;
  case SDG_STEP_ZERO:
  case SDG_STEP_COPY:
  case SDG_STEP_CALL:
    break;
  }
  return false;
}

// out_ahead: the communication lane has steps that the main lane has not waited
// for.
static sdg_status_t steps_run(const sdg_exec_t *exec, events_t *own_events,
                              cudaStream_t comm_stream, bool *out_ahead,
                              sdg_outcome_t *out) {
  const sdg_plan_t *plan = exec->plan;
  cudaStream_t stream[2] = {exec->stream, comm_stream};
  for (int i = 0; i < plan->steps; i++) {
    const sdg_step_t *step = &plan->step[i];
    cudaStream_t own = stream[step->lane];
    sdg_lane_t other =
        step->lane == SDG_LANE_MAIN ? SDG_LANE_COMM : SDG_LANE_MAIN;
    if (step->lane == SDG_LANE_COMM)
      *out_ahead = true;
    else if (step->kind == SDG_STEP_JOIN)
      *out_ahead = false;
    // Of what was to be computed only messages are left, on which others count.
    if (out->vendor && !refused_goes_on(plan, step, out))
      continue;
    switch (step->kind) {
    case SDG_STEP_ZERO:
      SDG_TRY(step_zero(exec, step, own));
      break;
    case SDG_STEP_COPY:
      SDG_TRY(step_copy(exec, step, own));
      break;
    case SDG_STEP_EXCHANGE:
      if (sdg_options_get()->check)
        SDG_TRY(recvs_poison(exec, step, own));
      SDG_TRY(step_communicate(exec, step, own));
      break;
    case SDG_STEP_REDUCE:
      SDG_TRY(step_reduce(exec, step, own));
      break;
    case SDG_STEP_JOIN:
      if (comm_stream)
        SDG_TRY(lane_join(exec, own, stream[other], own_events->lane[other]));
      break;
    case SDG_STEP_CALL:
      out->vendor = plan->run(plan->state, step->slab, exec->call, exec);
      out->calls += out->vendor == 0;
      out->mixed = out->vendor && out->calls > 0;
      break;
    }
  }
  return SDG_OK;
}

sdg_status_t sdg_exec_run(const sdg_plan_t *plan, const sdg_call_t *call,
                          cudaStream_t stream, sdg_report_row_t *row,
                          sdg_outcome_t *out) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  events_t *own;
  SDG_TRY(events_get(cuda, &own));
  sdg_exec_t exec = {.plan = plan, .call = call, .stream = stream, .row = row};
  void *scratch;
  SDG_TRY(sdg_scratch_get(plan->scratch_bytes, &scratch));
  exec.scratch = scratch;

  // Scratch passes from one call to the next, whatever their streams: a stream
  // may have been destroyed and another made at the same address.
  SDG_TRY(sdg_device_check(cuda->cudaStreamWaitEvent(stream, own->done, 0),
                           "wait for the previous call"));
  cudaStream_t comm_stream = NULL;
  if (plan->parcels > 0) {
    SDG_TRY(sdg_comm_stream(&comm_stream));
    SDG_TRY(stream_join(cuda, comm_stream, stream, own->lane[SDG_LANE_MAIN]));
  }
  *out = (sdg_outcome_t){.vendor = 0};
  bool ahead = false;
  SDG_TRY(steps_run(&exec, own, comm_stream, &ahead, out));
  if (comm_stream && ahead)
    SDG_TRY(stream_join(cuda, stream, comm_stream, own->lane[SDG_LANE_COMM]));
  return sdg_device_check(cuda->cudaEventRecord(own->done, stream),
                          "event record");
}

sdg_status_t sdg_exec_follow(int channel, cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!events[channel].done)
    return SDG_OK;
  return sdg_device_check(
      cuda->cudaStreamWaitEvent(stream, events[channel].done, 0),
      "wait for the previous call");
}

void sdg_exec_forget(void) {
  memset(events, 0, sizeof events);
}
