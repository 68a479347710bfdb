// SPDX-License-Identifier: Apache-2.0
// One clock for the ranks while a program compares plans of one graph.
#include "rules/graph/chain/clock.h"

#include <string.h>

#include "src/control/control.h"
#include "src/job/job.h"
#include "src/job/thread.h"

// The thread's last execution of a graph with several plans: its number among
// the thread's tagged calls; 0: none.
static _Thread_local uint64_t last;

uint64_t sdg_graph_clock_calls(void) {
  return sdg_job_joined()
             ? sdg_control_count_of(sdg_job_control(), sdg_channel_get(),
                                    sdg_job_rank(), NULL, 0)
             : 0;
}

void sdg_graph_clock_plan_made(sdg_graph_pattern_t *pattern) {
  if (pattern)
    __atomic_fetch_add(&pattern->plans, 1, __ATOMIC_RELAXED);
}

bool sdg_graph_clock_compares(const sdg_graph_pattern_t *pattern) {
  return __atomic_load_n(&pattern->plans, __ATOMIC_RELAXED) > 1;
}

void sdg_graph_clock_agree(sdg_graph_pattern_t *pattern, bool compares) {
  __atomic_store_n(&pattern->compares, compares, __ATOMIC_RELAXED);
}

void sdg_graph_clock_executed(const sdg_graph_pattern_t *pattern) {
  bool compares = __atomic_load_n(&pattern->compares, __ATOMIC_RELAXED);
  last = compares ? sdg_graph_clock_calls() : 0;
}

typedef struct measured {
  int status;
  float ms;
  int unused; // no other record of graphs has this size
} measured_t;

static sdg_status_t first_take(const char *entry_name, measured_t *io_mine) {
  const sdg_group_t *group = sdg_job_group();
  sdg_records_t all;
  SDG_TRY(sdg_job_gather(sdg_channel_get(), io_mine, sizeof *io_mine,
                         entry_name, &all));
  sdg_status_t status = SDG_OK;
  for (int r = 0; r < group->count && status == SDG_OK; r++)
    if (all.bytes[r] != sizeof *io_mine)
      status = sdg_fail(SDG_E_DIVERGED, "%s: rank %d makes another call",
                        entry_name, group->rank[r]);
  if (status == SDG_OK)
    memcpy(io_mine, all.data[0], sizeof *io_mine);
  sdg_records_free(&all);
  return status;
}

sdg_status_t sdg_graph_clock_read(const char *entry_name, int status,
                                  float *io_ms) {
  if (last == 0 || !sdg_job_joined() || sdg_job_group()->count < 2 ||
      last != sdg_graph_clock_calls())
    return SDG_OK;
  measured_t first = {.status = status, .ms = status ? 0 : *io_ms};
  sdg_status_t failure = first_take(entry_name, &first);
  if (failure != SDG_OK)
    return sdg_job_fail(failure);
  if (!status && !first.status)
    *io_ms = first.ms;
  return SDG_OK;
}
