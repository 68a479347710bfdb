// SPDX-License-Identifier: Apache-2.0
// Attention in one piece for each rank: what the piece reads is fetched in one
// exchange, and what it computes for other ranks goes back in another.
//
// "halo", "gather": the rank computes its own queries. Keys and values that
// these see come; terms of their gradients go back to where they are, and are
// added there.
// "heads": the rank computes all queries of some heads. Queries come, too, and
// results go back.
// In the whole view everything is there that the piece reads; terms of
// gradients go back as in the shard view.
#include <stdlib.h>

#include "rules/graph/attention/attention.h"
#include "rules/kit/fetch.h"
#include "rules/kit/scatter_add.h"

typedef sdg_graph_attention_view_t view_t;

// A tensor that the piece reads, or that it computes.
typedef struct tensor {
  int role;
  const sdg_placement_t *from; // where it is before it travels
  sdg_placement_t computed;    // `from` of a result; owned
  sdg_box_t *need;             // of each rank of the tagging; owned
  bool travels;                // some rank needs what another has
  sdg_fetch_t fetch;
} tensor_t;

// Gradients of keys or values.
typedef struct terms {
  int role;
  const tensor_t *like; // the keys or values
  bool returns;         // some rank has terms of another's gradients
  sdg_scatter_add_t scatter;
} terms_t;

enum { INPUTS = 7, RESULTS = 2 };
static const int inputs[INPUTS] = {
    SDG_COMPOSITE_Q,  SDG_COMPOSITE_K,     SDG_COMPOSITE_V,   SDG_COMPOSITE_O,
    SDG_COMPOSITE_DO, SDG_COMPOSITE_STATS, SDG_COMPOSITE_BIAS};
static const int results[][RESULTS] = {{SDG_COMPOSITE_O, SDG_COMPOSITE_STATS},
                                       {SDG_COMPOSITE_DQ, -1}};

typedef struct steps {
  sdg_graph_attention_t *a;
  bool idle; // the rank computes nothing
  sdg_sight_block_t block;
  tensor_t input[INPUTS], result[RESULTS];
  terms_t terms[SDG_SIDES];
  view_t view[SDG_COMPOSITE_ROLES];
} steps_t;

static cudnnDataType_t type_of(const steps_t *s, int role) {
  return (cudnnDataType_t)s->a->call->operand[s->a->operand[role]].type;
}

static const sdg_placement_t *place_of(const steps_t *s, int role) {
  return &s->a->tagging->placement[s->a->operand[role]];
}

static sdg_range_t all_keys(const steps_t *s) {
  return (sdg_range_t){
      0, sdg_placement_extent(s->a->side[SDG_KEYS], SDG_HEADED_SEQ)};
}

// What a rank's piece has of a tensor.
static sdg_box_t box_of(const steps_t *s, int role, int rank) {
  if (role == SDG_COMPOSITE_K || role == SDG_COMPOSITE_V)
    return sdg_graph_attention_need(
        s->a, role == SDG_COMPOSITE_K ? SDG_KEYS : SDG_VALUES, rank,
        all_keys(s));
  if (role == SDG_COMPOSITE_BIAS)
    return sdg_graph_bias_need(s->a, rank, all_keys(s));
  sdg_box_t box = sdg_graph_attention_rows(s->a, rank);
  box.dim[SDG_HEADED_VECTOR] = (sdg_range_t){
      0, sdg_placement_extent(place_of(s, role), SDG_HEADED_VECTOR)};
  return box;
}

// ---- what the piece reads --------------------------------------------------

static sdg_status_t input_init(steps_t *s, tensor_t *input, int role) {
  const sdg_tagging_t *tagging = s->a->tagging;
  bool of_both = role <= SDG_COMPOSITE_V || role == SDG_COMPOSITE_BIAS;
  bool reads =
      s->a->operand[role] >= 0 && (of_both || s->a->composite->backward);
  input->role = reads ? role : -1;
  if (!reads)
    return SDG_OK;
  input->from = place_of(s, role);
  SDG_TRY(SDG_ALLOCATE(input->need, tagging->ranks, "boxes of %d ranks",
                       tagging->ranks));
  for (int r = 0; r < tagging->ranks; r++)
    input->need[r] = box_of(s, role, tagging->rank_list[r]);
  input->travels =
      !s->a->whole && sdg_fetch_communicates(tagging, input->from, input->need);
  return SDG_OK;
}

// Where the piece reads it: in place if the rank has all of it.
static sdg_status_t input_open(steps_t *s, tensor_t *input) {
  sdg_graph_attention_t *a = s->a;
  view_t *view = &s->view[input->role];
  int own = a->slab[input->role];
  view->box = input->need[a->tagging->me];
  if (!s->idle && !sdg_box_contains(&a->plan->slab[own].box, &view->box))
    SDG_TRY(sdg_plan_scratch(a->plan, &view->box, own, &view->slab));
  return input->travels
             ? sdg_fetch_open(a->plan, a->tagging, input->from, input->need,
                              own, view->slab, &input->fetch)
             : SDG_OK;
}

// Brings what was opened: one exchange for `count` tensors.
static sdg_status_t tensors_bring(steps_t *s, tensor_t *tensor, int count) {
  bool travels = false;
  for (int i = 0; i < count; i++)
    travels |= tensor[i].role >= 0 && tensor[i].travels;
  if (!travels)
    return SDG_OK;
  SDG_TRY(sdg_plan_exchange(s->a->plan));
  for (int i = 0; i < count; i++)
    if (tensor[i].role >= 0 && tensor[i].travels &&
        tensor[i].fetch.into != tensor[i].fetch.from)
      SDG_TRY(sdg_fetch_own(s->a->plan, &tensor[i].fetch));
  SDG_TRY(sdg_plan_join(s->a->plan, SDG_LANE_MAIN));
  for (int i = 0; i < count; i++)
    if (tensor[i].role >= 0 && tensor[i].travels)
      SDG_TRY(sdg_fetch_land(s->a->plan, &tensor[i].fetch));
  return SDG_OK;
}

// ---- what it computes of queries -------------------------------------------

static sdg_status_t result_init(steps_t *s, tensor_t *result, int role) {
  sdg_graph_attention_t *a = s->a;
  const sdg_tagging_t *tagging = a->tagging;
  bool moves = role >= 0 && a->operand[role] >= 0 && a->work != a->queries;
  result->role = moves ? role : -1;
  if (!moves)
    return SDG_OK;
  SDG_TRY(sdg_graph_attention_like(
      tagging->mesh, a->work,
      sdg_placement_extent(place_of(s, role), SDG_HEADED_VECTOR),
      &result->computed));
  result->from = &result->computed;
  SDG_TRY(SDG_ALLOCATE(result->need, tagging->ranks, "boxes of %d ranks",
                       tagging->ranks));
  for (int r = 0; r < tagging->ranks; r++)
    result->need[r] = sdg_placement_box(place_of(s, role), tagging->mesh,
                                        tagging->rank_list[r]);
  result->travels = true;
  if (s->idle)
    return SDG_OK;
  view_t *view = &s->view[role];
  view->box = box_of(s, role, tagging->rank);
  return sdg_plan_scratch(a->plan, &view->box, a->slab[role], &view->slab);
}

static sdg_status_t results_return(steps_t *s) {
  sdg_graph_attention_t *a = s->a;
  if (a->work == a->queries)
    return SDG_OK;
  SDG_TRY(sdg_plan_join(a->plan, SDG_LANE_COMM));
  for (int i = 0; i < RESULTS; i++) {
    tensor_t *result = &s->result[i];
    if (result->role >= 0)
      SDG_TRY(sdg_fetch_open(a->plan, a->tagging, result->from, result->need,
                             s->view[result->role].slab, a->slab[result->role],
                             &result->fetch));
  }
  return tensors_bring(s, s->result, RESULTS);
}

// ---- gradients of keys and values ------------------------------------------

// Where the piece writes them: in place if they are those that the rank has,
// and nobody else's.
static sdg_status_t terms_open(steps_t *s, int side) {
  sdg_graph_attention_t *a = s->a;
  terms_t *terms = &s->terms[side];
  bool keys = side == SDG_KEYS;
  terms->role = keys ? SDG_COMPOSITE_DK : SDG_COMPOSITE_DV;
  terms->like = &s->input[keys ? 1 : 2];
  terms->returns =
      sdg_fetch_returns(a->tagging, a->side[side], a->work, terms->like->need);
  view_t *view = &s->view[terms->role];
  view->box = terms->like->need[a->tagging->me];
  sdg_box_t own = sdg_tagging_own(a->tagging, a->side[side]);
  bool in_place = !terms->returns && sdg_box_equal(&own, &view->box);
  return s->idle || in_place
             ? SDG_OK
             : sdg_plan_scratch(a->plan, &view->box, a->slab[terms->role],
                                &view->slab);
}

static sdg_status_t terms_return(steps_t *s) {
  sdg_graph_attention_t *a = s->a;
  bool travels = s->terms[SDG_KEYS].returns || s->terms[SDG_VALUES].returns;
  if (travels)
    SDG_TRY(sdg_plan_join(a->plan, SDG_LANE_COMM));
  for (int i = 0; i < SDG_SIDES; i++) {
    terms_t *terms = &s->terms[i];
    SDG_TRY(sdg_scatter_add_open(a->plan, a->tagging, a->side[i], a->work,
                                 terms->like->need, NULL,
                                 s->idle ? -1 : s->view[terms->role].slab,
                                 a->slab[terms->role], &terms->scatter));
  }
  if (travels) {
    SDG_TRY(sdg_plan_exchange(a->plan));
    SDG_TRY(sdg_plan_join(a->plan, SDG_LANE_MAIN));
  }
  for (int i = 0; i < SDG_SIDES; i++) {
    const terms_t *terms = &s->terms[i];
    bool done = !s->idle && !terms->returns &&
                s->view[terms->role].slab == a->slab[terms->role];
    if (!done)
      SDG_TRY(sdg_scatter_add_close(a->plan, &terms->scatter,
                                    type_of(s, terms->role)));
  }
  return SDG_OK;
}

// ---- all -------------------------------------------------------------------

// What cuDNN leaves out, as padding, is 0 in what goes to other ranks.
static sdg_status_t results_clear(steps_t *s) {
  static const int role[] = {SDG_COMPOSITE_O, SDG_COMPOSITE_STATS,
                             SDG_COMPOSITE_DQ, SDG_COMPOSITE_DK,
                             SDG_COMPOSITE_DV};
  const sdg_graph_attention_t *a = s->a;
  for (int i = a->composite->backward ? 2 : 0;
       i < (a->composite->backward ? 5 : 2); i++) {
    const view_t *view = &s->view[role[i]];
    if (view->slab >= 0 && view->slab != a->slab[role[i]])
      SDG_TRY(sdg_plan_zero(a->plan, SDG_LANE_MAIN, view->slab, &view->box));
  }
  return SDG_OK;
}

static sdg_status_t piece_add(steps_t *s) {
  if (sdg_graph_lengths_there(s->a))
    SDG_TRY(results_clear(s));
  SDG_TRY(sdg_graph_lengths_block(s->a, &s->block, s->view));
  return sdg_graph_attention_add(s->a, &s->block, s->view);
}

static sdg_status_t steps_make(steps_t *s) {
  sdg_graph_attention_t *a = s->a;
  bool backward = a->composite->backward;
  s->block = sdg_graph_attention_block(a, a->tagging->rank, all_keys(s));
  s->idle = s->block.queries.hi <= s->block.queries.lo;
  a->plan->axes = a->tagging->axes;
  SDG_TRY(sdg_graph_attention_operands(a, s->view));
  for (int i = 0; i < INPUTS; i++)
    SDG_TRY(input_init(s, &s->input[i], inputs[i]));
  for (int i = 0; i < INPUTS; i++)
    if (s->input[i].role >= 0)
      SDG_TRY(input_open(s, &s->input[i]));
  SDG_TRY(tensors_bring(s, s->input, INPUTS));
  for (int i = 0; i < RESULTS; i++)
    SDG_TRY(result_init(s, &s->result[i], results[backward][i]));
  for (int i = 0; i < SDG_SIDES && backward; i++)
    SDG_TRY(terms_open(s, i));
  if (!a->whole) // there they are those of the rank's sequences, as they are
    SDG_TRY(sdg_graph_lengths_open(a));
  if (!s->idle)
    SDG_TRY(piece_add(s));
  SDG_TRY(results_return(s));
  return backward ? terms_return(s) : SDG_OK;
}

static void tensors_fini(tensor_t *tensor, int count) {
  for (int i = 0; i < count; i++) {
    sdg_fetch_fini(&tensor[i].fetch);
    sdg_placement_fini(&tensor[i].computed);
    free(tensor[i].need);
  }
}

sdg_status_t sdg_graph_attention_fetch(sdg_graph_attention_t *a) {
  steps_t s = {.a = a};
  sdg_status_t status = steps_make(&s);
  tensors_fini(s.input, INPUTS);
  tensors_fini(s.result, RESULTS);
  for (int i = 0; i < SDG_SIDES; i++)
    sdg_scatter_add_fini(&s.terms[i].scatter);
  return status;
}
