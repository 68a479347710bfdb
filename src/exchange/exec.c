// SPDX-License-Identifier: Apache-2.0
// Executes plans: two lanes of ordered steps, joined by events.
#include "src/exchange/exec.h"

#include "src/base/options.h"
#include "src/base/vendor.h"
#include "src/comm/comm.h"
#include "src/exchange/copies.h"
#include "src/exchange/device.h"
#include "src/exchange/lanes.h"
#include "src/exchange/messages.h"
#include "src/exchange/phases.h"
#include "src/exchange/stretch.h"

void *sdg_exec_address(const sdg_exec_t *exec, int slab) {
  const sdg_slab_t *s = &exec->plan->slab[slab];
  char *base = s->operand == SDG_SLAB_SCRATCH ? exec->scratch
               : s->operand == SDG_SLAB_KEPT  ? exec->kept
               : s->operand <= SDG_SLAB_HELD
                   ? exec->held[SDG_SLAB_HELD - s->operand]
                   : exec->call->operand[s->operand].data;
  return base + s->offset_bytes;
}

void *sdg_exec_element_moved(const sdg_exec_t *exec, int slab,
                             const sdg_box_t *box, const int64_t *shift) {
  const sdg_slab_t *s = &exec->plan->slab[slab];
  int64_t offset = 0;
  for (int d = 0; d < box->dims; d++)
    offset += (box->dim[d].lo + shift[d] - s->box.dim[d].lo) * s->stride[d];
  return (char *)sdg_exec_address(exec, slab) + offset * s->elem_bytes;
}

void *sdg_exec_element(const sdg_exec_t *exec, int slab, const sdg_box_t *box) {
  static const int64_t unmoved[SDG_DIMS_MAX];
  return sdg_exec_element_moved(exec, slab, box, unmoved);
}

// The program's stream waits here if the messages are late.
static sdg_status_t lane_join(const sdg_exec_t *exec, cudaStream_t comm_stream,
                              cudaEvent_t event) {
  int phase;
  SDG_TRY(sdg_phase_begin(exec->timed, SDG_PHASE_WAIT, exec->stream, &phase));
  SDG_TRY(sdg_lanes_join(exec->stream, comm_stream, event));
  return sdg_phase_end(phase, exec->stream);
}

static bool acts(const sdg_step_t *step, sdg_lane_t lane) {
  return step->lane == lane && step->kind != SDG_STEP_JOIN;
}

static bool acts_later(const sdg_plan_t *plan, int after, sdg_lane_t lane) {
  for (int i = after + 1; i < plan->steps; i++)
    if (acts(&plan->step[i], lane))
      return true;
  return false;
}

// Leaves out what changes nothing: a wait of the main lane for steps that it
// has waited for, and one of the communication lane before no further step.
static sdg_status_t step_join(const sdg_exec_t *exec, int index,
                              cudaStream_t comm_stream, const sdg_lanes_t *own,
                              bool *io_ahead) {
  const sdg_plan_t *plan = exec->plan;
  bool main = plan->step[index].lane == SDG_LANE_MAIN;
  if (!comm_stream ||
      !(main ? *io_ahead : acts_later(plan, index, SDG_LANE_COMM)))
    return SDG_OK;
  if (!main)
    return sdg_lanes_join(comm_stream, exec->stream, own->lane[SDG_LANE_MAIN]);
  *io_ahead = false;
  return lane_join(exec, comm_stream, own->lane[SDG_LANE_COMM]);
}

// Sums run on the communication stream, too: NCCL gets no stream of the
// program's. cudaStreamPerThread means another stream in a thread of NCCL's
// own, and NCCL orders the streams of a communicator by events of its own if
// they are several.
static sdg_status_t step_reduce(const sdg_exec_t *exec, const sdg_step_t *step,
                                const sdg_lanes_t *own) {
  cudaStream_t comm_stream;
  SDG_TRY(sdg_lanes_comm(exec->room, &comm_stream));
  SDG_TRY(sdg_lanes_join(comm_stream, exec->stream, own->lane[SDG_LANE_MAIN]));
  int phase;
  SDG_TRY(sdg_phase_begin(exec->timed, SDG_PHASE_SUM, comm_stream, &phase));
  SDG_TRY(sdg_messages_enqueue(exec, step, NULL, comm_stream));
  SDG_TRY(sdg_phase_end(phase, comm_stream));
  return lane_join(exec, comm_stream, own->lane[SDG_LANE_COMM]);
}

// Returns true if a step is carried out although a sub-call before it was
// refused; sets out->mixed if the step writes to an operand.
static bool refused_goes_on(const sdg_plan_t *plan, const sdg_step_t *step,
                            sdg_outcome_t *out) {
  switch (step->kind) {
  case SDG_STEP_REDUCE:
    out->mixed |= plan->slab[step->slab].operand >= 0;
    return true;
  case SDG_STEP_EXCHANGE:
    for (int i = step->parcel; i < step->parcel + step->parcels; i++)
      out->mixed |= !plan->parcel[i].is_send &&
                    plan->slab[plan->parcel[i].slab].operand >= 0;
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

static sdg_status_t step_exchange(const sdg_exec_t *exec,
                                  const sdg_step_t *step,
                                  sdg_parcels_t *prefetch,
                                  cudaStream_t stream) {
  bool along = prefetch->step && prefetch->step->axes == step->axes;
  const sdg_parcels_t more = *prefetch;
  if (along)
    prefetch->step = NULL;
  if (sdg_options_get()->check)
    SDG_TRY(sdg_messages_poison(exec, step, stream));
  int phase;
  SDG_TRY(sdg_phase_begin(exec->timed, SDG_PHASE_TRANSFER, stream, &phase));
  SDG_TRY(sdg_messages_enqueue(exec, step, along ? &more : NULL, stream));
  return sdg_phase_end(phase, stream);
}

// Copies that follow one another on a lane are one phase.
typedef struct copying {
  int phase; // -1: none
  sdg_lane_t lane;
} copying_t;

static sdg_status_t copying_end(copying_t *copying,
                                const cudaStream_t *stream) {
  int phase = copying->phase;
  copying->phase = -1;
  return sdg_phase_end(phase, stream[copying->lane]);
}

static sdg_status_t copying_turn(const sdg_exec_t *exec, const sdg_step_t *step,
                                 const cudaStream_t *stream,
                                 copying_t *copying) {
  bool copies = step->kind == SDG_STEP_COPY || step->kind == SDG_STEP_ZERO;
  if (copying->phase >= 0 && (!copies || copying->lane != step->lane))
    SDG_TRY(copying_end(copying, stream));
  if (!copies || copying->phase >= 0)
    return SDG_OK;
  copying->lane = step->lane;
  return sdg_phase_begin(exec->timed, SDG_PHASE_COPY, stream[step->lane],
                         &copying->phase);
}

static sdg_status_t step_call(const sdg_exec_t *exec, const sdg_step_t *step,
                              sdg_outcome_t *out) {
  int phase;
  SDG_TRY(sdg_phase_begin(exec->timed, SDG_PHASE_REAL, exec->stream, &phase));
  out->vendor =
      exec->plan->run(exec->plan->state, step->slab, exec->call, exec);
  out->calls += out->vendor == 0;
  out->mixed = out->vendor && out->calls > 0;
  return sdg_phase_end(phase, exec->stream);
}

static bool exchanges_over(const sdg_plan_t *plan, sdg_axes_t axes) {
  for (int i = 0; i < plan->steps; i++)
    if (plan->step[i].kind == SDG_STEP_EXCHANGE && plan->step[i].axes == axes)
      return true;
  return false;
}

// Packs the messages to prefetch. Sends them at once if `plan` has no exchange
// over the same axes; out->step is then NULL.
static sdg_status_t early_begin(const sdg_exec_t *exec, const sdg_plan_t *plan,
                                cudaStream_t stream, sdg_parcels_t *out) {
  *out = (sdg_parcels_t){.exec = exec};
  for (int i = 0; exec && i < exec->plan->steps; i++) {
    const sdg_step_t *step = &exec->plan->step[i];
    if (step->lane != SDG_LANE_COMM)
      continue;
    if (step->kind == SDG_STEP_COPY)
      SDG_TRY(sdg_copies_one(exec, step, stream));
    if (step->kind != SDG_STEP_EXCHANGE)
      continue;
    if (sdg_options_get()->check)
      SDG_TRY(sdg_messages_poison(exec, step, stream));
    if (plan && exchanges_over(plan, step->axes))
      out->step = step;
    else
      SDG_TRY(sdg_messages_enqueue(exec, step, NULL, stream));
  }
  return SDG_OK;
}

static sdg_status_t stretch_or_step(const sdg_exec_t *exec, int index,
                                    cudaStream_t stream, int *out_done) {
  const sdg_step_t *step = &exec->plan->step[index];
  *out_done = sdg_stretch_launch(exec, index, stream, sdg_copies_run);
  if (*out_done > 0)
    return SDG_OK;
  *out_done = 1;
  return sdg_copies_next(exec, step, stream, out_done);
}

// Which parts of a plan to carry out.
typedef struct order {
  const sdg_exec_t *prefetch; // its exchange joins the plan's; NULL: none
  bool rest;                  // the plan's own exchange is already done
} order_t;

// A join waits only if the other lane has steps that are not waited for; the
// communication lane's waits with its next step. out_ahead: the main lane has
// not waited for all steps of the communication lane.
static sdg_status_t steps_run(const sdg_exec_t *exec, const order_t *order,
                              const sdg_lanes_t *lanes,
                              cudaStream_t comm_stream, bool *out_ahead,
                              sdg_outcome_t *out) {
  const sdg_plan_t *plan = exec->plan;
  cudaStream_t stream[2] = {exec->stream, comm_stream};
  sdg_parcels_t prefetch;
  copying_t copying = {.phase = -1};
  SDG_TRY(early_begin(order->prefetch, order->rest ? NULL : plan, comm_stream,
                      &prefetch));
  *out_ahead = order->prefetch;
  for (int i = 0, done; i < plan->steps; i += done) {
    const sdg_step_t *step = &plan->step[i];
    cudaStream_t own = stream[step->lane];
    done = 1;
    if (order->rest && step->lane == SDG_LANE_COMM)
      continue;
    // After a refused sub-call only messages are carried out, because other
    // ranks wait for them.
    if (out->vendor && !refused_goes_on(plan, step, out))
      continue;
    *out_ahead |= acts(step, SDG_LANE_COMM);
    SDG_TRY(copying_turn(exec, step, stream, &copying));
    switch (step->kind) {
    case SDG_STEP_ZERO:
    case SDG_STEP_COPY:
      SDG_TRY(stretch_or_step(exec, i, own, &done));
      break;
    case SDG_STEP_EXCHANGE:
      SDG_TRY(step_exchange(exec, step, &prefetch, own));
      break;
    case SDG_STEP_REDUCE:
      SDG_TRY(step_reduce(exec, step, lanes));
      *out_ahead = false;
      break;
    case SDG_STEP_JOIN:
      SDG_TRY(step_join(exec, i, comm_stream, lanes, out_ahead));
      break;
    case SDG_STEP_CALL:
      SDG_TRY(step_call(exec, step, out));
      break;
    }
  }
  return copying_end(&copying, stream);
}

// One piece of the capture's memory for both kinds of scratch.
static sdg_status_t captured_memory(const sdg_plan_t *plan,
                                    sdg_graph_room_t *room, void **out_scratch,
                                    void **out_kept) {
  const size_t align = 512;
  size_t first = (plan->scratch_bytes + align - 1) / align * align;
  void *memory;
  SDG_TRY(sdg_graph_room_memory(room, first + plan->kept_bytes, &memory));
  *out_scratch = memory;
  *out_kept = memory ? (char *)memory + first : NULL;
  return SDG_OK;
}

// Whether sub-calls may use scratch on the host.
static bool scratch_is_managed(const sdg_plan_t *plan, const sdg_call_t *call) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  bool managed = plan->on_host;
  for (int i = 0; plan->on_host_as_operands && i < call->operands && !managed;
       i++) {
    struct cudaPointerAttributes is = {.type = cudaMemoryTypeUnregistered};
    if (cuda->cudaPointerGetAttributes(&is, call->operand[i].data) !=
        cudaSuccess)
      (void)cuda->cudaGetLastError(); // the error is not the program's
    managed = is.type != cudaMemoryTypeDevice;
  }
  return managed;
}

static sdg_status_t exec_open(const sdg_plan_t *plan, const sdg_call_t *call,
                              cudaStream_t stream, const sdg_exec_how_t *how,
                              sdg_exec_t *out) {
  void *scratch, *kept = how->kept;
  *out = (sdg_exec_t){.plan = plan, .call = call, .stream = stream};
  if (how->room) {
    SDG_TRY(captured_memory(plan, how->room, &scratch, &kept));
  } else {
    SDG_TRY(sdg_scratch_get(scratch_is_managed(plan, call) ? SDG_SCRATCH_HOST
                                                           : SDG_SCRATCH_CALL,
                            plan->scratch_bytes, &scratch));
    if (!kept)
      SDG_TRY(sdg_scratch_get(SDG_SCRATCH_KEPT, plan->kept_bytes, &kept));
  }
  out->room = how->room;
  out->scratch = scratch;
  out->kept = kept;
  for (int i = 0; how->held && i < plan->helds; i++)
    out->held[i] = how->held[i];
  return SDG_OK;
}

// Opens the execution of a prefetched exchange, which uses kept scratch.
static sdg_status_t early_open(const sdg_prefetch_t *prefetch,
                               cudaStream_t stream, sdg_exec_t *out) {
  void *kept;
  *out = (sdg_exec_t){
      .plan = prefetch->plan, .call = prefetch->call, .stream = stream};
  SDG_TRY(sdg_scratch_get(SDG_SCRATCH_KEPT, prefetch->plan->kept_bytes, &kept));
  out->kept = kept;
  return SDG_OK;
}

static sdg_status_t plan_run(sdg_exec_t *exec, const order_t *order,
                             sdg_report_row_t *row, sdg_outcome_t *out) {
  cudaStream_t comm_stream = NULL;
  const sdg_lanes_t *lanes;
  int phase;
  exec->timed = sdg_phases_wanted() && !exec->room ? row : NULL;
  SDG_TRY(sdg_phase_begin(exec->timed, SDG_PHASE_CALL, exec->stream, &phase));
  SDG_TRY(sdg_lanes_open(exec->room, exec->stream, &lanes));
  if ((exec->plan->parcels > 0 && !order->rest) || order->prefetch ||
      exec->room) {
    SDG_TRY(sdg_lanes_comm(exec->room, &comm_stream));
    SDG_TRY(
        sdg_lanes_join(comm_stream, exec->stream, lanes->lane[SDG_LANE_MAIN]));
  }
  *out = (sdg_outcome_t){.vendor = 0};
  bool ahead = false;
  SDG_TRY(steps_run(exec, order, lanes, comm_stream, &ahead, out));
  SDG_TRY(sdg_lanes_close(exec->room, lanes, exec->stream, comm_stream, ahead));
  return sdg_phase_end(phase, exec->stream);
}

sdg_status_t sdg_exec_run_how(const sdg_plan_t *plan, const sdg_call_t *call,
                              cudaStream_t stream, sdg_report_row_t *row,
                              const sdg_exec_how_t *how, sdg_outcome_t *out) {
  sdg_exec_t exec, first;
  order_t order = {.rest = how->rest};
  int device;
  SDG_TRY(sdg_comm_device(&device));
  SDG_TRY(exec_open(plan, call, stream, how, &exec));
  if (how->prefetch) {
    SDG_TRY(early_open(how->prefetch, stream, &first));
    order.prefetch = &first;
  }
  return plan_run(&exec, &order, row, out);
}

sdg_status_t sdg_exec_run(const sdg_plan_t *plan, const sdg_call_t *call,
                          cudaStream_t stream, sdg_report_row_t *row,
                          sdg_outcome_t *out) {
  return sdg_exec_run_how(plan, call, stream, row, &(sdg_exec_how_t){0}, out);
}

sdg_status_t sdg_exec_digest(const sdg_prefetch_t *prefetch,
                             cudaStream_t stream, uint64_t *out) {
  sdg_exec_t exec;
  if (!sdg_vendor_get())
    return SDG_E_LIBRARY_MISSING;
  SDG_TRY(early_open(prefetch, stream, &exec));
  for (int i = 0; i < exec.plan->steps; i++) {
    const sdg_step_t *step = &exec.plan->step[i];
    if (step->lane == SDG_LANE_COMM && step->kind == SDG_STEP_COPY)
      SDG_TRY(sdg_copies_one(&exec, step, stream));
  }
  return sdg_messages_digest(&exec, stream, out);
}
