// SPDX-License-Identifier: Apache-2.0
// The sub-call that runs a piece, and the ranks' agreement that all have one.
#include <stdlib.h>
#include <string.h>

#include "rules/graph/chain/clock.h"
#include "rules/graph/maker.h"
#include "rules/graph/norm/norm.h"
#include "rules/graph/product/product.h"
#include "rules/kit/subcall.h"
#include "rules/vendor/vendor.h"
#include "src/exchange/exec.h"
#include "src/job/job.h"
#include "src/job/thread.h"

// What a plan stores: the piece, and where each of its tensors is.
typedef struct stored {
  sdg_graph_piece_t *piece;
  int slab[SDG_GRAPH_SLOTS_MAX]; // -1: by value
  sdg_box_t box[SDG_GRAPH_SLOTS_MAX];
} stored_t;

static cudnnStatus_t stored_run(const sdg_subcall_run_t *run) {
  const stored_t *stored = run->op;
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(run->call);
  void *pointer[SDG_GRAPH_SLOTS_MAX];
  for (int i = 0; i < stored->piece->slots; i++)
    pointer[i] =
        stored->slab[i] < 0
            ? execution->pointer[stored->piece->slot[i].tensor]
            : sdg_exec_element(run->exec, stored->slab[i], &stored->box[i]);
  return sdg_graph_piece_run(stored->piece, run->handle, pointer,
                             run->workspace);
}

static void stored_destroy(void *op) {
  stored_t *stored = op;
  sdg_graph_piece_destroy(stored->piece);
  free(stored);
}

static cudnnStatus_t own_run(const sdg_subcall_run_t *run) {
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(run->call);
  return sdg_cudnn_get()->cudnnBackendExecute(run->handle, execution->plan,
                                              execution->pack);
}

sdg_status_t sdg_graph_own_open(sdg_graph_maker_t *m) {
  const sdg_subcall_t own = {.fn = own_run};
  return sdg_subcall_keep(m->plan, &own, &m->call_index);
}

sdg_status_t sdg_graph_part_open(sdg_graph_maker_t *m, sdg_graph_part_t part,
                                 int *out_index, int *out_refusal) {
  sdg_graph_piece_t *piece;
  stored_t *stored;
  // In the whole view a norm is in one piece with what stands around it.
  bool merges = m->norm && !m->whole;
  m->extents->part = part;
  SDG_TRY(m->product ? sdg_graph_product_extents_fill(m)
          : merges   ? sdg_graph_norm_extents_fill(m)
                     : sdg_graph_extents_fill(m));
  SDG_TRY(sdg_graph_piece_create(m->extents, m->call, &piece, out_refusal));
  if (!piece)
    return SDG_OK;
  sdg_status_t status = SDG_ALLOCATE(stored, 1, "a plan");
  if (status != SDG_OK) {
    sdg_graph_piece_destroy(piece);
    return status;
  }
  stored->piece = piece;
  for (int i = 0; i < piece->slots; i++)
    stored->slab[i] = (m->product ? sdg_graph_product_slot_find
                       : merges   ? sdg_graph_norm_slot_find
                                  : sdg_graph_slot_find)(
        m, piece->slot[i].tensor, piece->slot[i].level, &stored->box[i]);
  sdg_subcall_t sub = {.fn = stored_run,
                       .op = stored,
                       .op_destroy = stored_destroy,
                       .workspace_bytes = piece->workspace_bytes};
  return sdg_subcall_keep(m->plan, &sub, out_index);
}

sdg_status_t sdg_graph_piece_open(sdg_graph_maker_t *m, int *out_refusal) {
  // The windows see padding only, or no output sees the rows: no extents of the
  // piece say that.
  if (sdg_box_empty(&m->boxes.level[SDG_GRAPH_LEVEL_X]) ||
      sdg_box_empty(&m->boxes.level[SDG_GRAPH_LEVEL_Y])) {
    *out_refusal = CUDNN_STATUS_NOT_SUPPORTED;
    return SDG_OK;
  }
  SDG_TRY(SDG_ALLOCATE(m->extents, 1, "a plan"));
  m->prologue_slab = -1;
  if (sdg_box_equal(&m->boxes.read, &m->boxes.level[SDG_GRAPH_LEVEL_X]))
    return sdg_graph_part_open(m, SDG_GRAPH_ALL, &m->call_index, out_refusal);
  // Ops in front of the convolution would change rows of zeros.
  // cuDNN computes them alone in packed tensors only.
  int like = m->operand_slab[m->main.spec.x];
  SDG_TRY(sdg_plan_scratch(m->plan, &m->boxes.level[SDG_GRAPH_LEVEL_X], like,
                           &m->prologue_result));
  SDG_TRY(sdg_plan_scratch(m->plan, &m->boxes.read, like, &m->prologue_slab));
  SDG_TRY(sdg_graph_part_open(m, SDG_GRAPH_PROLOGUE, &m->prologue_index,
                              out_refusal));
  return *out_refusal ? SDG_OK
                      : sdg_graph_part_open(m, SDG_GRAPH_REST, &m->call_index,
                                            out_refusal);
}

sdg_status_t sdg_graph_piece_compute(sdg_graph_maker_t *m) {
  sdg_box_t outside[2 * SDG_DIMS_MAX];
  if (m->prologue_slab >= 0) {
    int count = sdg_box_subtract(&m->boxes.read,
                                 &m->boxes.level[SDG_GRAPH_LEVEL_X], outside);
    for (int i = 0; i < count; i++)
      SDG_TRY(
          sdg_plan_zero(m->plan, SDG_LANE_MAIN, m->prologue_slab, &outside[i]));
    SDG_TRY(sdg_plan_call(m->plan, m->prologue_index));
    SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->prologue_result,
                          m->prologue_slab, NULL, NULL, SDG_COPY_ACTIVATION));
  }
  return sdg_plan_call(m->plan, m->call_index);
}

// ---- what the ranks agree on -----------------------------------------------

typedef struct readiness {
  int refusal;  // cuDNN's status if it has no engine
  int compares; // 1: the program has several plans of the graph
} readiness_t;

// The first rank's status whose cuDNN has no engine for its piece; 0: all have
// one. Without this the others would wait for messages that do not come: all
// learn of it before anything is enqueued.
sdg_status_t sdg_graph_refusals_gather(const sdg_call_t *call, int refusal,
                                       int *out_refusal, int *out_rank) {
  const sdg_group_t *group = sdg_job_group();
  sdg_graph_pattern_t *pattern = sdg_graph_call_execution(call)->pattern;
  readiness_t mine = {refusal, sdg_graph_clock_compares(pattern)};
  bool compares = false;
  sdg_records_t all;
  char at[96];
  *out_refusal = refusal;
  *out_rank = sdg_job_rank();
  if (group->count < 2)
    return SDG_OK;
  *out_refusal = 0;
  sdg_job_call(at, sizeof at);
  SDG_TRY(sdg_job_gather(sdg_channel_get(), &mine, sizeof mine, at, &all));
  sdg_status_t status = SDG_OK;
  for (int r = 0; r < group->count && status == SDG_OK; r++) {
    readiness_t theirs = {0};
    if (all.bytes[r] != sizeof theirs)
      status = sdg_fail(SDG_E_DIVERGED, "%s: rank %d makes another call",
                        call->entry_name, group->rank[r]);
    else
      memcpy(&theirs, all.data[r], sizeof theirs);
    compares |= theirs.compares != 0;
    if (theirs.refusal && !*out_refusal) {
      *out_refusal = theirs.refusal;
      *out_rank = group->rank[r];
    }
  }
  sdg_records_free(&all);
  sdg_graph_clock_agree(pattern, compares);
  return status;
}
