// SPDX-License-Identifier: Apache-2.0
// Rows of a pooling's gradient, computed by pieces from what each rank has and
// receives, against those of the whole.
#include "rules/pool/backward.h"

#include <string.h>

#include "tests/unit/random.h"

// A mean's gradient is in units of 1/SHARE: windows have at most 5x5 elements.
enum { DIMS = 4, MOST = 16, SHARE = 3600, POISON = 1 << 24 };

typedef struct problem {
  cudnnPoolingMode_t mode;
  bool wrap;
  sdg_mesh_t mesh;
  sdg_window_t window[2];
  int64_t x_extent[DIMS], y_extent[DIMS];
  sdg_placement_t x, y;
  int64_t value[MOST][MOST], dy[3 * MOST][3 * MOST], dx[MOST][MOST];
} problem_t;

// ---- the op on one device, on small arrays ---------------------------------

typedef struct arrays {
  int64_t x_size[2], y_size[2];
  int64_t x[5 * MOST][5 * MOST], dy[5 * MOST][5 * MOST], dx[5 * MOST][5 * MOST];
} arrays_t;

static bool is_max(const problem_t *p) {
  return p->mode == CUDNN_POOLING_MAX ||
         p->mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

static void window_spread(const problem_t *p, const int *pad, arrays_t *a,
                          int64_t oh, int64_t ow) {
  const int64_t o[2] = {oh, ow};
  int64_t lo[2], hi[2], count = 1, best[2] = {-1, -1};
  for (int i = 0; i < 2; i++) {
    lo[i] = o[i] * p->window[i].stride - pad[i];
    hi[i] = lo[i] + p->window[i].kernel;
    lo[i] = lo[i] < 0 ? 0 : lo[i];
    hi[i] = hi[i] > a->x_size[i] ? a->x_size[i] : hi[i];
    REQUIRE(hi[i] > lo[i]);
    count *= p->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                 ? p->window[i].kernel
                 : hi[i] - lo[i];
  }
  for (int64_t h = lo[0]; h < hi[0]; h++)
    for (int64_t w = lo[1]; w < hi[1]; w++) {
      if (!is_max(p))
        a->dx[h][w] += a->dy[oh][ow] * (SHARE / count);
      else if (best[0] < 0 || a->x[h][w] > a->x[best[0]][best[1]]) {
        best[0] = h;
        best[1] = w;
      }
    }
  if (is_max(p))
    a->dx[best[0]][best[1]] += a->dy[oh][ow];
}

static void real_call(const problem_t *p, const int *pad, arrays_t *a) {
  for (int i = 0; i < 2; i++) {
    sdg_window_t padded = p->window[i];
    padded.pad = pad[i];
    REQUIRE(pad[i] >= 0 && pad[i] < padded.kernel);
    REQUIRE(sdg_window_outputs(&padded, a->x_size[i]) == a->y_size[i]);
  }
  memset(a->dx, 0, sizeof a->dx);
  for (int64_t h = 0; h < a->y_size[0]; h++)
    for (int64_t w = 0; w < a->y_size[1]; w++)
      window_spread(p, pad, a, h, w);
}

// ---- the whole -------------------------------------------------------------

static int64_t fold(int64_t i, int64_t n) {
  return (i % n + n) % n;
}

// A periodic domain is unrolled so far that no window sees padding.
static void whole_compute(problem_t *p) {
  static arrays_t a;
  int64_t before = 0, rows = p->x_extent[2];
  int pad[2] = {(int)p->window[0].pad, (int)p->window[1].pad};
  if (p->wrap) {
    before = p->window[0].pad;
    rows += 2 * before;
    pad[0] = 0;
  }
  a.x_size[0] = rows;
  a.x_size[1] = p->x_extent[3];
  a.y_size[0] = p->y_extent[2];
  a.y_size[1] = p->y_extent[3];
  for (int64_t h = 0; h < rows; h++)
    for (int64_t w = 0; w < a.x_size[1]; w++)
      a.x[h][w] = p->value[fold(h - before, p->x_extent[2])][w];
  for (int64_t h = 0; h < a.y_size[0]; h++)
    for (int64_t w = 0; w < a.y_size[1]; w++)
      a.dy[h][w] = p->dy[h][w];
  real_call(p, pad, &a);
  memset(p->dx, 0, sizeof p->dx);
  for (int64_t h = 0; h < rows; h++)
    for (int64_t w = 0; w < a.x_size[1]; w++)
      p->dx[fold(h - before, p->x_extent[2])][w] += a.dx[h][w];
}

// ---- one rank --------------------------------------------------------------

static bool has(const sdg_box_t *box, int64_t h, int64_t w) {
  return h >= box->dim[2].lo && h < box->dim[2].hi && w >= box->dim[3].lo &&
         w < box->dim[3].hi;
}

// Which rows and columns of a tensor are right on this rank.
static bool right[2][3 * MOST][3 * MOST]; // of x, of dy

static void right_fill(int tensor, const sdg_box_t *box,
                       const int64_t *extent) {
  memset(right[tensor], 0, sizeof right[tensor]);
  for (int64_t h = box->dim[2].lo; h < box->dim[2].hi; h++)
    for (int64_t w = box->dim[3].lo; w < box->dim[3].hi; w++)
      right[tensor][fold(h, extent[2])][fold(w, extent[3])] = true;
}

// Computes a piece from `x` and `dy`; NULL: from right elements, and any values
// for others. Adds the rows of dx that it keeps to `sum`.
static void piece_make(const problem_t *p, const sdg_window_piece_t *piece,
                       const sdg_box_t *x, const sdg_box_t *dy,
                       int64_t sum[MOST][MOST]) {
  static arrays_t a;
  sdg_range_t rows = piece->x.dim[2], columns = piece->x.dim[3];
  for (int i = 0; i < 2; i++) {
    a.x_size[i] = piece->x.dim[2 + i].hi - piece->x.dim[2 + i].lo;
    a.y_size[i] = piece->y.dim[2 + i].hi - piece->y.dim[2 + i].lo;
    REQUIRE(a.x_size[i] <= 5 * MOST && a.y_size[i] <= 5 * MOST);
  }
  for (int64_t h = rows.lo; h < rows.hi; h++)
    for (int64_t w = columns.lo; w < columns.hi; w++) {
      REQUIRE(w >= 0 && w < p->x_extent[3]);
      REQUIRE(p->wrap || (h >= 0 && h < p->x_extent[2]));
      a.x[h - rows.lo][w - columns.lo] =
          (x ? has(x, h, w) : right[0][h][w])
              ? p->value[fold(h, p->x_extent[2])][w]
              : random_in(-POISON, POISON);
    }
  for (int64_t h = piece->y.dim[2].lo; h < piece->y.dim[2].hi; h++)
    for (int64_t w = piece->y.dim[3].lo; w < piece->y.dim[3].hi; w++) {
      bool inside =
          h >= 0 && h < p->y_extent[2] && w >= 0 && w < p->y_extent[3];
      bool there = inside && (dy ? has(dy, h, w) : right[1][h][w]);
      a.dy[h - piece->y.dim[2].lo][w - piece->y.dim[3].lo] = !inside ? 0
                                                             : there
                                                                 ? p->dy[h][w]
                                                                 : POISON;
    }
  real_call(p, piece->pad + 2, &a);
  REQUIRE(sdg_box_contains(&piece->x, &piece->keep));
  for (int64_t h = piece->keep.dim[2].lo; h < piece->keep.dim[2].hi; h++)
    for (int64_t w = piece->keep.dim[3].lo; w < piece->keep.dim[3].hi; w++)
      sum[h][w] += a.dx[h - rows.lo][w - columns.lo];
}

static float anywhere; // address for operands that are never read

// In the whole view a rank has the tensors in full, and the elements that it
// reads are right.
static void rank_run(const problem_t *p, int rank, bool extend, bool whole) {
  sdg_section_t section = {.wrap = p->wrap ? 1u << SDG_DIM_H : 0};
  sdg_tagging_t tagging = {.section = &section,
                           .mesh = &p->mesh,
                           .rank = rank,
                           .ranks = sdg_mesh_ranks(&p->mesh),
                           .me = rank};
  for (int r = 0; r < tagging.ranks; r++)
    tagging.rank_list[r] = r;
  tagging.placement[0] = p->x;
  tagging.placement[1] = p->y;
  sdg_call_t call = {.entry_name = "test", .family = SDG_FAMILY_POOL};
  sdg_pool_backward_t back = {.reads = is_max(p)};
  back.pool.y = 1;
  back.pool.spec = (sdg_window_spec_t){.x = 0, .y = 1, .own_border = true};
  for (int d = 0; d < DIMS; d++)
    back.pool.spec.window[d] =
        d < 2 ? (sdg_window_t){1, 1, 1, 0} : p->window[d - 2];
  call.operands = 2;
  for (int i = 0; i < 2; i++) {
    call.operand[i].data = &anywhere;
    call.operand[i].dims = DIMS;
    call.operand[i].elem_bytes = sizeof anywhere;
    memcpy(call.operand[i].extent, i ? p->y_extent : p->x_extent,
           sizeof p->x_extent);
  }
  bool can = true;
  REQUIRE(whole ? !sdg_window_op_init_whole(&call, &tagging, &back.pool.spec,
                                            &back.pool.op, &can)
                : !sdg_window_op_init(&call, &tagging, &back.pool.spec,
                                      &back.pool.op));
  REQUIRE(can);
  REQUIRE(!sdg_pool_backward_fill(&back, &tagging));

  static int64_t sum[MOST][MOST];
  memset(sum, 0, sizeof sum);
  sdg_box_t strip[2 * SDG_DIMS_MAX];
  const sdg_window_op_t *op = &back.pool.op;
  sdg_window_piece_t view = sdg_pool_backward_view(&back);
  extend |= sdg_box_empty(&view.keep);
  sdg_box_t own = sdg_placement_box(&p->x, &p->mesh, rank);
  if (!extend) {
    sdg_box_t x = sdg_pool_backward_need_x(&back, &tagging, rank);
    sdg_box_t y = sdg_pool_backward_need_y(&back, &tagging, rank);
    REQUIRE(sdg_box_contains(&op->x_box, &view.x));
    REQUIRE(sdg_box_contains(&op->y_box, &view.y));
    REQUIRE(!whole || sdg_box_contains(&own, &view.keep));
    right_fill(0, &x, p->x_extent);
    right_fill(1, &y, p->y_extent);
    piece_make(p, &view, whole ? NULL : &op->x_box, whole ? NULL : &op->y_box,
               sum);
  }
  int strips = sdg_pool_backward_strips(&back, extend, strip);
  sdg_box_t x = sdg_pool_backward_need_x(&back, &tagging, rank);
  for (int i = 0; i < strips; i++)
    for (int k = 0; k < back.images; k++) {
      sdg_window_piece_t piece;
      bool adds = sdg_pool_backward_piece(&back, &strip[i], k, &piece);
      REQUIRE(adds || k > 0);
      sdg_box_t y =
          sdg_pool_backward_need_as(&back, &tagging, back.image[k].at, rank);
      if (adds)
        piece_make(p, &piece, &x, &y, sum);
    }
  for (int64_t h = own.dim[2].lo; h < own.dim[2].hi; h++)
    for (int64_t w = own.dim[3].lo; w < own.dim[3].hi; w++)
      REQUIRE_MSG(sum[h][w] == p->dx[h][w], "dx[%d,%d] is %lld instead of %lld",
                  (int)h, (int)w, (long long)sum[h][w], (long long)p->dx[h][w]);
  sdg_pool_backward_fini(&back);
}

// ---- problems --------------------------------------------------------------

static bool parts_draw(problem_t *p, int d, int axis, bool own) {
  sdg_split_t split = {.axes = 1, .axis = {axis}};
  int pieces = sdg_split_pieces(&split, &p->mesh);
  int64_t sizes[8], left = p->x_extent[d];
  for (int i = 0; i < pieces; i++) {
    int64_t room = left - (pieces - 1 - i);
    if (room < 1)
      return false;
    sizes[i] = i == pieces - 1 ? left : random_in(1, room);
    left -= sizes[i];
  }
  sdg_part_t x, y;
  REQUIRE(!sdg_part_from_sizes(pieces, sizes, &x));
  REQUIRE(!sdg_window_part(&p->window[d - 2], &x, p->y_extent[d], &y));
  bool good = p->y_extent[d] >= pieces;
  for (int i = 1; own && good && i < pieces; i++) // the program's own sizes
    y.offset[i] = random_in(y.offset[i - 1] + 1, p->y_extent[d] - (pieces - i));
  for (int i = 0; i < pieces; i++)
    good &= sdg_part_size(&y, i) > 0;
  if (good) {
    REQUIRE(!sdg_placement_split(&p->x, &p->mesh, d, &split, &x));
    REQUIRE(!sdg_placement_split(&p->y, &p->mesh, d, &split, &y));
  }
  sdg_part_fini(&x);
  sdg_part_fini(&y);
  return good;
}

static bool problem_draw(problem_t *p, const char *mesh, int ranks, bool wrap) {
  p->mode = (cudnnPoolingMode_t)random_in(0, 3);
  p->wrap = wrap;
  REQUIRE(!sdg_mesh_parse(mesh, ranks, &p->mesh));
  for (int d = 0; d < DIMS; d++) {
    p->x_extent[d] = p->y_extent[d] = 1;
    if (d < 2)
      continue;
    sdg_window_t *w = &p->window[d - 2];
    *w = (sdg_window_t){random_in(1, 5), random_in(1, 7), 1, 0};
    w->pad = random_in(0, w->kernel - 1);
    p->x_extent[d] = random_in(1, MOST);
    p->y_extent[d] = sdg_window_outputs(w, p->x_extent[d]);
    if (p->y_extent[d] < 1)
      return false;
  }
  for (int h = 0; h < MOST; h++)
    for (int w = 0; w < MOST; w++)
      p->value[h][w] = random_in(-2, 2);
  for (int h = 0; h < 3 * MOST; h++)
    for (int w = 0; w < 3 * MOST; w++)
      p->dy[h][w] = random_in(-9, 9);
  REQUIRE(!sdg_placement_init(DIMS, p->x_extent, &p->x));
  REQUIRE(!sdg_placement_init(DIMS, p->y_extent, &p->y));
  bool own = random_in(0, 3) == 0;
  if (parts_draw(p, 2, 0, own) &&
      (p->mesh.axes < 2 || parts_draw(p, 3, 1, own)))
    return true;
  sdg_placement_fini(&p->x);
  sdg_placement_fini(&p->y);
  return false;
}

static void problems_run(const char *mesh, int ranks, bool wrap,
                         int64_t least) {
  static problem_t problem;
  int64_t good = 0;
  for (int64_t i = random_cases(20000); i > 0; i--) {
    if (!problem_draw(&problem, mesh, ranks, wrap))
      continue;
    good++;
    whole_compute(&problem);
    bool whole = random_in(0, 1);
    for (int r = 0; r < ranks; r++)
      rank_run(&problem, r, random_in(0, 2) == 0, whole);
    sdg_placement_fini(&problem.x);
    sdg_placement_fini(&problem.y);
  }
  REQUIRE(good >= random_cases(least));
}

START_TEST(rows_of_three_ranks_are_those_of_one) {
  problems_run("y=3", 3, false, 5000);
}
END_TEST

START_TEST(rows_of_a_mesh_are_those_of_one) {
  problems_run("y=2,x=2", 4, false, 5000);
}
END_TEST

START_TEST(rows_of_a_periodic_domain_add_their_images) {
  problems_run("y=3", 3, true, 5000);
}
END_TEST

START_TEST(a_rank_alone_in_a_periodic_domain_is_its_own_neighbour) {
  problems_run("y=1", 1, true, 5000);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("poolback");
  TCase *cases = tcase_create("poolback");
  tcase_set_timeout(cases, 120);
  tcase_add_test(cases, rows_of_three_ranks_are_those_of_one);
  tcase_add_test(cases, rows_of_a_mesh_are_those_of_one);
  tcase_add_test(cases, rows_of_a_periodic_domain_add_their_images);
  tcase_add_test(cases, a_rank_alone_in_a_periodic_domain_is_its_own_neighbour);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
