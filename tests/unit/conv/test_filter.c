// SPDX-License-Identifier: Apache-2.0
// Plans of convolutions' gradients, carried out on several ranks whose streams
// run in the worst order, against the gradient on the whole tensor.
#include "rules/conv/filter.h"

#include <math.h>
#include <string.h>

#include "rules/vendor/args.h"
#include "rules/vendor/vendor.h"
#include "src/comm/comm.h"
#include "src/exchange/exec.h"
#include "src/job/job.h"
#include "tests/unit/random.h"
#include "tests/unit/repair_memory.h"
#include "tests/unit/fake_conv.h"
#include "tests/unit/fake_cuda.h"
#include "tests/unit/messages.h"

enum { DIMS = 4, MAX = 12, ELEMENTS = 8192, AXES = 2 };

// Dimensions 2 and 3 are split over the first and second axis of the mesh;
// sometimes N instead of dimension 3.
typedef struct problem {
  bool wrap[DIMS], refuse_views, sums, adjoint;
  float beta;
  int axis_of[DIMS]; // -1: not split
  int64_t x_extent[DIMS], y_extent[DIMS];
  sdg_window_t window[DIMS];
  sdg_part_t x_part[DIMS], y_part[DIMS];
  sdg_strategy_t strategy;
} problem_t;

static float y_value(const int64_t *at) {
  return (float)((at[0] * 3 + at[1] * 5 + at[2] * 7 + at[3] * 11) % 13 - 6);
}

static float x_value(const int64_t *at) {
  return (float)((at[0] * 5 + at[1] * 3 + at[2] * 11 + at[3] * 7) % 9 - 4);
}

static float old_value(const int64_t *at) {
  return (float)((at[0] + at[1] * 3 + at[2] * 5 + at[3]) % 7);
}

static float weight(int64_t k, int64_t c, int64_t i, int64_t j) {
  return (float)(1 + (k * 7 + c * 2 + i * 3 + j) % 5);
}

// Returns whether a tap of an output sees row `at`, in one dimension.
static bool sees(const problem_t *p, int d, int64_t o, int64_t tap,
                 int64_t at) {
  const sdg_window_t *w = &p->window[d];
  int64_t row = o * w->stride - w->pad + tap * w->dilation;
  if (p->wrap[d])
    row -= p->x_extent[d] * sdg_floor_div(row, p->x_extent[d]);
  return row == at;
}

static float x_want(const problem_t *p, const int64_t *at) {
  float sum = p->beta == 0 ? 0 : p->beta * old_value(at);
  for (int64_t h = 0; h < p->y_extent[2]; h++)
    for (int64_t i = 0; i < p->window[2].kernel; i++) {
      if (!sees(p, 2, h, i, at[2]))
        continue;
      for (int64_t w = 0; w < p->y_extent[3]; w++)
        for (int64_t j = 0; j < p->window[3].kernel; j++)
          for (int64_t k = 0; sees(p, 3, w, j, at[3]) && k < p->y_extent[1];
               k++)
            sum +=
                weight(k, at[1], i, j) * y_value((int64_t[]){at[0], k, h, w});
    }
  return sum;
}

// Returns the row of x that a tap of an output sees, in one dimension; -1:
// padding.
static int64_t seen_by(const problem_t *p, int d, int64_t o, int64_t tap) {
  const sdg_window_t *w = &p->window[d];
  int64_t row = o * w->stride - w->pad + tap * w->dilation;
  if (p->wrap[d])
    row -= p->x_extent[d] * sdg_floor_div(row, p->x_extent[d]);
  return row < p->x_extent[d] ? row : -1;
}

// Returns the filter's gradient from the outputs in a box.
static float w_want(const problem_t *p, const sdg_box_t *y, const int64_t *at) {
  float sum = p->beta == 0 ? 0 : p->beta * old_value(at);
  for (int64_t n = y->dim[0].lo; n < y->dim[0].hi; n++)
    for (int64_t h = y->dim[2].lo; h < y->dim[2].hi; h++)
      for (int64_t w = y->dim[3].lo; w < y->dim[3].hi; w++) {
        int64_t row = seen_by(p, 2, h, at[2]), column = seen_by(p, 3, w, at[3]);
        if (row >= 0 && column >= 0)
          sum += y_value((int64_t[]){n, at[0], h, w}) *
                 x_value((int64_t[]){n, at[1], row, column});
      }
  return sum;
}

// ---- drawing ---------------------------------------------------------------

static int64_t extent_of(const sdg_box_t *box, int d) {
  return box->dim[d].hi - box->dim[d].lo;
}

// A random order of dimensions, with gaps.
static void strides_random(const sdg_box_t *box, bool gaps, int64_t *out) {
  static const int orders[3][DIMS] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {2, 0, 1, 3}};
  const int *order = orders[random_in(0, 2)];
  int64_t stride = 1;
  for (int i = DIMS - 1; i >= 0; i--) {
    out[order[i]] = stride;
    stride *= extent_of(box, order[i]) + (gaps ? random_in(0, 1) : 0);
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

static int pieces_of(const problem_t *p, int d) {
  return p->axis_of[d] < 0 ? 1 : sdg_job_mesh()->size[p->axis_of[d]];
}

static bool windows_draw(problem_t *p) {
  for (int d = 0; d < DIMS; d++) {
    int pieces = pieces_of(p, d);
    p->x_extent[d] = d < 2 ? random_in(1, 2) : random_in(pieces, MAX);
    if (d == 0)
      p->x_extent[d] += pieces - 1;
    p->window[d] = (sdg_window_t){1, 1, 1, 0};
    if (d >= 2)
      p->window[d] = (sdg_window_t){random_in(1, 5), random_in(1, 4),
                                    random_in(1, 2), random_in(0, 4)};
    p->y_extent[d] = sdg_window_outputs(&p->window[d], p->x_extent[d]);
    p->wrap[d] = d >= 2 && random_in(0, 4) == 0;
    if (p->y_extent[d] < pieces)
      return false;
  }
  p->y_extent[1] = random_in(1, 3);
  // One element on every rank may be the same element, so sundog refuses it.
  return p->x_extent[2] > pieces_of(p, 2) || p->y_extent[2] > pieces_of(p, 2) ||
         p->x_extent[3] > pieces_of(p, 3) || p->y_extent[3] > pieces_of(p, 3);
}

static bool all_hold(const sdg_part_t *part) {
  for (int i = 0; i < part->pieces; i++)
    if (sdg_part_size(part, i) < 1)
      return false;
  return true;
}

// Draws the same on every rank, because the state of random numbers is the
// same.
static void problem_draw(problem_t *p) {
  static const sdg_strategy_t strategies[] = {
      SDG_STRATEGY_AUTO, SDG_STRATEGY_AUTO, SDG_STRATEGY_EXTEND};
  const sdg_mesh_t *mesh = sdg_job_mesh();
  bool batch = random_in(0, 4) == 0;
  *p = (problem_t){.strategy = strategies[random_in(0, 2)],
                   .adjoint = random_in(0, 2) == 0,
                   .refuse_views = random_in(0, 4) == 0,
                   .sums = random_in(0, 3),
                   .beta = (float)random_in(0, 2),
                   .axis_of = {batch && mesh->axes > 1 ? 1 : -1, -1, 0,
                               !batch && mesh->axes > 1 ? 1 : -1}};
  while (!windows_draw(p))
    ;
  // Images of a periodic domain that begin in different phases of the stride
  // are computed in one strip only if the windows overlap.
  for (int d = 2; d < DIMS; d++)
    if (p->wrap[d] && p->window[d].stride > sdg_window_span(&p->window[d]))
      p->refuse_views = false;
  for (int d = 0; d < DIMS; d++) {
    if (p->axis_of[d] < 0)
      continue;
    int pieces = mesh->size[p->axis_of[d]];
    p->x_part[d] = part_random(p->x_extent[d], pieces);
    REQUIRE(!sdg_window_part(&p->window[d], &p->x_part[d], p->y_extent[d],
                             &p->y_part[d]));
    if (all_hold(&p->y_part[d]) && random_in(0, 2))
      continue;
    // Any other parts are legal.
    sdg_part_fini(&p->y_part[d]);
    p->y_part[d] = part_random(p->y_extent[d], pieces);
  }
}

static void problem_free(problem_t *p) {
  for (int d = 0; d < DIMS; d++) {
    sdg_part_fini(&p->x_part[d]);
    sdg_part_fini(&p->y_part[d]);
  }
}

static void placement_make(const problem_t *p, const int64_t *extent,
                           const sdg_part_t *part, sdg_placement_t *out) {
  REQUIRE(!sdg_placement_init(DIMS, extent, out));
  for (int d = 0; d < DIMS; d++) {
    const sdg_split_t split = {.axes = 1, .axis = {p->axis_of[d]}};
    if (p->axis_of[d] >= 0)
      REQUIRE(!sdg_placement_split(out, sdg_job_mesh(), d, &split, &part[d]));
  }
}

// ---- running ---------------------------------------------------------------

static float x_data[ELEMENTS], y_data[ELEMENTS], w_data[ELEMENTS];

typedef enum what { FILL_X, FILL_Y, FILL_OLD, CHECK_X } what_t;

// Fills, or checks, a rank's piece of a tensor.
static void each(const problem_t *p, const sdg_box_t *box,
                 const sdg_operand_t *operand, what_t what) {
  int64_t at[DIMS];
  for (at[0] = box->dim[0].lo; at[0] < box->dim[0].hi; at[0]++)
    for (at[1] = box->dim[1].lo; at[1] < box->dim[1].hi; at[1]++)
      for (at[2] = box->dim[2].lo; at[2] < box->dim[2].hi; at[2]++)
        for (at[3] = box->dim[3].lo; at[3] < box->dim[3].hi; at[3]++) {
          float *value = operand->data;
          for (int d = 0; d < DIMS; d++)
            value += (at[d] - box->dim[d].lo) * operand->stride[d];
          if (what == FILL_X)
            *value = x_value(at);
          else if (what == FILL_Y)
            *value = y_value(at);
          else if (what == FILL_OLD)
            *value = p->beta == 0 ? NAN : old_value(at);
          else
            REQUIRE_MSG(*value == x_want(p, at),
                        "x[%d,%d,%d,%d] is %g instead of %g", (int)at[0],
                        (int)at[1], (int)at[2], (int)at[3], (double)*value,
                        (double)x_want(p, at));
        }
}

// The program's descriptors and memory on one rank.
typedef struct program {
  fake_tensor_t x, y;
  fake_filter_t w;
  fake_conv_t conv;
  sdg_box_t x_box, y_box;
  sdg_section_t section;
  sdg_tagging_t tagging;
  sdg_call_t call;
} program_t;

static void operand_make(sdg_operand_t *operand, sdg_role_t role,
                         fake_tensor_t *tensor, const sdg_box_t *box, bool gaps,
                         float *data) {
  *operand = (sdg_operand_t){
      .role = role, .data = data, .elem_bytes = sizeof(float), .dims = DIMS};
  strides_random(box, gaps, operand->stride);
  tensor->dims = DIMS;
  for (int d = 0; d < DIMS; d++) {
    operand->extent[d] = extent_of(box, d);
    tensor->extent[d] = (int)operand->extent[d];
    tensor->stride[d] = (int)operand->stride[d];
  }
}

static void filter_make(const problem_t *p, sdg_operand_t *operand,
                        sdg_role_t role, program_t *out) {
  const int64_t extent[DIMS] = {p->y_extent[1], p->x_extent[1],
                                p->window[2].kernel, p->window[3].kernel};
  *operand = (sdg_operand_t){.role = role,
                             .descriptor = &out->w,
                             .data = w_data,
                             .elem_bytes = sizeof(float),
                             .kind = SDG_OPERAND_FILTER,
                             .dims = DIMS};
  int64_t stride = 1;
  for (int d = DIMS - 1; d >= 0; d--) {
    operand->extent[d] = extent[d];
    operand->stride[d] = stride;
    out->w.extent[d] = (int)extent[d];
    stride *= extent[d];
  }
  REQUIRE(stride <= ELEMENTS);
}

// dy is operand 1; the filter is operand 0 or 2, the other than `x_operand`.
static void program_make(const problem_t *p, int rank, int x_operand,
                         program_t *out) {
  *out = (program_t){
      .section = {.strategy = p->strategy, .adjoint = p->adjoint},
      .tagging = {.mesh = sdg_job_mesh(),
                  .rank = rank,
                  .ranks = sdg_job_size(),
                  .me = rank},
      .call = {.entry_name = "test",
               .handle = fake_cuda_stream(1),
               .op_descriptor = &out->conv,
               .operands = 3},
      .conv = {.spatial = 2},
  };
  sdg_tagging_t *t = &out->tagging;
  t->section = &out->section;
  for (int r = 0; r < t->ranks; r++)
    t->rank_list[r] = r;
  for (int a = 0; a < t->mesh->axes; a++)
    t->axes |= 1u << a;
  out->section.wrap =
      (p->wrap[2] ? 1u << SDG_DIM_H : 0) | (p->wrap[3] ? 1u << SDG_DIM_W : 0);
  for (int i = 0; i < 2; i++) {
    out->conv.pad[i] = (int)p->window[i + 2].pad;
    out->conv.stride[i] = (int)p->window[i + 2].stride;
    out->conv.dilation[i] = (int)p->window[i + 2].dilation;
  }
  placement_make(p, p->x_extent, p->x_part, &t->placement[x_operand]);
  placement_make(p, p->y_extent, p->y_part, &t->placement[1]);
  out->x_box = sdg_placement_box(&t->placement[x_operand], t->mesh, rank);
  out->y_box = sdg_placement_box(&t->placement[1], t->mesh, rank);
}

static void program_free(program_t *program) {
  for (int i = 0; i < program->call.operands; i++)
    sdg_placement_fini(&program->tagging.placement[i]);
}

// Plans a call and carries it out; the streams run in the worst order.
static void plan_carry_out(program_t *q, sdg_plan_t *plan) {
  sdg_comm_t *comm;
  sdg_outcome_t outcome = {0};
  REQUIRE(plan->refusal == 0);
  if (plan->axes)
    REQUIRE(!sdg_comm_get(plan->axes, &comm));
  if (plan->reduce_axes)
    REQUIRE(!sdg_comm_get(plan->reduce_axes, &comm));
  REQUIRE(!sdg_exec_run(plan, &q->call, fake_cuda_stream(1), NULL, &outcome));
  REQUIRE_MSG(outcome.vendor == 0, "a sub-call is refused: %d", outcome.vendor);
}

// If only rows are split, and a rank owns the outputs whose centres it owns.
static void memory_check(const problem_t *p, const program_t *q,
                         const sdg_plan_t *plan, int operand) {
  sdg_part_t part;
  if (p->axis_of[0] >= 0 || p->axis_of[3] >= 0 || p->wrap[3])
    return;
  REQUIRE(
      !sdg_window_part(&p->window[2], &p->x_part[2], p->y_extent[2], &part));
  int rank = q->tagging.me, last = q->tagging.ranks - 1;
  if (sdg_part_equal(&part, &p->y_part[2]))
    extra_check(plan, operand, &p->window[2],
                p->wrap[2] ? 2 : (rank > 0) + (rank < last));
  sdg_part_fini(&part);
}

static int adjoints; // plans that send rows of dx to their owners

static void dgrad_run(const problem_t *p, int rank) {
  static const float one = 1;
  program_t q;
  program_make(p, rank, 2, &q);
  filter_make(p, &q.call.operand[0], SDG_ROLE_W, &q);
  bool gaps = !p->refuse_views;
  operand_make(&q.call.operand[1], SDG_ROLE_DY, &q.y, &q.y_box, gaps, y_data);
  operand_make(&q.call.operand[2], SDG_ROLE_DX, &q.x, &q.x_box, gaps, x_data);
  struct sdg_args_cudnnConvolutionBackwardData args = {
      .handle = (cudnnHandle_t)fake_cuda_stream(1),
      .alpha = &one,
      .beta = &p->beta,
      .wDesc = (cudnnFilterDescriptor_t)&q.w,
      .w = w_data,
      .dyDesc = (cudnnTensorDescriptor_t)&q.y,
      .dy = y_data,
      .convDesc = (cudnnConvolutionDescriptor_t)&q.conv,
      .dxDesc = (cudnnTensorDescriptor_t)&q.x,
      .dx = x_data};
  q.call.entry = SDG_ENTRY_cudnnConvolutionBackwardData;
  q.call.args = &args;
  const int *e = q.w.extent;
  for (int i = 0; i < e[0] * e[1] * e[2] * e[3]; i++)
    w_data[i] = weight(i / (e[3] * e[2] * e[1]), i / (e[3] * e[2]) % e[1],
                       i / e[3] % e[2], i % e[3]);
  each(p, &q.y_box, &q.call.operand[1], FILL_Y);
  each(p, &q.x_box, &q.call.operand[2], FILL_OLD);
  sdg_plan_t *plan;
  REQUIRE(!sdg_conv_data_plan(&q.call, &q.tagging, &plan));
  if (!p->wrap[2] && !p->wrap[3])
    messages_check(plan, 1);
  memory_check(p, &q, plan, 1);
  plan_carry_out(&q, plan);
  adjoints += strcmp(plan->strategy, "adjoint") == 0;
  if (plan->literal)
    REQUIRE(!sdg_cudnn_get()->cudnnConvolutionBackwardData(
        args.handle, args.alpha, args.wDesc, args.w, args.dyDesc, args.dy,
        args.convDesc, args.algo, NULL, 0, args.beta, args.dxDesc, args.dx));
  fake_cuda_drain();
  each(p, &q.x_box, &q.call.operand[2], CHECK_X);
  sdg_plan_destroy(plan);
  REQUIRE(fake_conv_living() == 0);
  program_free(&q);
}

static void filter_check(const problem_t *p, const sdg_box_t *y,
                         const fake_filter_t *w) {
  const int *e = w->extent;
  for (int i = 0; i < e[0] * e[1] * e[2] * e[3]; i++) {
    int64_t at[DIMS] = {i / (e[3] * e[2] * e[1]), i / (e[3] * e[2]) % e[1],
                        i / e[3] % e[2], i % e[3]};
    REQUIRE_MSG(w_data[i] == w_want(p, y, at), "w[%d] is %g instead of %g", i,
                (double)w_data[i], (double)w_want(p, y, at));
  }
}

static void wgrad_run(const problem_t *p, int rank) {
  static const float one = 1;
  program_t q;
  program_make(p, rank, 0, &q);
  filter_make(p, &q.call.operand[2], SDG_ROLE_DW, &q);
  bool gaps = !p->refuse_views;
  operand_make(&q.call.operand[0], SDG_ROLE_X, &q.x, &q.x_box, gaps, x_data);
  operand_make(&q.call.operand[1], SDG_ROLE_DY, &q.y, &q.y_box, gaps, y_data);
  struct sdg_args_cudnnConvolutionBackwardFilter args = {
      .handle = (cudnnHandle_t)fake_cuda_stream(1),
      .alpha = &one,
      .beta = &p->beta,
      .xDesc = (cudnnTensorDescriptor_t)&q.x,
      .x = x_data,
      .dyDesc = (cudnnTensorDescriptor_t)&q.y,
      .dy = y_data,
      .convDesc = (cudnnConvolutionDescriptor_t)&q.conv,
      .dwDesc = (cudnnFilterDescriptor_t)&q.w,
      .dw = w_data};
  q.call.entry = SDG_ENTRY_cudnnConvolutionBackwardFilter;
  q.call.args = &args;
  if (p->sums && q.tagging.ranks > 1)
    q.tagging.sum_axes = q.tagging.axes;
  const int *e = q.w.extent;
  for (int i = 0; i < e[0] * e[1] * e[2] * e[3]; i++)
    w_data[i] = p->beta == 0
                    ? NAN
                    : old_value((int64_t[]){i / (e[3] * e[2] * e[1]),
                                            i / (e[3] * e[2]) % e[1],
                                            i / e[3] % e[2], i % e[3]});
  each(p, &q.x_box, &q.call.operand[0], FILL_X);
  each(p, &q.y_box, &q.call.operand[1], FILL_Y);
  sdg_plan_t *plan;
  REQUIRE(!sdg_conv_filter_plan(&q.call, &q.tagging, &plan));
  if (!p->wrap[2] && !p->wrap[3])
    messages_check(plan, 1);
  memory_check(p, &q, plan, 0);
  sdg_box_t all = q.y_box;
  for (int d = 0; d < DIMS && q.tagging.sum_axes; d++)
    all.dim[d] = (sdg_range_t){0, p->y_extent[d]};
  plan_carry_out(&q, plan);
  if (plan->literal)
    REQUIRE(!sdg_cudnn_get()->cudnnConvolutionBackwardFilter(
        args.handle, args.alpha, args.xDesc, args.x, args.dyDesc, args.dy,
        args.convDesc, args.algo, NULL, 0, args.beta, args.dwDesc, args.dw));
  fake_cuda_drain();
  filter_check(p, &all, &q.w);
  sdg_plan_destroy(plan);
  REQUIRE(fake_conv_living() == 0);
  program_free(&q);
}

static void (*run_one)(const problem_t *p, int rank);

static void problems_body(int rank) {
  (void)fake_cuda_stream(1);
  for (int64_t c = 0; c < random_cases(1000); c++) {
    problem_t problem;
    problem_draw(&problem);
    uint64_t common = random_state;
    fake_cuda_order((fake_cuda_order_t)(c % FAKE_CUDA_ORDERS));
    fake_conv_refuse_views(problem.refuse_views);
    run_one(&problem, rank);
    random_state = common;
    problem_free(&problem);
  }
  // Every rank makes about the same number.
  REQUIRE(run_one != dgrad_run || sdg_job_size() == 1 || adjoints > 0);
}

static const char *const meshes[] = {"y=3", "y=2,x=2", "y=4", "y=1"};

START_TEST(data_gradients_of_ranks_are_those_of_one) {
  run_one = dgrad_run;
  fake_cuda_ranks_run(meshes[_i], problems_body);
}
END_TEST

START_TEST(filter_gradients_of_ranks_are_those_of_one) {
  run_one = wgrad_run;
  fake_cuda_ranks_run(meshes[_i], problems_body);
}
END_TEST

static int dgrad_status(program_t *q, const float *beta) {
  static const float one = 1;
  struct sdg_args_cudnnConvolutionBackwardData args = {
      .alpha = &one,
      .beta = beta,
      .wDesc = (cudnnFilterDescriptor_t)&q->w,
      .dyDesc = (cudnnTensorDescriptor_t)&q->y,
      .convDesc = (cudnnConvolutionDescriptor_t)&q->conv,
      .dxDesc = (cudnnTensorDescriptor_t)&q->x};
  q->call.entry = SDG_ENTRY_cudnnConvolutionBackwardData;
  q->call.args = &args;
  sdg_plan_t *plan = NULL;
  sdg_status_t status = sdg_conv_data_plan(&q->call, &q->tagging, &plan);
  sdg_plan_destroy(plan);
  return (int)status;
}

static problem_t transposed(int64_t x_extent) {
  return (problem_t){
      .axis_of = {-1, -1, -1, -1},
      .x_extent = {1, 1, x_extent, 1},
      .y_extent = {1, 1, 5, 1},
      .window = {{1, 1, 1, 0}, {1, 1, 1, 0}, {3, 2, 1, 1}, {1, 1, 1, 0}}};
}

static void extents_body(int rank) {
  (void)fake_cuda_stream(1);
  // floor((N + 2 - 3) / 2) + 1 = 5 of N = 9 and 10.
  for (int64_t extent = 7; extent <= 12; extent++) {
    problem_t p = transposed(extent);
    program_t q;
    program_make(&p, rank, 2, &q);
    filter_make(&p, &q.call.operand[0], SDG_ROLE_W, &q);
    operand_make(&q.call.operand[1], SDG_ROLE_DY, &q.y, &q.y_box, false,
                 y_data);
    operand_make(&q.call.operand[2], SDG_ROLE_DX, &q.x, &q.x_box, false,
                 x_data);
    bool may = extent == 9 || extent == 10;
    REQUIRE(dgrad_status(&q, &p.beta) == (may ? 0 : (int)SDG_E_OUTPUT_EXTENT));
    program_free(&q);
  }
}

START_TEST(extents_of_dx_that_fit_no_dy_are_refused) {
  fake_cuda_ranks_run("y=1", extents_body);
}
END_TEST

static void channels_body(int rank) {
  (void)fake_cuda_stream(1);
  problem_t p = transposed(9);
  p.x_extent[1] = p.y_extent[1] = 2;
  p.axis_of[1] = 0;
  p.x_part[1] = p.y_part[1] = part_random(2, 2);
  program_t q;
  program_make(&p, rank, 2, &q);
  filter_make(&p, &q.call.operand[0], SDG_ROLE_W, &q);
  operand_make(&q.call.operand[1], SDG_ROLE_DY, &q.y, &q.y_box, false, y_data);
  operand_make(&q.call.operand[2], SDG_ROLE_DX, &q.x, &q.x_box, false, x_data);
  q.call.operand[2].extent[1] = 2; // wrong for the filter
  REQUIRE(dgrad_status(&q, &p.beta) == (int)SDG_E_SPLIT_DIMENSION);
  program_free(&q);
  sdg_part_fini(&p.x_part[1]);
}

START_TEST(split_channels_are_refused) {
  fake_cuda_ranks_run("y=2", channels_body);
}
END_TEST

int main(void) {
  fake_conv_install(NULL, 0);
  Suite *suite = suite_create("convgrad");
  TCase *cases = tcase_create("convgrad");
  tcase_set_timeout(cases, 60);
  tcase_add_loop_test(cases, data_gradients_of_ranks_are_those_of_one, 0, 4);
  tcase_add_loop_test(cases, filter_gradients_of_ranks_are_those_of_one, 0, 4);
  tcase_add_test(cases, extents_of_dx_that_fit_no_dy_are_refused);
  tcase_add_test(cases, split_channels_are_refused);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
