// SPDX-License-Identifier: Apache-2.0
// Views and strips of windows against a naive op; transfers bring every rank's
// rows.
#include "rules/window/window.h"

#include <inttypes.h>
#include <string.h>

#include "src/geometry/transfer.h"
#include "tests/unit/random_window.h"

enum {
  DIMS = 3,
  ELEMENTS = 1 << 20, // of the largest array, a padded x of three dimensions
};

typedef struct array { // dense, row-major, over a box of three dimensions
  sdg_box_t box;
  uint64_t *at;
} array_t;

static array_t array_make(const sdg_box_t *box) {
  array_t array = {.box = *box};
  int64_t count = sdg_box_count(box);
  REQUIRE(count <= ELEMENTS);
  array.at = malloc(((size_t)count + 1) * sizeof *array.at);
  // Unwritten elements differ from every value that is computed.
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

// Steps through a box, last dimension fastest; returns false after the last
// point.
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

// The op on a buffer, like in a library: x is indexed from 0, with pad[] rows
// of zeros around it, and y gets as many outputs as fit.
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

// Copies `box` of x. Elements outside the domain are 0, or in periodic
// dimensions with `fold` those of the other end.
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

// Fills every rank's need by the messages of all ranks.
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
    for (int d = 0; d < DIMS; d++) // exactly the rows of the view
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
    if (random_in(0, 1)) // any part of outputs is legal
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

int main(void) {
  Suite *suite = suite_create("windowstrips");
  TCase *cases = tcase_create("windowstrips");
  tcase_set_timeout(cases, 600);
  tcase_add_test(cases, view_and_strips_make_the_whole_in_one_dimension);
  tcase_add_test(cases, view_and_strips_make_the_whole_in_two_dimensions);
  tcase_add_test(cases, view_and_strips_make_the_whole_in_three_dimensions);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
