/* SPDX-License-Identifier: Apache-2.0 */
/* The events that order plans: the two lanes of a plan, and a plan after the
 * one before it, with which it may share scratch. */
#ifndef SDG_SRC_EXCHANGE_LANES_H
#define SDG_SRC_EXCHANGE_LANES_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "src/base/status.h"

/* The events of a thread's plans, or of the plans in one capture. */
typedef struct sdg_lanes {
  cudaEvent_t lane[2]; /* by sdg_lane_t */
  cudaEvent_t done;    /* recorded at the end of a plan */
} sdg_lanes_t;

struct sdg_graph_room; /* of the capture that a stream takes part in, or NULL */

/* A plan begins on `stream`, which waits for the thread's plan before. The
 * events in *out are the thread's, or the capture's. */
sdg_status_t sdg_lanes_open(struct sdg_graph_room *room, cudaStream_t stream,
                            const sdg_lanes_t **out) SDG_MUST_CHECK;
/* Gets the stream of the communication lane. */
sdg_status_t sdg_lanes_comm(const struct sdg_graph_room *room,
                            cudaStream_t *out_stream) SDG_MUST_CHECK;
/* Makes `stream` wait for all work that is in `other` now; records `event`. */
sdg_status_t sdg_lanes_join(cudaStream_t stream, cudaStream_t other,
                            cudaEvent_t event) SDG_MUST_CHECK;
/* The plan ends. comm: NULL if it used no communication lane; ahead: `stream`
 * has not waited for all of that. */
sdg_status_t sdg_lanes_close(struct sdg_graph_room *room,
                             const sdg_lanes_t *lanes, cudaStream_t stream,
                             cudaStream_t comm, bool ahead) SDG_MUST_CHECK;

/* Makes `stream` wait for everything that plans of the thread with this
 * channel have enqueued so far, on any stream. Whole view: an update that was
 * made for one stream may be read by others. */
sdg_status_t sdg_lanes_follow(int channel, cudaStream_t stream) SDG_MUST_CHECK;
/* Makes the calling thread's next plan wait for everything that is in `stream`
 * now: a graph with transfers. */
sdg_status_t sdg_lanes_precede(cudaStream_t stream) SDG_MUST_CHECK;

/* Call before the device is reset (src/exchange/exchange.h). */
void sdg_lanes_forget(void);

#endif
