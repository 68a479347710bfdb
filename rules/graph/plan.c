// SPDX-License-Identifier: Apache-2.0
// The steps of a graph's plan in the shard view.
#include "rules/graph/plan.h"

#include <stdlib.h>
#include <string.h>

#include "rules/graph/repair.h"
#include "rules/place/same_split.h"
#include "rules/place/tagging.h"
#include "rules/vendor/vendor.h"
#include "rules/window/plan.h"

// The program's own execution is right: no rank needs rows of another, and this
// one computes what the program's plan computes.
static bool is_literal(const sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  if (sdg_graph_sums_any(m))
    return false;
  for (int i = 0; i < m->inputs; i++)
    if (m->input[i].communicates || m->input[i].assembled >= 0)
      return false;
  for (int s = 0; s < p->spatial; s++)
    if (m->boxes.pre[s] != p->pre[s] || m->boxes.post[s] != p->post[s])
      return false;
  return true;
}

sdg_status_t sdg_graph_refusals_compare(const sdg_call_t *call, int mine) {
  int refusal, rank;
  SDG_TRY(sdg_graph_refusals_gather(call, mine, &refusal, &rank));
  return refusal
             ? sdg_fail(SDG_E_GRAPH_ENGINE, "%s: rank %d: %s", call->entry_name,
                        rank, sdg_vendor_text(SDG_STREAM_CUDNN, refusal))
             : SDG_OK;
}

sdg_status_t sdg_graph_plan_finish(sdg_graph_maker_t *m, sdg_status_t status,
                                   bool literal, sdg_plan_t **out_plan) {
  if (literal && status == SDG_OK) {
    sdg_plan_destroy(m->plan);
    m->plan = NULL;
    status = sdg_literal_plan(&m->plan);
  }
  return sdg_plan_finish(m->plan, status, out_plan);
}

static void parts_fini(sdg_graph_maker_t *m) {
  sdg_graph_repair_fini(m);
  sdg_graph_inputs_fini(m);
  m->inputs = m->sums = 0;
  free(m->extents);
  m->extents = NULL;
}

// Opens the plan, and plans what the rank computes. *out_refusal: cuDNN's
// status if no engine takes a piece.
static sdg_status_t parts_open(sdg_graph_maker_t *m, bool *out_literal,
                               int *out_refusal) {
  *out_refusal = 0;
  SDG_TRY(sdg_plan_create(m->repairs ? "repair" : "extend", &m->plan));
  m->plan->price = m->price;
  const char *lacks = sdg_graph_repair_lacks(m);
  m->plan->why = lacks ? lacks : m->why;
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(sdg_graph_inputs_open(m));
  SDG_TRY(sdg_graph_sums_open(m));
  *out_literal = is_literal(m);
  if (*out_literal)
    return SDG_OK;
  return m->repairs ? sdg_graph_repair_open(m, out_refusal)
                    : sdg_graph_piece_open(m, out_refusal);
}

static sdg_status_t steps_make(sdg_graph_maker_t *m, bool *out_literal) {
  int refusal;
  SDG_TRY(sdg_graph_repair_choose(m));
  SDG_TRY(parts_open(m, out_literal, &refusal));
  if (refusal && m->repairs) { // an engine may take the piece as a whole
    sdg_plan_destroy(m->plan);
    m->plan = NULL;
    parts_fini(m);
    m->repairs = false;
    m->why = "no engine takes a strip of repair: the graph is computed in one "
             "call, on its piece with the neighbours' rows around it";
    SDG_TRY(parts_open(m, out_literal, &refusal));
  }
  SDG_TRY(sdg_graph_refusals_compare(m->call, refusal));
  if (*out_literal)
    return SDG_OK;
  if (m->repairs)
    return sdg_graph_repair_compute(m);
  SDG_TRY(sdg_graph_inputs_assemble(m));
  SDG_TRY(sdg_graph_piece_compute(m));
  SDG_TRY(sdg_graph_results_close(m));
  return sdg_graph_sums_close(m);
}

// Rows across the ends of a dimension have several images in a gradient.
static sdg_status_t period_check(const sdg_graph_maker_t *m) {
  return sdg_window_op_wraps(&m->main.op) && sdg_graph_is_back(m->main.pattern)
             ? sdg_fail(SDG_E_NO_RULE, "%s with a periodic dimension",
                        m->call->entry_name)
             : SDG_OK;
}

sdg_status_t sdg_graph_plan(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            sdg_plan_t **out_plan) {
  sdg_graph_maker_t *m;
  bool literal = false;
  SDG_TRY(SDG_ALLOCATE(m, 1, "a plan"));
  m->call = call;
  m->tagging = tagging;
  sdg_status_t status = sdg_graph_main_init(call, tagging, &m->main);
  if (status == SDG_OK) {
    m->boxes = sdg_graph_boxes(&m->main, tagging, tagging->rank);
    status = period_check(m);
    if (status == SDG_OK)
      status = steps_make(m, &literal);
    sdg_graph_main_fini(&m->main);
    parts_fini(m);
    if (literal && status == SDG_OK) {
      sdg_plan_t *made = m->plan;
      m->plan = NULL;
      status = sdg_window_plan_literal(0, &m->plan);
      if (status == SDG_OK)
        memcpy(m->plan->counts, made->counts, sizeof made->counts);
      sdg_plan_destroy(made);
    }
    status = sdg_plan_finish(m->plan, status, out_plan);
  }
  free(m);
  return status;
}
