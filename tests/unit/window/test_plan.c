// SPDX-License-Identifier: Apache-2.0
// Plans of windowed ops, carried out on several ranks whose streams run in the
// worst order, against the op on the whole tensor.
#include "rules/window/plan.h"

#include <math.h>
#include <string.h>

#include "src/comm/comm.h"
#include "src/exchange/exec.h"
#include "src/geometry/ring.h"
#include "src/job/job.h"
#include "tests/unit/random.h"
#include "tests/unit/repair_memory.h"
#include "tests/unit/fake_cuda.h"
#include "tests/unit/messages.h"

enum { DIMS = 4, MAX = 14, ELEMENTS = 8192, SUBS = SDG_PIECES_MAX };

// y[o] = sum over the window of weight * x, plus old y, plus 1000 z. Channels
// are separate (pooling) or summed into each output channel (convolution). An
// op with a border of its own adds 100 for each element of x, but not of
// padding, in the window.
typedef struct problem {
  bool mixes, wrap, reads_y, has_z, own_border;
  int64_t x_extent[DIMS], y_extent[DIMS];
  sdg_window_t window[DIMS];
  sdg_part_t x_part, y_part; // of H
  sdg_strategy_t strategy;
  bool whole; // every rank has room for all of the tensors
} problem_t;

static bool in_domain(const problem_t *p, const int64_t *at) {
  return (p->wrap || (at[2] >= 0 && at[2] < p->x_extent[2])) && at[3] >= 0 &&
         at[3] < p->x_extent[3];
}

static float x_value(const problem_t *p, const int64_t *at) {
  int64_t h = at[2];
  if (p->wrap)
    h = (h % p->x_extent[2] + p->x_extent[2]) % p->x_extent[2];
  if (!in_domain(p, at))
    return 0;
  return (float)((at[0] * 3 + at[1] * 5 + h * 7 + at[3] * 11) % 13 - 6);
}

static float other_value(const int64_t *at, int factor) {
  return (float)((at[0] + at[1] * 3 + at[2] * factor + at[3]) % 7);
}

static float weight(int64_t kh, int64_t kw) {
  return (float)(1 + (kh * 3 + kw) % 5);
}

static float y_want(const problem_t *p, const int64_t *at) {
  const sdg_window_t *h = &p->window[2], *w = &p->window[3];
  float sum = 0;
  for (int64_t c = 0; c < (p->mixes ? p->x_extent[1] : 1); c++)
    for (int64_t i = 0; i < h->kernel; i++)
      for (int64_t j = 0; j < w->kernel; j++) {
        int64_t from[] = {at[0], p->mixes ? c : at[1],
                          at[2] * h->stride - h->pad + i * h->dilation,
                          at[3] * w->stride - w->pad + j * w->dilation};
        sum += weight(i, j) * x_value(p, from);
        if (p->own_border && in_domain(p, from))
          sum += 100;
      }
  if (p->reads_y && !p->has_z)
    sum += other_value(at, 3);
  return sum + (p->has_z && p->reads_y ? 1000 * other_value(at, 5) : 0);
}

// The op on tensors in memory, like the vendor's library.
typedef struct sub {
  const problem_t *problem;
  sdg_window_slabs_t slabs;
  sdg_window_piece_t piece;
  int64_t stride[3][SDG_DIMS_MAX]; // of x, y, z
  const float *x, *z;
  float *y;
} sub_t;

static int64_t extent_of(const sdg_box_t *box, int d) {
  return box->dim[d].hi - box->dim[d].lo;
}

static float window_sum(const sub_t *s, int64_t n, int64_t k, int64_t oh,
                        int64_t ow) {
  const problem_t *p = s->problem;
  const sdg_window_t *h = &p->window[2], *w = &p->window[3];
  int64_t height = extent_of(&s->piece.x, 2), width = extent_of(&s->piece.x, 3);
  float sum = 0;
  for (int64_t c = 0; c < (p->mixes ? p->x_extent[1] : 1); c++)
    for (int64_t i = 0; i < h->kernel; i++)
      for (int64_t j = 0; j < w->kernel; j++) {
        int64_t row = oh * h->stride - s->piece.pad[2] + i * h->dilation;
        int64_t column = ow * w->stride - s->piece.pad[3] + j * w->dilation;
        if (row < 0 || row >= height || column < 0 || column >= width)
          continue;
        sum += weight(i, j) *
               s->x[n * s->stride[0][0] + (p->mixes ? c : k) * s->stride[0][1] +
                    row * s->stride[0][2] + column * s->stride[0][3]];
        if (p->own_border)
          sum += 100;
      }
  return sum;
}

static void sub_compute(void *argument) {
  const sub_t *s = argument;
  for (int64_t n = 0; n < extent_of(&s->piece.y, 0); n++)
    for (int64_t k = 0; k < extent_of(&s->piece.y, 1); k++)
      for (int64_t i = 0; i < extent_of(&s->piece.y, 2); i++)
        for (int64_t j = 0; j < extent_of(&s->piece.y, 3); j++) {
          const int64_t *t = s->stride[1], *u = s->stride[2];
          float *y = &s->y[n * t[0] + k * t[1] + i * t[2] + j * t[3]];
          float sum = window_sum(s, n, k, i, j);
          if (s->problem->has_z && s->problem->reads_y)
            sum += 1000 * s->z[n * u[0] + k * u[1] + i * u[2] + j * u[3]];
          else if (s->problem->reads_y)
            sum += *y;
          *y = sum;
        }
}

typedef struct state {
  int count;
  sub_t sub[SUBS];
} state_t;

static int sub_run(void *user, int index, const sdg_call_t *call,
                   const sdg_exec_t *exec) {
  (void)call;
  sub_t *s = &((state_t *)user)->sub[index];
  s->x = sdg_exec_element(exec, s->slabs.x, &s->piece.x);
  s->y = sdg_exec_element(exec, s->slabs.y, &s->piece.y);
  if (s->slabs.z >= 0)
    s->z = sdg_exec_element(exec, s->slabs.z, &s->piece.y);
  fake_cuda_enqueue(exec->stream, sub_compute, s);
  return 0;
}

static sdg_status_t client_open(void *user, sdg_plan_t *plan) {
  (void)user;
  plan->state = calloc(1, sizeof(state_t));
  plan->state_destroy = free;
  plan->run = sub_run;
  return SDG_OK;
}

static sdg_status_t client_add(void *user, sdg_plan_t *plan,
                               const sdg_window_piece_t *piece,
                               const sdg_window_slabs_t *slabs,
                               int *out_refusal) {
  state_t *state = plan->state;
  sub_t *s = &state->sub[state->count++];
  *s = (sub_t){.problem = user, .slabs = *slabs, .piece = *piece};
  *out_refusal = 0;
  const int which[] = {slabs->x, slabs->y, slabs->z};
  for (int i = 0; i < 3; i++)
    if (which[i] >= 0)
      memcpy(s->stride[i], plan->slab[which[i]].stride, sizeof s->stride[i]);
  return SDG_OK;
}

static sdg_status_t client_close(void *user, sdg_plan_t *plan) {
  (void)user;
  (void)plan;
  return SDG_OK;
}

// Draws a random order of dimensions, with a gap.
static void strides_random(const sdg_box_t *box, int64_t *out) {
  static const int orders[3][DIMS] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {2, 0, 1, 3}};
  const int *order = orders[random_in(0, 2)];
  int64_t stride = 1;
  for (int i = DIMS - 1; i >= 0; i--) {
    out[order[i]] = stride;
    stride *= extent_of(box, order[i]) + random_in(0, 1);
  }
  REQUIRE(stride <= ELEMENTS);
}

static sdg_part_t part_random(int64_t extent, int pieces) {
  sdg_part_t part;
  REQUIRE(!sdg_part_parse("even", extent, pieces, &part));
  for (int i = 1; i < pieces; i++)
    part.offset[i] = random_in(part.offset[i - 1] + 1, extent - (pieces - i));
  return part;
}

static bool all_hold(const sdg_part_t *part) {
  for (int i = 0; i < part->pieces; i++)
    if (sdg_part_size(part, i) < 1)
      return false;
  return true;
}

// Draws the same on every rank, because the state of random numbers is the
// same.
static bool problem_draw(problem_t *p, int ranks) {
  *p = (problem_t){.mixes = random_in(0, 1),
                   .wrap = random_in(0, 3) == 0,
                   .reads_y = random_in(0, 1),
                   .has_z = random_in(0, 2) == 0};
  p->own_border = !p->mixes && random_in(0, 1);
  static const sdg_strategy_t strategies[] = {SDG_STRATEGY_AUTO,
                                              SDG_STRATEGY_EXTEND};
  p->strategy = strategies[random_in(0, 1)];
  p->whole = random_in(0, 1);
  for (int d = 0; d < DIMS; d++) {
    p->x_extent[d] = d < 2 ? random_in(1, 2) : random_in(ranks, MAX);
    p->window[d] = (sdg_window_t){1, 1, 1, 0};
    if (d >= 2)
      p->window[d] = (sdg_window_t){random_in(1, 5), random_in(1, 3),
                                    random_in(1, 2), random_in(0, 3)};
    p->y_extent[d] = sdg_window_outputs(&p->window[d], p->x_extent[d]);
    if (p->y_extent[d] < 1)
      return false;
  }
  if (p->mixes)
    p->y_extent[1] = random_in(1, 3);
  p->x_part = part_random(p->x_extent[2], ranks);
  REQUIRE(
      !sdg_window_part(&p->window[2], &p->x_part, p->y_extent[2], &p->y_part));
  bool good = p->whole || all_hold(&p->y_part);
  if (!good) {
    sdg_part_fini(&p->x_part);
    sdg_part_fini(&p->y_part);
  }
  return good;
}

static void placement_make(const int64_t *extent, const sdg_part_t *part,
                           sdg_placement_t *out) {
  const sdg_split_t split = {.axes = 1};
  REQUIRE(!sdg_placement_init(DIMS, extent, out));
  REQUIRE(!sdg_placement_split(out, sdg_job_mesh(), 2, &split, part));
}

static float x_data[ELEMENTS], y_data[ELEMENTS], z_data[ELEMENTS];

// Returns whether an element is in a box that may wrap around the tensor's
// ends.
static bool is_right(const sdg_box_t *right, const int64_t *at,
                     const int64_t *extent) {
  sdg_box_t one = {.dims = DIMS};
  for (int d = 0; d < DIMS; d++)
    one.dim[d] = (sdg_range_t){at[d], at[d] + 1};
  return sdg_ring_contains(right, &one, extent);
}

// Fills or checks a rank's piece of a tensor; the elements in `right` must be
// right.
static void each(const problem_t *p, const sdg_box_t *box,
                 const sdg_box_t *right, const int64_t *stride, float *data,
                 int what) {
  const int64_t *extent = what == 'x' ? p->x_extent : p->y_extent;
  int64_t at[DIMS];
  for (at[0] = box->dim[0].lo; at[0] < box->dim[0].hi; at[0]++)
    for (at[1] = box->dim[1].lo; at[1] < box->dim[1].hi; at[1]++)
      for (at[2] = box->dim[2].lo; at[2] < box->dim[2].hi; at[2]++)
        for (at[3] = box->dim[3].lo; at[3] < box->dim[3].hi; at[3]++) {
          float *value = data;
          for (int d = 0; d < DIMS; d++)
            value += (at[d] - box->dim[d].lo) * stride[d];
          if (!is_right(right, at, extent))
            *value = NAN;
          else if (what == 'x')
            *value = x_value(p, at);
          else if (what == 'y' || what == 'z')
            *value = other_value(at, what == 'y' ? 3 : 5);
          else
            REQUIRE_MSG(*value == y_want(p, at),
                        "y[%d,%d,%d,%d] is %g instead of %g", (int)at[0],
                        (int)at[1], (int)at[2], (int)at[3], (double)*value,
                        (double)y_want(p, at));
        }
}

// Checks that every owned output is computed, and right after its last piece.
static void pieces_check(const sdg_window_op_t *op, bool extend) {
  sdg_window_piece_t piece[SDG_PIECES_MAX];
  bool in_place;
  int count = sdg_window_op_pieces(op, extend, &in_place, piece);
  REQUIRE(count >= 1 && count <= SDG_PIECES_MAX);
  int64_t strips = 0;
  for (int i = in_place; i < count; i++) {
    strips += sdg_box_count(&piece[i].keep);
    REQUIRE(sdg_box_contains(&op->y_box, &piece[i].keep));
    REQUIRE(sdg_box_contains(&piece[i].y, &piece[i].keep));
    for (int j = i + 1; j < count; j++) {
      sdg_box_t common = sdg_box_intersect(&piece[i].keep, &piece[j].keep);
      REQUIRE(sdg_box_empty(&common));
    }
  }
  REQUIRE(in_place
              ? strips + sdg_box_count(&piece[0].y) >= sdg_box_count(&op->y_box)
              : strips == sdg_box_count(&op->y_box));
}

static void problem_run(const problem_t *p, int rank) {
  sdg_section_t section = {.strategy = p->strategy,
                           .wrap = p->wrap ? 1u << SDG_DIM_H : 0};
  sdg_tagging_t tagging = {.section = &section,
                           .mesh = sdg_job_mesh(),
                           .rank = rank,
                           .axes = 1,
                           .ranks = sdg_job_size(),
                           .me = rank};
  for (int r = 0; r < tagging.ranks; r++)
    tagging.rank_list[r] = r;
  placement_make(p->x_extent, &p->x_part, &tagging.placement[0]);
  placement_make(p->y_extent, &p->y_part, &tagging.placement[1]);
  sdg_call_t call = {.entry_name = "test", .operands = 3};
  float *const data[] = {x_data, y_data, z_data};
  sdg_box_t box[3], right[3];
  for (int i = 0; i < 3; i++) {
    sdg_operand_t *operand = &call.operand[i];
    right[i] = box[i] =
        sdg_placement_box(&tagging.placement[i > 0], tagging.mesh, rank);
    *operand = (sdg_operand_t){
        .data = data[i], .elem_bytes = sizeof(float), .dims = DIMS};
    memcpy(operand->extent, i ? p->y_extent : p->x_extent, sizeof p->x_extent);
    for (int d = 0; p->whole && d < DIMS; d++)
      box[i].dim[d] = (sdg_range_t){0, operand->extent[d]};
    strides_random(&box[i], operand->stride);
  }
  sdg_window_spec_t spec = {.x = 0,
                            .y = 1,
                            .y_channels = p->mixes ? p->y_extent[1] : 0,
                            .own_border = p->own_border};
  memcpy(spec.window, p->window, sizeof p->window);
  sdg_window_op_t op;
  bool can = true;
  REQUIRE(p->whole
              ? !sdg_window_op_init_whole(&call, &tagging, &spec, &op, &can)
              : !sdg_window_op_init(&call, &tagging, &spec, &op));
  REQUIRE(can);
  if (p->whole)
    right[0] = sdg_window_op_need(&op, &tagging, &spec, rank);
  else
    pieces_check(&op, sdg_window_op_extends(&op, p->strategy));
  sdg_window_client_t client = {
      .x = 0,
      .y = 1,
      .z = p->has_z ? 2 : -1,
      .reads_old = p->reads_y,
      .open = client_open,
      .add = client_add,
      .close = client_close,
      .user = (void *)(uintptr_t)p,
  };
  sdg_plan_t *plan;
  REQUIRE(p->whole
              ? !sdg_window_plan_whole(&call, &op, &client, p->strategy, &plan)
              : !sdg_window_plan(&call, &tagging, &op, &client, &plan));
  if (!p->wrap) // rows at both ends are two boxes
    messages_check(plan, 1);
  if (!p->whole)
    extra_check(plan, 0, &p->window[2],
                p->wrap ? 2 : (rank > 0) + (rank < tagging.ranks - 1));
  sdg_comm_t *comm;
  if (plan->axes)
    REQUIRE(!sdg_comm_get(plan->axes, &comm));
  each(p, &box[0], &right[0], call.operand[0].stride, x_data, 'x');
  each(p, &box[1], &right[1], call.operand[1].stride, y_data, 'y');
  each(p, &box[2], &right[2], call.operand[2].stride, z_data, 'z');
  sdg_outcome_t outcome;
  if (!plan->literal) {
    REQUIRE(!sdg_exec_run(plan, &call, fake_cuda_stream(1), NULL, &outcome));
    fake_cuda_drain();
    each(p, &box[1], &right[1], call.operand[1].stride, y_data, '=');
  }
  sdg_plan_destroy(plan);
  sdg_window_op_fini(&op);
  sdg_placement_fini(&tagging.placement[0]);
  sdg_placement_fini(&tagging.placement[1]);
}

static void problems_body(int rank) {
  (void)fake_cuda_stream(1);
  int ranks = sdg_job_size();
  for (int64_t c = 0; c < random_cases(1500); c++) {
    problem_t problem;
    if (!problem_draw(&problem, ranks))
      continue;
    uint64_t common = random_state;
    fake_cuda_order((fake_cuda_order_t)(c % FAKE_CUDA_ORDERS));
    problem_run(&problem, rank);
    random_state = common;
    sdg_part_fini(&problem.x_part);
    sdg_part_fini(&problem.y_part);
  }
}

START_TEST(outputs_of_three_ranks_are_those_of_one) {
  fake_cuda_ranks_run("y=3", problems_body);
}
END_TEST

START_TEST(a_rank_alone_wraps_around_to_itself) {
  fake_cuda_ranks_run("y=1", problems_body);
}
END_TEST

int main(void) {
  fake_cuda_install();
  Suite *suite = suite_create("windowplan");
  TCase *cases = tcase_create("windowplan");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, outputs_of_three_ranks_are_those_of_one);
  tcase_add_test(cases, a_rank_alone_wraps_around_to_itself);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
