// SPDX-License-Identifier: Apache-2.0
// Plans neighbourhood attention: fetches the keys and values that the queries
// see, and scatters their gradients.
#include "rules/neighborhood/plan.h"

#include <stdlib.h>
#include <string.h>

#include "rules/kit/fetch.h"
#include "rules/kit/merge.h"
#include "rules/neighborhood/attend.h"
#include "src/base/options.h"

// One of the two inputs that ranks fetch: keys, or values.
typedef struct side {
  int operand, gradient;
  const sdg_placement_t *placement;
  sdg_box_t own;
  sdg_box_t *need; // by rank of the group; owned
  int from;        // slab of the operand
  int all;         // packed slab: the elements that this rank's queries see
  int sums;        // packed slab: their gradients
  bool copies;     // several ranks own the same elements
  sdg_fetch_t fetch, back;
} side_t;

typedef struct maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  sdg_neighborhood_t shape;
  sdg_plan_t *plan;
  sdg_type_t of, type; // of the program's tensors, of the arithmetic
  bool backward;
  bool fetches;   // messages fetch keys and values; false in the whole view
  sdg_box_t q, o; // this rank's
  side_t side[2];
} maker_t;

// The nesting of dimensions in packed tensors of the arithmetic.
static const int64_t in_order[SDG_DIMS_MAX] = {8, 7, 6, 5, 4, 3, 2, 1};

static sdg_subcall_tensor_t tensor(int slab, const sdg_box_t *box,
                                   sdg_type_t type) {
  return (sdg_subcall_tensor_t){.slab = slab, .box = *box, .type = type};
}

// to = from + beta * to, in the same box of both.
static sdg_status_t move(maker_t *m, int from, sdg_type_t from_type, int to,
                         sdg_type_t to_type, const sdg_box_t *box,
                         double beta) {
  sdg_subcall_tensor_t a = tensor(from, box, from_type);
  sdg_subcall_tensor_t c = tensor(to, box, to_type);
  return sdg_box_empty(box) ? SDG_OK
                            : sdg_subcall_transform(m->plan, 1, &a, beta, &c);
}

static sdg_status_t clear(maker_t *m, int slab) {
  sdg_subcall_tensor_t all = sdg_subcall_slab(m->plan, slab, m->type);
  return sdg_box_empty(&all.box) ? SDG_OK : sdg_subcall_set(m->plan, 0, &all);
}

static sdg_status_t packed(maker_t *m, const sdg_box_t *box, int *out_slab) {
  return sdg_plan_packed(m->plan, box, in_order, sdg_merge_bytes(m->type),
                         out_slab);
}

static sdg_status_t side_init(maker_t *m, side_t *side, int operand,
                              int gradient) {
  const sdg_tagging_t *tagging = m->tagging;
  side->operand = operand;
  side->gradient = gradient;
  side->placement = &tagging->placement[operand];
  side->own = sdg_tagging_own(tagging, side->placement);
  SDG_TRY(SDG_ALLOCATE(side->need, tagging->ranks, "boxes of %d ranks",
                       tagging->ranks));
  for (int r = 0; r < tagging->ranks; r++) {
    sdg_box_t queries =
        sdg_placement_box(&tagging->placement[SDG_NEIGHBORHOOD_Q],
                          tagging->mesh, tagging->rank_list[r]);
    side->need[r] = sdg_neighborhood_need(&m->shape, &queries,
                                          operand == SDG_NEIGHBORHOOD_V);
  }
  const sdg_placement_t *q = &tagging->placement[SDG_NEIGHBORHOOD_Q];
  bool comes = !m->plan->share &&
               sdg_fetch_communicates(tagging, side->placement, side->need);
  if (comes || (m->backward &&
                sdg_fetch_returns(tagging, side->placement, q, side->need)))
    m->plan->axes = tagging->axes;
  m->fetches |= comes;
  side->copies =
      (sdg_placement_axes(q) & ~sdg_placement_axes(side->placement)) != 0;
  return SDG_OK;
}

static const sdg_box_t *need_of(const maker_t *m, const side_t *side) {
  return &side->need[m->tagging->me];
}

// Adds the slabs of keys or values, and the messages that fetch what this rank
// needs.
static sdg_status_t side_open(maker_t *m, side_t *side) {
  SDG_TRY(sdg_merge_operand(m->plan, m->call, side->operand, &side->own,
                            &side->from));
  SDG_TRY(packed(m, need_of(m, side), &side->all));
  if (!m->fetches)
    return SDG_OK;
  int into = m->of == m->type ? side->all : SDG_SLAB_SCRATCH;
  return sdg_fetch_open(m->plan, m->tagging, side->placement, side->need,
                        side->from, into, &side->fetch);
}

static sdg_status_t side_own(maker_t *m, const side_t *side) {
  if (!m->fetches)
    return move(m, side->from, m->of, side->all, m->type, need_of(m, side), 0);
  for (int i = 0; i < side->fetch.transfer.locals; i++)
    SDG_TRY(move(m, side->from, m->of, side->all, m->type,
                 &side->fetch.transfer.local[i].box, 0));
  return SDG_OK;
}

static sdg_status_t side_land(maker_t *m, const side_t *side) {
  for (int i = 0; i < side->fetch.transfer.recvs; i++)
    if (side->fetch.landed[i] >= 0)
      SDG_TRY(move(m, side->fetch.landed[i], m->of, side->all, m->type,
                   &side->fetch.transfer.recv[i].box, 0));
  return SDG_OK;
}

static sdg_status_t keys_fetch(maker_t *m) {
  for (int i = 0; i < 2; i++)
    SDG_TRY(side_open(m, &m->side[i]));
  if (m->fetches)
    SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < 2; i++)
    SDG_TRY(side_own(m, &m->side[i]));
  if (!m->fetches)
    return SDG_OK;
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < 2; i++)
    SDG_TRY(side_land(m, &m->side[i]));
  return SDG_OK;
}

// ---- gradients of keys and values ------------------------------------------

// Whether all ranks have all keys or values. Their gradients are then sums over
// the ranks.
static bool everywhere(const maker_t *m, const side_t *side) {
  return m->tagging->ranks > 1 && !sdg_placement_axes(side->placement);
}

// Chooses the slab where addends of the gradients that this rank owns are
// added: side->sums if it covers all of them, otherwise new scratch. If other
// ranks own the same elements, all add in the order of the ranks, so that they
// get the same bits; then the scratch is still zero.
static sdg_status_t own_begin(maker_t *m, const side_t *side, int *out_slab) {
  *out_slab = side->sums;
  bool ordered = side->copies && !everywhere(m, side);
  if (!ordered && sdg_box_contains(need_of(m, side), &side->own))
    return SDG_OK;
  SDG_TRY(packed(m, &side->own, out_slab));
  SDG_TRY(clear(m, *out_slab));
  if (ordered)
    return SDG_OK;
  sdg_box_t both = sdg_box_intersect(need_of(m, side), &side->own);
  return move(m, side->sums, m->type, *out_slab, m->type, &both, 0);
}

static sdg_status_t gradients_open(maker_t *m, side_t *side) {
  if (!m->plan->axes || everywhere(m, side))
    return SDG_OK;
  return sdg_scatter_back(m->plan, m->tagging, side->placement,
                          &m->tagging->placement[SDG_NEIGHBORHOOD_Q],
                          side->need, NULL, side->sums, &side->back);
}

static sdg_status_t returned_add(maker_t *m, const side_t *side, int message,
                                 int slab) {
  return move(m, side->back.landed[message], m->type, slab, m->type,
              &side->back.transfer.recv[message].box, 1);
}

static sdg_status_t gradients_close(maker_t *m, side_t *side, int slab) {
  const sdg_transfer_t *back = &side->back.transfer;
  bool ordered = side->copies && !everywhere(m, side);
  sdg_box_t both = sdg_box_intersect(need_of(m, side), &side->own);
  int gradient, i = 0;
  for (; ordered && i < back->recvs && back->recv[i].peer < m->tagging->me; i++)
    SDG_TRY(returned_add(m, side, i, slab));
  if (ordered)
    SDG_TRY(move(m, side->sums, m->type, slab, m->type, &both, 1));
  for (; i < back->recvs; i++)
    SDG_TRY(returned_add(m, side, i, slab));
  SDG_TRY(sdg_merge_operand(m->plan, m->call, side->gradient, &side->own,
                            &gradient));
  return move(m, slab, m->type, gradient, m->of, &side->own, 0);
}

static sdg_status_t gradients_return(maker_t *m) {
  int slab[2];
  bool exchanges = false;
  for (int i = 0; i < 2; i++)
    exchanges |= !everywhere(m, &m->side[i]);
  if (exchanges && m->plan->axes) {
    SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_COMM));
    for (int i = 0; i < 2; i++)
      SDG_TRY(gradients_open(m, &m->side[i]));
    SDG_TRY(sdg_plan_exchange(m->plan));
  }
  for (int i = 0; i < 2; i++)
    SDG_TRY(own_begin(m, &m->side[i], &slab[i]));
  for (int i = 0; i < 2; i++)
    if (everywhere(m, &m->side[i])) {
      m->plan->reduce_axes =
          sdg_placement_axes(&m->tagging->placement[SDG_NEIGHBORHOOD_Q]);
      SDG_TRY(sdg_plan_reduce(m->plan, slab[i], m->type, SDG_COMBINE_SUM));
    }
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < 2; i++)
    SDG_TRY(gradients_close(m, &m->side[i], slab[i]));
  return SDG_OK;
}

// ---- the plan --------------------------------------------------------------

static sdg_status_t operand_get(maker_t *m, int index, const sdg_box_t *own,
                                sdg_subcall_tensor_t *out) {
  int slab;
  SDG_TRY(sdg_merge_operand(m->plan, m->call, index, own, &slab));
  *out = tensor(slab, own, m->of);
  return SDG_OK;
}

static sdg_status_t steps_make(maker_t *m) {
  const sdg_tagging_t *tagging = m->tagging;
  for (int i = 0; i < 2; i++)
    SDG_TRY(side_init(m, &m->side[i], SDG_NEIGHBORHOOD_K + i,
                      SDG_NEIGHBORHOOD_DK + i));
  SDG_TRY(keys_fetch(m));
  m->q = sdg_tagging_own(tagging, &tagging->placement[SDG_NEIGHBORHOOD_Q]);
  m->o = sdg_tagging_own(tagging, &tagging->placement[SDG_NEIGHBORHOOD_O]);
  sdg_neighborhood_attend_t a = {.plan = m->plan,
                                 .shape = &m->shape,
                                 .type = m->type,
                                 .k = m->side[0].all,
                                 .v = m->side[1].all,
                                 .block_bytes =
                                     sdg_options_get()->attention_kib * 1024};
  SDG_TRY(operand_get(m, SDG_NEIGHBORHOOD_Q, &m->q, &a.q));
  SDG_TRY(operand_get(m, SDG_NEIGHBORHOOD_O, &m->o, &a.o));
  if (!m->backward)
    return sdg_box_empty(&m->q) ? SDG_OK : sdg_neighborhood_attend_forward(&a);
  SDG_TRY(operand_get(m, SDG_NEIGHBORHOOD_DQ, &m->q, &a.dq));
  for (int i = 0; i < 2; i++) {
    SDG_TRY(packed(m, need_of(m, &m->side[i]), &m->side[i].sums));
    SDG_TRY(clear(m, m->side[i].sums));
  }
  a.dk = m->side[0].sums;
  a.dv = m->side[1].sums;
  if (!sdg_box_empty(&m->q))
    SDG_TRY(sdg_neighborhood_attend_backward(&a));
  return gradients_return(m);
}

static sdg_status_t plan_make(const sdg_call_t *call,
                              const sdg_tagging_t *tagging, sdg_plan_t *plan) {
  maker_t m = {.call = call,
               .tagging = tagging,
               .plan = plan,
               .of = call->operand[SDG_NEIGHBORHOOD_Q].type,
               .backward = call->operands > SDG_NEIGHBORHOOD_DQ};
  SDG_TRY(sdg_neighborhood_shape(call, tagging, &m.shape));
  m.type = sdg_merge_type(m.of);
  sdg_status_t status = steps_make(&m);
  for (int i = 0; i < 2; i++) {
    free(m.side[i].need);
    sdg_fetch_fini(&m.side[i].fetch);
    sdg_fetch_fini(&m.side[i].back);
  }
  return status;
}

static bool has_three(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].dims != 3)
      return false;
  return true;
}

sdg_status_t sdg_neighborhood_fill(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_plan_t *plan) {
  sdg_neighborhood_padded_t *padded;
  SDG_TRY(sdg_neighborhood_edges(call, tagging));
  SDG_TRY(sdg_subcalls_open(plan, call));
  if (!has_three(call))
    return plan_make(call, tagging, plan);
  SDG_TRY(sdg_neighborhood_pad(call, tagging, &padded));
  sdg_status_t status = plan_make(&padded->call, &padded->tagging, plan);
  sdg_neighborhood_unpad(padded);
  return status;
}

sdg_status_t sdg_neighborhood_plan(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_plan_t **out_plan) {
  sdg_plan_t *plan;
  SDG_TRY(sdg_plan_create("halo", &plan));
  plan->why = "the op has only this strategy: keys and values are fetched to "
              "their queries";
  sdg_status_t status = sdg_neighborhood_fill(call, tagging, plan);
  return sdg_plan_finish(plan, status, out_plan);
}
