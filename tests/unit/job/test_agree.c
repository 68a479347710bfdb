// SPDX-License-Identifier: Apache-2.0
// Agreements of forked ranks: what they keep, and how they differ.
#include "src/job/agree.h"

#include <stdlib.h>
#include <string.h>

#include "src/call/tag.h"
#include "src/job/cost.h"
#include "src/job/job.h"
#include "tests/unit/random.h"
#include "tests/unit/fake_cuda.h"

static char descriptors[8];

static sdg_operand_t tensor(int which, sdg_role_t role, int64_t c, int64_t h) {
  sdg_operand_t operand = {
      .role = role,
      .descriptor = &descriptors[which],
      .type = 0,
      .elem_bytes = 4,
      .dims = 4,
      .extent = {2, c, h, 8},
      .stride = {c * h * 8, h * 8, 8, 1},
  };
  operand.generation = sdg_tag_generation(operand.descriptor);
  return operand;
}

// x and a filter; x differs from rank to rank in H.
static sdg_call_t call_make(int rank) {
  for (int i = 0; i < 3; i++)
    sdg_tag_touch(&descriptors[i]);
  sdg_call_t call = {.entry_name = "cudnnTest", .operands = 2};
  call.operand[0] = tensor(0, SDG_ROLE_X, 3, 10 + rank);
  call.operand[1] = tensor(1, SDG_ROLE_W, 3, 5);
  call.op_descriptor = &descriptors[2];
  call.op_generation = sdg_tag_generation(&descriptors[2]);
  return call;
}

static sdg_status_t agree(const sdg_call_t *call, const char *parameters) {
  // Of the op, and not the same on every rank.
  const int64_t sizes[] = {call->operand[0].extent[2], 7};
  int64_t wait_ns;
  return sdg_agree(call, parameters, sizes, 2, NULL, &wait_ns);
}

static void keeping_body(int rank) {
  sdg_call_t call = call_make(rank);
  REQUIRE(sdg_agree_needed(&call));
  REQUIRE(agree(&call, "pad 1") == SDG_OK);
  REQUIRE(!sdg_agree_needed(&call));
  const sdg_operand_t *x = &call.operand[0];
  const sdg_tag_vector_t *v = sdg_tag_vector(x->descriptor, x->generation);
  REQUIRE(v->ranks == 3 && v->dims == 4);
  for (int r = 0; r < 3; r++)
    REQUIRE(v->extent[4 * r + 1] == 3 && v->extent[4 * r + 2] == 10 + r);
  v = sdg_tag_vector(call.op_descriptor, call.op_generation);
  REQUIRE(v->ranks == 3 && v->dims == 2);
  for (int r = 0; r < 3; r++)
    REQUIRE(v->extent[2 * r] == 10 + r && v->extent[2 * r + 1] == 7);
  // Another set is another tensor, even with the same values.
  sdg_tag_touch(&descriptors[0]);
  call.operand[0].generation = sdg_tag_generation(&descriptors[0]);
  REQUIRE(sdg_agree_needed(&call));
  // So is a changed op.
  REQUIRE(agree(&call, "pad 1") == SDG_OK);
  sdg_tag_touch(&descriptors[2]);
  call.op_generation = sdg_tag_generation(&descriptors[2]);
  REQUIRE(sdg_agree_needed(&call));
}

START_TEST(extents_of_all_ranks_are_kept_for_a_generation) {
  fake_cuda_ranks_run("y=3", keeping_body);
}
END_TEST

// More than one exchange holds, of some ranks and some operands.
static void details_body(int rank) {
  sdg_call_t call = call_make(rank);
  const int64_t sizes[] = {0};
  int64_t wait_ns;
  int *number = malloc(4000 * sizeof *number);
  REQUIRE(number);
  for (int i = 0; i < 4000; i++)
    number[i] = 10000 * rank + i;
  const sdg_details_t mine = {.count = {1300 * rank, rank == 1 ? 2 : 0},
                              .number = {number, number + 3998}};
  REQUIRE(!sdg_agree(&call, "", sizes, 1, &mine, &wait_ns));
  const sdg_operand_t *x = &call.operand[0], *w = &call.operand[1];
  const sdg_tag_vector_t *v = sdg_tag_vector(x->descriptor, x->generation);
  REQUIRE(v->details == 2600);
  for (int r = 0; r < 3; r++)
    for (int i = 0; i < 2600; i++)
      REQUIRE(v->detail[2600 * r + i] == (i < 1300 * r ? 10000 * r + i : -1));
  v = sdg_tag_vector(w->descriptor, w->generation);
  REQUIRE(v->details == 2 && v->detail[2] == 13998 && v->detail[3] == 13999);
  REQUIRE(v->detail[0] == -1 && v->detail[5] == -1);
  // Said again, and then no more.
  const sdg_details_t less = {.count = {rank == 0}, .number = {number}};
  REQUIRE(!sdg_agree(&call, "", sizes, 1, &less, &wait_ns));
  v = sdg_tag_vector(x->descriptor, x->generation);
  REQUIRE(v->details == 1 && v->detail[0] == 0 && v->detail[2] == -1);
  REQUIRE(!sdg_tag_vector(w->descriptor, w->generation)->details);
  free(number);
}

START_TEST(lists_of_any_length_are_kept_with_the_extents) {
  fake_cuda_ranks_run("y=3", details_body);
}
END_TEST

// Columns lie outside rows, which rank 1 with its one row cannot tell.
static void nesting_body(int rank) {
  sdg_call_t call = call_make(rank);
  sdg_operand_t *x = &call.operand[0];
  int64_t h = rank == 1 ? 1 : 4;
  x->extent[2] = h;
  memcpy(x->stride, (int64_t[]){24 * h, 8 * h, 1, h}, 4 * sizeof *x->stride);
  REQUIRE(agree(&call, "") == SDG_OK);
  const int64_t *n = sdg_tag_vector(x->descriptor, x->generation)->nesting;
  REQUIRE(n[0] > n[1] && n[1] > n[3] && n[3] > n[2]);
}

START_TEST(all_ranks_know_how_a_tensor_nests_in_memory) {
  fake_cuda_ranks_run("y=3", nesting_body);
}
END_TEST

// Each of these fails on every rank with a text that names ranks and numbers,
// and leaves the job whole.
static void expect(const sdg_call_t *call, const char *parameters,
                   sdg_status_t status, const char *a, const char *b) {
  sdg_status_t got = agree(call, parameters);
  REQUIRE_MSG(got == status, "%d instead of %d: %s", (int)got, (int)status,
              sdg_last_error());
  REQUIRE_MSG(strstr(sdg_last_error(), a), "'%s' is not in '%s'", a,
              sdg_last_error());
  REQUIRE_MSG(strstr(sdg_last_error(), b), "'%s' is not in '%s'", b,
              sdg_last_error());
}

static void differing_body(int rank) {
  sdg_call_t call = call_make(rank);
  call.operand[0].type = rank == 1;
  expect(&call, "", SDG_E_DISAGREE, "data type of x", "rank 1 calls cudnnTest");
  REQUIRE(sdg_agree_needed(&call));
  call = call_make(rank);
  if (rank == 2)
    call.operand[1] = tensor(1, SDG_ROLE_W, 4, 5);
  expect(&call, "", SDG_E_DISAGREE, "extents of w", "w[2,4,5,8]");
  call = call_make(rank);
  if (rank == 2)
    memcpy(call.operand[0].stride, (int64_t[]){1, 2, 6, 72}, 32);
  expect(&call, "", SDG_E_DISAGREE, "memory layout of x", "rank 2");
  call = call_make(rank);
  expect(&call, rank == 1 ? "pad 2" : "pad 1", SDG_E_DISAGREE,
         "rank 1 has pad 2", "rank 0 has pad 1");
  REQUIRE(!sdg_job_failed());
  REQUIRE(agree(&call, "pad 1") == SDG_OK);
}

START_TEST(a_disagreement_names_ranks_and_numbers_on_every_rank) {
  fake_cuda_ranks_run("y=3", differing_body);
}
END_TEST

static void layout_body(int rank) {
  sdg_call_t call = call_make(rank);
  call.operand[0] = tensor(0, SDG_ROLE_X, 1, 10 + rank);
  // With one channel NCHW and NHWC are the same bytes.
  if (rank == 1)
    call.operand[0].stride[1] = 1;
  REQUIRE(agree(&call, "") == SDG_OK);
}

START_TEST(strides_of_single_elements_do_not_decide_the_layout) {
  fake_cuda_ranks_run("y=3", layout_body);
}
END_TEST

static void cutting_body(int rank) {
  sdg_call_t call = call_make(rank);
  call.operand[1] = tensor(1, SDG_ROLE_SCALE, 3, 10 + rank);
  REQUIRE(agree(&call, "") == SDG_OK);
  const sdg_operand_t *scale = &call.operand[1];
  REQUIRE(sdg_tag_vector(scale->descriptor, scale->generation)->extent[6] ==
          11);
}

START_TEST(scales_may_be_cut_as_activations_are) {
  fake_cuda_ranks_run("y=3", cutting_body);
}
END_TEST

// The slowest number of any rank, whatever the rank itself has.
static void costs_body(int rank) {
  static char *given[] = {"SUNDOG_COST=2e9,3,40", "SUNDOG_COST=1e9,2,30",
                          "SUNDOG_COST=3e9,1,50"};
  char *environment[] = {given[rank], NULL};
  REQUIRE(!sdg_options_load(environment));
  REQUIRE(!sdg_cost_prepare());
  sdg_call_t call = call_make(rank);
  REQUIRE(sdg_cost_agreed().copy_bytes_s == 0);
  REQUIRE(agree(&call, "pad 1") == SDG_OK);
  sdg_cost_t agreed = sdg_cost_agreed();
  REQUIRE(agreed.copy_bytes_s == 1e9 && agreed.launch_us == 3 &&
          agreed.strip_us == 50);
}

START_TEST(ranks_with_unlike_devices_reckon_with_the_same_numbers) {
  fake_cuda_ranks_run("y=3", costs_body);
}
END_TEST

static void diverging_body(int rank) {
  sdg_call_t call = call_make(rank);
  call.entry_name = rank == 2 ? "cudnnOther" : "cudnnTest";
  expect(&call, "", SDG_E_DIVERGED, "rank 2 calls cudnnOther(x[2,3,12,8]",
         "rank 0 calls cudnnTest");
  REQUIRE(sdg_job_failed());
}

START_TEST(different_calls_break_the_job) {
  fake_cuda_ranks_run("y=3", diverging_body);
}
END_TEST

int main(void) {
  fake_cuda_install();
  Suite *suite = suite_create("agree");
  TCase *cases = tcase_create("agree");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, extents_of_all_ranks_are_kept_for_a_generation);
  tcase_add_test(cases, lists_of_any_length_are_kept_with_the_extents);
  tcase_add_test(cases, all_ranks_know_how_a_tensor_nests_in_memory);
  tcase_add_test(cases, a_disagreement_names_ranks_and_numbers_on_every_rank);
  tcase_add_test(cases, strides_of_single_elements_do_not_decide_the_layout);
  tcase_add_test(cases, scales_may_be_cut_as_activations_are);
  tcase_add_test(cases, ranks_with_unlike_devices_reckon_with_the_same_numbers);
  tcase_add_test(cases, different_calls_break_the_job);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
