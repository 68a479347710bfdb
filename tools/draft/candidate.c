// SPDX-License-Identifier: Apache-2.0
// Judges a split by the geometry that the ranks themselves will use.
#include "tools/draft/candidate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/draft/companion.h"
#include "tools/draft/window.h"

const char *extents_text(const seen_operand_t *operand, char *out,
                         size_t bytes) {
  size_t used = 0;
  out[0] = '\0';
  for (int d = 0; d < operand->dims && used < bytes; d++)
    used += (size_t)snprintf(out + used, bytes - used, "%s%" PRId64,
                             d ? "x" : "", operand->extent[d]);
  return out;
}

// Returns false if the list already has this fault.
static bool fault_add(candidate_t *out, const char *format, va_list args) {
  if (out->faults == CANDIDATE_FAULTS_MAX)
    return false;
  vsnprintf(out->fault[out->faults], CANDIDATE_FAULT_BYTES, format, args);
  for (int i = 0; i < out->faults; i++)
    if (strcmp(out->fault[i], out->fault[out->faults]) == 0)
      return false;
  out->faults++;
  return true;
}

void candidate_fault(candidate_t *out, const char *format, ...) {
  va_list args;
  va_start(args, format);
  out->fatal += fault_add(out, format, args);
  va_end(args);
}

void candidate_doubt(candidate_t *out, const char *format, ...) {
  va_list args;
  va_start(args, format);
  (void)fault_add(out, format, args);
  va_end(args);
}

int candidate_index(const seen_call_t *call, const seen_operand_t *operand,
                    sdg_dim_t dim) {
  if (!operand || !operand->is_activation ||
      sdg_family_is_product(call->family))
    return -1; // in a product, N is a dimension of matrices, not the batch
  int d = sdg_dim_index(call->family, dim, operand->dims);
  return d >= 0 && d < operand->dims && operand->extent[d] > 1 ? d : -1;
}

// Adds a times b, neither negative; saturates at the largest number.
static void product_add(int64_t *sum, int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product) ||
      __builtin_add_overflow(*sum, product, sum))
    *sum = INT64_MAX;
}

// Returns the bytes that one index of dimension `d` selects.
static int64_t row_bytes(const seen_operand_t *operand, int d) {
  int64_t bytes = operand->bytes;
  for (int i = 0; i < operand->dims; i++)
    bytes *= i == d ? 1 : operand->extent[i];
  return bytes;
}

// Returns how often each byte is received: ranks that differ only along unsplit
// axes receive the same bytes.
static int copies_of(const candidate_t *out) {
  int copies = out->ranks;
  for (int i = 0; i < out->splits; i++)
    copies /= out->split[i].pieces;
  return copies;
}

void candidate_bytes(candidate_t *out, const seen_call_t *call, int64_t bytes,
                     int64_t steps) {
  if (__builtin_mul_overflow(bytes, (int64_t)copies_of(out), &bytes))
    bytes = INT64_MAX;
  product_add(&out->run_bytes, bytes, call->count);
  product_add(&out->step_bytes, bytes, (call->count + steps / 2) / steps);
}

// Judges one operand along one split.
static void operand_judge(const seen_call_t *call,
                          const seen_operand_t *operand, int d,
                          candidate_split_t *split, candidate_t *out) {
  char text[160];
  int64_t rows = operand->extent[d] / split->pieces;
  // One fault is enough for all such operands.
  bool too_few = rows == 0 && out->view == SDG_VIEW_SHARD &&
                 (!split->possible || split->smallest > 0);
  if (!split->possible || rows < split->smallest)
    split->smallest = rows;
  if (operand->extent[d] > split->longest)
    split->longest = operand->extent[d];
  split->possible = true;
  if (too_few)
    candidate_fault(out, "%s: %s of %s has fewer %s than ranks (SDG-402)",
                    call->entry, operand->role,
                    extents_text(operand, text, sizeof text),
                    sdg_dim_name(split->dim));
}

// Judges all operands. Returns a bit for each split that divides the call.
static unsigned operands_judge(const seen_call_t *call, candidate_t *out) {
  char text[160];
  unsigned all = 0;
  for (int i = 0; i < call->operands; i++) {
    const seen_operand_t *operand = &call->operand[i];
    int index[SDG_AXES_MAX];
    unsigned set = 0;
    for (int k = 0; k < out->splits; k++) {
      index[k] = candidate_index(call, operand, out->split[k].dim);
      set |= index[k] >= 0 ? 1u << k : 0;
    }
    if (!set)
      continue;
    all |= set;
    for (int k = 0; k < out->splits; k++) {
      if (index[k] < 0)
        continue;
      operand_judge(call, operand, index[k], &out->split[k], out);
      int64_t extent = operand->extent[index[k]];
      if (!out->has_set[set] || extent < out->least[set][k])
        out->least[set][k] = extent;
    }
    out->has_set[set] = true;
    if (operand->bytes == 0)
      candidate_fault(out,
                      "%s on %s: elements of type %s cannot be split (SDG-604)",
                      call->entry, extents_text(operand, text, sizeof text),
                      type_name(operand->type));
  }
  return all;
}

// Judges an op without a rule: the shard view refuses it; the whole view first
// fetches all its inputs in full.
static void ruleless_judge(const seen_call_t *call, int64_t steps,
                           candidate_t *out) {
  char text[160];
  if (out->view == SDG_VIEW_SHARD) {
    candidate_fault(out, "%s on %s: this version has no rule for it (SDG-600)",
                    call->entry,
                    extents_text(&call->operand[0], text, sizeof text));
    return;
  }
  out->in_full++;
  for (int i = 0; i < call->operands; i++) {
    const seen_operand_t *operand = &call->operand[i];
    int64_t all = 0, received = 0;
    int others = 1, pieces = 1, last = -1;
    for (int k = 0; k < out->splits; k++) {
      int d = candidate_index(call, operand, out->split[k].dim);
      *(d < 0 ? &others : &pieces) *= out->split[k].pieces;
      last = d < 0 ? last : d;
    }
    if (last < 0 || operand->is_output)
      continue;
    product_add(&all, row_bytes(operand, last), operand->extent[last]);
    product_add(&received, all, (int64_t)(pieces - 1) * others);
    candidate_bytes(out, call, received, steps);
  }
}

// Every rank carries out an op without a rule in full. An elementwise op costs
// no more than reading its elements.
bool candidate_gains(const seen_call_t *call, sdg_dim_t dim) {
  if (call->is_query || call->is_opaque || call->is_reduction ||
      !call->has_rule || sdg_family_is(call->family, SDG_FAMILY_ELEMENTWISE))
    return false;
  for (int i = 0; i < call->operands; i++)
    if (candidate_index(call, &call->operand[i], dim) >= 0)
      return true;
  return false;
}

bool candidate_is_useful(const candidate_t *candidate) {
  bool useful = candidate->possible;
  for (int i = 0; i < candidate->splits; i++)
    useful &= candidate->split[i].gains > 0;
  return useful;
}

const char *candidate_name(const candidate_t *candidate, char *out,
                           size_t bytes) {
  size_t used = 0;
  out[0] = '\0';
  for (int i = 0; i < candidate->splits && used < bytes; i++) {
    const candidate_split_t *split = &candidate->split[i];
    used += (size_t)snprintf(out + used, bytes - used, "%s%s%s%s", i ? "," : "",
                             sdg_dim_name(split->dim), split->of ? ":" : "",
                             split->of ? split->axes : "");
  }
  return out;
}

// Nobody sees who reads or writes managed memory, so the whole view refuses to
// leave pieces there.
static void managed_judge(const seen_call_t *call, candidate_t *out) {
  char text[160];
  for (int i = 0; i < call->operands; i++) {
    const seen_operand_t *operand = &call->operand[i];
    if (operand->is_managed && operand->is_output && call->has_rule)
      candidate_fault(
          out,
          "%s writes %s of %s to memory of cudaMallocManaged, which "
          "the whole view refuses (SDG-608); use cudaMalloc",
          call->entry, operand->role, extents_text(operand, text, sizeof text));
  }
}

// In the whole view every rank computes all of attention in a graph.
static bool is_in_full(const seen_call_t *call, sdg_view_t view) {
  return view == SDG_VIEW_WHOLE &&
         sdg_family_dims(call->family) == SDG_FAMILY_HEADS;
}

// Adds the faults of operands and calls that no split divides.
static void undivided_judge(const seen_call_t *call, candidate_t *out) {
  char name[CANDIDATE_NAME_BYTES];
  bool shard = out->view == SDG_VIEW_SHARD;
  bool sequences = sdg_family_dims(call->family) == SDG_FAMILY_SEQUENCE;
  out->has_local |= shard && call->spatial > 0;
  if (sequences && !shard)
    out->aside++;
  if (sequences && shard)
    candidate_fault(out,
                    "%s: its sequences have no %s; they need a [shard] or "
                    "[local] section of their own (SDG-601)",
                    call->entry, candidate_name(out, name, sizeof name));
}

sdg_status_t candidate_judge_all(const calls_t *calls, sdg_view_t view,
                                 const candidate_split_t *splits, int count,
                                 int ranks, int64_t steps, candidate_t *out) {
  sdg_dim_t dim = splits[0].dim;
  extents_t tokens;
  memset(out, 0, sizeof *out);
  out->view = view;
  out->splits = count;
  out->ranks = ranks;
  for (int i = 0; i < count; i++) {
    out->split[i] = splits[i];
    out->split[i].align = 1;
  }
  companion_extents(calls, &tokens);
  for (int i = 0; i < calls->count; i++) {
    const seen_call_t *call = &calls->call[i];
    if (call->is_query)
      continue;
    if (call->is_opaque) {
      // In the whole view every rank carries out the whole call.
      if (view == SDG_VIEW_SHARD)
        candidate_fault(out, "%s hides its tensors (SDG-607)", call->entry);
      else
        out->in_full++;
      continue;
    }
    if (is_in_full(call, view)) {
      out->aside++;
      continue;
    }
    if (dim == SDG_DIM_SEQ && !call->is_reduction)
      SDG_TRY(companion_judge(call, &tokens, steps, out));
    bool aside = sdg_family_is_product(call->family) && dim != SDG_DIM_SEQ;
    if (call->is_reduction || aside) {
      if (view == SDG_VIEW_SHARD)
        candidate_doubt(
            out,
            "%s would be computed from each rank's part (right if that is not "
            "split; the whole view gives one device's result)",
            call->entry);
      else
        out->aside += aside;
      continue;
    }
    unsigned split = operands_judge(call, out);
    for (int k = 0; k < count; k++)
      out->split[k].gains += candidate_gains(call, splits[k].dim);
    if (split && view == SDG_VIEW_WHOLE)
      managed_judge(call, out);
    if (dim == SDG_DIM_SEQ)
      continue;
    if (!split)
      undivided_judge(call, out);
    else if (!call->has_rule)
      ruleless_judge(call, steps, out);
    else if (call->spatial)
      SDG_TRY(window_judge(calls, call, steps, out));
  }
  out->possible = true;
  for (int k = 0; k < count; k++)
    out->possible &= out->split[k].possible;
  return SDG_OK;
}

sdg_status_t candidate_judge(const calls_t *calls, sdg_view_t view,
                             sdg_dim_t dim, int ranks, int64_t steps,
                             candidate_t *out) {
  const candidate_split_t split = {
      .dim = dim, .pieces = ranks, .axes = "ranks"};
  return candidate_judge_all(calls, view, &split, 1, ranks, steps, out);
}
