// SPDX-License-Identifier: Apache-2.0
// Advises fewer ranks, where neighbours need half of each piece or more.
#include <inttypes.h>

#include "tools/record/formula.h"
#include "tools/report/advice/advisers.h"
#include "tools/report/advice/cut.h"
#include "tools/report/advice/place.h"
#include "tools/report/advice/said.h"

// The bytes that windows need of neighbours, of 100 that ranks own.
static int64_t percent_of(const recorded_t *run) {
  int64_t own = 0, halo = 0;
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++) {
      const recorded_plan_t *plan = &run->rank[r].plan[i];
      formula_need_t f;
      if (plan->formula_bytes <= 0 || !formula_need(plan->line, &f))
        continue;
      halo += plan->formula_bytes * plan->calls;
      own += sdg_box_count(&f.own) * plan->calls *
             recorded_number(f.operand, "bytes");
    }
  return own > 0 ? 100 * halo / own : 0;
}

void advise_ranks(const recorded_t *run, json_t *list) {
  cut_t cut;
  place_t place;
  int fewer = run->ranks / 2;
  if (fewer < 2 || !cut_find(run, &cut) || !cut_prove(&cut) ||
      !place_find_all(run, &place) || place_prescribes(&place))
    return;
  int64_t percent = percent_of(run), bytes = cut_predict(&cut, cut.dim, fewer);
  if (percent < 50 || bytes < 0 || bytes >= cut.received_bytes)
    return;
  json_t *advice = said_add(
      list,
      &(said_t){
          .about = "ranks",
          .text = said_text(
              "The pieces are small: of each 100 bytes that "
              "a rank owns, windows need %" PRId64 " more of its neighbours.%s",
              percent, cut.shard ? " The input is cut again." : ""),
          .line = place_ranks_line(run, fewer),
          .where = place_ranks_where(run, ""),
          .command = cut.shard ? said_text("sundog split --dim %s -n %d FILE",
                                           cut.dim, fewer)
                               : NULL,
          .effect = said_bytes_effect(cut.received_bytes, bytes)});
  if (advice)
    said_bytes(advice, cut.received_bytes, bytes);
}
