/* SPDX-License-Identifier: Apache-2.0 */
/* What tagged calls need that the program captures into a CUDA graph: memory, a
 * stream and events that belong to that capture alone, as long as its graph, or
 * a copy, may be launched. And which executable graphs have such calls. */
#ifndef SDG_SRC_EXCHANGE_GRAPH_H
#define SDG_SRC_EXCHANGE_GRAPH_H

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/exchange/lanes.h"
#include "src/observe/report.h"

/* Memory that a captured call writes, and what is known of it then
 * (src/geometry/hint.h). */
typedef struct sdg_graph_output {
  const void *data;
  size_t bytes;
  bool gaps;
  uint32_t hint;
} sdg_graph_output_t;

/* The tagged calls of one capture. The calls run one after another, as they
 * share memory. */
typedef struct sdg_graph_room {
  int channel;       /* of the thread that captured them */
  uint32_t hash;     /* of all calls, equal on every rank */
  cudaStream_t comm; /* for transfers; takes part in the capture */
  sdg_lanes_t lanes;
  bool begun;                 /* lanes.done was recorded in this capture */
  sdg_graph_output_t *output; /* `outputs` of them */
  int outputs;
  sdg_report_moves_t *moves; /* `rows` of them */
  int rows;
} sdg_graph_room_t;

/* True once any tagged call was captured. */
extern atomic_bool sdg_graph_used;

/* Gets the room of the capture that `stream` takes part in; makes it at the
 * capture's first call. SDG_E_CAPTURE if the runtime is too old, or if an
 * earlier capture has put tagged calls into the same graph; SDG_E_CUDA,
 * SDG_E_NO_MEMORY. */
sdg_status_t sdg_graph_room_get(cudaStream_t stream,
                                sdg_graph_room_t **out) SDG_MUST_CHECK;
/* Gets device memory of the room, which all its calls may be given; NULL for 0
 * bytes. SDG_E_DEVICE_MEMORY. */
sdg_status_t sdg_graph_room_memory(sdg_graph_room_t *room, size_t bytes,
                                   void **out) SDG_MUST_CHECK;
/* Adds a call, counted in `row` or NULL, which moves what its plan says at each
 * launch; and an output of it. SDG_E_NO_MEMORY. */
sdg_status_t sdg_graph_room_call(sdg_graph_room_t *room, uint32_t hash,
                                 sdg_report_row_t *row,
                                 const sdg_plan_t *plan) SDG_MUST_CHECK;
sdg_status_t
sdg_graph_room_output(sdg_graph_room_t *room,
                      const sdg_graph_output_t *output) SDG_MUST_CHECK;

/* Frees device memory of captures that nothing can launch any more. Not while
 * the calling thread's stream is captured. */
void sdg_graph_tidy(void);
/* Returns the bytes of device memory of all rooms. */
size_t sdg_graph_bytes(void);
/* Call before the device is reset (src/exchange/exchange.h). */
void sdg_graph_forget(void);

/* ---- executable graphs ---- */

/* The program has made `exec` from `graph`, or has put the work of `graph` into
 * it; has destroyed an executable graph, or a graph. */
sdg_status_t sdg_graph_made(cudaGraphExec_t exec,
                            cudaGraph_t graph) SDG_MUST_CHECK;
void sdg_graph_exec_dropped(cudaGraphExec_t exec);
void sdg_graph_dropped(cudaGraph_t graph);

/* Returns the room whose calls `exec` has; NULL: it has none. */
sdg_graph_room_t *sdg_graph_room_of(cudaGraphExec_t exec);
/* A launch of the room's calls is announced, or does not take place after all.
 * The graph checks that each of its launches was announced; if not, the job is
 * broken: SDG_E_GRAPH_LAUNCH. */
void sdg_graph_announce(sdg_graph_room_t *room);
void sdg_graph_withdraw(sdg_graph_room_t *room);

#endif
