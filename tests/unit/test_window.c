// SPDX-License-Identifier: Apache-2.0
// Windows against a naive op: ownership, needs, views and strips, with every
// rank's rows brought by transfers.
#include "rules/window.h"

#include <inttypes.h>
#include <string.h>

#include "src/transfer.h"
#include "tests/unit/brute.h"

enum {
  CASES = 100000, // of one dimension; about 4.5 ranks each
  DIMS = 3,
  RANKS = 27,
  ELEMENTS = 1 << 20, // of the largest array, a padded x of three dimensions
};

// ---- one dimension, formula by formula -------------------------------------

static sdg_window_t random_window(int64_t kernel_max) {
  sdg_window_t w = {
      .kernel = random_in(1, kernel_max),
      .stride = random_in(1, 5),
      .dilation = random_in(1, 4),
  };
  w.pad = random_in(0, 2) ? random_in(0, w.kernel * w.dilation)
                          : w.dilation * (w.kernel - 1) / 2;
  return w;
}

static sdg_part_t random_part(int64_t extent, int pieces) {
  int64_t sizes[RANKS];
  sdg_part_t part;
  random_sizes(extent, pieces, sizes);
  REQUIRE(sdg_part_from_sizes(pieces, sizes, &part) == SDG_OK);
  return part;
}

// How many outputs fit: by trying.
static int64_t outputs_naive(const sdg_window_t *w, int64_t n) {
  int64_t count = 0;
  while (count * w->stride - w->pad + (w->kernel - 1) * w->dilation <
         n + w->pad)
    count++;
  return count;
}

START_TEST(output_count_is_what_fits) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(0, 40);
    REQUIRE(sdg_window_outputs(&w, n) == outputs_naive(&w, n));
  }
}
END_TEST

START_TEST(every_output_is_owned_by_its_centre) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(1, 40), outputs = sdg_window_outputs(&w, n);
    int64_t c = w.dilation * (w.kernel - 1) / 2;
    sdg_part_t x = random_part(n, (int)random_in(1, 8)), y;
    REQUIRE(sdg_window_part(&w, &x, outputs, &y) == SDG_OK);
    REQUIRE(y.pieces == x.pieces);
    REQUIRE(y.offset[0] == 0);
    REQUIRE(sdg_part_extent(&y) == outputs);
    for (int64_t o = 0; o < outputs; o++) {
      int owner = 0, owners = 0;
      for (int r = 1; r < x.pieces; r++)
        owner += x.offset[r] <= o * w.stride - w.pad + c;
      for (int r = 0; r < y.pieces; r++)
        if (o >= y.offset[r] && o < y.offset[r + 1]) {
          REQUIRE(r == owner);
          owners++;
        }
      REQUIRE(owners == 1);
    }
    sdg_part_fini(&x);
    sdg_part_fini(&y);
  }
}
END_TEST

START_TEST(every_input_is_owned_by_the_output_centred_before_it) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(1, 40), outputs = sdg_window_outputs(&w, n);
    int64_t c = w.dilation * (w.kernel - 1) / 2;
    sdg_part_t y = random_part(outputs, (int)random_in(1, 8)), x;
    REQUIRE(sdg_window_part_adjoint(&w, &y, n, &x) == SDG_OK);
    REQUIRE(sdg_part_extent(&x) == n);
    for (int64_t at = 0; at < n; at++) {
      int owner = 0, owners = 0;
      for (int r = 1; r < y.pieces; r++)
        owner += y.offset[r] * w.stride - w.pad + c <= at;
      for (int r = 0; r < x.pieces; r++)
        if (at >= x.offset[r] && at < x.offset[r + 1]) {
          REQUIRE(r == owner);
          owners++;
        }
      REQUIRE(owners == 1);
    }
    sdg_part_fini(&x);
    sdg_part_fini(&y);
  }
}
END_TEST

START_TEST(need_is_from_first_to_last_input_touched) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_t w = random_window(9);
    sdg_range_t y = {random_in(0, 20), 0};
    y.hi = y.lo + random_in(0, 10);
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (int64_t o = y.lo; o < y.hi; o++)
      for (int64_t j = 0; j < w.kernel; j++) {
        int64_t at = o * w.stride - w.pad + j * w.dilation;
        first = at < first ? at : first;
        last = at > last ? at : last;
      }
    sdg_range_t need = sdg_window_need(&w, y);
    REQUIRE(need.lo == (y.lo < y.hi ? first : 0));
    REQUIRE(need.hi == (y.lo < y.hi ? last + 1 : 0));
  }
}
END_TEST

START_TEST(adjoint_need_is_from_first_to_last_output_that_spans) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(1, 40), outputs = sdg_window_outputs(&w, n);
    sdg_range_t x = {random_in(0, n), 0};
    x.hi = random_in(x.lo, n);
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (int64_t o = 0; o < outputs; o++) {
      int64_t lo = o * w.stride - w.pad;
      int64_t hi = lo + (w.kernel - 1) * w.dilation + 1;
      if (x.lo < x.hi && lo < x.hi && hi > x.lo) {
        first = o < first ? o : first;
        last = o > last ? o : last;
      }
    }
    sdg_range_t need = sdg_range_cut(sdg_window_need_adjoint(&w, x), outputs);
    if (last == INT64_MIN) {
      REQUIRE(need.lo >= need.hi);
    } else {
      REQUIRE(need.lo == first);
      REQUIRE(need.hi == last + 1);
    }
  }
}
END_TEST

START_TEST(adjoint_need_of_all_images_has_every_output_that_wraps_here) {
  for (int64_t i = random_cases(CASES / 10); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(1, 20), outputs = sdg_window_outputs(&w, n);
    int64_t piece = random_in(0, n - 1);
    sdg_range_t images = sdg_window_images(&w, n, outputs);
    for (int64_t o = 0; o < outputs; o++) {
      bool touches = false, spans = false, found = false;
      for (int64_t j = 0; j < w.kernel; j++) {
        int64_t at = o * w.stride - w.pad + j * w.dilation;
        touches |= at - n * sdg_floor_div(at, n) == piece;
      }
      for (int64_t at = 0; at < sdg_window_span(&w); at++) {
        int64_t row = o * w.stride - w.pad + at;
        spans |= row - n * sdg_floor_div(row, n) == piece;
      }
      for (int64_t m = images.lo; m < images.hi; m++) {
        sdg_range_t need = sdg_window_need_adjoint(
            &w, (sdg_range_t){piece + m * n, piece + m * n + 1});
        found |= o >= need.lo && o < need.hi;
      }
      REQUIRE(found || !touches);
      REQUIRE(spans || !found);
    }
  }
}
END_TEST

// ---- the whole way: exchange, view, strips ---------------------------------

typedef struct array { // dense, row-major, over a box of three dimensions
  sdg_box_t box;
  uint64_t *at;
} array_t;

static array_t array_make(const sdg_box_t *box) {
  array_t array = {.box = *box};
  int64_t count = sdg_box_count(box);
  REQUIRE(count <= ELEMENTS);
  array.at = malloc(((size_t)count + 1) * sizeof *array.at);
  // What nobody writes differs from everything that anybody computes.
  for (int64_t i = 0; i < count; i++)
    array.at[i] = 0xdead000000000000u + random_bits() % 1000000007u;
  return array;
}

static uint64_t *array_at(const array_t *array, const int64_t *coord) {
  int64_t index = 0;
  for (int d = 0; d < DIMS; d++) {
    const sdg_range_t *range = &array->box.dim[d];
    REQUIRE_MSG(coord[d] >= range->lo && coord[d] < range->hi,
                "%" PRId64 " not in [%" PRId64 ",%" PRId64 ")", coord[d],
                range->lo, range->hi);
    index = index * (range->hi - range->lo) + coord[d] - range->lo;
  }
  return &array->at[index];
}

// Steps coord through a box, last dimension fastest; false behind the end.
static bool box_next(const sdg_box_t *box, int64_t *coord) {
  for (int d = DIMS - 1; d >= 0; d--) {
    if (++coord[d] < box->dim[d].hi)
      return true;
    coord[d] = box->dim[d].lo;
  }
  return false;
}

static bool box_first(const sdg_box_t *box, int64_t *coord) {
  for (int d = 0; d < DIMS; d++)
    coord[d] = box->dim[d].lo;
  return !sdg_box_empty(box);
}

typedef struct op {
  sdg_window_t window[DIMS];
  int64_t x_extent[DIMS], y_extent[DIMS];
  bool wrap[DIMS];
  uint64_t weight[9 * 9 * 9];
} op_t;

// The op as a library would run it on a buffer: x is indexed from 0, pad[]
// zero rows lie around it, and y gets as many outputs as fit.
static array_t op_run(const op_t *op, const array_t *x, const int64_t *pad) {
  sdg_box_t y_box = {.dims = DIMS}, taps = {.dims = DIMS};
  for (int d = 0; d < DIMS; d++) {
    sdg_window_t w = op->window[d];
    w.pad = pad[d];
    y_box.dim[d].hi = outputs_naive(&w, x->box.dim[d].hi - x->box.dim[d].lo);
    taps.dim[d].hi = w.kernel;
  }
  array_t y = array_make(&y_box);
  int64_t o[DIMS], tap[DIMS];
  if (!box_first(&y_box, o))
    return y;
  do {
    uint64_t sum = 0, index = 0;
    box_first(&taps, tap);
    do {
      int64_t at[DIMS];
      bool inside = true;
      for (int d = 0; d < DIMS; d++) {
        at[d] = x->box.dim[d].lo + o[d] * op->window[d].stride - pad[d] +
                tap[d] * op->window[d].dilation;
        inside &= at[d] >= x->box.dim[d].lo && at[d] < x->box.dim[d].hi;
      }
      if (inside)
        sum += op->weight[index] * *array_at(x, at);
      index++;
    } while (box_next(&taps, tap));
    *array_at(&y, o) = sum;
  } while (box_next(&y_box, o));
  return y;
}

// Copies `box` of x, which may lie outside the domain: there it is zero, or
// wrapped from inside in periodic dimensions where `fold` is set.
static array_t assemble(const op_t *op, const array_t *x, const sdg_box_t *box,
                        bool fold) {
  array_t out = array_make(box);
  int64_t to[DIMS], from[DIMS];
  if (!box_first(box, to))
    return out;
  do {
    bool zero = false;
    for (int d = 0; d < DIMS; d++) {
      int64_t n = op->x_extent[d];
      from[d] = to[d];
      if (op->wrap[d] && fold)
        from[d] -= n * sdg_floor_div(to[d], n);
      zero |= !op->wrap[d] && (to[d] < 0 || to[d] >= n);
    }
    *array_at(&out, to) = zero ? 0 : *array_at(x, from);
  } while (box_next(box, to));
  return out;
}

static array_t whole_run(const op_t *op, const array_t *x) {
  sdg_box_t padded = {.dims = DIMS};
  for (int d = 0; d < DIMS; d++)
    padded.dim[d] =
        (sdg_range_t){-op->window[d].pad, op->x_extent[d] + op->window[d].pad};
  array_t wide = assemble(op, x, &padded, true);
  array_t y = op_run(op, &wide, (int64_t[DIMS]){0, 0, 0});
  free(wide.at);
  return y;
}

// Every rank's need, filled by the messages of all ranks.
static void exchange(const array_t *x, const sdg_box_t *owned,
                     const array_t *need, int ranks, const int64_t *period) {
  sdg_box_t boxes[RANKS];
  sdg_transfer_t plan[RANKS];
  for (int r = 0; r < ranks; r++)
    boxes[r] = need[r].box;
  for (int r = 0; r < ranks; r++)
    REQUIRE(sdg_transfer_plan(owned, boxes, ranks, r, period, &plan[r]) ==
            SDG_OK);
  for (int r = 0; r < ranks; r++) {
    int next[RANKS] = {0}; // send of each peer to try next
    for (int i = 0; i < plan[r].recvs + plan[r].locals; i++) {
      const sdg_message_t *recv = i < plan[r].recvs
                                      ? &plan[r].recv[i]
                                      : &plan[r].local[i - plan[r].recvs];
      if (i < plan[r].recvs) {
        const sdg_transfer_t *from = &plan[recv->peer];
        int *k = &next[recv->peer];
        while (*k < from->sends && from->send[*k].peer != r)
          ++*k;
        REQUIRE(*k < from->sends);
        REQUIRE(sdg_box_equal(&from->send[*k].box, &recv->box));
        ++*k;
      }
      REQUIRE(sdg_box_contains(&owned[recv->peer], &recv->box));
      int64_t at[DIMS], to[DIMS];
      REQUIRE(box_first(&recv->box, at));
      do {
        for (int d = 0; d < DIMS; d++)
          to[d] = at[d] + recv->shift[d];
        *array_at(&need[r], to) = *array_at(x, at);
      } while (box_next(&recv->box, at));
    }
  }
  for (int r = 0; r < ranks; r++)
    sdg_transfer_fini(&plan[r]);
}

static void put(const array_t *y, const array_t *piece,
                const sdg_box_t *where) {
  int64_t at[DIMS], from[DIMS];
  if (!box_first(where, at))
    return;
  do {
    for (int d = 0; d < DIMS; d++)
      from[d] = at[d] - where->dim[d].lo;
    *array_at(y, at) = *array_at(piece, from);
  } while (box_next(where, at));
}

// Runs the op on the view of the rank's own rows, then the strips; y must be
// complete and equal to `want`.
static void rank_run(const op_t *op, const sdg_window_dim_t *dim,
                     const array_t *x, const array_t *need, const array_t *want,
                     bool extend) {
  sdg_window_view_t view[DIMS] = {{.x = {0, 0}}};
  sdg_box_t view_x = {.dims = DIMS}, view_y = {.dims = DIMS};
  sdg_box_t owned_x = {.dims = DIMS}, owned_y = {.dims = DIMS};
  int64_t pad[DIMS];
  for (int d = 0; d < DIMS; d++) {
    if (!extend)
      view[d] = sdg_window_view(&dim[d]);
    view_x.dim[d] = view[d].x;
    view_y.dim[d] = view[d].y;
    owned_x.dim[d] = dim[d].x;
    owned_y.dim[d] = dim[d].y;
    pad[d] = op->window[d].pad;
  }
  array_t y = array_make(&owned_y);
  if (!sdg_box_empty(&view_y) && !sdg_box_empty(&view_x)) {
    REQUIRE(sdg_box_contains(&owned_x, &view_x));
    REQUIRE(sdg_box_contains(&owned_y, &view_y));
    array_t local = assemble(op, x, &view_x, false);
    array_t made = op_run(op, &local, pad);
    for (int d = 0; d < DIMS; d++) // neither more nor less than the view
      REQUIRE(made.box.dim[d].hi == view_y.dim[d].hi - view_y.dim[d].lo);
    put(&y, &made, &view_y);
    free(local.at);
    free(made.at);
  }
  sdg_window_strip_t strip[2 * DIMS];
  int strips = sdg_window_strips(DIMS, dim, view, strip);
  REQUIRE(strips <= (extend ? 1 : 2 * DIMS));
  for (int i = 0; i < strips; i++) {
    REQUIRE(!sdg_box_empty(&strip[i].y));
    REQUIRE(sdg_box_contains(&owned_y, &strip[i].y));
    for (int k = 0; k < i; k++) {
      sdg_box_t twice = sdg_box_intersect(&strip[i].y, &strip[k].y);
      REQUIRE(sdg_box_empty(&twice));
    }
    array_t local = assemble(op, need, &strip[i].x, false);
    array_t made = op_run(op, &local, (int64_t[DIMS]){0, 0, 0});
    put(&y, &made, &strip[i].y);
    free(local.at);
    free(made.at);
  }
  int64_t at[DIMS];
  if (box_first(&owned_y, at))
    do
      REQUIRE_MSG(*array_at(&y, at) == *array_at(want, at),
                  "k%" PRId64 " s%" PRId64 " d%" PRId64 " p%" PRId64
                  " x [%" PRId64 ",%" PRId64 ") of %" PRId64 " y [%" PRId64
                  ",%" PRId64 "): row %" PRId64,
                  op->window[0].kernel, op->window[0].stride,
                  op->window[0].dilation, op->window[0].pad, dim[0].x.lo,
                  dim[0].x.hi, dim[0].x_extent, dim[0].y.lo, dim[0].y.hi,
                  at[0]);
    while (box_next(&owned_y, at));
  free(y.at);
}

// One random op over a random mesh of `dims` dimensions; returns its ranks.
static int case_run(int dims, int64_t extent_max, int64_t kernel_max,
                    int pieces_max) {
  op_t op;
  sdg_part_t x_part[DIMS], y_part[DIMS];
  sdg_box_t x_box = {.dims = DIMS};
  int64_t period[DIMS];
  int ranks = 1;
  for (int d = 0; d < DIMS; d++) {
    bool used = d < dims;
    op.window[d] =
        used ? random_window(kernel_max)
             : (sdg_window_t){.kernel = 1, .stride = 1, .dilation = 1};
    op.x_extent[d] = used ? random_in(1, extent_max) : 1;
    op.y_extent[d] = sdg_window_outputs(&op.window[d], op.x_extent[d]);
    op.wrap[d] = used && random_in(0, 3) == 0;
    period[d] = op.wrap[d] ? op.x_extent[d] : 0;
    x_box.dim[d].hi = op.x_extent[d];
    int pieces = used ? (int)random_in(1, pieces_max) : 1;
    x_part[d] = random_part(op.x_extent[d], pieces);
    if (random_in(0, 1)) // any ownership of outputs will do
      y_part[d] = random_part(op.y_extent[d], pieces);
    else
      REQUIRE(sdg_window_part(&op.window[d], &x_part[d], op.y_extent[d],
                              &y_part[d]) == SDG_OK);
    ranks *= pieces;
  }
  for (int i = 0; i < 9 * 9 * 9; i++)
    op.weight[i] = random_bits() | 1;
  array_t x = array_make(&x_box);
  array_t want = whole_run(&op, &x);

  sdg_window_dim_t dim[RANKS][DIMS];
  sdg_box_t owned[RANKS];
  array_t need[RANKS];
  for (int r = 0; r < ranks; r++) {
    sdg_box_t y = {.dims = DIMS};
    owned[r].dims = DIMS;
    for (int d = DIMS - 1, rest = r; d >= 0; d--) {
      int piece = rest % x_part[d].pieces;
      rest /= x_part[d].pieces;
      owned[r].dim[d] =
          (sdg_range_t){x_part[d].offset[piece], x_part[d].offset[piece + 1]};
      y.dim[d] =
          (sdg_range_t){y_part[d].offset[piece], y_part[d].offset[piece + 1]};
      dim[r][d] = (sdg_window_dim_t){.window = op.window[d],
                                     .x_extent = op.x_extent[d],
                                     .y_extent = op.y_extent[d],
                                     .x = owned[r].dim[d],
                                     .y = y.dim[d],
                                     .wrap = op.wrap[d]};
    }
    sdg_box_t box = sdg_window_need_box(DIMS, dim[r], &y);
    need[r] = array_make(&box);
  }
  exchange(&x, owned, need, ranks, period);
  for (int r = 0; r < ranks; r++) {
    rank_run(&op, dim[r], &x, &need[r], &want, false);
    rank_run(&op, dim[r], &x, &need[r], &want, true);
    free(need[r].at);
  }
  free(x.at);
  free(want.at);
  for (int d = 0; d < DIMS; d++) {
    sdg_part_fini(&x_part[d]);
    sdg_part_fini(&y_part[d]);
  }
  return ranks;
}

START_TEST(view_and_strips_make_the_whole_in_one_dimension) {
  int64_t ranks = 0, cases = random_cases(CASES);
  for (int64_t i = cases; i > 0; i--)
    ranks += case_run(1, 40, 9, 8);
  REQUIRE(ranks >= cases * 4);
}
END_TEST

START_TEST(view_and_strips_make_the_whole_in_two_dimensions) {
  for (int64_t i = random_cases(CASES / 10); i > 0; i--)
    case_run(2, 14, 5, 3);
}
END_TEST

START_TEST(view_and_strips_make_the_whole_in_three_dimensions) {
  for (int64_t i = random_cases(CASES / 100); i > 0; i--)
    case_run(3, 8, 3, 3);
}
END_TEST

// ---- examples stated in the header -----------------------------------------

// Input row that local output `local` of a cut reads through tap j, or -1 for
// the padding that the real op supplies.
static int64_t cut_tap(const sdg_window_t *w, const sdg_window_cut_t *cut,
                       int64_t local, int64_t j) {
  int64_t at = local * w->stride - cut->pad + j * w->dilation;
  return at >= 0 && at < cut->x.hi - cut->x.lo ? cut->x.lo + at : -1;
}

START_TEST(a_cut_makes_the_owned_outputs_of_the_whole) {
  int64_t cuts = 0, wholes = 0;
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_dim_t dim = {.window = random_window(7)};
    const sdg_window_t *w = &dim.window;
    dim.x_extent = random_in(1, 30);
    dim.y_extent = sdg_window_outputs(w, dim.x_extent);
    if (dim.y_extent < 1)
      continue;
    dim.y.lo = random_in(0, dim.y_extent - 1);
    dim.y.hi = random_in(dim.y.lo + 1, dim.y_extent);
    sdg_range_t rows = {0, 0};
    bool around = random_in(0, 1);
    if (around) {
      rows.lo = random_in(0, dim.x_extent - 1);
      rows.hi = random_in(rows.lo + 1, dim.x_extent);
    }
    sdg_window_cut_t cut = sdg_window_cut_around(&dim, rows);
    sdg_window_t padded = *w;
    padded.pad = cut.pad;
    // Inside the tensors, and exactly what the real op makes.
    REQUIRE(cut.x.lo >= 0 && cut.x.hi <= dim.x_extent && cut.x.lo < cut.x.hi);
    REQUIRE(cut.y.lo >= 0 && cut.y.hi <= dim.y_extent);
    REQUIRE(cut.pad >= 0 && cut.pad <= w->pad);
    REQUIRE(sdg_window_outputs(&padded, cut.x.hi - cut.x.lo) ==
            cut.y.hi - cut.y.lo);
    REQUIRE(cut.y.lo <= dim.y.lo && cut.y.hi >= dim.y.hi);
    REQUIRE(rows.hi == 0 || (cut.x.lo <= rows.lo && cut.x.hi >= rows.hi));
    // Every output is where the whole op has it: no other touches more rows.
    REQUIRE(cut.x.lo - cut.pad == cut.y.lo * w->stride - w->pad);
    for (int64_t o = dim.y.lo; o < dim.y.hi; o++)
      for (int64_t j = 0; j < w->kernel; j++) {
        int64_t should = o * w->stride - w->pad + j * w->dilation;
        if (should < 0 || should >= dim.x_extent)
          should = -1;
        REQUIRE(cut_tap(w, &cut, o - cut.y.lo, j) == should);
      }
    // Where the windows stay inside the domain nothing is computed twice.
    sdg_range_t need = sdg_window_need(w, dim.y);
    if (!around && need.lo >= 0 && need.hi <= dim.x_extent)
      REQUIRE(cut.pad == 0 && cut.y.lo == dim.y.lo && cut.y.hi == dim.y.hi);
    if (around)
      continue;
    // No more than a stride and the paddings beyond what is needed.
    REQUIRE(cut.x.lo >= need.lo - w->stride - 2 * w->pad);
    bool whole = cut.y.hi - cut.y.lo == dim.y_extent;
    wholes += whole && dim.y.hi - dim.y.lo < dim.y_extent;
    cuts += !whole;
  }
  // Pieces of few rows are often all padding; most are cut all the same.
  REQUIRE(cuts > 3 * wholes);
}
END_TEST

START_TEST(without_padding_all_that_is_made_is_right) {
  int64_t tried = 0;
  for (int64_t i = random_cases(60000); i > 0; i--) {
    sdg_window_dim_t dim = {.window = random_window(7),
                            .x_extent = random_in(1, 60),
                            .wrap = random_in(0, 3) == 0};
    sdg_window_t *w = &dim.window;
    dim.y_extent = sdg_window_outputs(w, dim.x_extent);
    dim.x.lo = random_in(0, dim.x_extent);
    dim.x.hi = random_in(dim.x.lo, dim.x_extent);
    dim.y.lo = random_in(0, dim.y_extent);
    dim.y.hi = random_in(dim.y.lo, dim.y_extent);
    sdg_window_view_t view = sdg_window_view(&dim), bare;
    if (!sdg_window_bare(&dim, &view, &bare))
      continue;
    tried++;
    REQUIRE(bare.x.lo >= dim.x.lo && bare.x.hi <= dim.x.hi);
    REQUIRE(bare.y.lo >= dim.y.lo && bare.y.hi <= dim.y.hi);
    REQUIRE(bare.right.lo == bare.y.lo && bare.right.hi == bare.y.hi);
    if (view.right.lo < view.right.hi)
      REQUIRE(bare.y.lo <= view.right.lo && bare.y.hi >= view.right.hi);
    // A legal call, each window of which sees what that of the whole op sees.
    sdg_window_t none = *w;
    none.pad = 0;
    REQUIRE(sdg_window_outputs(&none, bare.x.hi - bare.x.lo) ==
            bare.y.hi - bare.y.lo);
    REQUIRE(bare.y.lo * w->stride - w->pad == bare.x.lo);
  }
  REQUIRE(tried > 1000 || random_cases(60000) < 60000);
}
END_TEST

START_TEST(the_view_is_padded_where_hardly_anything_is_in_vain) {
  sdg_window_dim_t dim = {.window = {3, 1, 1, 1},
                          .x_extent = 300,
                          .y_extent = 300,
                          .x = {100, 164},
                          .y = {100, 164}};
  sdg_window_view_t view = sdg_window_view(&dim), bare;
  ck_assert(sdg_window_bare(&dim, &view, &bare)); // 2 of 64
  ck_assert(bare.x.lo == 100 && bare.x.hi == 164);
  ck_assert(bare.y.lo == 101 && bare.y.hi == 163);
  dim.x.hi = dim.y.hi = 165; // 2 of 65
  view = sdg_window_view(&dim);
  ck_assert(!sdg_window_bare(&dim, &view, &bare));
  // At an end of the domain padding makes a row right.
  dim.x = dim.y = (sdg_range_t){0, 20};
  view = sdg_window_view(&dim);
  ck_assert(!sdg_window_bare(&dim, &view, &bare));
}
END_TEST

START_TEST(the_cut_of_the_header_holds) {
  sdg_window_dim_t dim = {
      .window = {3, 1, 1, 1}, .x_extent = 10, .y_extent = 10, .y = {5, 10}};
  sdg_window_cut_t cut = sdg_window_cut(&dim);
  ck_assert_int_eq(cut.x.lo, 4);
  ck_assert_int_eq(cut.x.hi, 10);
  ck_assert_int_eq(cut.y.lo, 4);
  ck_assert_int_eq(cut.y.hi, 10);
  ck_assert_int_eq(cut.pad, 1);
  dim = (sdg_window_dim_t){
      .window = {1, 3, 1, 0}, .x_extent = 10, .y_extent = 4, .y = {1, 2}};
  cut = sdg_window_cut_around(&dim, (sdg_range_t){4, 6});
  ck_assert_int_eq(cut.x.lo, 3);
  ck_assert_int_eq(cut.x.hi, 6);
  ck_assert_int_eq(cut.y.lo, 1);
  ck_assert_int_eq(cut.y.hi, 2);
  ck_assert_int_eq(cut.pad, 0);
}
END_TEST

START_TEST(examples_of_the_header_hold) {
  sdg_window_t w = {.kernel = 3, .stride = 2, .dilation = 1, .pad = 1};
  sdg_part_t x, y, back;
  ck_assert(sdg_part_from_sizes(2, (int64_t[]){5, 5}, &x) == SDG_OK);
  ck_assert_int_eq(sdg_window_outputs(&w, 10), 5);
  ck_assert(sdg_window_part(&w, &x, 5, &y) == SDG_OK);
  ck_assert_int_eq(y.offset[1], 3);
  ck_assert(sdg_window_part_adjoint(&w, &y, 10, &back) == SDG_OK);
  ck_assert_int_eq(back.offset[1], 6);
  sdg_range_t need = sdg_window_need(&w, (sdg_range_t){0, 3});
  ck_assert(need.lo == -1 && need.hi == 6);
  need = sdg_window_need_adjoint(&w, (sdg_range_t){5, 10});
  ck_assert(need.lo == 2 && need.hi == 6);
  sdg_window_dim_t dim = {
      .window = w, .x_extent = 10, .y_extent = 5, .x = {5, 10}, .y = {3, 5}};
  sdg_window_view_t view = sdg_window_view(&dim);
  ck_assert(view.x.lo == 6 && view.x.hi == 10);
  ck_assert(view.y.lo == 3 && view.y.hi == 5);
  ck_assert(view.right.lo == 4 && view.right.hi == 5);
  w = (sdg_window_t){.kernel = 3, .stride = 1, .dilation = 1, .pad = 1};
  sdg_range_t images = sdg_window_images(&w, 10, 10);
  ck_assert(images.lo == -1 && images.hi == 2);
  sdg_part_fini(&x);
  sdg_part_fini(&y);
  sdg_part_fini(&back);
}
END_TEST

START_TEST(one_rank_that_owns_all_redoes_nothing_unless_it_wraps) {
  for (int64_t i = random_cases(CASES / 10); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(1, 40), outputs = sdg_window_outputs(&w, n);
    sdg_window_dim_t dim = {.window = w,
                            .x_extent = n,
                            .y_extent = outputs,
                            .x = {0, n},
                            .y = {0, outputs}};
    sdg_window_strip_t strip[2];
    sdg_window_view_t view = sdg_window_view(&dim);
    REQUIRE(sdg_window_strips(1, &dim, &view, strip) == 0);
    if (outputs > 0) { // literally the program's call
      REQUIRE(view.x.lo == 0 && view.x.hi == n);
      REQUIRE(view.y.lo == 0 && view.y.hi == outputs);
    }
    dim.wrap = true;
    view = sdg_window_view(&dim);
    bool redo = sdg_window_strips(1, &dim, &view, strip) > 0;
    sdg_range_t need = sdg_window_need(&w, dim.y);
    REQUIRE(redo == (outputs > 0 && (need.lo < 0 || need.hi > n)));
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("window");
  TCase *cases = tcase_create("window");
  tcase_set_timeout(cases, 600);
  tcase_add_test(cases, a_cut_makes_the_owned_outputs_of_the_whole);
  tcase_add_test(cases, the_cut_of_the_header_holds);
  tcase_add_test(cases, without_padding_all_that_is_made_is_right);
  tcase_add_test(cases, the_view_is_padded_where_hardly_anything_is_in_vain);
  tcase_add_test(cases, examples_of_the_header_hold);
  tcase_add_test(cases, output_count_is_what_fits);
  tcase_add_test(cases, every_output_is_owned_by_its_centre);
  tcase_add_test(cases, every_input_is_owned_by_the_output_centred_before_it);
  tcase_add_test(cases, need_is_from_first_to_last_input_touched);
  tcase_add_test(cases, adjoint_need_is_from_first_to_last_output_that_spans);
  tcase_add_test(cases,
                 adjoint_need_of_all_images_has_every_output_that_wraps_here);
  tcase_add_test(cases, one_rank_that_owns_all_redoes_nothing_unless_it_wraps);
  tcase_add_test(cases, view_and_strips_make_the_whole_in_one_dimension);
  tcase_add_test(cases, view_and_strips_make_the_whole_in_two_dimensions);
  tcase_add_test(cases, view_and_strips_make_the_whole_in_three_dimensions);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
