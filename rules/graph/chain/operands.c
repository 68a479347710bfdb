// SPDX-License-Identifier: Apache-2.0
// Which tensors of a chain, or of attention, are operands of its call.
#include "rules/graph/chain/operands.h"

#include <string.h>

#include "rules/graph/chain/norm.h"

static int64_t elements(const sdg_graph_tensor_t *tensor) {
  int64_t count = 1;
  for (int d = 0; d < tensor->rank; d++)
    count *= tensor->dim[d];
  return count;
}

static bool has_memory(const sdg_graph_pattern_t *p, int t) {
  return !p->graph->tensor[t].is_virtual && !p->graph->tensor[t].is_by_value;
}

int sdg_graph_lead_find(const sdg_graph_pattern_t *p, sdg_graph_level_t level) {
  int lead = p->main < 0 ? -1 : p->tensor[level];
  if (lead >= 0 && has_memory(p, lead) && p->writer[lead] < 0)
    return lead;
  lead = -1;
  for (int t = 0; t < p->graph->tensor_count; t++)
    if (has_memory(p, t) && p->writer[t] < 0 &&
        (p->tensor_levels[t] >> level & 1) &&
        (lead < 0 ||
         elements(&p->graph->tensor[t]) > elements(&p->graph->tensor[lead])))
      lead = t;
  return lead;
}

static bool lead_fits(const sdg_graph_pattern_t *p, int lead,
                      sdg_graph_level_t level) {
  const sdg_graph_tensor_t *tensor = &p->graph->tensor[p->tensor[level]];
  return lead < 0 || memcmp(p->graph->tensor[lead].dim, tensor->dim,
                            sizeof *tensor->dim * (size_t)tensor->rank) == 0;
}

// Whether the main op reads the tensor, whose extents are its level's.
static bool is_read_by_main(const sdg_graph_pattern_t *p, int t) {
  for (int i = 0; p->main >= 0 && i < p->graph->node[p->main].operand_count;
       i++)
    if (p->graph->node[p->main].operand[i].tensor == t)
      return true;
  return false;
}

// Whether an input is an activation beside the lead: the main op reads it, or
// it has the extents of one of its levels, and more than a number for each
// channel.
static bool is_beside(const sdg_graph_pattern_t *p, int t) {
  const sdg_graph_tensor_t *tensor = &p->graph->tensor[t];
  bool rows = is_read_by_main(p, t);
  for (int d = 0; d < tensor->rank; d++)
    rows |= d != 1 && tensor->dim[d] > 1;
  for (int level = 0; rows && level < SDG_GRAPH_LEVEL_W; level++)
    if ((p->tensor_levels[t] >> level & 1) &&
        lead_fits(p, t, (sdg_graph_level_t)level))
      return true;
  return false;
}

static void operand_add(sdg_graph_pattern_t *p, int t, sdg_role_t role) {
  if (p->operands < SDG_OPERANDS_MAX) {
    p->operand[p->operands] = t;
    p->role[p->operands] = role;
  }
  p->operands++;
}

static void result_note(sdg_graph_pattern_t *p, int t, int64_t *io_most) {
  if (p->writer[t] < 0 || (p->tensor_levels[t] & SDG_GRAPH_SUM) ||
      elements(&p->graph->tensor[t]) <= *io_most)
    return;
  *io_most = elements(&p->graph->tensor[t]);
  p->result = p->operands;
}

// The product itself is an operand behind these.
static const char *matrices_find(sdg_graph_pattern_t *p) {
  int64_t most = 0;
  p->result = -1;
  for (int t = 0; t < p->graph->tensor_count; t++) {
    unsigned levels = p->tensor_levels[t];
    if (!has_memory(p, t))
      continue;
    result_note(p, t, &most);
    operand_add(p, t,
                levels & SDG_GRAPH_SUM             ? SDG_ROLE_TOTAL
                : p->writer[t] >= 0                ? SDG_ROLE_C
                : levels >> SDG_GRAPH_LEVEL_X & 1u ? SDG_ROLE_A
                : levels >> SDG_GRAPH_LEVEL_W & 1u ? SDG_ROLE_B
                                                   : SDG_ROLE_ADDEND);
  }
  return p->operands >= SDG_OPERANDS_MAX ? "too many tensors" : NULL;
}

// What an operand is to a norm, or to what stands around it. Whether an input
// there has x's extents is nothing that a rank with one row could tell: it is
// in pieces where its extents are.
static sdg_role_t norm_role(const sdg_graph_pattern_t *p, int t) {
  sdg_role_t role;
  if (sdg_graph_norm_role(&p->graph->node[p->main], t, &role))
    return role;
  if (p->tensor_levels[t] & SDG_GRAPH_SUM)
    return SDG_ROLE_SUM;
  return p->writer[t] < 0                 ? SDG_ROLE_SCALE
         : p->kind == SDG_GRAPH_NORM_BACK ? SDG_ROLE_DX
                                          : SDG_ROLE_Y;
}

static const char *normalised_find(sdg_graph_pattern_t *p) {
  int x = sdg_graph_lead_find(p, SDG_GRAPH_LEVEL_X);
  int64_t most = 0;
  if (x < 0)
    return "no input with memory";
  if (!lead_fits(p, x, SDG_GRAPH_LEVEL_X))
    return "an input of other extents than the norm's";
  operand_add(p, x, SDG_ROLE_X);
  p->result = -1;
  for (int t = 0; t < p->graph->tensor_count; t++) {
    if (!has_memory(p, t) || t == x)
      continue;
    result_note(p, t, &most);
    operand_add(p, t, norm_role(p, t));
  }
  return p->operands > SDG_OPERANDS_MAX ? "too many tensors" : NULL;
}

static const char *activations_find(sdg_graph_pattern_t *p) {
  static const sdg_role_t result[] = {[SDG_GRAPH_LEVEL_X] = SDG_ROLE_DX,
                                      [SDG_GRAPH_LEVEL_Y] = SDG_ROLE_Y,
                                      [SDG_GRAPH_LEVEL_W] = SDG_ROLE_DW};
  bool back = sdg_graph_is_back(p), single = p->main < 0;
  int x = back ? -1
               : sdg_graph_lead_find(p, single ? SDG_GRAPH_LEVEL_Y
                                               : SDG_GRAPH_LEVEL_X);
  int dy = p->after == SDG_GRAPH_LEVEL_Y
               ? -1
               : sdg_graph_lead_find(p, SDG_GRAPH_LEVEL_Y);
  if ((x < 0 && !back) || (dy < 0 && p->after != SDG_GRAPH_LEVEL_Y))
    return "no input with memory";
  if (!lead_fits(p, x, SDG_GRAPH_LEVEL_X) ||
      !lead_fits(p, dy, SDG_GRAPH_LEVEL_Y))
    return "an input of other extents than the convolution's or pooling's";
  if (x >= 0)
    operand_add(p, x, SDG_ROLE_X);
  if (dy >= 0 && dy != x)
    operand_add(p, dy, SDG_ROLE_DY);
  int64_t most = 0;
  p->result = -1;
  for (int t = 0; t < p->graph->tensor_count; t++) {
    if (!has_memory(p, t) || t == x || t == dy)
      continue;
    bool filter = p->tensor_levels[t] == 1u << SDG_GRAPH_LEVEL_W;
    bool sum = p->tensor_levels[t] & SDG_GRAPH_SUM;
    result_note(p, t, &most);
    operand_add(p, t,
                sum                 ? SDG_ROLE_SUM
                : p->writer[t] >= 0 ? result[p->after]
                : filter            ? SDG_ROLE_W
                : is_beside(p, t)   ? SDG_ROLE_Z
                                    : SDG_ROLE_SCALE);
  }
  if (p->operands > SDG_OPERANDS_MAX)
    return "too many tensors";
  // Without y its parts follow from x's; dx has to be there.
  bool without = p->combines && p->after == SDG_GRAPH_LEVEL_Y;
  return p->result < 0 && !without ? "no result with memory" : NULL;
}

// The operands are the tensors of roles that have a meaning after the
// execution, in the order of the roles.
static const char *attention_find(sdg_graph_pattern_t *p) {
  static const sdg_role_t roles[SDG_COMPOSITE_DELTA] = {
      [SDG_COMPOSITE_Q] = SDG_ROLE_Q,
      [SDG_COMPOSITE_K] = SDG_ROLE_K,
      [SDG_COMPOSITE_V] = SDG_ROLE_V,
      [SDG_COMPOSITE_O] = SDG_ROLE_O,
      [SDG_COMPOSITE_STATS] = SDG_ROLE_STATS,
      [SDG_COMPOSITE_BIAS] = SDG_ROLE_SCORES,
      [SDG_COMPOSITE_LENGTH_Q] = SDG_ROLE_LENGTHS,
      [SDG_COMPOSITE_LENGTH_KV] = SDG_ROLE_LENGTHS,
      [SDG_COMPOSITE_DO] = SDG_ROLE_DO,
      [SDG_COMPOSITE_DQ] = SDG_ROLE_DQ,
      [SDG_COMPOSITE_DK] = SDG_ROLE_DK,
      [SDG_COMPOSITE_DV] = SDG_ROLE_DV,
  };
  for (int role = 0; role < SDG_COMPOSITE_DELTA; role++) {
    int t = p->attention->tensor[role];
    if (t < 0)
      continue;
    if (p->graph->tensor[t].uid < 0)
      return "a tensor without a unique id";
    operand_add(p, t, roles[role]);
  }
  p->result = -1;
  return NULL;
}

const char *sdg_graph_operands_find(sdg_graph_pattern_t *p) {
  return p->kind == SDG_GRAPH_ATTENTION ? attention_find(p)
         : p->kind == SDG_GRAPH_PRODUCT ? matrices_find(p)
         : sdg_graph_normalises(p)      ? normalised_find(p)
                                        : activations_find(p);
}
