// SPDX-License-Identifier: Apache-2.0
// Orders plans by events.
#include "src/exchange/lanes.h"

#include <string.h>

#include "src/base/vendor.h"
#include "src/comm/comm.h"
#include "src/exchange/graph.h"
#include "src/exchange/phases.h"
#include "src/job/thread.h"
#include "src/plan/plan.h"

// Events are recorded again in each call: a wait refers to the record that
// precedes it, so one event per lane and purpose is enough.
typedef struct events {
  sdg_lanes_t lanes;
  unsigned long long stream; // of the last plan: its id, which no other one has
  bool stream_known;
} events_t;
static events_t events[SDG_CHANNEL_THREADS]; // index: the thread's channel

static sdg_status_t events_get(const sdg_vendor_t *cuda, events_t **out) {
  events_t *own = &events[sdg_channel_get()];
  sdg_lanes_t *lanes = &own->lanes;
  cudaEvent_t *const each[] = {&lanes->lane[0], &lanes->lane[1], &lanes->done};
  for (int i = 0; i < 3; i++)
    if (!*each[i])
      SDG_TRY(sdg_vendor_check(
          cuda->cudaEventCreateWithFlags(each[i], cudaEventDisableTiming),
          "creation of an event"));
  *out = own;
  return SDG_OK;
}

static sdg_status_t previous_wait(cudaStream_t stream, cudaEvent_t done,
                                  const char *what) {
  return sdg_vendor_check(
      sdg_vendor_get()->cudaStreamWaitEvent(stream, done, 0), what);
}

// An id tells streams apart, unlike a handle: the program may have destroyed a
// stream and created another at the same address. Returns whether it is the
// last plan's.
static bool stream_note(const sdg_vendor_t *cuda, events_t *own,
                        cudaStream_t stream) {
  unsigned long long id = 0;
  bool known = cuda->cudaStreamGetId(stream, &id) == cudaSuccess;
  if (!known)
    (void)cuda->cudaGetLastError(); // the error is not the program's
  bool same = known && own->stream_known && own->stream == id;
  own->stream = id;
  own->stream_known = known;
  return same;
}

// An event that was recorded in a capture is nothing to wait for elsewhere, so
// that each capture has events of its own.
static sdg_status_t captured_open(sdg_graph_room_t *room, cudaStream_t stream,
                                  const sdg_lanes_t **out) {
  *out = &room->lanes;
  return room->begun ? previous_wait(stream, room->lanes.done,
                                     "wait for the previous captured call")
                     : SDG_OK;
}

sdg_status_t sdg_lanes_open(sdg_graph_room_t *room, cudaStream_t stream,
                            const sdg_lanes_t **out) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  events_t *own;
  if (room)
    return captured_open(room, stream, out);
  SDG_TRY(events_get(cuda, &own));
  *out = &own->lanes;
  sdg_graph_tidy();
  if (stream_note(cuda, own, stream))
    return SDG_OK;
  sdg_phases_part(stream);
  return previous_wait(stream, own->lanes.done, "wait for the previous call");
}

// A stream that takes part in a capture cannot take other work meanwhile, so
// that captured transfers have a stream of their own.
sdg_status_t sdg_lanes_comm(const sdg_graph_room_t *room,
                            cudaStream_t *out_stream) {
  if (!room)
    return sdg_comm_stream(out_stream);
  *out_stream = room->comm;
  return SDG_OK;
}

sdg_status_t sdg_lanes_join(cudaStream_t stream, cudaStream_t other,
                            cudaEvent_t event) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  sdg_phases_part(stream);
  SDG_TRY(
      sdg_vendor_check(cuda->cudaEventRecord(event, other), "event record"));
  return sdg_vendor_check(cuda->cudaStreamWaitEvent(stream, event, 0),
                          "wait for an event");
}

// Every stream of a capture has to be joined at its end.
sdg_status_t sdg_lanes_close(sdg_graph_room_t *room, const sdg_lanes_t *lanes,
                             cudaStream_t stream, cudaStream_t comm,
                             bool ahead) {
  if (comm && (ahead || room))
    SDG_TRY(sdg_lanes_join(stream, comm, lanes->lane[SDG_LANE_COMM]));
  if (room)
    room->begun = true;
  return sdg_vendor_check(
      sdg_vendor_get()->cudaEventRecord(lanes->done, stream), "event record");
}

sdg_status_t sdg_lanes_follow(int channel, cudaStream_t stream) {
  cudaEvent_t done = events[channel].lanes.done;
  return done ? previous_wait(stream, done, "wait for the previous call")
              : SDG_OK;
}

sdg_status_t sdg_lanes_precede(cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  events_t *own;
  SDG_TRY(events_get(cuda, &own));
  (void)stream_note(cuda, own, stream);
  return sdg_vendor_check(cuda->cudaEventRecord(own->lanes.done, stream),
                          "event record");
}

void sdg_lanes_forget(void) {
  memset(events, 0, sizeof events);
}
