/* SPDX-License-Identifier: Apache-2.0 */
/* Tagged calls in CUDA graphs of the program: captured, then launched any
 * number of times. Inside rules/ and for interpose/ only.
 *
 * A captured call exchanges all its halos at every launch: it neither keeps nor
 * prefetches any, as a launch cannot know what was written before it. Ranks
 * agree at each captured call that all of them capture it. A launch is a
 * numbered op like a tagged call: the ranks check that each launches the same
 * calls, its transfers are watched, and threads take turns. */
#ifndef SDG_RULES_VIEW_SHARD_REPLAY_H
#define SDG_RULES_VIEW_SHARD_REPLAY_H

#include <cuda_runtime_api.h>

#include "rules/step/plan_cache.h"
#include "src/base/status.h"

/* Added to the hash of a captured call (rules/step/divergence.h). */
enum { SDG_REPLAY_MARK = 0x5bd1e995 };

/* SDG_E_CAPTURE_COLD if the stream of a call is captured whose plan is new. */
sdg_status_t sdg_replay_check_new(const sdg_call_t *call) SDG_MUST_CHECK;

/* Counts a call on a stream that is captured, and adds it to the graph.
 * Collective. The same on every rank, before anything is enqueued:
 * SDG_E_CAPTURE if calls like this one cannot be captured; SDG_E_CAPTURE_COLD
 * if it never ran outside of a capture; SDG_E_CAPTURE_DIFFERS, which breaks the
 * job. */
sdg_status_t sdg_replay_record(sdg_call_t *call, sdg_plan_entry_t *entry,
                               cudaStream_t stream) SDG_MUST_CHECK;

/* What a function of the runtime does with graphs. */
typedef struct sdg_graph_use {
  const char *entry_name;
  cudaGraphExec_t *made; /* makes an executable graph of `graph`; else NULL */
  cudaGraphExec_t exec;  /* with `graph`: gets its work; with `launches`: is
                            launched; else is destroyed; or NULL */
  cudaGraph_t graph;     /* alone: is destroyed */
  cudaStream_t stream;
  bool launches;
  bool begun; /* sdg_replay_begin has announced a launch of tagged calls */
} sdg_graph_use_t;

/* Begin and end enclose the runtime's function; `good`: it has succeeded. If
 * begin fails, the function is not called, nor end. */
sdg_status_t sdg_replay_begin(sdg_graph_use_t *use) SDG_MUST_CHECK;
sdg_status_t sdg_replay_end(const sdg_graph_use_t *use,
                            bool good) SDG_MUST_CHECK;

#endif
