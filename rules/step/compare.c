// SPDX-License-Identifier: Apache-2.0
// Decides which values are compared and when, compares them, and reports
// differences.
#include "rules/step/compare.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/place/place.h"
#include "rules/step/uncut.h"
#include "rules/vendor/vendor.h"
#include "src/base/hash.h"
#include "src/base/log.h"
#include "src/base/stopwatch.h"
#include "src/call/tag.h"
#include "src/exchange/tensor_digest.h"
#include "src/exchange/update.h"
#include "src/job/digests.h"
#include "src/job/job.h"
#include "src/job/thread.h"
#include "src/observe/report.h"

// After READY_S seconds with unfinished work a stream counts as one that does
// not advance. At most KEPT_MAX descriptors are compared for one use.
#define READY_S 2.0
enum { KEPT_MAX = 256, TABLE_FIRST = 64 };
// At most so many operands in pieces are looked at, until one of them tells
// whether the ranks' inputs are pieces at all.
enum { WATCHES = 8 };

// ---- what is due -----------------------------------------------------------

// A use that has been compared. Its key is made of a descriptor's generation
// (generation_key), or of an entry, an operand and its extents (use_key).
typedef struct used {
  uint64_t key; // 0: none
  const void *descriptor;
  uint64_t generation;
  int count;
} used_t;

typedef struct uses {
  used_t *slot; // `room` of them, a power of two
  size_t room, count;
  int watches; // how many pieces have said nothing; WATCHES: no more are
               // watched
} uses_t;
static uses_t threads[SDG_CHANNEL_THREADS]; // by the thread's channel

static used_t *slot_of(const uses_t *uses, uint64_t key) {
  for (size_t i = key;; i++) {
    used_t *slot = &uses->slot[i & (uses->room - 1)];
    if (slot->key == key || slot->key == 0)
      return slot;
  }
}

static const used_t *use_find(const uses_t *uses, uint64_t key) {
  const used_t *slot = uses->room > 0 ? slot_of(uses, key) : NULL;
  return slot && slot->key ? slot : NULL;
}

// If there is no memory for the note, the operand is compared once more.
static void use_note(uses_t *uses, uint64_t key, const sdg_operand_t *operand) {
  if (2 * uses->count >= uses->room) {
    size_t room = uses->room ? 2 * uses->room : TABLE_FIRST;
    uses_t grown = {calloc(room, sizeof *grown.slot), room, uses->count,
                    uses->watches};
    if (!grown.slot)
      return;
    for (size_t i = 0; i < uses->room; i++)
      if (uses->slot[i].key)
        *slot_of(&grown, uses->slot[i].key) = uses->slot[i];
    free(uses->slot);
    *uses = grown;
  }
  used_t *slot = slot_of(uses, key);
  uses->count += slot->key == 0;
  *slot =
      (used_t){key, operand->descriptor, operand->generation, slot->count + 1};
}

static uint64_t key_of(const void *data, size_t bytes) {
  sdg_digest_t digest;
  sdg_digest_init(&digest);
  sdg_digest_add(&digest, data, bytes);
  return sdg_digest_value(&digest) | 1;
}

static uint64_t generation_key(const sdg_call_t *call, int index) {
  const sdg_operand_t *operand = &call->operand[index];
  const uint64_t text[] = {1, operand->generation, (uint64_t)operand->role};
  return key_of(text, sizeof text);
}

// Made of global extents, which are the same on all ranks. A rank's own extents
// may be new on one rank and known on another.
static uint64_t use_key(const sdg_call_t *call, int index,
                        const sdg_common_t *common) {
  const sdg_operand_t *operand = &call->operand[index];
  int64_t text[5 + SDG_DIMS_MAX] = {2, call->entry, index, operand->type,
                                    operand->dims};
  for (int d = 0; d < operand->dims; d++)
    text[5 + d] = common->whole[d];
  return key_of(text, sizeof text);
}

// A program that keeps its descriptors has one or several for an operand; each
// is compared once. If the descriptor that was compared last has been destroyed
// or set again, the program makes descriptors anew for each call: these are not
// compared again.
static bool is_new(const uses_t *uses, const sdg_call_t *call, int index,
                   uint64_t use) {
  const sdg_operand_t *operand = &call->operand[index];
  const used_t *before = use_find(uses, use);
  if (!before)
    return true;
  return operand->descriptor && before->count < KEPT_MAX &&
         !use_find(uses, generation_key(call, index)) &&
         sdg_tag_generation(before->descriptor) == before->generation;
}

static void compared_note(const sdg_call_t *call,
                          const sdg_compared_t *compared) {
  uses_t *uses = &threads[sdg_channel_get()];
  for (int i = 0; i < call->operands; i++) {
    if (!(compared->due >> i & 1))
      continue;
    use_note(uses, compared->use[i], &call->operand[i]);
    if (call->operand[i].descriptor)
      use_note(uses, generation_key(call, i), &call->operand[i]);
  }
}

static bool is_local(const sdg_call_t *call, int index,
                     const sdg_rules_t *rules) {
  const sdg_operand_t *operand = &call->operand[index];
  if (operand->label || !operand->descriptor ||
      !sdg_role_is_activation(operand->role))
    return operand->label && operand->label->is_local;
  sdg_seen_t seen;
  const sdg_section_t *section = sdg_place_section(call, index, rules, &seen);
  return section && section->is_local;
}

bool sdg_compare_reads(const sdg_operand_t *operand) {
  return !operand->is_output && operand->elem_bytes > 0 &&
         operand->kind != SDG_OPERAND_LIMITS &&
         operand->role != SDG_ROLE_PRODUCT;
}

// What the ranks have in common of an operand; axes 0: nothing, or no other
// rank has it.
static sdg_common_t alike_of(const sdg_call_t *call, const sdg_op_t *op,
                             const sdg_rules_t *rules,
                             const sdg_tagging_t *tagging, int index) {
  int rank[SDG_RANKS_MAX];
  sdg_common_t common = {.axes = 0};
  if (!sdg_compare_reads(&call->operand[index]) || is_local(call, index, rules))
    return common;
  common = op && op->shard && op->shard->common
               ? op->shard->common(call, tagging, index)
               : sdg_compare_common(call, tagging, index);
  if (common.axes)
    common.axes |= rules->same;
  if (sdg_mesh_group(tagging->mesh, tagging->rank, common.axes, rank) < 2)
    common.axes = 0;
  return common;
}

// The first operand in pieces that can tell whether all pieces are the same.
static void watch_plan(const sdg_call_t *call, const sdg_rules_t *rules,
                       const sdg_tagging_t *tagging, sdg_compared_t *io) {
  const uses_t *uses = &threads[sdg_channel_get()];
  for (int i = 0; i < call->operands && uses->watches < WATCHES; i++) {
    const sdg_placement_t *placement = &tagging->placement[i];
    int dim, rank[SDG_RANKS_MAX];
    if (io->due >> i & 1 || is_local(call, i, rules) ||
        !sdg_uncut_can(call, i, placement, &dim))
      continue;
    sdg_common_t common = sdg_compare_common(call, tagging, i);
    common.axes = sdg_placement_axes(placement);
    uint64_t use = use_key(call, i, &common);
    if (sdg_mesh_group(tagging->mesh, tagging->rank, common.axes, rank) < 2 ||
        !is_new(uses, call, i, use))
      continue;
    io->due |= 1u << i;
    io->common[i] = common;
    io->use[i] = use;
    io->watched = i;
    io->watched_dim = dim;
    return;
  }
}

sdg_status_t sdg_compare_plan(const sdg_call_t *call, const sdg_op_t *op,
                              const sdg_rules_t *rules,
                              const sdg_tagging_t *tagging,
                              sdg_compared_t **out) {
  const uses_t *uses = &threads[sdg_channel_get()];
  bool always = sdg_options_comparing() == SDG_COMPARING_ALWAYS;
  sdg_compared_t found = {.due = 0, .watched = -1};
  *out = NULL;
  if (sdg_options_comparing() == SDG_COMPARING_OFF ||
      sdg_job_group()->count < 2 ||
      sdg_family_is(call->family, SDG_FAMILY_MOVES))
    return SDG_OK;
  for (int i = 0; i < call->operands; i++) {
    found.common[i] = alike_of(call, op, rules, tagging, i);
    found.use[i] = use_key(call, i, &found.common[i]);
    if (found.common[i].axes && (always || is_new(uses, call, i, found.use[i])))
      found.due |= 1u << i;
  }
  watch_plan(call, rules, tagging, &found);
  if (!found.due)
    return SDG_OK;
  SDG_TRY(SDG_ALLOCATE(*out, 1, "a cached plan"));
  **out = found;
  return SDG_OK;
}

// ---- comparing -------------------------------------------------------------

static void defer_say(const sdg_call_t *call, sdg_digests_state_t state) {
  static atomic_bool said;
  if (sdg_job_rank() != 0 || atomic_exchange(&said, true))
    return;
  sdg_log("%s: values are compared at the next such call, because %s",
          call->entry_name,
          state == SDG_DIGESTS_CAPTURING
              ? "its stream is being captured into a graph"
              : "its stream does not advance");
}

// Whether a hint is all that the values would give.
static bool is_hint(const sdg_compared_t *compared) {
  return compared->watched >= 0 && compared->due == 1u << compared->watched;
}

// Digests of this rank's operands that are due, if its stream can be read.
static sdg_status_t digests_make(const sdg_call_t *call,
                                 const sdg_compared_t *compared,
                                 cudaStream_t stream, bool capturing,
                                 sdg_digests_t *out, int64_t *out_bytes) {
  *out = (sdg_digests_t){.state = SDG_DIGESTS_CAPTURING};
  *out_bytes = 0;
  if (capturing)
    return SDG_OK;
  bool ready;
  SDG_TRY(sdg_tensor_digest_ready(stream, READY_S, &ready));
  out->state = ready ? SDG_DIGESTS_READ : SDG_DIGESTS_BUSY;
  for (int i = 0; i < call->operands && ready; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!(compared->due >> i & 1) || !operand->data)
      continue;
    sdg_layout_t layout = sdg_operand_layout(operand);
    memcpy(layout.extent, compared->common[i].extent, sizeof layout.extent);
    bool can;
    if (i == compared->watched)
      SDG_TRY(sdg_uncut_digest(operand, compared->watched_dim, stream, &can,
                               &out->of[i], out_bytes));
    else
      SDG_TRY(sdg_tensor_digest(operand->data, &layout, stream, &can,
                                &out->of[i], out_bytes));
    out->read |= (unsigned)can << i;
  }
  return SDG_OK;
}

void sdg_compare_extents(const sdg_operand_t *operand, char *out,
                         size_t out_bytes) {
  size_t used = 0;
  out[0] = '\0';
  for (int d = 0; d < operand->dims && used < out_bytes; d++)
    used += (size_t)snprintf(out + used, out_bytes - used, "%s%lld",
                             d ? "," : "", (long long)operand->extent[d]);
}

sdg_status_t sdg_compare_fail(const sdg_call_t *call, const sdg_digests_t *all,
                              int index, sdg_axes_t axes, int rank,
                              int others) {
  const sdg_operand_t *operand = &call->operand[index];
  char who[512], extents[128], more[48] = "";
  sdg_digests_format(all, index, axes, rank, "differs from", "differ from", who,
                     sizeof who);
  sdg_compare_extents(operand, extents, sizeof extents);
  if (others > 0)
    snprintf(more, sizeof more, ", and of %d more operand%s", others,
             others > 1 ? "s" : "");
  return sdg_fail(
      SDG_E_VALUES_DIFFER,
      "values of %s [%s] of %s%s: %s. If random numbers are seeded by the rank "
      "or the clock, seed all ranks alike, or set SUNDOG_PARAMETERS=rank0 to "
      "take the first rank's values. If nobody has written this memory yet, as "
      "in a warm-up, write it before, or set SUNDOG_COMPARE=off. If it belongs "
      "to each rank alone, name it in a [local] section",
      sdg_role_name(operand->role), extents, call->entry_name, more, who);
}

sdg_status_t sdg_compare_copy(const sdg_call_t *call, int index,
                              const sdg_common_t *common, cudaStream_t stream) {
  sdg_layout_t layout = sdg_operand_layout(&call->operand[index]);
  memcpy(layout.extent, common->extent, sizeof layout.extent);
  sdg_report_row_t *row =
      sdg_report_find("copied parameters", "-", "from the first rank");
  sdg_report_update(row);
  return sdg_update_alike(call->operand[index].data, &layout, common->axes,
                          call->entry_name, stream, row);
}

sdg_status_t sdg_compare_exchange(const sdg_call_t *call,
                                  const sdg_compared_t *compared,
                                  sdg_digests_t *all, cudaStream_t *out_stream,
                                  bool *out_read) {
  bool capturing;
  sdg_digests_t mine;
  int64_t bytes = 0, wait_ns = 0;
  uint64_t start_ns = sdg_monotonic_ns();
  SDG_TRY(sdg_stream_state(call, out_stream, &capturing));
  SDG_TRY(digests_make(call, compared, *out_stream, capturing, &mine, &bytes));
  SDG_TRY(sdg_digests_exchange(call->entry_name, &mine, all, &wait_ns));
  *out_read = sdg_digests_state(all) == SDG_DIGESTS_READ;
  if (!*out_read && !is_hint(compared))
    defer_say(call, sdg_digests_state(all));
  sdg_report_compared(bytes,
                      (int64_t)(sdg_monotonic_ns() - start_ns) - wait_ns);
  return SDG_OK;
}

// An operand that differs is copied from the first rank, once; without
// SUNDOG_PARAMETERS=rank0, or if it differs again, it is the call's error.
static sdg_status_t judge(const sdg_call_t *call, const sdg_digests_t *all,
                          cudaStream_t stream, sdg_compared_t *compared) {
  bool copies = sdg_options_get()->parameters == SDG_PARAMETERS_RANK0;
  int first = -1, at = 0, others = -1;
  for (int i = 0; i < call->operands; i++) {
    int rank = compared->due >> i & 1 && i != compared->watched
                   ? sdg_digests_differ(all, i, compared->common[i].axes)
                   : -1;
    if (rank < 0)
      continue;
    if (copies && !(compared->copied >> i & 1)) {
      compared->copied |= 1u << i;
      SDG_TRY(sdg_compare_copy(call, i, &compared->common[i], stream));
      continue;
    }
    others++;
    if (first < 0) {
      first = i;
      at = rank;
    }
  }
  return first < 0 ? SDG_OK
                   : sdg_compare_fail(call, all, first,
                                      compared->common[first].axes, at, others);
}

static void watch_drop(sdg_compared_t *compared) {
  compared->due &= ~(1u << compared->watched);
  compared->watched = -1;
}

// An operand in pieces is looked at once, whatever is compared.
static void watch_end(const sdg_call_t *call, const sdg_digests_t *all,
                      sdg_compared_t *compared) {
  uses_t *uses = &threads[sdg_channel_get()];
  int i = compared->watched;
  if (i < 0)
    return;
  if (sdg_uncut_judge(call, i, all, compared->common[i].axes))
    uses->watches = WATCHES;
  else
    uses->watches++;
  watch_drop(compared);
}

// A hint is not worth an exchange, or a wait for a stream, at every call until
// one can be read. All ranks drop it at the same call, because all have the
// same plan and know that a rank could not read.
static void watch_give_up(sdg_compared_t *compared) {
  if (!is_hint(compared))
    return;
  threads[sdg_channel_get()].watches++;
  watch_drop(compared);
}

sdg_status_t sdg_compare_call(const sdg_call_t *call,
                              sdg_compared_t *compared) {
  cudaStream_t stream;
  bool read;
  sdg_digests_t *all = malloc((size_t)sdg_job_group()->count * sizeof *all);
  if (!all)
    return sdg_fail(SDG_E_NO_MEMORY, "digests of the ranks");
  sdg_status_t status =
      sdg_compare_exchange(call, compared, all, &stream, &read);
  if (status == SDG_OK && read)
    status = judge(call, all, stream, compared);
  if (status == SDG_OK && read) {
    compared_note(call, compared);
    watch_end(call, all, compared);
    if (sdg_options_comparing() != SDG_COMPARING_ALWAYS)
      compared->due = 0;
  } else if (status == SDG_OK) {
    watch_give_up(compared);
  }
  free(all);
  return status;
}

// ---- what ranks have in common of an operand --------------------------------

// For an operand that is not split beside operands that are: these read it as
// one tensor.
static sdg_axes_t beside(const sdg_call_t *call, const sdg_tagging_t *tagging,
                         int index) {
  sdg_axes_t axes = 0;
  for (int i = 0; i < call->operands; i++)
    if (i != index && tagging->placement[i].dims > 0)
      axes |= sdg_placement_axes(&tagging->placement[i]);
  return axes & tagging->axes & ~sdg_placement_axes(&tagging->placement[index]);
}

// A scale's dimension of 1 on every rank is the same element on all of them,
// unless x also has one element there on every rank, and is split. In a graph
// that holds for N alone: a rank uses its own row for the rows of others, too,
// and never for their samples.
static sdg_axes_t scale_axes(const sdg_call_t *call,
                             const sdg_tagging_t *tagging, int index) {
  const sdg_placement_t *scale = &tagging->placement[index], *x = NULL;
  sdg_axes_t axes = tagging->axes;
  if (scale->dims > 0)
    axes &= ~sdg_placement_axes(scale);
  for (int i = 0; i < call->operands && !x; i++)
    if (sdg_role_is_activation(call->operand[i].role) &&
        tagging->placement[i].dims == call->operand[index].dims)
      x = &tagging->placement[i];
  bool graph = call->family == SDG_FAMILY_CONV_GRAPH ||
               call->family == SDG_FAMILY_POOL_GRAPH;
  int end = !x ? 0 : graph ? 1 : x->dims;
  for (int d = graph ? 0 : 1; d < end; d++) {
    bool ones = x->split[d].axes > 0;
    for (int p = 0; ones && p < x->part[d].pieces; p++)
      ones = sdg_part_size(&x->part[d], p) == 1;
    for (int a = 0; ones && a < x->split[d].axes; a++)
      axes &= ~((sdg_axes_t)1 << x->split[d].axis[a]);
  }
  return axes;
}

static sdg_axes_t common_axes(const sdg_call_t *call,
                              const sdg_tagging_t *tagging, int index) {
  sdg_role_t role = call->operand[index].role;
  if (role == SDG_ROLE_W || role == SDG_ROLE_BIAS)
    return tagging->axes;
  if (sdg_role_is_scale(role))
    return scale_axes(call, tagging, index);
  return sdg_role_is_activation(role) && tagging->placement[index].dims > 0
             ? beside(call, tagging, index)
             : 0;
}

sdg_common_t sdg_compare_common(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int index) {
  sdg_common_t common = {.axes = common_axes(call, tagging, index)};
  const sdg_placement_t *placement = &tagging->placement[index];
  memcpy(common.extent, call->operand[index].extent, sizeof common.extent);
  memcpy(common.whole, call->operand[index].extent, sizeof common.whole);
  for (int d = 0; d < placement->dims; d++)
    common.whole[d] = sdg_placement_extent(placement, d);
  return common;
}
