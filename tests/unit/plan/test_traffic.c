// SPDX-License-Identifier: Apache-2.0
// Bytes along each axis; the ranks of a message differ along one axis or two.
#include "src/plan/steps.h"

#include "tests/unit/harness.h"

// Adds a message of `bytes` between this rank and rank `peer` of the axes'
// communicator to the plan's only exchange.
static void message_add(sdg_parcel_t *parcels, sdg_plan_t *plan, bool is_send,
                        int peer, size_t bytes) {
  parcels[plan->parcels++] =
      (sdg_parcel_t){.is_send = is_send, .peer = peer, .bytes = bytes};
  plan->parcel = parcels;
  plan->step->parcels++;
}

START_TEST(messages_count_along_the_axes_that_they_cross) {
  sdg_mesh_t mesh;
  sdg_parcel_t parcels[8];
  // Over both axes: peers are ranks of the job.
  sdg_step_t exchange = {.kind = SDG_STEP_EXCHANGE, .axes = 3};
  sdg_plan_t plan = {.step = &exchange, .steps = 1};
  REQUIRE(sdg_mesh_parse("data=2,y=4", 8, &mesh) == SDG_OK);
  message_add(parcels, &plan, false, 4, 100); // from (1,0): along y
  message_add(parcels, &plan, false, 6, 30);  // from (1,2): along y
  message_add(parcels, &plan, true, 6, 1000); // sent: not received
  message_add(parcels, &plan, false, 1, 7);   // from (0,1): along data
  message_add(parcels, &plan, false, 0, 1);   // from (0,0): along both
  sdg_traffic_count(&plan, &mesh, 5);         // (1,1)
  REQUIRE(plan.axis_bytes[0] == 8);
  REQUIRE(plan.axis_bytes[1] == 131);
}
END_TEST

START_TEST(peers_are_those_of_the_axes_of_the_exchange) {
  sdg_mesh_t mesh;
  sdg_parcel_t parcels[8];
  // Over y: peer 3 is rank (1,3).
  sdg_step_t exchange = {.kind = SDG_STEP_EXCHANGE, .axes = 2};
  sdg_plan_t plan = {.step = &exchange, .steps = 1};
  REQUIRE(sdg_mesh_parse("data=2,y=4", 8, &mesh) == SDG_OK);
  message_add(parcels, &plan, false, 3, 5);
  sdg_traffic_count(&plan, &mesh, 5);
  REQUIRE(plan.axis_bytes[0] == 0);
  REQUIRE(plan.axis_bytes[1] == 5);
}
END_TEST

START_TEST(a_sum_counts_once_along_each_of_its_axes_that_has_several_ranks) {
  sdg_mesh_t mesh;
  REQUIRE(sdg_mesh_parse("data=2,one=1,y=4", 8, &mesh) == SDG_OK);
  sdg_slab_t slab = {.elem_bytes = 4};
  sdg_step_t step = {.kind = SDG_STEP_REDUCE,
                     .axes = 7,
                     .box = {.dims = 2, .dim = {{0, 2}, {3, 8}}}};
  sdg_plan_t plan = {.slab = &slab, .slabs = 1, .step = &step, .steps = 1};
  sdg_traffic_count(&plan, &mesh, 2);
  REQUIRE(plan.axis_bytes[0] == 40);
  REQUIRE(plan.axis_bytes[1] == 0);
  REQUIRE(plan.axis_bytes[2] == 40);
  REQUIRE(plan.sum_bytes == 40);
  step.axes = 1;
  sdg_traffic_count(&plan, &mesh, 2);
  REQUIRE(plan.axis_bytes[0] == 40);
  REQUIRE(plan.axis_bytes[2] == 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("traffic");
  TCase *cases = tcase_create("traffic");
  tcase_add_test(cases, messages_count_along_the_axes_that_they_cross);
  tcase_add_test(cases, peers_are_those_of_the_axes_of_the_exchange);
  tcase_add_test(
      cases, a_sum_counts_once_along_each_of_its_axes_that_has_several_ranks);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
