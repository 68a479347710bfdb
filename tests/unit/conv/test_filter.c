// SPDX-License-Identifier: Apache-2.0
// Plans of convolutions' gradients, carried out on several ranks whose streams
// run in the worst order, against the gradient on the whole tensor.
#include "tests/unit/conv/problem.h"

#include <math.h>
#include <string.h>

#include "rules/vendor/args.h"
#include "rules/vendor/vendor.h"
#include "src/comm/comm.h"
#include "src/exchange/exec.h"
#include "src/job/job.h"
#include "tests/unit/fake_conv.h"
#include "tests/unit/fake_cuda.h"
#include "tests/unit/messages.h"
#include "tests/unit/repair_memory.h"

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
