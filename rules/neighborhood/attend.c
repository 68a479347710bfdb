// SPDX-License-Identifier: Apache-2.0
// Attention to boxes of keys, one block of queries after the other.
#include "rules/neighborhood/attend_block.h"

#include <stdlib.h>
#include <string.h>

#include "rules/kit/merge.h"

static int64_t size_of(sdg_range_t range) {
  return range.hi - range.lo;
}

static int64_t queries_of(const sdg_box_t *q) {
  int64_t count = 1;
  for (int d = 2; d < q->dims; d++)
    count *= size_of(q->dim[d]);
  return count;
}

// ---- folded tensors --------------------------------------------------------

// The box of a folded tensor: the range g of G, the range `second`, and the
// grid of `box`.
static sdg_box_t folded(const sdg_box_t *box, sdg_range_t g,
                        sdg_range_t second) {
  sdg_box_t out = *box;
  out.dim[SDG_NEIGHBORHOOD_ATTEND_G] = g;
  out.dim[SDG_NEIGHBORHOOD_ATTEND_ALONG] = second;
  return out;
}

sdg_subcall_tensor_t
sdg_neighborhood_attend_view(const sdg_neighborhood_attend_maker_t *m, int slab,
                             const sdg_box_t *box, sdg_range_t second) {
  return (sdg_subcall_tensor_t){
      .slab = slab, .box = folded(box, m->at.g, second), .type = m->a->type};
}

static int64_t heads_of(const sdg_neighborhood_attend_t *a) {
  return size_of(a->q.box.dim[1]) / a->shape->q_channels;
}

// The memory of packed slab `of` with N and heads as one dimension.
static sdg_status_t fold(const sdg_neighborhood_attend_t *a, int of,
                         int64_t channels, sdg_range_t g, int *out_slab) {
  sdg_box_t box = folded(&a->plan->slab[of].box, g, (sdg_range_t){0, channels});
  return sdg_plan_within(a->plan, of, 0, &box, of, out_slab);
}

static sdg_status_t folds_make(sdg_neighborhood_attend_maker_t *m) {
  const sdg_neighborhood_attend_t *a = m->a;
  const sdg_neighborhood_t *shape = a->shape;
  sdg_range_t all = {0, size_of(a->q.box.dim[0]) * heads_of(a)};
  SDG_TRY(fold(a, a->k, shape->q_channels, all, &m->k));
  SDG_TRY(fold(a, a->v, shape->v_channels, all, &m->v));
  if (!m->backward)
    return SDG_OK;
  SDG_TRY(fold(a, a->dk, shape->q_channels, all, &m->dk));
  return fold(a, a->dv, shape->v_channels, all, &m->dv);
}

// ---- blocks ----------------------------------------------------------------

// Number of scratch elements for one query of one head.
static int64_t elements_each(const sdg_neighborhood_attend_maker_t *m) {
  const sdg_neighborhood_t *shape = m->a->shape;
  int64_t each =
      m->slots + m->times * m->width + shape->q_channels + shape->v_channels;
  return m->backward ? each + m->slots + shape->q_channels : each;
}

// Takes the next part of a block's memory, with `each` elements per query and
// head.
static sdg_status_t part_take(const sdg_neighborhood_attend_maker_t *m,
                              const sdg_box_t *box, int64_t each,
                              int64_t *io_offset, int *out_slab) {
  int bytes = sdg_merge_bytes(m->a->type);
  SDG_TRY(sdg_plan_within(m->a->plan, m->memory, (size_t)*io_offset, box, m->k,
                          out_slab));
  *io_offset += (each * m->room * bytes + 255) / 256 * 256;
  return SDG_OK;
}

static sdg_status_t both_take(const sdg_neighborhood_attend_maker_t *m,
                              const sdg_box_t *box, int64_t channels,
                              int64_t *io_offset, int *out_own, int *out_fold) {
  SDG_TRY(part_take(m, box, channels, io_offset, out_own));
  return fold(m->a, *out_own, channels, m->at.g, out_fold);
}

// Another shape of slab `of`: G x second x third x fourth.
static sdg_status_t flat_take(const sdg_neighborhood_attend_maker_t *m, int of,
                              int64_t second, int64_t third, int64_t fourth,
                              int *out_slab) {
  sdg_box_t flat = {
      .dims = 4,
      .dim = {{0, size_of(m->at.g)}, {0, second}, {0, third}, {0, fourth}}};
  return sdg_plan_within(m->a->plan, of, 0, &flat, of, out_slab);
}

static sdg_status_t scores_take(const sdg_neighborhood_attend_maker_t *m,
                                int64_t *io_offset, int *out_scores,
                                int *out_flat, int *out_sums) {
  const sdg_neighborhood_attend_block_t *b = &m->at;
  int64_t queries = queries_of(&b->q);
  sdg_box_t box = folded(&b->q, b->g, (sdg_range_t){0, m->slots});
  SDG_TRY(part_take(m, &box, m->slots, io_offset, out_scores));
  SDG_TRY(flat_take(m, *out_scores, m->slots, queries, 1, out_flat));
  return flat_take(m, *out_scores, m->slots, 1, queries, out_sums);
}

static sdg_status_t block_take(sdg_neighborhood_attend_maker_t *m) {
  const sdg_neighborhood_t *shape = m->a->shape;
  sdg_neighborhood_attend_block_t *b = &m->at;
  int64_t offset = 0, width = m->times * m->width;
  SDG_TRY(scores_take(m, &offset, &b->scores, &b->flat, &b->sums));
  sdg_box_t box = folded(&b->q, b->g, (sdg_range_t){0, width});
  SDG_TRY(part_take(m, &box, width, &offset, &b->products));
  SDG_TRY(flat_take(m, b->products, m->times, m->width, queries_of(&b->q),
                    &b->terms));
  SDG_TRY(
      both_take(m, &b->q, shape->q_channels, &offset, &b->q_own, &b->q_fold));
  SDG_TRY(
      both_take(m, &b->o, shape->v_channels, &offset, &b->o_own, &b->o_fold));
  if (!m->backward)
    return SDG_OK;
  SDG_TRY(
      both_take(m, &b->q, shape->q_channels, &offset, &b->dq_own, &b->dq_fold));
  return scores_take(m, &offset, &b->dscores, &b->dflat, &b->dsums);
}

// ---- steps -----------------------------------------------------------------

static bool pair_make(const sdg_neighborhood_attend_maker_t *m,
                      const int64_t *step,
                      sdg_neighborhood_attend_pair_t *out) {
  const sdg_neighborhood_t *shape = m->a->shape;
  *out = (sdg_neighborhood_attend_pair_t){.q = m->at.q, .k = m->at.q};
  for (int d = 0; d < shape->grid; d++) {
    const sdg_neighborhood_window_t *dim = &shape->dim[d];
    sdg_range_t seeing = sdg_neighborhood_window_queries(dim, step[d]);
    sdg_range_t *q = &out->q.dim[2 + d], *k = &out->k.dim[2 + d];
    q->lo = q->lo > seeing.lo ? q->lo : seeing.lo;
    q->hi = q->hi < seeing.hi ? q->hi : seeing.hi;
    if (q->lo >= q->hi)
      return false;
    k->lo = q->lo + step[d] * dim->dilation;
    k->hi = q->hi + step[d] * dim->dilation;
    out->slot =
        out->slot * dim->kernel + sdg_neighborhood_window_slot(dim, step[d]);
  }
  out->all = memcmp(&out->q, &m->at.q, sizeof out->q) == 0;
  return true;
}

static void pairs_index(sdg_neighborhood_attend_maker_t *m) {
  int64_t covered = 0;
  for (int64_t slot = 0; slot < m->slots; slot++)
    m->pair_all[slot] = -1;
  for (int i = 0; i < m->pairs; i++) {
    covered += queries_of(&m->pair[i].q);
    if (m->pair[i].all)
      m->pair_all[m->pair[i].slot] = i;
  }
  m->at.full = covered == m->slots * queries_of(&m->at.q);
}

static sdg_status_t pairs_make(sdg_neighborhood_attend_maker_t *m) {
  const sdg_neighborhood_t *shape = m->a->shape;
  static const int64_t own[SDG_NEIGHBORHOOD_GRID_MAX];
  int64_t step[SDG_NEIGHBORHOOD_GRID_MAX], count = 1;
  sdg_range_t steps[SDG_NEIGHBORHOOD_GRID_MAX];
  for (int d = 0; d < shape->grid; d++) {
    steps[d] = sdg_neighborhood_window_steps(&shape->dim[d]);
    step[d] = steps[d].lo;
    count *= size_of(steps[d]);
  }
  free(m->pair);
  free(m->pair_all);
  m->pairs = 0;
  m->pair = malloc((size_t)count * sizeof *m->pair);
  m->pair_all = malloc((size_t)m->slots * sizeof *m->pair_all);
  if (!m->pair || !m->pair_all)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan of %lld steps", (long long)count);
  m->pairs += pair_make(m, own, &m->pair[0]);
  for (int64_t i = 0; i < count; i++) {
    if (memcmp(step, own, (size_t)shape->grid * sizeof *own) != 0)
      m->pairs += pair_make(m, step, &m->pair[m->pairs]);
    for (int d = shape->grid - 1; d >= 0 && ++step[d] == steps[d].hi; d--)
      step[d] = steps[d].lo;
  }
  pairs_index(m);
  return SDG_OK;
}

// ---- all blocks ------------------------------------------------------------

static int64_t block_count(const sdg_neighborhood_attend_maker_t *m,
                           const sdg_box_t *q) {
  return size_of(q->dim[0]) * (size_of(q->dim[1]) / m->a->shape->q_channels) *
         queries_of(q);
}

static bool block_fits(const sdg_neighborhood_attend_maker_t *m,
                       const sdg_box_t *q) {
  return block_count(m, q) * elements_each(m) * sdg_merge_bytes(m->a->type) <=
         m->a->block_bytes;
}

// Chooses m->times. Larger values need fewer calls but more scratch; a value
// above 1 is used only if all queries still fit in one block.
static void times_choose(sdg_neighborhood_attend_maker_t *m) {
  enum { TIMES_MAX = 16 };
  m->times = m->slots < TIMES_MAX ? m->slots : TIMES_MAX;
  while (m->times > 1 && !block_fits(m, &m->a->q.box))
    m->times /= 2;
}

// Halves a block that is too large: along N, then rows, then heads.
static bool block_halve(const sdg_neighborhood_attend_maker_t *m,
                        const sdg_box_t *q, sdg_box_t half[2]) {
  if (block_fits(m, q))
    return false;
  static const int order[] = {0, 2, 3, 4, 1};
  for (int i = 0; i < 5; i++) {
    int d = order[i];
    int64_t unit = d == 1 ? m->a->shape->q_channels : 1;
    int64_t units = d < q->dims ? size_of(q->dim[d]) / unit : 1;
    if (units < 2)
      continue;
    half[0] = half[1] = *q;
    half[0].dim[d].hi = half[1].dim[d].lo = q->dim[d].lo + units / 2 * unit;
    return true;
  }
  return false;
}

static void room_measure(sdg_neighborhood_attend_maker_t *m,
                         const sdg_box_t *q) {
  sdg_box_t half[2];
  if (block_halve(m, q, half)) {
    room_measure(m, &half[0]);
    room_measure(m, &half[1]);
    return;
  }
  int64_t count = block_count(m, q);
  m->room = count > m->room ? count : m->room;
}

static sdg_status_t block_add(sdg_neighborhood_attend_maker_t *m,
                              const sdg_box_t *q) {
  const sdg_neighborhood_attend_t *a = m->a;
  const sdg_neighborhood_t *shape = a->shape;
  sdg_box_t half[2];
  if (block_halve(m, q, half)) {
    SDG_TRY(block_add(m, &half[0]));
    return block_add(m, &half[1]);
  }
  int64_t head = (q->dim[1].lo - a->q.box.dim[1].lo) / shape->q_channels;
  int64_t heads = size_of(q->dim[1]) / shape->q_channels;
  int64_t first = (q->dim[0].lo - a->q.box.dim[0].lo) * heads_of(a) + head;
  m->at = (sdg_neighborhood_attend_block_t){
      .q = *q, .o = *q, .g = {first, first + size_of(q->dim[0]) * heads}};
  m->at.o.dim[1].lo = a->o.box.dim[1].lo + head * shape->v_channels;
  m->at.o.dim[1].hi = m->at.o.dim[1].lo + heads * shape->v_channels;
  SDG_TRY(block_take(m));
  SDG_TRY(pairs_make(m));
  return m->backward ? sdg_neighborhood_attend_block_backward(m)
                     : sdg_neighborhood_attend_block_forward(m);
}

static sdg_status_t attend(const sdg_neighborhood_attend_t *a, bool backward) {
  const sdg_neighborhood_t *shape = a->shape;
  sdg_neighborhood_attend_maker_t m = {
      .a = a, .backward = backward, .slots = 1};
  for (int d = 0; d < shape->grid; d++)
    m.slots *= shape->dim[d].kernel;
  m.width = shape->q_channels;
  if (backward && shape->v_channels > m.width)
    m.width = shape->v_channels;
  times_choose(&m);
  room_measure(&m, &a->q.box);
  SDG_TRY(folds_make(&m));
  size_t bytes =
      (size_t)(elements_each(&m) * m.room) * (size_t)sdg_merge_bytes(a->type);
  // Each part begins at an aligned address.
  SDG_TRY(sdg_plan_workspace(a->plan, bytes + 8 * 256, &m.memory));
  sdg_status_t status = block_add(&m, &a->q.box);
  free(m.pair);
  free(m.pair_all);
  return status;
}

sdg_status_t
sdg_neighborhood_attend_forward(const sdg_neighborhood_attend_t *a) {
  return attend(a, false);
}

sdg_status_t
sdg_neighborhood_attend_backward(const sdg_neighborhood_attend_t *a) {
  return attend(a, true);
}
