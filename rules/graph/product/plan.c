// SPDX-License-Identifier: Apache-2.0
// Shard view: the steps of a graph with a product.
#include <stdlib.h>
#include <string.h>

#include "rules/graph/product/product.h"
#include "rules/kit/subcall.h"
#include "rules/place/tagging.h"

static bool has_epilogue(const sdg_graph_pattern_t *p) {
  for (int n = 0; n < p->graph->node_count; n++)
    if (n != p->main && (p->node_levels[n] & SDG_GRAPH_AFTER))
      return true;
  return false;
}

// ---- terms of sums ---------------------------------------------------------

static sdg_status_t axes_find(const sdg_graph_maker_t *m,
                              sdg_axes_t *out_axes) {
  const sdg_placement_t *product =
      &m->tagging->placement[sdg_graph_product_index(m->main.pattern)];
  sdg_axes_t axes = sdg_split_all_axes(&product->split[SDG_K]);
  const sdg_section_t *section = m->tagging->section;
  *out_axes = 0;
  if (product->part[SDG_K].pieces < 2)
    return SDG_OK;
  if ((axes & section->sum_axes) == axes) {
    *out_axes = axes;
    return SDG_OK;
  }
  if (axes & section->sum_axes)
    return sdg_fail(SDG_E_SPLIT_DIMENSION,
                    "%s: section '%s' splits K over several axes, and 'sum =' "
                    "names some of them only",
                    m->call->entry_name, section->name);
  return has_epilogue(m->main.pattern)
             ? sdg_fail(SDG_E_NO_RULE,
                        "%s by section '%s' with 'sum = no': what stands "
                        "behind the product is computed of sums, and each "
                        "rank has terms of them",
                        m->call->entry_name, section->name)
             : SDG_OK;
}

// The ranks add in the type in which a rank adds its own terms, whatever type
// the result has.
static sdg_status_t type_find(const sdg_graph_maker_t *m, sdg_type_t *out) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  int64_t compute = sdg_graph_integer(
      &p->graph->node[p->main], CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  if (compute == CUDNN_DATA_DOUBLE ||
      p->graph->tensor[p->tensor[SDG_GRAPH_LEVEL_Y]].type == CUDNN_DATA_DOUBLE)
    *out = CUDNN_DATA_DOUBLE;
  else if (compute == CUDNN_DATA_FLOAT || compute == CUDNN_DATA_HALF)
    *out = CUDNN_DATA_FLOAT;
  else
    return sdg_fail(SDG_E_TENSOR_TYPE,
                    "%s with K in pieces: terms that are neither float nor "
                    "double",
                    m->call->entry_name);
  return SDG_OK;
}

// The operand that the product's result is; -1: it has no memory.
static int result_of(const sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  int i = 0;
  while (i < p->operands && p->operand[i] != p->tensor[SDG_GRAPH_LEVEL_Y])
    i++;
  return i < p->operands ? i : -1;
}

// Whether the ranks can add in the result's own memory: its elements lie there
// without gaps, in the order that all ranks have.
static bool is_in_order(const sdg_plan_t *plan, const sdg_slab_t *slab) {
  int64_t stride[SDG_DIMS_MAX];
  sdg_slab_pack(&slab->box, slab->nesting, stride);
  for (int d = 0; d < slab->box.dims; d++)
    if (sdg_box_length(&slab->box, d) > 1 && stride[d] != slab->stride[d])
      return false;
  return sdg_plan_is_packed(plan, (int)(slab - plan->slab));
}

static sdg_status_t terms_open(sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  const sdg_box_t *box = &m->boxes.level[SDG_GRAPH_LEVEL_Y];
  int64_t by_rows[SDG_DIMS_MAX];
  int result = result_of(m);
  SDG_TRY(axes_find(m, &m->product->sum_axes));
  if (!m->product->sum_axes)
    return SDG_OK;
  m->plan->strategy = "all-reduce";
  m->plan->why = "K is split: each rank multiplies its terms of the sums, the "
                 "ranks add them, and what stands behind the product follows";
  SDG_TRY(type_find(m, &m->product->type));
  int bytes = sdg_merge_bytes(m->product->type);
  if (result >= 0 && m->call->operand[result].type == m->product->type &&
      is_in_order(m->plan, &m->plan->slab[m->operand_slab[result]])) {
    m->product->terms = m->operand_slab[result];
    return SDG_OK;
  }
  if (p->result >= 0)
    return sdg_plan_scratch_of(m->plan, box, bytes, m->operand_slab[p->result],
                               &m->product->terms);
  for (int d = 0; d < box->dims; d++)
    by_rows[d] = box->dims - d;
  return sdg_plan_packed(m->plan, box, by_rows, bytes, &m->product->terms);
}

static sdg_status_t terms_add(sdg_graph_maker_t *m) {
  const sdg_graph_product_t *product = m->product;
  int result = result_of(m);
  m->plan->reduce_axes = product->sum_axes;
  SDG_TRY(
      sdg_plan_reduce(m->plan, product->terms, product->type, SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  if (result >= 0 && m->operand_slab[result] != product->terms) {
    sdg_subcall_tensor_t sums =
        sdg_subcall_slab(m->plan, product->terms, product->type);
    sdg_subcall_tensor_t to = sdg_subcall_slab(m->plan, m->operand_slab[result],
                                               m->call->operand[result].type);
    SDG_TRY(sdg_subcall_transform(m->plan, 1, &sums, 0, &to));
  }
  return product->epilogue < 0 ? SDG_OK
                               : sdg_plan_call(m->plan, product->epilogue);
}

// ---- the plan --------------------------------------------------------------

static sdg_status_t pieces_open(sdg_graph_maker_t *m, int *out_refusal) {
  SDG_TRY(SDG_ALLOCATE(m->extents, 1, "a plan"));
  if (!m->product->sum_axes)
    return sdg_graph_part_open(m, SDG_GRAPH_ALL, &m->call_index, out_refusal);
  SDG_TRY(sdg_graph_part_open(m, SDG_GRAPH_TERMS, &m->call_index, out_refusal));
  if (*out_refusal || !has_epilogue(m->main.pattern))
    return SDG_OK;
  return sdg_graph_part_open(m, SDG_GRAPH_EPILOGUE, &m->product->epilogue,
                             out_refusal);
}

static sdg_status_t slabs_open(sdg_graph_maker_t *m) {
  for (int i = 0; i < m->main.pattern->operands; i++) {
    sdg_box_t own = sdg_tagging_own(m->tagging, &m->tagging->placement[i]);
    SDG_TRY(sdg_plan_operand(m->plan, m->call, i, &own, &m->operand_slab[i]));
    m->apart[i] = -1;
  }
  return SDG_OK;
}

static sdg_status_t steps_make(sdg_graph_maker_t *m, bool *out_literal) {
  int refusal = 0;
  SDG_TRY(sdg_plan_create("part", &m->plan));
  m->plan->why = "each rank has a part of what is reduced behind the product";
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(slabs_open(m));
  SDG_TRY(terms_open(m));
  SDG_TRY(sdg_graph_sums_open(m));
  *out_literal = !m->product->sum_axes && !sdg_graph_sums_any(m);
  if (!*out_literal)
    SDG_TRY(pieces_open(m, &refusal));
  SDG_TRY(sdg_graph_refusals_compare(m->call, refusal));
  if (*out_literal)
    return SDG_OK;
  SDG_TRY(sdg_plan_call(m->plan, m->call_index));
  if (m->product->sum_axes)
    SDG_TRY(terms_add(m));
  return sdg_graph_sums_close(m);
}

sdg_status_t sdg_graph_product_plan(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    sdg_plan_t **out_plan) {
  struct {
    sdg_graph_maker_t maker;
    sdg_graph_product_t product;
  } * all;
  bool literal = false;
  SDG_TRY(SDG_ALLOCATE(all, 1, "a plan"));
  sdg_graph_maker_t *m = &all->maker;
  m->call = call;
  m->tagging = tagging;
  m->product = &all->product;
  m->product->terms = m->product->epilogue = -1;
  m->main.pattern = sdg_graph_call_execution(call)->pattern;
  sdg_placement_t *c = &m->main.op.y_placement;
  sdg_status_t status = sdg_graph_product_result(call, tagging, c);
  if (status == SDG_OK) {
    m->main.op.dims = c->dims;
    m->boxes.level[SDG_GRAPH_LEVEL_Y] = sdg_tagging_own(tagging, c);
    status = steps_make(m, &literal);
    sdg_placement_fini(c);
    status = sdg_graph_plan_finish(m, status, literal, out_plan);
  }
  free(m->extents);
  free(all);
  return status;
}
