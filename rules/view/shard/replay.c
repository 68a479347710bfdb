// SPDX-License-Identifier: Apache-2.0
// Captures tagged calls, and does for each launch of their graph what a call
// does on the host.
#include "rules/view/shard/replay.h"

#include <stdlib.h>
#include <string.h>

#include "rules/observe/run_record.h"
#include "rules/reuse/prefetch.h"
#include "rules/step/divergence.h"
#include "rules/step/step.h"
#include "rules/vendor/vendor.h"
#include "src/base/vendor.h"
#include "src/comm/watch.h"
#include "src/exchange/graph.h"
#include "src/exchange/lanes.h"
#include "src/geometry/hint.h"
#include "src/job/job.h"
#include "src/job/launch_order.h"
#include "src/job/thread.h"

// ---- capturing -------------------------------------------------------------

// Why a call cannot be captured; bits.
enum { COLD = 1, HOST = 2, HELD = 4, VALUES = 8 };

// What a rank tells the others about a call that it captures.
typedef struct record {
  char magic[8];
  unsigned why;
} record_t;
static const char record_magic[8] = "capture";

static unsigned why_not(const sdg_call_t *call, const sdg_plan_entry_t *entry) {
  return (entry->ran ? 0u : COLD) |
         (sdg_family_is(call->family, SDG_FAMILY_REPLAYS) &&
                  !entry->plan->on_host
              ? 0u
              : HOST) |
         (entry->plan->helds > 0 ? HELD : 0u) | (entry->boxes ? VALUES : 0u);
}

static sdg_status_t records_join(const sdg_call_t *call,
                                 char (*all)[SDG_CHANNEL_RECORD_BYTES],
                                 const size_t *bytes, unsigned *out_why) {
  const sdg_group_t *group = sdg_job_group();
  *out_why = 0;
  for (int r = 0; r < group->count; r++) {
    record_t theirs = {.why = 0};
    if (bytes[r] == sizeof theirs)
      memcpy(&theirs, all[r], sizeof theirs);
    if (memcmp(theirs.magic, record_magic, sizeof theirs.magic) != 0)
      return sdg_job_fail(sdg_fail(
          SDG_E_CAPTURE_DIFFERS, "%s: rank %d captures it, rank %d does not",
          call->entry_name, sdg_job_rank(), group->rank[r]));
    *out_why |= theirs.why;
  }
  return SDG_OK;
}

// Over the control channel, which has nothing to do with streams.
static sdg_status_t capture_agree(const sdg_call_t *call, unsigned mine,
                                  unsigned *out_why) {
  const sdg_group_t *group = sdg_job_group();
  size_t count = (size_t)group->count;
  record_t record = {.why = mine};
  memcpy(record.magic, record_magic, sizeof record.magic);
  char(*all)[SDG_CHANNEL_RECORD_BYTES] = malloc(count * sizeof *all);
  size_t *bytes = malloc(count * sizeof *bytes);
  char at[96];
  sdg_status_t status = SDG_OK;
  if (!all || !bytes) {
    status = sdg_fail(SDG_E_NO_MEMORY, "records of %zu ranks", count);
    goto out;
  }
  sdg_job_call(at, sizeof at);
  SDG_TRY_GOTO(sdg_control_exchange(sdg_job_control(), sdg_channel_get(),
                                    group->rank, group->count, &record,
                                    sizeof record, all, bytes, at),
               out);
  status = records_join(call, all, bytes, out_why);
out:
  free(bytes);
  free(all);
  return status;
}

static sdg_status_t refuse(const sdg_call_t *call, unsigned why) {
  if (why & ~(unsigned)COLD)
    return sdg_fail(
        SDG_E_CAPTURE, "%s: %s", call->entry_name,
        why & HOST     ? "ops of this family act on the host at every call"
        : why & VALUES ? "the outputs of calls are recorded (SUNDOG_VALUES)"
                       : "it keeps what it fetches for a later call");
  return sdg_fail(SDG_E_CAPTURE_COLD, "%s", call->entry_name);
}

sdg_status_t sdg_replay_check_new(const sdg_call_t *call) {
  cudaStream_t stream;
  bool captured;
  SDG_TRY(sdg_stream_state(call, &stream, &captured));
  return captured ? refuse(call, COLD) : SDG_OK;
}

static sdg_status_t outputs_add(const sdg_call_t *call,
                                const sdg_plan_entry_t *entry,
                                sdg_graph_room_t *room) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_written_t *written = &entry->written[i];
    const sdg_graph_output_t output = {call->operand[i].data, written->bytes,
                                       written->gaps, written->hint};
    if (written->bytes > 0)
      SDG_TRY(sdg_graph_room_output(room, &output));
  }
  return SDG_OK;
}

sdg_status_t sdg_replay_record(sdg_call_t *call, sdg_plan_entry_t *entry,
                               cudaStream_t stream) {
  unsigned why = 0;
  sdg_graph_room_t *room;
  SDG_TRY(capture_agree(call, why_not(call, entry), &why));
  if (why)
    return refuse(call, why);
  SDG_TRY(sdg_graph_room_get(stream, &room));
  if (room->channel != sdg_channel_get())
    return sdg_job_fail(sdg_fail(SDG_E_CAPTURE,
                                 "%s: another thread has captured tagged calls "
                                 "into the same graph",
                                 call->entry_name));
  // It moves nothing now, but at each launch.
  sdg_report_count(entry->row, NULL);
  sdg_run_record_captured();
  SDG_TRY(
      sdg_step_run_how(call, entry, stream, &(sdg_exec_how_t){.room = room}));
  if (call->result)
    return SDG_OK;
  // The op's number, too: graphs of equal calls are not the same.
  SDG_TRY(sdg_graph_room_call(
      room, entry->hash ^ sdg_divergence_fold(sdg_divergence_tensor(0)),
      entry->row, entry->plan));
  return outputs_add(call, entry, room);
}

// ---- launching -------------------------------------------------------------

static sdg_status_t launch_check(const sdg_graph_use_t *use,
                                 const sdg_graph_room_t *room) {
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  if (room->channel != sdg_channel_get())
    return sdg_job_fail(sdg_fail(
        SDG_E_GRAPH_LAUNCH, "another thread has captured the tagged calls"));
  SDG_TRY(sdg_vendor_check(
      sdg_vendor_get()->cudaStreamIsCapturing(use->stream, &state),
      "cudaStreamIsCapturing"));
  return state == cudaStreamCaptureStatusNone
             ? SDG_OK
             : sdg_fail(SDG_E_GRAPH_LAUNCH,
                        "a graph with tagged calls is launched on a stream "
                        "that is captured");
}

// The launch writes the outputs of its calls.
static void outputs_put(const sdg_graph_room_t *room) {
  for (int i = 0; i < room->outputs; i++) {
    const sdg_graph_output_t *output = &room->output[i];
    sdg_hint_put(output->data, output->bytes, output->gaps, output->hint);
  }
}

// Transfers of one thread run in the order of its calls, whatever their
// streams.
static sdg_status_t transfers_begin(const sdg_graph_use_t *use) {
  SDG_TRY(sdg_lanes_follow(sdg_channel_get(), use->stream));
  SDG_TRY(sdg_launch_order_begin());
  sdg_status_t status = sdg_watch_begin(use->entry_name);
  if (status != SDG_OK)
    sdg_launch_order_end();
  return status;
}

static sdg_status_t launch_begin(sdg_graph_use_t *use) {
  const sdg_call_t call = {.entry_name = use->entry_name};
  sdg_graph_room_t *room = sdg_graph_room_of(use->exec);
  // What the graph writes besides is not known.
  sdg_prefetch_written(NULL, SIZE_MAX);
  if (!room)
    return SDG_OK;
  SDG_TRY(sdg_thread_claim(use->entry_name));
  SDG_TRY(launch_check(use, room));
  sdg_step_number(&call);
  SDG_TRY(sdg_divergence_update(use->entry_name, room->hash));
  sdg_status_t status = transfers_begin(use);
  if (status != SDG_OK)
    return sdg_job_fail(status);
  outputs_put(room);
  sdg_graph_announce(room);
  use->begun = true;
  return SDG_OK;
}

static sdg_status_t launch_end(const sdg_graph_use_t *use, bool good) {
  sdg_graph_room_t *room = sdg_graph_room_of(use->exec);
  sdg_status_t status;
  if (good) {
    status = sdg_watch_end(SDG_OK, use->stream);
  } else { // other ranks may have launched it, and wait
    if (room)
      sdg_graph_withdraw(room);
    status = sdg_watch_enclosed(sdg_fail(
        SDG_E_CUDA, "the runtime refused to launch a graph of tagged calls"));
  }
  sdg_launch_order_end();
  if (status == SDG_OK)
    status = sdg_lanes_precede(use->stream);
  sdg_report_count(sdg_report_find(use->entry_name, "-", "replay"), NULL);
  for (int i = 0; good && room && i < room->rows; i++)
    sdg_report_launched(&room->moves[i]);
  return status == SDG_OK ? SDG_OK : sdg_job_fail(status);
}

sdg_status_t sdg_replay_begin(sdg_graph_use_t *use) {
  if (use->launches)
    return launch_begin(use);
  // Before the runtime gives the address to another one.
  if (use->exec && !use->graph)
    sdg_graph_exec_dropped(use->exec);
  if (use->graph && !use->exec && !use->made)
    sdg_graph_dropped(use->graph);
  return SDG_OK;
}

sdg_status_t sdg_replay_end(const sdg_graph_use_t *use, bool good) {
  if (use->begun)
    return launch_end(use, good);
  if (!good || !use->graph || (!use->made && !use->exec))
    return SDG_OK;
  return sdg_graph_made(use->made ? *use->made : use->exec, use->graph);
}
