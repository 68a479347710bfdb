// SPDX-License-Identifier: Apache-2.0
// Finds parts by what windows make of them.
#include "tools/report/advice/sizes.h"

#include <stdlib.h>
#include <string.h>

#include "rules/window/window.h"
#include "tools/record/formula.h"

const sdg_part_t *sizes_part(const sizes_t *sizes, int64_t extent) {
  for (int i = 0; i < sizes->count; i++)
    if (sdg_part_extent(&sizes->part[i]) == extent)
      return &sizes->part[i];
  return NULL;
}

void sizes_fini(sizes_t *sizes) {
  for (int i = 0; i < sizes->count; i++)
    sdg_part_fini(&sizes->part[i]);
  sizes->count = 0;
}

// Takes the part. False if the extent has another one.
static bool part_put(sizes_t *sizes, sdg_part_t part) {
  const sdg_part_t *known = sizes_part(sizes, sdg_part_extent(&part));
  bool good = known ? sdg_part_equal(known, &part)
                    : sizes->count < SIZES_EXTENTS && part.pieces > 0;
  if (good && !known)
    sizes->part[sizes->count++] = part;
  else
    sdg_part_fini(&part);
  return good;
}

static bool even_put(sizes_t *sizes, int64_t extent, int ranks) {
  sdg_part_t part;
  return sizes_part(sizes, extent) ||
         (sdg_part_divide(extent, ranks, SDG_PART_EVEN, 1, &part) == SDG_OK &&
          part_put(sizes, part));
}

static bool is_full(const sizes_t *sizes) {
  for (int i = 0; i < sizes->count; i++)
    for (int r = 0; r < sizes->part[i].pieces; r++)
      if (sdg_part_size(&sizes->part[i], r) == 0)
        return false;
  return true;
}

// ---- what windows make -----------------------------------------------------

// Who says what a rank's share of a result is. In the shard view the program
// does: it asks, or computes the extents of its piece. In the whole view sundog
// does.
typedef enum way { ASKED, OF_PIECES, PLACED, WAYS } way_t;

static sdg_part_t of_pieces(const sdg_window_t *window, const sdg_part_t *x,
                            int64_t y_extent) {
  int64_t size[SDG_RANKS_MAX], sum = 0;
  bool same = window->stride == 1 && sdg_part_extent(x) == y_extent;
  sdg_part_t part = {.pieces = 0};
  for (int r = 0; r < x->pieces; r++) {
    int64_t own = sdg_part_size(x, r);
    size[r] = same ? own : sdg_window_outputs(window, own);
    sum += size[r];
  }
  if (sum != y_extent || sdg_part_from_sizes(x->pieces, size, &part) != SDG_OK)
    return (sdg_part_t){.pieces = 0};
  return part;
}

// No piece: not known.
static sdg_part_t forward(const sdg_window_t *window, const sdg_part_t *x,
                          int64_t y_extent, way_t way) {
  sdg_part_t part;
  if (way == OF_PIECES)
    return of_pieces(window, x, y_extent);
  return sdg_window_part(window, x, y_extent, &part) == SDG_OK
             ? part
             : (sdg_part_t){.pieces = 0};
}

// A program of the shard view that uses gradients of the data forward computes
// their extents itself, as (own - 1) * stride + span - 2 * pad and a constant.
static sdg_part_t backward(const sdg_window_t *window, const sdg_part_t *y,
                           int64_t x_extent, way_t way) {
  int64_t size[SDG_RANKS_MAX],
      sum = 0, more = x_extent - sdg_part_extent(y) * window->stride;
  sdg_part_t part;
  for (int r = 0; r < y->pieces; r++) {
    size[r] = sdg_part_size(y, r) * window->stride + more;
    sum += size[r] < 0 ? INT32_MIN : size[r];
  }
  bool good =
      way == PLACED
          ? sdg_window_part_adjoint(window, y, x_extent, &part) == SDG_OK
          : sum == x_extent &&
                sdg_part_from_sizes(y->pieces, size, &part) == SDG_OK;
  return good ? part : (sdg_part_t){.pieces = 0};
}

// Takes two parts.
static bool both_equal(sdg_part_t a, const sdg_part_t *b) {
  bool equal = a.pieces > 0 && sdg_part_equal(&a, b);
  sdg_part_fini(&a);
  return equal;
}

static bool forward_put(sizes_t *sizes, const formula_ends_t *ends, way_t way) {
  const sdg_part_t *x = sizes_part(sizes, ends->x);
  sdg_part_t y = forward(&ends->window, x, ends->y, way);
  return y.pieces > 0 && part_put(sizes, y);
}

// A gradient of the data belongs to a forward call, or is used as one.
static bool backward_put(sizes_t *sizes, const formula_ends_t *ends,
                         way_t way) {
  const sdg_part_t *x = sizes_part(sizes, ends->x),
                   *y = sizes_part(sizes, ends->y);
  sdg_part_t made = backward(&ends->window, y, ends->x, way);
  if (x) {
    bool good =
        way != PLACED && both_equal(forward(&ends->window, x, ends->y, way), y);
    good |= made.pieces > 0 && sdg_part_equal(&made, x);
    sdg_part_fini(&made);
    return good;
  }
  return made.pieces > 0 && part_put(sizes, made);
}

// Follows all windows, in the order in which the program first used them.
// Tensors that none of them makes are cut evenly; *out_inputs counts their
// extents.
static bool windows_put(sizes_t *sizes, const recorded_t *run, const char *dim,
                        way_t way, int ranks, int *out_inputs) {
  *out_inputs = 0;
  for (int i = 0; i < run->rank[0].plans; i++) {
    formula_ends_t ends;
    if (!formula_ends(run->rank[0].plan[i].line, dim, &ends))
      continue;
    int64_t from = ends.adjoint ? ends.y : ends.x;
    *out_inputs += !sizes_part(sizes, from);
    if (!even_put(sizes, from, ranks) ||
        !(ends.adjoint ? backward_put : forward_put)(sizes, &ends, way))
      return false;
  }
  return true;
}

// ---- what the record has ---------------------------------------------------

static bool operand_put(const cut_t *cut, const json_t *operand, int64_t *own,
                        int64_t extent, int r) {
  int d = cut_dim(operand, cut->dim);
  if (d < 0 || cut_item(operand, "whole", d) != extent ||
      cut_item(operand, "own", d) == extent)
    return true;
  int64_t now = cut_item(operand, "own", d);
  bool good = own[r] < 0 || own[r] == now;
  own[r] = now;
  return good;
}

// Finds the part that an extent has now. False: it has several.
static bool extent_put(sizes_t *sizes, const cut_t *cut, int64_t extent) {
  int64_t own[SDG_RANKS_MAX];
  const recorded_t *run = cut->run;
  sdg_part_t part;
  if (sizes_part(sizes, extent))
    return true;
  for (int r = 0; r < run->found; r++) {
    own[r] = -1;
    for (int i = 0; i < run->rank[r].plans; i++) {
      size_t index;
      json_t *operand;
      const json_t *plan = run->rank[r].plan[i].line;
      json_array_foreach(json_object_get(plan, "operands"), index, operand) {
        if (json_object_get(plan, "strategy") &&
            !operand_put(cut, operand, own, extent, r))
          return false;
      }
    }
    if (own[r] < 0)
      return false;
  }
  if (sdg_part_from_sizes(run->found, own, &part) != SDG_OK)
    return false;
  if (sdg_part_extent(&part) != extent) {
    sdg_part_fini(&part);
    return false;
  }
  return part_put(sizes, part);
}

static bool alike(const sizes_t *a, const sizes_t *b) {
  for (int i = 0; i < a->count; i++) {
    const sdg_part_t *part = sizes_part(b, sdg_part_extent(&a->part[i]));
    if (!part || !sdg_part_equal(part, &a->part[i]))
      return false;
  }
  return a->count == b->count;
}

bool sizes_now(const cut_t *cut, sizes_t *out) {
  const recorded_t *run = cut->run;
  bool good = true;
  *out = (sizes_t){.count = 0};
  for (int i = 0; i < run->rank[0].plans && good; i++) {
    formula_ends_t ends;
    if (formula_ends(run->rank[0].plan[i].line, cut->dim, &ends))
      good = extent_put(out, cut, ends.x) && extent_put(out, cut, ends.y);
  }
  if (!good)
    sizes_fini(out);
  return good;
}

// Whether the tensors of the run are cut as a program of this way has them.
// Several inputs have to be cut evenly, because some may follow from others by
// what no window says.
static bool is_of(const cut_t *cut, const sizes_t *now, way_t way, int inputs) {
  sizes_t sizes = {.count = 0};
  int none;
  bool good;
  for (int i = 0; i < now->count && inputs < 2; i++) {
    sdg_part_t part;
    if (sdg_part_copy(&now->part[i], &part) == SDG_OK)
      (void)part_put(&sizes, part);
  }
  good = windows_put(&sizes, cut->run, cut->dim, way, cut->run->found, &none) &&
         alike(&sizes, now);
  sizes_fini(&sizes);
  return good;
}

// ---- all of them -----------------------------------------------------------

static bool all_even(const sizes_t *sizes) {
  sizes_t even = {.count = 0};
  bool good = true;
  for (int i = 0; i < sizes->count && good; i++)
    good = even_put(&even, sdg_part_extent(&sizes->part[i]),
                    sizes->part[i].pieces);
  good = good && alike(sizes, &even);
  sizes_fini(&even);
  return good;
}

// The same for one way. False: it is not known; *out_is: and it is not the
// program's.
static bool way_find(const cut_t *cut, const sizes_t *now, way_t way,
                     const char *dim, int ranks, sizes_t *out, bool *out_is) {
  int inputs;
  *out = (sizes_t){.count = 0};
  bool good = windows_put(out, cut->run, dim, way, ranks, &inputs) &&
              is_full(out) && (cut->shard || all_even(out));
  *out_is = is_of(cut, now, way, inputs);
  if (!good || !*out_is)
    sizes_fini(out);
  return good && *out_is;
}

bool sizes_find(const cut_t *cut, const char *dim, int ranks, sizes_t *out) {
  sizes_t now, of[WAYS] = {{.count = 0}};
  int chosen = -1;
  bool good = sizes_now(cut, &now);
  for (int way = 0; way < WAYS && good; way++) {
    bool is = false, found;
    if (cut->shard == (way == PLACED))
      continue;
    found = way_find(cut, &now, (way_t)way, dim, ranks, &of[way], &is);
    good =
        found == is && (!found || chosen < 0 || alike(&of[chosen], &of[way]));
    chosen = found ? way : chosen;
  }
  sizes_fini(&now);
  good = good && chosen >= 0;
  *out = good ? of[chosen] : (sizes_t){.count = 0};
  for (int way = 0; way < WAYS; way++)
    if (!good || way != chosen)
      sizes_fini(&of[way]);
  return good;
}
