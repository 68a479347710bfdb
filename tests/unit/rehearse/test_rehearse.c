// SPDX-License-Identifier: Apache-2.0
// Plans of several ranks carried out in one process.
#include "src/rehearse/rehearse.h"

#include <string.h>

#include "tests/unit/exchange/shard.h"

enum { ELEMENTS = 3, PLAYERS_MAX = 4 };

static sdg_mesh_t mesh_of(const char *text, int ranks) {
  sdg_mesh_t mesh;
  REQUIRE(!sdg_mesh_parse(text, ranks, &mesh));
  return mesh;
}

// ---- halos -----------------------------------------------------------------

typedef struct troupe {
  shard_t shard[RANKS];
  sdg_call_t call[RANKS];
  sdg_plan_t *plan[RANKS];
  sdg_rehearsed_t rank[RANKS];
} troupe_t;

// Plans whose sub-calls read two rows of their neighbours.
static troupe_t *troupe_make(bool by_column) {
  troupe_t *troupe = calloc(1, sizeof *troupe);
  for (int r = 0; r < RANKS; r++) {
    shard_t *shard = &troupe->shard[r];
    shard->by_column = by_column;
    shard->own = (sdg_range_t){first_row[r], first_row[r + 1]};
    x_write(&(task_t){.shard = shard, .value = 1});
    troupe->call[r] = call_of(shard, shard->y[0]);
    sdg_plan_t *plan = plan_make(&troupe->call[r], r);
    void *scratch = malloc(plan->scratch_bytes);
    memset(scratch, 0xff, plan->scratch_bytes); // NaN
    troupe->plan[r] = plan;
    troupe->rank[r] = (sdg_rehearsed_t){plan, &troupe->call[r], scratch};
  }
  return troupe;
}

static void troupe_free(troupe_t *troupe) {
  for (int r = 0; r < RANKS; r++) {
    sdg_plan_destroy(troupe->plan[r]);
    free(troupe->rank[r].scratch);
  }
  free(troupe);
}

static sdg_status_t troupe_rehearse(const troupe_t *troupe, int *out_vendor) {
  const sdg_mesh_t mesh = mesh_of("y=3", RANKS);
  sdg_rehearsal_t rehearsal = {.mesh = &mesh, .rank = troupe->rank};
  sdg_status_t status = sdg_rehearse(&rehearsal);
  *out_vendor = rehearsal.vendor;
  return status;
}

START_TEST(every_rank_gets_its_neighbours_rows) {
  for (int by_column = 0; by_column < 2; by_column++) {
    int vendor;
    troupe_t *troupe = troupe_make(by_column);
    REQUIRE(!troupe_rehearse(troupe, &vendor) && vendor == 0);
    for (int r = 0; r < RANKS; r++)
      y_check(&troupe->shard[r], troupe->shard[r].y[0], 1);
    troupe_free(troupe);
  }
}
END_TEST

START_TEST(a_refused_sub_call_ends_the_rehearsal_with_its_status) {
  int vendor;
  troupe_t *troupe = troupe_make(false);
  failing_status = 9;
  REQUIRE(!troupe_rehearse(troupe, &vendor) && vendor == 9);
  failing_status = 0;
  fake_cuda_drain();
  troupe_free(troupe);
}
END_TEST

START_TEST(plans_that_do_not_fit_each_other_are_refused) {
  for (int fault = 0; fault < 3; fault++) {
    int vendor;
    troupe_t *troupe = troupe_make(true);
    sdg_plan_t *plan = troupe->plan[1];
    if (fault == 0)
      plan->steps = 0; // it exchanges nothing
    else if (fault == 1)
      plan->parcel[0].bytes += sizeof(float);
    else
      for (int i = 0; i < plan->parcels; i++)
        plan->parcel[i].is_send = false;
    REQUIRE(troupe_rehearse(troupe, &vendor) == SDG_E_INTERNAL);
    fake_cuda_drain();
    troupe_free(troupe);
  }
}
END_TEST

// ---- reductions ------------------------------------------------------------

typedef struct reduction {
  const char *mesh;
  int ranks;
  sdg_axes_t axes;
  sdg_type_t type; // numbered as cudnnDataType_t
  int elem_bytes;
  sdg_combine_t combine;
} reduction_t;

// Combines io[r] of rank r, ELEMENTS numbers, in place. Returns the status;
// *out_terms: of the reduction.
static sdg_status_t reduce(const reduction_t *of, void *const *io,
                           double *out_terms) {
  const sdg_mesh_t mesh = mesh_of(of->mesh, of->ranks);
  const sdg_box_t box = {.dims = 1, .dim = {{0, ELEMENTS}}};
  sdg_rehearsed_t rank[PLAYERS_MAX];
  sdg_call_t call[PLAYERS_MAX];
  sdg_plan_t *plan[PLAYERS_MAX];
  for (int r = 0; r < of->ranks; r++) {
    int slab;
    call[r] = (sdg_call_t){.entry_name = "test", .operands = 1};
    call[r].operand[0] = (sdg_operand_t){
        .data = io[r], .elem_bytes = of->elem_bytes, .dims = 1, .stride = {1}};
    plan[r] = plan_create();
    plan[r]->reduce_axes = of->axes;
    REQUIRE(!sdg_plan_operand(plan[r], &call[r], 0, &box, &slab));
    REQUIRE(!sdg_plan_reduce(plan[r], slab, of->type, of->combine));
    rank[r] = (sdg_rehearsed_t){plan[r], &call[r], NULL};
  }
  sdg_rehearsal_t rehearsal = {.mesh = &mesh, .rank = rank};
  sdg_status_t status = sdg_rehearse(&rehearsal);
  *out_terms = rehearsal.terms[0];
  for (int r = 0; r < of->ranks; r++)
    sdg_plan_destroy(plan[r]);
  return status;
}

START_TEST(floating_values_are_combined_over_the_ranks) {
  static const float want[][ELEMENTS] = {[SDG_COMBINE_SUM] = {5, 2, -1},
                                         [SDG_COMBINE_PRODUCT] = {-8, 0, 0},
                                         [SDG_COMBINE_MAX] = {4, 1, 0},
                                         [SDG_COMBINE_MIN] = {-1, 0, -1}};
  for (int combine = SDG_COMBINE_SUM; combine <= SDG_COMBINE_MIN; combine++) {
    float single[3][ELEMENTS] = {{2, 1, 0}, {-1, 0, -1}, {4, 1, 0}};
    double number[3][ELEMENTS] = {{2, 1, 0}, {-1, 0, -1}, {4, 1, 0}};
    double terms = 0;
    const reduction_t of_single = {"y=3", 3, 1, 0, 4, (sdg_combine_t)combine};
    const reduction_t of_double = {"y=3", 3, 1, 1, 8, (sdg_combine_t)combine};
    REQUIRE(!reduce(&of_single, (void *[]){single[0], single[1], single[2]},
                    &terms));
    REQUIRE(!reduce(&of_double, (void *[]){number[0], number[1], number[2]},
                    &terms));
    for (int r = 0; r < 3; r++)
      for (int i = 0; i < ELEMENTS; i++) {
        REQUIRE(single[r][i] == want[combine][i]);
        REQUIRE(number[r][i] == (double)want[combine][i]);
      }
  }
}
END_TEST

START_TEST(a_nan_of_one_rank_is_the_maximum_of_all) {
  const reduction_t of = {"y=3", 3, 1, 0, 4, SDG_COMBINE_MAX};
  double terms;
  for (int at = 0; at < 3; at++) {
    float value[3][ELEMENTS] = {{1, 1, 1}, {5, 5, 5}, {3, 3, 3}};
    value[at][1] = __builtin_nanf("");
    REQUIRE(!reduce(&of, (void *[]){value[0], value[1], value[2]}, &terms));
    REQUIRE(value[0][0] == 5 && value[0][1] != value[0][1]);
  }
}
END_TEST

START_TEST(integers_wrap_and_keep_their_signs) {
  int32_t wide[2][ELEMENTS] = {{INT32_MAX, -1, 2}, {1, -1, 3}};
  int8_t narrow[2][ELEMENTS] = {{-1, 5, 0}, {3, -128, 0}};
  uint8_t natural[2][ELEMENTS] = {{255, 5, 0}, {3, 128, 0}};
  int64_t longest[2][ELEMENTS] = {{INT64_MIN, 1, 2}, {-1, 1, 3}};
  double terms;
  REQUIRE(!reduce(&(reduction_t){"y=2", 2, 1, 4, 4, SDG_COMBINE_SUM},
                  (void *[]){wide[0], wide[1]}, &terms));
  REQUIRE(wide[0][0] == INT32_MIN && wide[1][1] == -2 && wide[1][2] == 5);
  REQUIRE(!reduce(&(reduction_t){"y=2", 2, 1, 3, 1, SDG_COMBINE_MAX},
                  (void *[]){narrow[0], narrow[1]}, &terms));
  REQUIRE(narrow[1][0] == 3 && narrow[0][1] == 5);
  REQUIRE(!reduce(&(reduction_t){"y=2", 2, 1, 6, 1, SDG_COMBINE_MAX},
                  (void *[]){natural[0], natural[1]}, &terms));
  REQUIRE(natural[1][0] == 255 && natural[0][1] == 128);
  REQUIRE(!reduce(&(reduction_t){"y=2", 2, 1, 10, 8, SDG_COMBINE_PRODUCT},
                  (void *[]){longest[0], longest[1]}, &terms));
  REQUIRE(longest[0][0] == INT64_MIN && longest[1][2] == 6);
}
END_TEST

// a=2, b=2: rank r is at r / 2, r % 2.
START_TEST(ranks_are_combined_along_the_axes_of_the_plan) {
  static const float want[3][4] = {
      {4, 6, 4, 6}, {3, 3, 7, 7}, {10, 10, 10, 10}};
  for (sdg_axes_t axes = 1; axes <= 3; axes++) {
    float value[4][ELEMENTS] = {{1}, {2}, {3}, {4}};
    const reduction_t of = {"a=2,b=2", 4, axes, 0, 4, SDG_COMBINE_SUM};
    double terms;
    REQUIRE(!reduce(&of, (void *[]){value[0], value[1], value[2], value[3]},
                    &terms));
    for (int r = 0; r < 4; r++)
      REQUIRE(value[r][0] == want[axes - 1][r]);
  }
}
END_TEST

START_TEST(terms_are_the_largest_sum_of_absolute_values) {
  float value[2][ELEMENTS] = {{5, -3, 1}, {-5, -4, 1}};
  double terms = 0;
  REQUIRE(!reduce(&(reduction_t){"y=2", 2, 1, 0, 4, SDG_COMBINE_SUM},
                  (void *[]){value[0], value[1]}, &terms));
  REQUIRE(value[0][0] == 0 && terms == 10);
}
END_TEST

START_TEST(halves_are_refused) {
  uint16_t value[2][ELEMENTS] = {{0}};
  double terms;
  REQUIRE(reduce(&(reduction_t){"y=2", 2, 1, 2, 2, SDG_COMBINE_SUM},
                 (void *[]){value[0], value[1]}, &terms) == SDG_E_TENSOR_TYPE);
}
END_TEST

static cudaError_t stream_wait(cudaStream_t stream) {
  REQUIRE(!stream);
  fake_cuda_drain();
  return cudaSuccess;
}

static void *find(sdg_library_t library, const char *name) {
  if (strcmp(name, "cudaStreamSynchronize") != 0)
    return fake_cuda_find(library, name);
  cudaError_t (*function)(cudaStream_t) = stream_wait;
  void *address;
  memcpy(&address, &function, sizeof address);
  return address;
}

int main(void) {
  fake_cuda_install();
  sdg_library_set_finder(find);
  Suite *suite = suite_create("rehearse");
  TCase *cases = tcase_create("rehearse");
  tcase_add_test(cases, every_rank_gets_its_neighbours_rows);
  tcase_add_test(cases, a_refused_sub_call_ends_the_rehearsal_with_its_status);
  tcase_add_test(cases, plans_that_do_not_fit_each_other_are_refused);
  tcase_add_test(cases, floating_values_are_combined_over_the_ranks);
  tcase_add_test(cases, a_nan_of_one_rank_is_the_maximum_of_all);
  tcase_add_test(cases, integers_wrap_and_keep_their_signs);
  tcase_add_test(cases, ranks_are_combined_along_the_axes_of_the_plan);
  tcase_add_test(cases, terms_are_the_largest_sum_of_absolute_values);
  tcase_add_test(cases, halves_are_refused);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
