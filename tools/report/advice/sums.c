// SPDX-License-Identifier: Apache-2.0
// Adds up what a rank counted of its calls.
#include "tools/report/advice/sums.h"

#include <string.h>

#include "src/plan/plan.h"

bool sums_is_of(const json_t *row, const recorded_kind_t *kind) {
  return strcmp(recorded_text(row, "entry"), kind->entry) == 0 &&
         strcmp(recorded_text(row, "rule"), kind->rule) == 0 &&
         strcmp(recorded_text(row, "strategy"), kind->strategy) == 0;
}

static void row_add(const json_t *row, kind_sums_t *sums) {
  sums->calls += recorded_number(row, "count");
  sums->received_bytes += recorded_number(row, "halo_bytes");
  sums->sum_bytes += recorded_number(row, "sum_bytes");
  const json_t *copies = json_object_get(row, "copies");
  for (int i = 0; i < SDG_COPY_COUNT; i++)
    sums->copied_bytes +=
        recorded_number(copies, sdg_copy_kind_name((sdg_copy_kind_t)i));
}

static void call_add(const recorded_call_t *call, kind_sums_t *sums) {
  sums->calls++;
  sums->received_bytes += call->received_bytes;
  sums->sum_bytes += call->sum_bytes;
  sums->copied_bytes += call->copied_bytes;
}

kind_sums_t sums_rank(const recorded_t *run, const recorded_rank_t *rank,
                      int kind) {
  kind_sums_t sums = {.calls = 0};
  size_t index;
  json_t *row;
  json_array_foreach(json_object_get(rank->totals, "calls"), index, row) {
    if (kind < 0 || sums_is_of(row, &run->kind[kind]))
      row_add(row, &sums);
  }
  for (int i = 0; i < rank->calls && !rank->totals; i++)
    if (kind < 0 || rank->call[i].kind == kind)
      call_add(&rank->call[i], &sums);
  return sums;
}

void sums_kinds(const recorded_t *run, const recorded_rank_t *rank,
                kind_sums_t *out_sums) {
  memset(out_sums, 0, (size_t)run->kinds * sizeof *out_sums);
  for (int kind = 0; kind < run->kinds && rank->totals; kind++)
    out_sums[kind] = sums_rank(run, rank, kind);
  for (int i = 0; i < rank->calls && !rank->totals; i++)
    call_add(&rank->call[i], &out_sums[rank->call[i].kind]);
}
