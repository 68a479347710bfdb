/* SPDX-License-Identifier: Apache-2.0 */
/* Stretches of a plan: copies and fills that follow one another in one lane.
 * A stretch that comes again with the same addresses is launched as one CUDA
 * graph.
 *
 * Only the plan and the addresses decide what a stretch does, so ranks need not
 * agree on it. Exchanges and sub-calls are never part of one: a library's calls
 * may use memory of its handle, which the program may destroy before the next
 * launch. */
#ifndef SDG_SRC_EXCHANGE_STRETCH_H
#define SDG_SRC_EXCHANGE_STRETCH_H

#include "src/exchange/exec.h"

enum {
  SDG_STRETCH_LAUNCHES = 3, /* fewer are enqueued one by one */
  SDG_STRETCH_SLOTS = 8,    /* tuples of addresses that a stretch knows */
  SDG_STRETCH_GRAPHS = 256, /* graphs of one thread; the oldest one goes */
};

/* Finds the stretches of a plan whose steps are complete. Without memory for
 * that, or with SUNDOG_REPLAY=off, the plan has none. */
void sdg_stretch_find(sdg_plan_t *plan);

/* Enqueues the steps from `first` to before `end`. */
typedef sdg_status_t sdg_stretch_enqueue_t(const sdg_exec_t *exec, int first,
                                           int end, cudaStream_t stream);
/* Launches the stretch that begins at step `first`, if its addresses are those
 * of a graph, or have been seen before: then it is captured first. Returns the
 * number of steps carried out. 0: the caller enqueues the step; also after a
 * capture or a launch that fails, which is no error and is not tried again. */
int sdg_stretch_launch(const sdg_exec_t *exec, int first, cudaStream_t stream,
                       sdg_stretch_enqueue_t *enqueue);

/* Returns the number of graphs of all threads; for tests. */
int sdg_stretch_graphs(void);
/* Call before the device is reset (src/exchange/exchange.h). */
void sdg_stretch_forget(void);

#endif
