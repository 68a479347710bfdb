// SPDX-License-Identifier: Apache-2.0
// Judges a split by the geometry that the ranks themselves will use.
#include "tools/candidate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/companion.h"

enum { ALIGN_MAX = 64 };

const char *extents_text(const seen_operand_t *operand, char *out,
                         size_t bytes) {
  size_t used = 0;
  out[0] = '\0';
  for (int d = 0; d < operand->dims && used < bytes; d++)
    used += (size_t)snprintf(out + used, bytes - used, "%s%" PRId64,
                             d ? "x" : "", operand->extent[d]);
  return out;
}

// False if that is said already.
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

// The dimension that is split of an operand, -1 if it is not split.
static int split_index(const seen_call_t *call, const seen_operand_t *operand,
                       sdg_dim_t dim) {
  if (!operand || !operand->is_activation || call->family == SDG_FAMILY_MATMUL)
    return -1; // N of a product is another
  int d = sdg_dim_index(call->family, dim, operand->dims);
  return d >= 0 && d < operand->dims && operand->extent[d] > 1 ? d : -1;
}

// The two sides of a window: what it slides over and what it makes, by the
// roles of forward and gradient calls.
static void window_sides(const seen_call_t *call, const seen_operand_t **out_x,
                         const seen_operand_t **out_y) {
  *out_x = call_operand(call, "x");
  if (!*out_x)
    *out_x = call_operand(call, "dx");
  *out_y = call_operand(call, "y");
  if (!*out_y)
    *out_y = call_operand(call, "dy");
}

// Adds a times b, neither negative; what is too large stays the largest number.
static void product_add(int64_t *sum, int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product) ||
      __builtin_add_overflow(*sum, product, sum))
    *sum = INT64_MAX;
}

// Bytes of one index of dimension `d`.
static int64_t row_bytes(const seen_operand_t *operand, int d) {
  int64_t bytes = operand->bytes;
  for (int i = 0; i < operand->dims; i++)
    bytes *= i == d ? 1 : operand->extent[i];
  return bytes;
}

// Indices of `need`, cut at the extent, that are not in `own`.
static int64_t beyond(sdg_range_t need, sdg_range_t own, int64_t extent) {
  sdg_range_t cut = sdg_range_cut(need, extent);
  int64_t lo = cut.lo > own.lo ? cut.lo : own.lo;
  int64_t hi = cut.hi < own.hi ? cut.hi : own.hi;
  return cut.hi - cut.lo - (hi > lo ? hi - lo : 0);
}

static sdg_range_t piece(const sdg_part_t *part, int rank) {
  return (sdg_range_t){part->offset[rank], part->offset[rank + 1]};
}

// True if pieces of x make pieces of y that add up, by the formula that a
// program uses for its own piece.
static bool sizes_add_up(const sdg_window_t *window, const sdg_part_t *x,
                         int64_t y_extent) {
  int64_t sum = 0;
  for (int r = 0; r < x->pieces; r++) {
    int64_t n = sdg_window_outputs(window, sdg_part_size(x, r));
    if (n < 1)
      return false;
    sum += n;
  }
  return sum == y_extent;
}

// Whether the program asks cuDNN how large the output of this call is.
static bool size_asked(const calls_t *calls, const seen_call_t *call,
                       const seen_operand_t *x) {
  for (int i = 0; i < calls->count; i++) {
    const seen_call_t *query = &calls->call[i];
    const seen_operand_t *of = call_operand(query, "x");
    if (query->is_query && of && strstr(query->entry, "ForwardOutputDim") &&
        query->family == call->family && of->dims == x->dims &&
        memcmp(of->extent, x->extent, sizeof of->extent) == 0 &&
        query->spatial == call->spatial &&
        memcmp(query->window, call->window, sizeof call->window) == 0)
      return true;
  }
  return false;
}

// What all ranks receive for one call. Forward calls and filter gradients need
// x under the windows of the owned y; data gradients need dy over the owned x,
// those of pooling also y there, and x under both.
static int64_t halo_bytes(const seen_call_t *call, const sdg_window_t *window,
                          const seen_operand_t *x, const seen_operand_t *y,
                          int d, const sdg_part_t *x_part,
                          const sdg_part_t *y_part) {
  bool to_x = call_operand(call, "dx") != NULL;
  bool pool = call->family == SDG_FAMILY_POOL;
  int64_t bytes = 0;
  for (int r = 0; r < x_part->pieces; r++) {
    sdg_range_t own_x = piece(x_part, r), own_y = piece(y_part, r);
    if (!to_x) {
      bytes += row_bytes(x, d) *
               beyond(sdg_window_need(window, own_y), own_x, x->extent[d]);
      continue;
    }
    sdg_range_t over =
        sdg_range_cut(sdg_window_need_adjoint(window, own_x), y->extent[d]);
    bytes +=
        row_bytes(y, d) * (pool ? 2 : 1) * beyond(over, own_y, y->extent[d]);
    if (pool)
      bytes += row_bytes(x, d) *
               beyond(sdg_window_need(window, over), own_x, x->extent[d]);
  }
  return bytes;
}

void candidate_bytes(candidate_t *out, const seen_call_t *call, int64_t bytes,
                     int64_t steps) {
  product_add(&out->run_bytes, bytes, call->count);
  product_add(&out->step_bytes, bytes, (call->count + steps / 2) / steps);
}

// How many elements of the longest extent one of `extent` elements stands for:
// the strides of the calls that made it, multiplied. Example: 1039, halved to
// 520, 260: 4.
static int64_t scale_of(const calls_t *calls, sdg_dim_t dim, int64_t extent,
                        int64_t longest) {
  int64_t scale = 1;
  for (int i = 0; extent < longest && i < calls->count; i++) {
    const seen_call_t *call = &calls->call[i];
    const seen_operand_t *x, *y;
    window_sides(call, &x, &y);
    int d = split_index(call, x, dim);
    if (!x || !y || d < 2 || d - 2 >= call->spatial || x->dims != y->dims ||
        call->is_query || y->extent[d] != extent || x->extent[d] <= extent ||
        call->window[d - 2].stride < 2 ||
        call->window[d - 2].kernel == x->extent[d])
      continue;
    scale *= call->window[d - 2].stride;
    extent = x->extent[d];
    i = -1; // and what made that
  }
  int64_t left = longest / extent;
  return scale * (left > 0 ? left : 1);
}

static int64_t common_multiple(int64_t a, int64_t b) {
  int64_t x = a, y = b;
  while (y) {
    int64_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

// Finds the coarsest even division whose pieces make outputs that add up, which
// a program in the shard view depends on if it works sizes out itself.
static sdg_status_t align_judge(const calls_t *calls, const seen_call_t *call,
                                const sdg_window_t *window,
                                const seen_operand_t *x,
                                const seen_operand_t *y, int d, int64_t longest,
                                candidate_t *out, int64_t *out_align) {
  char text[160];
  int64_t align = 0;
  // 1, the stride, 2, 4 ...
  for (int64_t step = 0; step <= ALIGN_MAX && !align;
       step = step > 1 ? 2 * step : step + 1) {
    int64_t a = step == 0 ? 1 : step == 1 ? window->stride : step;
    sdg_part_t part;
    SDG_TRY(sdg_part_divide(x->extent[d], out->ranks, SDG_PART_EVEN, a, &part));
    if (sizes_add_up(window, &part, y->extent[d]))
      align = a;
    sdg_part_fini(&part);
  }
  bool asked = size_asked(calls, call, x);
  if (!align && !asked)
    candidate_fault(
        out,
        "%s on %s: the sizes that ranks would compute of their outputs "
        "do not add up to %" PRId64 " (SDG-401); ask cuDNN for the "
        "output size",
        call->entry, extents_text(x, text, sizeof text), y->extent[d]);
  out->asks_sizes |= !align && asked;
  // In indices of the longest extent, which is cut first.
  int64_t scale = scale_of(calls, out->dim, x->extent[d], longest);
  if (align > 1 && !asked)
    out->align = common_multiple(out->align, align * scale);
  *out_align = align > 1 ? align : 1;
  return SDG_OK;
}

static sdg_status_t window_judge(const calls_t *calls, const seen_call_t *call,
                                 int64_t steps, candidate_t *out,
                                 int64_t longest) {
  const seen_operand_t *x, *y;
  char text[160];
  bool shard = out->view == SDG_VIEW_SHARD;
  window_sides(call, &x, &y);
  int d = split_index(call, x, out->dim);
  if (!x || !y || d < 2 || d - 2 >= call->spatial || x->dims != y->dims ||
      (shard && x->extent[d] < out->ranks))
    return SDG_OK;
  const sdg_window_t *window = &call->window[d - 2];
  if (shard && call->family == SDG_FAMILY_POOL && window->pad == 0 &&
      window->kernel == x->extent[d]) {
    out->global_pool = true;
    return SDG_OK;
  }
  sdg_part_t x_part, y_part;
  int64_t align = 1;
  if (shard)
    SDG_TRY(align_judge(calls, call, window, x, y, d, longest, out, &align));
  SDG_TRY(
      sdg_part_divide(x->extent[d], out->ranks, SDG_PART_EVEN, align, &x_part));
  sdg_status_t status = sdg_window_part(window, &x_part, y->extent[d], &y_part);
  if (status == SDG_OK) {
    candidate_bytes(out, call,
                    halo_bytes(call, window, x, y, d, &x_part, &y_part), steps);
    for (int r = 0; shard && r < out->ranks; r++)
      if (sdg_part_size(&y_part, r) == 0)
        candidate_fault(out, "%s on %s: rank %d would own no output (SDG-402)",
                        call->entry, extents_text(x, text, sizeof text), r);
    sdg_part_fini(&y_part);
  }
  sdg_part_fini(&x_part);
  return status;
}

static void operands_judge(const seen_call_t *call, candidate_t *out,
                           bool *out_split) {
  char text[160];
  *out_split = false;
  for (int i = 0; i < call->operands; i++) {
    const seen_operand_t *operand = &call->operand[i];
    int d = split_index(call, operand, out->dim);
    if (d < 0)
      continue;
    *out_split = true;
    int64_t extent = operand->extent[d], rows = extent / out->ranks;
    // The first such operand speaks for all.
    bool too_few = rows == 0 && out->view == SDG_VIEW_SHARD &&
                   (!out->possible || out->smallest > 0);
    if (!out->possible || rows < out->smallest)
      out->smallest = rows;
    if (!out->possible || extent < out->least)
      out->least = extent;
    out->possible = true;
    if (too_few)
      candidate_fault(out, "%s: %s of %s has fewer %s than ranks (SDG-402)",
                      call->entry, operand->role,
                      extents_text(operand, text, sizeof text),
                      sdg_dim_name(out->dim));
    if (operand->bytes == 0)
      candidate_fault(out,
                      "%s on %s: elements of type %s cannot be split (SDG-604)",
                      call->entry, extents_text(operand, text, sizeof text),
                      type_name(operand->type));
  }
}

// An op without a rule: refused in the shard view; in the whole view its inputs
// are brought up to date in full first.
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
    int d = split_index(call, operand, out->dim);
    int64_t all = 0, received = 0;
    if (d < 0 || operand->is_output)
      continue;
    product_add(&all, row_bytes(operand, d), operand->extent[d]);
    product_add(&received, all, out->ranks - 1);
    candidate_bytes(out, call, received, steps);
  }
}

// Whether a split of the call saves work. Ops without a rule are carried out in
// full, and those of single elements cost as much as reading them.
static bool gains(const seen_call_t *call) {
  return call->has_rule && call->family != SDG_FAMILY_POINTWISE &&
         call->family != SDG_FAMILY_OTHER;
}

// Who reads or writes such memory nobody sees, so that the whole view refuses
// to leave pieces there.
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

static int64_t longest_extent(const calls_t *calls, sdg_dim_t dim) {
  int64_t longest = 1;
  for (int i = 0; i < calls->count; i++)
    for (int k = 0; k < calls->call[i].operands; k++) {
      const seen_operand_t *operand = &calls->call[i].operand[k];
      int d = split_index(&calls->call[i], operand, dim);
      if (d >= 0 && operand->extent[d] > longest)
        longest = operand->extent[d];
    }
  return longest;
}

sdg_status_t candidate_judge(const calls_t *calls, sdg_view_t view,
                             sdg_dim_t dim, int ranks, int64_t steps,
                             candidate_t *out) {
  memset(out, 0, sizeof *out);
  out->view = view;
  out->dim = dim;
  out->ranks = ranks;
  out->align = 1;
  int64_t longest = longest_extent(calls, dim);
  extents_t tokens;
  companion_extents(calls, &tokens);
  for (int i = 0; i < calls->count; i++) {
    const seen_call_t *call = &calls->call[i];
    bool split;
    if (call->is_query)
      continue;
    if (call->is_opaque) {
      // The whole view has every rank do all of it.
      if (view == SDG_VIEW_SHARD)
        candidate_fault(out, "%s hides its tensors (SDG-607)", call->entry);
      else
        out->in_full++;
      continue;
    }
    if (dim == SDG_DIM_SEQ && !call->is_reduction)
      SDG_TRY(companion_judge(call, &tokens, steps, out));
    bool aside = call->family == SDG_FAMILY_MATMUL && dim != SDG_DIM_SEQ;
    if (call->is_reduction || aside) {
      if (view == SDG_VIEW_SHARD)
        candidate_doubt(out,
                        "%s would be of what each rank has (right where that "
                        "is not split; the whole view gives that of one "
                        "device)",
                        call->entry);
      else
        out->aside += aside;
      continue;
    }
    operands_judge(call, out, &split);
    out->gains += split && gains(call);
    if (split && view == SDG_VIEW_WHOLE)
      managed_judge(call, out);
    if (dim == SDG_DIM_SEQ)
      continue;
    if (!split) {
      out->has_local |= view == SDG_VIEW_SHARD && call->spatial > 0;
      if (call->family == SDG_FAMILY_ATTENTION && view == SDG_VIEW_WHOLE)
        out->aside++;
      if (call->family == SDG_FAMILY_ATTENTION && view == SDG_VIEW_SHARD)
        candidate_fault(
            out,
            "%s: its sequences have no %s; they need a [shard] or [local] "
            "section of their own (SDG-601)",
            call->entry, sdg_dim_name(dim));
      continue;
    }
    if (!call->has_rule) {
      ruleless_judge(call, steps, out);
      continue;
    }
    if (call->spatial)
      SDG_TRY(window_judge(calls, call, steps, out, longest));
  }
  return SDG_OK;
}
