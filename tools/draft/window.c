// SPDX-License-Identifier: Apache-2.0
// Judges calls with a sliding window: the pieces of input and output, whether
// their sizes add up, and the bytes that ranks receive from each other.
#include "tools/draft/window.h"

#include <inttypes.h>
#include <string.h>

enum { ALIGN_MAX = 64 };

// Finds the two sides of a window, its input and its output, by the roles of
// forward and gradient calls.
static void window_sides(const seen_call_t *call, const seen_operand_t **out_x,
                         const seen_operand_t **out_y) {
  *out_x = call_operand(call, "x");
  if (!*out_x)
    *out_x = call_operand(call, "dx");
  *out_y = call_operand(call, "y");
  if (!*out_y)
    *out_y = call_operand(call, "dy");
}

// Returns the number of elements of the box `need` that are not in `own`.
static int64_t beyond(const sdg_box_t *need, const sdg_box_t *own) {
  int64_t all = 1, common = 1;
  for (int d = 0; d < need->dims; d++) {
    const sdg_range_t *a = &need->dim[d], *b = &own->dim[d];
    int64_t lo = a->lo > b->lo ? a->lo : b->lo;
    int64_t hi = a->hi < b->hi ? a->hi : b->hi;
    all *= a->hi > a->lo ? a->hi - a->lo : 0;
    common *= hi > lo ? hi - lo : 0;
  }
  return all - common;
}

static sdg_range_t piece(const sdg_part_t *part, int rank) {
  return (sdg_range_t){part->offset[rank], part->offset[rank + 1]};
}

// Returns true if the output sizes that the ranks compute from their own pieces
// of x add up to the extent of y.
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

// Returns whether the program asks cuDNN for the output's size of this call.
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

// Input and output of a window, as the splits divide them.
typedef struct sides {
  const seen_operand_t *x, *y;
  int index[SDG_AXES_MAX];      // the dimension; -1: it is not split
  bool is_window[SDG_AXES_MAX]; // the window slides along it
  sdg_part_t x_part[SDG_AXES_MAX], y_part[SDG_AXES_MAX];
} sides_t;

// Returns the box of one side that a rank owns if it has piece `at[i]` of split
// i.
static sdg_box_t own_box(const seen_operand_t *operand, const sides_t *sides,
                         const sdg_part_t *parts, const int *at, int splits) {
  sdg_box_t box = {.dims = operand->dims};
  for (int d = 0; d < box.dims; d++)
    box.dim[d] = (sdg_range_t){0, operand->extent[d]};
  for (int i = 0; i < splits; i++)
    if (sides->index[i] >= 0)
      box.dim[sides->index[i]] = piece(&parts[i], at[i]);
  return box;
}

// Returns the box of the other side that windows over `box` of this side need.
// Dimension N is the same.
static sdg_box_t need_box(const seen_call_t *call, const sides_t *sides,
                          const sdg_box_t *box, const seen_operand_t *of,
                          bool adjoint, int splits) {
  sdg_box_t need = {.dims = of->dims};
  for (int d = 0; d < need.dims; d++)
    need.dim[d] = (sdg_range_t){0, of->extent[d]};
  for (int i = 0; i < splits; i++) {
    int d = sides->index[i];
    if (d < 0)
      continue;
    need.dim[d] = box->dim[d];
    if (!sides->is_window[i])
      continue;
    const sdg_window_t *window = &call->window[d - 2];
    need.dim[d] =
        sdg_range_cut(adjoint ? sdg_window_need_adjoint(window, box->dim[d])
                              : sdg_window_need(window, box->dim[d]),
                      of->extent[d]);
  }
  return need;
}

// Returns the bytes that all ranks receive for one call. Forward calls and
// filter gradients need x under the windows of the owned y. Data gradients need
// dy over the owned x; gradients of pooling also need y there, and x under
// both.
static int64_t halo_bytes(const seen_call_t *call, const sides_t *sides,
                          const candidate_t *out) {
  const seen_operand_t *x = sides->x, *y = sides->y;
  bool to_x = call_operand(call, "dx") != NULL;
  bool pool = sdg_family_is(call->family, SDG_FAMILY_POOLS);
  int64_t bytes = 0;
  int splits = out->splits, ranks = 1;
  for (int i = 0; i < splits; i++)
    ranks *= out->split[i].pieces;
  for (int r = 0; r < ranks; r++) {
    int at[SDG_AXES_MAX];
    for (int i = 0, rest = r; i < splits; i++) {
      at[i] = rest % out->split[i].pieces;
      rest /= out->split[i].pieces;
    }
    sdg_box_t own_x = own_box(x, sides, sides->x_part, at, splits);
    sdg_box_t own_y = own_box(y, sides, sides->y_part, at, splits);
    sdg_box_t need;
    if (!to_x) {
      need = need_box(call, sides, &own_y, x, false, splits);
      bytes += x->bytes * beyond(&need, &own_x);
      continue;
    }
    sdg_box_t over = need_box(call, sides, &own_x, y, true, splits);
    bytes += y->bytes * (pool ? 2 : 1) * beyond(&over, &own_y);
    if (pool) {
      need = need_box(call, sides, &over, x, false, splits);
      bytes += x->bytes * beyond(&need, &own_x);
    }
  }
  return bytes;
}

// Returns how many elements of the longest extent correspond to one element of
// a tensor with `extent` elements: the product of the strides of the calls that
// made it. Example: 1039 is halved to 520 and 260, so the result for 260 is 4.
static int64_t scale_of(const calls_t *calls, sdg_dim_t dim, int64_t extent,
                        int64_t longest) {
  int64_t scale = 1;
  for (int i = 0; extent < longest && i < calls->count; i++) {
    const seen_call_t *call = &calls->call[i];
    const seen_operand_t *x, *y;
    window_sides(call, &x, &y);
    int d = candidate_index(call, x, dim);
    if (!x || !y || d < 2 || d - 2 >= call->spatial || x->dims != y->dims ||
        call->is_query || y->extent[d] != extent || x->extent[d] <= extent ||
        call->window[d - 2].stride < 2 ||
        call->window[d - 2].kernel == x->extent[d])
      continue;
    scale *= call->window[d - 2].stride;
    extent = x->extent[d];
    i = -1; // then the call that made that tensor's input
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

// Finds the smallest multiple for the pieces' boundaries that makes the output
// sizes add up. A program in the shard view depends on this if it computes
// sizes itself.
static sdg_status_t align_judge(const calls_t *calls, const seen_call_t *call,
                                const sdg_window_t *window,
                                const seen_operand_t *x,
                                const seen_operand_t *y, int d, int64_t longest,
                                candidate_split_t *split, candidate_t *out,
                                int64_t *out_align) {
  char text[160];
  int64_t align = 0;
  // 1, the stride, 2, 4 ...
  for (int64_t step = 0; step <= ALIGN_MAX && !align;
       step = step > 1 ? 2 * step : step + 1) {
    int64_t a = step == 0 ? 1 : step == 1 ? window->stride : step;
    sdg_part_t part;
    SDG_TRY(
        sdg_part_divide(x->extent[d], split->pieces, SDG_PART_EVEN, a, &part));
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
  // Boundaries count in elements of the longest extent, which is cut first.
  int64_t scale = scale_of(calls, split->dim, x->extent[d], longest);
  if (align > 1 && !asked)
    split->align = common_multiple(split->align, align * scale);
  *out_align = align > 1 ? align : 1;
  return SDG_OK;
}

static int64_t longest_extent(const calls_t *calls, sdg_dim_t dim) {
  int64_t longest = 1;
  for (int i = 0; i < calls->count; i++)
    for (int k = 0; k < calls->call[i].operands; k++) {
      const seen_operand_t *operand = &calls->call[i].operand[k];
      int d = candidate_index(&calls->call[i], operand, dim);
      if (d >= 0 && operand->extent[d] > longest)
        longest = operand->extent[d];
    }
  return longest;
}

// Divides both sides along one split. Sets sides->index[index] to -1 if the
// split does not divide this call.
static sdg_status_t side_judge(const calls_t *calls, const seen_call_t *call,
                               int index, sides_t *sides, candidate_t *out) {
  const seen_operand_t *x = sides->x, *y = sides->y;
  candidate_split_t *split = &out->split[index];
  char text[160];
  bool shard = out->view == SDG_VIEW_SHARD;
  int d = candidate_index(call, x, split->dim);
  int64_t align = 1;
  sides->index[index] = -1;
  if (d < 0 || (shard && x->extent[d] < split->pieces))
    return SDG_OK;
  if (d < 2 || d - 2 >= call->spatial) { // the dimension is not one that the
                                         // window slides along
    if (y->extent[d] != x->extent[d])
      return SDG_OK;
    SDG_TRY(sdg_part_divide(x->extent[d], split->pieces, SDG_PART_EVEN, 1,
                            &sides->x_part[index]));
    SDG_TRY(sdg_part_divide(y->extent[d], split->pieces, SDG_PART_EVEN, 1,
                            &sides->y_part[index]));
    sides->index[index] = d;
    return SDG_OK;
  }
  const sdg_window_t *window = &call->window[d - 2];
  if (shard && sdg_family_is(call->family, SDG_FAMILY_POOLS) &&
      window->pad == 0 && window->kernel == x->extent[d]) {
    out->global_pool = true;
    return SDG_OK;
  }
  if (shard)
    SDG_TRY(align_judge(calls, call, window, x, y, d,
                        longest_extent(calls, split->dim), split, out, &align));
  SDG_TRY(sdg_part_divide(x->extent[d], split->pieces, SDG_PART_EVEN, align,
                          &sides->x_part[index]));
  SDG_TRY(sdg_window_part(window, &sides->x_part[index], y->extent[d],
                          &sides->y_part[index]));
  sides->index[index] = d;
  sides->is_window[index] = true;
  for (int r = 0; shard && r < split->pieces; r++)
    if (sdg_part_size(&sides->y_part[index], r) == 0)
      candidate_fault(out, "%s on %s: rank %d would own no output (SDG-402)",
                      call->entry, extents_text(x, text, sizeof text), r);
  return SDG_OK;
}

sdg_status_t window_judge(const calls_t *calls, const seen_call_t *call,
                          int64_t steps, candidate_t *out) {
  sides_t sides = {.x = NULL};
  sdg_status_t status = SDG_OK;
  bool any = false;
  window_sides(call, &sides.x, &sides.y);
  if (!sides.x || !sides.y || sides.x->dims != sides.y->dims)
    return SDG_OK;
  for (int i = 0; i < out->splits && status == SDG_OK; i++) {
    status = side_judge(calls, call, i, &sides, out);
    any |= sides.is_window[i];
  }
  if (status == SDG_OK && any)
    candidate_bytes(out, call, halo_bytes(call, &sides, out), steps);
  for (int i = 0; i < out->splits; i++) {
    sdg_part_fini(&sides.x_part[i]);
    sdg_part_fini(&sides.y_part[i]);
  }
  return status;
}
