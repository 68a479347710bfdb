// SPDX-License-Identifier: Apache-2.0
// What is added to scores (a bias): which rows and columns each rank has of it,
// and which it needs.
#include "rules/graph/attention/attention.h"
#include "rules/place/tagging.h"
#include "src/call/tag.h"
#include "src/job/job.h"

enum {
  BATCH = SDG_HEADED_BATCH,
  HEADS = SDG_HEADED_HEADS,
  SEQ = SDG_HEADED_SEQ,
  COLUMNS = SDG_HEADED_VECTOR,
  DIMS = SDG_HEADED_DIMS
};

static const sdg_operand_t *operand_of(const sdg_call_t *call, int role) {
  int index = sdg_graph_attention_operand(call, role);
  return index < 0 ? NULL : &call->operand[index];
}

static bool is_known(const sdg_operand_t *operand) {
  return operand && operand->dims == DIMS &&
         sdg_tag_vector(operand->descriptor, operand->generation);
}

// The scores' extent on a rank: columns are those of keys.
static int64_t own_extent(const sdg_call_t *call, int r, int d) {
  return d == COLUMNS
             ? sdg_graph_attention_extent(operand_of(call, SDG_COMPOSITE_K), r,
                                          SEQ)
             : sdg_graph_attention_extent(operand_of(call, SDG_COMPOSITE_Q), r,
                                          d);
}

bool sdg_graph_bias_is_own(const sdg_call_t *call) {
  const sdg_operand_t *bias = operand_of(call, SDG_COMPOSITE_BIAS);
  for (int r = 0; is_known(bias) && r < sdg_job_group()->count; r++)
    for (int d = 0; d < DIMS; d++) {
      int64_t extent = sdg_graph_attention_extent(bias, r, d);
      if (extent != 1 && extent != own_extent(call, r, d))
        return false;
    }
  return true;
}

// ---- placement -------------------------------------------------------------

// What a dimension's extents are on every rank.
typedef enum { PIECE, WHOLE, ONE, OTHER } extents_t;

// Extents that are both a piece's and another's are a piece's.
static extents_t extents_of(const sdg_call_t *call, int d, int64_t whole) {
  const sdg_operand_t *bias = operand_of(call, SDG_COMPOSITE_BIAS);
  bool is[] = {[PIECE] = true, [WHOLE] = true, [ONE] = true};
  for (int r = 0; r < sdg_job_group()->count; r++) {
    int64_t extent = sdg_graph_attention_extent(bias, r, d);
    is[PIECE] &= extent == own_extent(call, r, d);
    is[WHOLE] &= extent == whole;
    is[ONE] &= extent == 1;
  }
  return is[PIECE] ? PIECE : is[WHOLE] ? WHOLE : is[ONE] ? ONE : OTHER;
}

sdg_status_t sdg_graph_bias_place(const sdg_call_t *call,
                                  sdg_tagging_t *tagging) {
  const sdg_operand_t *bias = operand_of(call, SDG_COMPOSITE_BIAS);
  const sdg_placement_t *p = tagging->placement;
  const sdg_placement_t *q =
      &p[sdg_graph_attention_operand(call, SDG_COMPOSITE_Q)];
  const sdg_placement_t *k =
      &p[sdg_graph_attention_operand(call, SDG_COMPOSITE_K)];
  int from[DIMS];
  int64_t extent[DIMS];
  extents_t is = PIECE;
  if (!is_known(bias) || q->dims != DIMS || k->dims != DIMS)
    return SDG_OK;
  for (int d = 0; d < DIMS; d++) {
    int64_t whole =
        sdg_placement_extent(d == COLUMNS ? k : q, d == COLUMNS ? SEQ : d);
    is = extents_of(call, d, whole);
    if (is == OTHER)
      return sdg_fail(SDG_E_OPERANDS_DIFFER,
                      "%s: dimension %d of what is added to scores has neither "
                      "the extent of the rank's scores on every rank, nor that "
                      "of all ranks' scores, nor 1",
                      call->entry_name, d);
    from[d] = is == PIECE && d != COLUMNS && q->split[d].axes > 0 ? d : -1;
    extent[d] = from[d] >= 0 ? whole : bias->extent[d];
  }
  sdg_placement_t *placement =
      &tagging
           ->placement[sdg_graph_attention_operand(call, SDG_COMPOSITE_BIAS)];
  sdg_placement_fini(placement);
  SDG_TRY(sdg_placement_like(DIMS, extent, tagging->mesh, q, from, placement));
  // Rows and columns that are cut over the same axes are blocks of the
  // diagonal, which is no placement: see sdg_graph_bias_obstacle.
  sdg_axes_t both =
      sdg_placement_axes(placement) & sdg_split_all_axes(&k->split[SEQ]);
  return is == PIECE && k->split[SEQ].axes > 0 && !both
             ? sdg_placement_split(placement, tagging->mesh, COLUMNS,
                                   &k->split[SEQ], &k->part[SEQ])
             : SDG_OK;
}

// ---- boxes -----------------------------------------------------------------

static const sdg_placement_t *place_of(const sdg_graph_attention_t *a) {
  int index = a->operand[SDG_COMPOSITE_BIAS];
  return index < 0 ? NULL : &a->tagging->placement[index];
}

const char *sdg_graph_bias_obstacle(const sdg_graph_attention_t *a) {
  const sdg_placement_t *bias = place_of(a);
  if (!bias)
    return NULL;
  int64_t columns = sdg_placement_extent(bias, COLUMNS);
  return columns == 1 || columns == sdg_placement_extent(a->side[SDG_KEYS], SEQ)
             ? NULL
             : "the bias has this rank's queries as rows and this rank's keys "
               "as columns: what is added for other ranks' keys is unknown. "
               "Give it a column for each key of all ranks (its last extent; "
               "its rows stay those of the rank's queries, or are all)";
}

sdg_box_t sdg_graph_bias_need(const sdg_graph_attention_t *a, int rank,
                              sdg_range_t among) {
  static const sdg_box_t none = {.dims = DIMS};
  sdg_sight_block_t block = sdg_graph_attention_block(a, rank, among);
  sdg_box_t need = sdg_graph_attention_rows(a, rank);
  if (block.keys.hi <= block.keys.lo)
    return none;
  need.dim[SEQ] = block.queries;
  need.dim[COLUMNS] = block.keys;
  for (int d = 0; d < DIMS; d++)
    if (sdg_placement_extent(place_of(a), d) == 1)
      need.dim[d] = (sdg_range_t){0, 1};
  return need;
}
