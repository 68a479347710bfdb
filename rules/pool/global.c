// SPDX-License-Identifier: Apache-2.0
// Whether a pooling's windows cover the whole of the split dimensions.
#include "rules/pool/rule.h"
#include "rules/window/colocate.h"
#include "src/call/tag.h"
#include "src/job/job.h"

int sdg_pool_sizes(const sdg_call_t *call, int64_t *out) {
  sdg_pool_parameters_t p;
  if (!call->op_descriptor ||
      sdg_pool_parameters(call->op_descriptor, &p) != SDG_OK)
    return 0;
  for (int i = 0; i < p.spatial; i++) {
    out[2 * i] = p.window[i];
    out[2 * i + 1] = p.stride[i];
  }
  return 2 * p.spatial;
}

// What the ranks have agreed on: each rank's windows and strides (`size`), and
// its extents of x. `r` is a rank's index in the job's group.
typedef struct agreed {
  const sdg_tag_vector_t *size, *x;
} agreed_t;

static int64_t window_at(const agreed_t *a, int r, int i) {
  return a->size->extent[r * a->size->dims + 2 * i];
}

static int64_t stride_at(const agreed_t *a, int r, int i) {
  return a->size->extent[r * a->size->dims + 2 * i + 1];
}

static int64_t x_at(const agreed_t *a, int r, int i) {
  return a->x->extent[r * a->x->dims + 2 + i];
}

static bool is_split(const sdg_tagging_t *tagging, const sdg_pool_t *pool,
                     int i) {
  return tagging->placement[pool->x].part[i + 2].pieces > 1;
}

// How far the windows reach, or why that is unknown.
typedef enum reach {
  REACH_LOCAL,
  REACH_GLOBAL,
  REACH_UNSAID,  // both are possible, and the rules do not decide
  REACH_DIFFERS, // windows of ranks differ in dimension `at` of rank `rank`
} reach_t;

// Checks that windows and strides are equal on all ranks; `split` dimensions
// are ignored.
static bool windows_equal(const sdg_tagging_t *tagging, const sdg_pool_t *pool,
                          const agreed_t *a, bool split, int *out_rank,
                          int *out_at) {
  for (int r = 1; r < a->size->ranks; r++)
    for (int i = 0; i < pool->parameters.spatial; i++)
      if ((split || !is_split(tagging, pool, i)) &&
          (window_at(a, r, i) != window_at(a, 0, i) ||
           stride_at(a, r, i) != stride_at(a, 0, i))) {
        *out_rank = r;
        *out_at = i;
        return false;
      }
  return true;
}

static reach_t reach_of(const sdg_tagging_t *tagging, const sdg_pool_t *pool,
                        const agreed_t *a, int *out_rank, int *out_at) {
  bool fills = false, uneven = false, all = true;
  for (int i = 0; i < pool->parameters.spatial; i++)
    for (int r = 0; is_split(tagging, pool, i) && r < a->x->ranks; r++) {
      fills = true;
      all &=
          pool->parameters.pad[i] == 0 && window_at(a, r, i) == x_at(a, r, i);
      uneven |= x_at(a, r, i) != x_at(a, 0, i);
    }
  sdg_window_choice_t choice = tagging->section->window;
  fills &= all;
  if (fills && !uneven && choice != SDG_WINDOW_GLOBAL &&
      choice != SDG_WINDOW_LOCAL)
    return REACH_UNSAID;
  bool global = fills && (uneven || choice == SDG_WINDOW_GLOBAL);
  if (!windows_equal(tagging, pool, a, !global, out_rank, out_at))
    return REACH_DIFFERS;
  return global ? REACH_GLOBAL : REACH_LOCAL;
}

static bool agreed_get(const sdg_call_t *call, const sdg_pool_t *pool,
                       agreed_t *out) {
  const sdg_operand_t *x = &call->operand[pool->x];
  out->size = sdg_tag_vector(call->op_descriptor, call->op_generation);
  out->x = sdg_tag_vector(x->descriptor, x->generation);
  return out->size && out->x && out->size->dims == 2 * pool->parameters.spatial;
}

sdg_status_t sdg_pool_reach(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            const sdg_pool_t *pool, bool *out_global) {
  const sdg_group_t *group = sdg_job_group();
  agreed_t a;
  int r = 0, i = 0;
  if (!agreed_get(call, pool, &a))
    return sdg_fail(SDG_E_INTERNAL, "the ranks did not agree on %s",
                    call->entry_name);
  reach_t reach = reach_of(tagging, pool, &a, &r, &i);
  *out_global = reach == REACH_GLOBAL;
  if (reach == REACH_UNSAID)
    return sdg_fail(SDG_E_WINDOW,
                    "%s: is the window the whole extent, or each rank's piece? "
                    "Write window = global or window = local in [shard %s]",
                    call->entry_name, tagging->section->name);
  if (reach == REACH_DIFFERS)
    return sdg_fail(
        SDG_E_DISAGREE,
        "windows of %s differ: rank %d has window %lld, stride %lld, rank %d "
        "window %lld, stride %lld; they may differ only if each is as large as "
        "its rank's piece",
        call->entry_name, group->rank[0], (long long)window_at(&a, 0, i),
        (long long)stride_at(&a, 0, i), group->rank[r],
        (long long)window_at(&a, r, i), (long long)stride_at(&a, r, i));
  return SDG_OK;
}

bool sdg_pool_fills(const sdg_call_t *call, const sdg_tagging_t *tagging,
                    const sdg_pool_t *pool) {
  const sdg_operand_t *x = &call->operand[pool->x];
  bool any = false;
  for (int i = 0; i < pool->parameters.spatial; i++) {
    if (!is_split(tagging, pool, i))
      continue;
    any = true;
    if (pool->parameters.pad[i] != 0 ||
        pool->parameters.window[i] != x->extent[i + 2])
      return false;
  }
  return any;
}

void sdg_pool_globalize(const sdg_tagging_t *tagging, sdg_pool_t *pool) {
  sdg_box_t own = sdg_tagging_own(tagging, &tagging->placement[pool->x]);
  pool->global = true;
  for (int i = 0; i < pool->parameters.spatial; i++) {
    if (!is_split(tagging, pool, i))
      continue;
    int64_t extent = sdg_placement_extent(&tagging->placement[pool->x], i + 2);
    pool->local[i] = (int)(own.dim[i + 2].hi - own.dim[i + 2].lo);
    pool->parameters.window[i] = (int)extent;
    pool->parameters.stride[i] = 1;
    pool->spec.window[i + 2] = (sdg_window_t){extent, 1, 1, 0};
    pool->spec.everyones[i + 2] = true;
  }
}

// Places an output like sdg_pool_place says.
static sdg_status_t placement_merge(const sdg_call_t *call, int index,
                                    const sdg_pool_t *pool,
                                    sdg_tagging_t *tagging) {
  const sdg_placement_t *given = &tagging->placement[index];
  const sdg_operand_t *operand = &call->operand[index];
  sdg_placement_t merged;
  int64_t extent[SDG_DIMS_MAX];
  int from[SDG_DIMS_MAX];
  if (given->dims != tagging->placement[pool->x].dims)
    return SDG_OK; // plan() rejects the call
  for (int d = 0; d < given->dims; d++) {
    extent[d] = sdg_placement_extent(given, d);
    from[d] = pool->spec.everyones[d] ? -1 : d;
    if (!pool->spec.everyones[d])
      continue;
    const sdg_tag_vector_t *v =
        sdg_tag_vector(operand->descriptor, operand->generation);
    for (int r = 0; v && r < v->ranks; r++)
      if (v->extent[r * v->dims + d] != 1)
        return sdg_fail(SDG_E_OUTPUT_EXTENT,
                        "%s of %s is %lld on rank %d; a window over the whole "
                        "extent gives 1 on every rank",
                        sdg_role_name(operand->role), call->entry_name,
                        (long long)v->extent[r * v->dims + d],
                        sdg_job_group()->rank[r]);
    extent[d] = 1;
  }
  SDG_TRY(sdg_placement_like(given->dims, extent, tagging->mesh, given, from,
                             &merged));
  sdg_placement_fini(&tagging->placement[index]);
  tagging->placement[index] = merged;
  return SDG_OK;
}

sdg_status_t sdg_pool_place(const sdg_call_t *call, sdg_tagging_t *tagging) {
  sdg_pool_t pool;
  bool global;
  SDG_TRY(sdg_pool_read(call, &pool));
  SDG_TRY(sdg_pool_reach(call, tagging, &pool, &global));
  if (!global)
    return SDG_OK;
  sdg_pool_globalize(tagging, &pool);
  if (pool.y >= 0)
    SDG_TRY(placement_merge(call, pool.y, &pool, tagging));
  return pool.dy >= 0 ? placement_merge(call, pool.dy, &pool, tagging) : SDG_OK;
}

// Whether the windows are local, judged by x as the program has cut it.
static bool is_local(const sdg_colocation_t *colocation, const sdg_pool_t *pool,
                     bool *out_global) {
  sdg_tagging_t own = colocation->tagging; // borrows
  agreed_t a;
  int r, i;
  own.placement[pool->x] =
      colocation->place[pool->x][colocation->is[pool->x]].placement;
  reach_t reach = agreed_get(colocation->call, pool, &a)
                      ? reach_of(&own, pool, &a, &r, &i)
                      : REACH_UNSAID;
  *out_global = reach == REACH_GLOBAL;
  return reach == REACH_LOCAL;
}

sdg_status_t sdg_pool_colocate(sdg_colocation_t *colocation,
                               const sdg_pool_t *pool, int lead) {
  sdg_pool_t read = *pool;
  bool global = false;
  bool by_x = lead == pool->x;
  if (by_x && !is_local(colocation, pool, &global))
    colocation->fits = global && !sdg_colocate_moves(colocation, pool->x);
  if (!colocation->fits)
    return SDG_OK;
  if (global)
    sdg_pool_globalize(&colocation->tagging, &read);
  SDG_TRY(sdg_window_colocate(colocation, &read.spec, lead));
  if (colocation->fits && !by_x)
    colocation->fits = is_local(colocation, pool, &global);
  return SDG_OK;
}
