// SPDX-License-Identifier: Apache-2.0
// Inputs of a graph that need rows of other ranks: messages, and assembled
// tensors.
#include <stdlib.h>

#include "rules/graph/maker.h"
#include "rules/place/tagging.h"
#include "rules/window/plan.h"

sdg_box_t sdg_graph_own_box(const sdg_graph_maker_t *m, int index, int rank) {
  const sdg_placement_t *placement = &m->tagging->placement[index];
  if (placement->dims && !m->whole)
    return sdg_placement_box(placement, m->tagging->mesh, rank);
  return sdg_operand_box(&m->call->operand[index]);
}

static sdg_status_t transfer_fill(const sdg_graph_maker_t *m,
                                  sdg_graph_input_t *input) {
  const sdg_tagging_t *tagging = m->tagging;
  size_t ranks = (size_t)tagging->ranks;
  int64_t period[SDG_DIMS_MAX] = {0};
  sdg_box_t *owned;
  SDG_TRY(SDG_ALLOCATE(owned, 2 * ranks, "boxes of %d ranks", tagging->ranks));
  sdg_box_t *need = owned + ranks;
  for (int d = 0; d < m->main.op.dims; d++)
    if (m->main.op.dim[d].wrap)
      period[d] = m->main.op.dim[d].x_extent;
  for (int r = 0; r < tagging->ranks; r++) {
    int rank = tagging->rank_list[r];
    sdg_graph_boxes_t boxes = sdg_graph_boxes(&m->main, tagging, rank);
    owned[r] = sdg_graph_own_box(m, input->operand, rank);
    sdg_box_t *box = &boxes.level[input->level];
    if (m->main.zero_rows && input->level == SDG_GRAPH_LEVEL_X) {
      // Rows of zeros come from nowhere.
      sdg_box_t domain = sdg_window_op_domain(&m->main.op, box);
      *box = sdg_box_intersect(box, &domain);
    }
    need[r] = sdg_graph_operand_box(m->call, tagging, input->operand, box);
    input->communicates |=
        tagging->ranks > 1 && !sdg_box_contains(&owned[r], &need[r]);
  }
  // Without need of others' rows a rank's own are the nearest, also of a tensor
  // that every rank has.
  sdg_status_t status =
      input->communicates
          ? sdg_transfer_plan(owned, need, tagging->ranks, tagging->me, period,
                              &input->transfer)
          : sdg_transfer_plan(owned + tagging->me, need + tagging->me, 1, 0,
                              period, &input->transfer);
  free(owned);
  return status;
}

static sdg_status_t input_add(sdg_graph_maker_t *m, int index,
                              sdg_graph_level_t level) {
  sdg_graph_input_t *input = &m->input[m->inputs++];
  *input = (sdg_graph_input_t){.operand = index,
                               .level = level,
                               .own = m->operand_slab[index],
                               .assembled = -1};
  SDG_TRY(transfer_fill(m, input));
  sdg_box_t own = sdg_graph_own_box(m, index, m->tagging->rank);
  sdg_box_t need =
      sdg_graph_operand_box(m->call, m->tagging, index, &m->boxes.level[level]);
  bool same = sdg_box_equal(&own, &need);
  if (same && !input->communicates) { // the program's memory is right
    sdg_transfer_fini(&input->transfer);
    m->inputs--;
    return SDG_OK;
  }
  if (!same && !sdg_box_empty(&need) && !m->repairs)
    SDG_TRY(sdg_plan_scratch(m->plan, &need, input->own, &input->assembled));
  return SDG_ALLOCATE(input->message, input->transfer.recvs + 1, "a plan");
}

// In the shard view results have memory for the rank's own rows only.
static sdg_status_t result_add(sdg_graph_maker_t *m, int index) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  const sdg_box_t *box = &m->boxes.level[SDG_GRAPH_LEVEL_X];
  unsigned levels = p->tensor_levels[p->operand[index]];
  if (m->whole || !p->whole_windows || (levels & SDG_GRAPH_SUM) ||
      sdg_box_equal(box, &m->plan->slab[m->operand_slab[index]].box))
    return SDG_OK;
  return sdg_plan_scratch(m->plan, box, m->operand_slab[index],
                          &m->apart[index]);
}

sdg_status_t sdg_graph_results_close(sdg_graph_maker_t *m) {
  for (int i = 0; i < m->main.pattern->operands; i++)
    if (m->apart[i] >= 0)
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->apart[i],
                            m->operand_slab[i], NULL, NULL,
                            SDG_COPY_ACTIVATION));
  return SDG_OK;
}

sdg_status_t sdg_graph_inputs_open(sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  for (int i = 0; i < p->operands; i++) {
    sdg_box_t own = sdg_graph_own_box(m, i, m->tagging->rank);
    SDG_TRY(sdg_plan_operand(m->plan, m->call, i, &own, &m->operand_slab[i]));
    m->apart[i] = -1;
    if (m->call->operand[i].is_output) {
      SDG_TRY(result_add(m, i));
      continue;
    }
    for (int level = 0; level < SDG_GRAPH_LEVEL_W && !m->whole; level++)
      if (p->tensor_levels[p->operand[i]] >> level & 1)
        SDG_TRY(input_add(m, i, (sdg_graph_level_t)level));
  }
  for (int i = 0; i < m->inputs; i++)
    if (m->input[i].communicates)
      m->plan->axes = m->tagging->axes;
  return m->plan->axes ? sdg_tagging_sure(m->call, m->tagging) : SDG_OK;
}

sdg_status_t sdg_graph_inputs_assemble(sdg_graph_maker_t *m) {
  for (int i = 0; i < m->inputs; i++) {
    sdg_graph_input_t *input = &m->input[i];
    int into = input->assembled < 0 ? SDG_SLAB_SCRATCH : input->assembled;
    SDG_TRY(sdg_plan_messages(m->plan, &input->transfer, input->own, &into,
                              input->assembled < 0 ? 0 : 1, input->message));
  }
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < m->inputs; i++) {
    const sdg_graph_input_t *input = &m->input[i];
    if (input->assembled < 0)
      continue;
    sdg_box_t domain = m->plan->slab[input->assembled].box;
    if (m->main.zero_rows)
      domain = sdg_window_op_domain(&m->main.op, &domain);
    SDG_TRY(sdg_window_assemble_own(m->plan, &input->transfer, &domain,
                                    input->own, input->assembled,
                                    SDG_COPY_ACTIVATION));
  }
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < m->inputs; i++)
    if (m->input[i].assembled >= 0)
      SDG_TRY(sdg_window_assemble_received(m->plan, &m->input[i].transfer,
                                           m->input[i].message,
                                           m->input[i].assembled));
  return SDG_OK;
}

void sdg_graph_inputs_fini(sdg_graph_maker_t *m) {
  for (int i = 0; i < m->inputs; i++) {
    sdg_transfer_fini(&m->input[i].transfer);
    free(m->input[i].message);
  }
}
