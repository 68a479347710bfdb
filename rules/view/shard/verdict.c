// SPDX-License-Identifier: Apache-2.0
// Sections, readings, other places of the operands: in the order in which they
// are tried; then what is known of the outputs.
#include "rules/view/shard/verdict.h"

#include <stdio.h>
#include <string.h>

#include "rules/place/ones.h"
#include "rules/place/readings.h"
#include "rules/step/step.h"
#include "rules/vendor/product.h"

// Whether a section fits an activation of this call but for its `op =`.
static bool left_out(const sdg_call_t *call, const sdg_rules_t *rules) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (sdg_role_is_activation(operand->role) &&
        sdg_rules_leave_out(rules, call->family, call->entry_name,
                            operand->extent, operand->dims))
      return true;
  }
  return false;
}

sdg_status_t sdg_shard_unmatched(const sdg_call_t *call,
                                 const sdg_rules_t *rules, bool local) {
  bool windowed = sdg_family_is(call->family, SDG_FAMILY_WINDOWED);
  bool suspect =
      windowed || sdg_family_is(call->family, SDG_FAMILY_NAMED) ||
      (!sdg_family_is(call->family, SDG_FAMILY_ELEMENTWISE) &&
       !sdg_family_is_product(call->family) && left_out(call, rules));
  if (!suspect || local)
    return SDG_OK;
  const sdg_operand_t *x = &call->operand[0];
  char extents[128];
  size_t used = 0;
  for (int d = 0; d < x->dims && used < sizeof extents; d++)
    used += (size_t)snprintf(extents + used, sizeof extents - used, "%s%lld",
                             d ? "," : "", (long long)x->extent[d]);
  return sdg_fail(SDG_E_UNMATCHED, "%s with %s [%s]", call->entry_name,
                  sdg_role_name(x->role), used ? extents : "");
}

void sdg_shard_verdict_fini(sdg_shard_verdict_t *verdict) {
  sdg_tagging_fini(&verdict->tagging);
  sdg_colocate_fini(&verdict->colocation);
}

// A call with a tensor that belongs to each rank alone may have others in
// pieces. Each rank carries it out alone only if all ranks can, and if the call
// could not also be one on pieces.
static sdg_status_t beside_derive(const sdg_call_t *call,
                                  const sdg_rules_t *rules, const sdg_op_t *op,
                                  const sdg_section_t **io_section,
                                  sdg_tagging_t *tagging) {
  bool alone;
  int index;
  const sdg_section_t *section = sdg_tagging_beside(call, rules, &index);
  if (!section)
    return SDG_OK;
  SDG_TRY(sdg_colocate_alone(call, op, section, &alone));
  if (alone)
    return sdg_colocate_own_check(call, rules, op, index, *io_section != NULL);
  if (*io_section)
    return SDG_OK;
  SDG_TRY(sdg_tagging_by(call, rules, index, tagging));
  *io_section = section;
  return SDG_OK;
}

sdg_status_t sdg_shard_derive(const sdg_call_t *call, const sdg_rules_t *rules,
                              const sdg_op_t *op, sdg_shard_verdict_t *out) {
  sdg_tagging_t *tagging = &out->tagging;
  const sdg_section_t *section;
  bool local;
  SDG_TRY(sdg_tagging_derive(call, rules, &section, &local, tagging));
  if (local ||
      (section && op && sdg_family_is(call->family, SDG_FAMILY_WINDOWED))) {
    sdg_status_t own = beside_derive(call, rules, op, &section, tagging);
    if (own != SDG_OK && section)
      sdg_tagging_fini(tagging);
    if (own != SDG_OK)
      return own;
  }
  out->tagged = section != NULL;
  if (!section)
    return sdg_shard_unmatched(call, rules, local);
  memset(&out->colocation, 0, sizeof out->colocation);
  sdg_status_t status = sdg_ones_check(call, op, section);
  if (status == SDG_OK && (!sdg_op_knows(op, call)))
    status = sdg_fail(SDG_E_NO_RULE, "%s", call->entry_name);
  else if (status == SDG_OK)
    status = sdg_colocate_find(call, rules, op, tagging, &out->colocation,
                               &out->result);
  if (status == SDG_OK && out->result == SDG_COLOCATE_NOTHING && op->shard &&
      op->shard->place)
    status = op->shard->place(call, tagging);
  if (status == SDG_OK)
    sdg_tagging_note(call, tagging);
  else
    sdg_shard_verdict_fini(out);
  return status;
}

sdg_status_t sdg_shard_plan(const sdg_call_t *call, const sdg_op_t *op,
                            const sdg_shard_verdict_t *verdict,
                            sdg_plan_t **out_plan) {
  if (verdict->result == SDG_COLOCATE_MOVES)
    SDG_TRY(sdg_colocate_plan(&verdict->colocation, op, &verdict->tagging,
                              out_plan));
  else
    SDG_TRY(op->plan(call,
                     verdict->result == SDG_COLOCATE_READ
                         ? &verdict->colocation.tagging
                         : &verdict->tagging,
                     out_plan));
  if ((*out_plan)->literal || !sdg_step_null_operand(call, op))
    return SDG_OK;
  sdg_plan_destroy(*out_plan);
  return sdg_step_null_operand_plan(call, out_plan);
}

sdg_status_t sdg_shard_answer(sdg_call_t *call, const sdg_op_t *op,
                              const sdg_shard_verdict_t *verdict) {
  // The only queries about a graph are those for nodes.
  if (!op->answer)
    return sdg_fail(SDG_E_GRAPH_NODES, "%s", call->entry_name);
  if (verdict->result == SDG_COLOCATE_MOVES)
    return sdg_colocate_answer(&verdict->colocation, op, &verdict->tagging,
                               &call->result);
  return op->answer(call,
                    verdict->result == SDG_COLOCATE_READ
                        ? &verdict->colocation.tagging
                        : &verdict->tagging,
                    &call->result);
}

// ---- the outputs -----------------------------------------------------------

// The hint of a product's result, which is in pieces along the axes that split
// its rows, columns or batch.
static sdg_hint_t product_hint(const sdg_section_t *section) {
  const sdg_rules_matrix_t *c = &section->matrix[SDG_MATRIX_C];
  sdg_axes_t axes = 0, sums = 0;
  for (int i = 0; i < section->splits; i++)
    *(section->split[i].dim == SDG_DIM_K ? &sums : &axes) |=
        section->split[i].axes;
  if (sums & ~section->sum_axes)
    return 0; // the program makes the sums
  for (int i = 0; i < c->splits; i++)
    axes |= c->split[i].axes;
  return SDG_HINT_KNOWN | axes;
}

// The same for a graph. Terms of sums that are left to the program are no
// piece.
static sdg_hint_t graph_hint(const sdg_call_t *call, int index,
                             const sdg_tagging_t *tagging) {
  int product = sdg_call_operand(call, SDG_ROLE_PRODUCT);
  sdg_axes_t sums =
      sdg_split_all_axes(&tagging->placement[product].split[SDG_K]);
  return sums & ~tagging->section->sum_axes
             ? 0
             : SDG_HINT_KNOWN | sdg_placement_axes(&tagging->placement[index]);
}

// The hint of an output after the call: over which axes it is in pieces, and
// what values of vectors made of it mean.
static sdg_hint_t hint_of(const sdg_call_t *call, int index,
                          const sdg_tagging_t *tagging) {
  const sdg_section_t *section = tagging->section;
  sdg_role_t role = call->operand[index].role;
  sdg_hint_t hint =
      sdg_family_is(call->family, SDG_FAMILY_STATED) ? product_hint(section)
      : sdg_family_is_product(call->family)
          ? graph_hint(call, index, tagging)
          : sdg_ones_written(call, index, section, &tagging->placement[index]);
  // Gradients of parameters that were summed over all pieces.
  if ((role == SDG_ROLE_DW || role == SDG_ROLE_DBIAS) && tagging->sum_axes &&
      !(tagging->axes & ~tagging->sum_axes))
    hint = SDG_HINT_KNOWN;
  if (!(hint & SDG_HINT_AXES))
    return hint;
  return hint | (section->values == SDG_PIECE_VALUES_LOCAL    ? SDG_HINT_LOCAL
                 : section->values == SDG_PIECE_VALUES_GLOBAL ? SDG_HINT_GLOBAL
                                                              : 0);
}

// The layout of an output's memory. A product's call may state the sizes of the
// whole although a rank has a piece; then the plan's are used.
static sdg_layout_t output_layout(const sdg_call_t *call, int index,
                                  const sdg_plan_t *plan) {
  sdg_layout_t layout = sdg_operand_layout(&call->operand[index]);
  if (!sdg_family_is(call->family, SDG_FAMILY_STATED))
    return layout;
  for (int i = 0; i < plan->slabs; i++) {
    const sdg_slab_t *slab = &plan->slab[i];
    for (int d = 0; slab->operand == index && d < layout.dims; d++)
      layout.extent[d] = slab->box.dim[d].hi - slab->box.dim[d].lo;
  }
  return layout;
}

void sdg_shard_written(const sdg_call_t *call, const sdg_tagging_t *tagging,
                       const sdg_plan_t *plan, sdg_written_t *out) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!operand->is_output || !operand->data || operand->elem_bytes == 0)
      continue;
    sdg_layout_t layout = output_layout(call, i, plan);
    out[i] = (sdg_written_t){
        .bytes = sdg_layout_bytes(&layout),
        .gaps = !sdg_layout_dense(&layout),
        .hint = hint_of(call, i, tagging),
        .counts = plan->counts[i],
    };
  }
}
