// SPDX-License-Identifier: Apache-2.0
// Which calls share a plan, and which plans are kept.
#include "rules/step/plan_cache.h"

#include "tests/unit/harness.h"

static uint64_t rule_number;

static bool knows(const sdg_call_t *call) {
  (void)call;
  return true;
}

static int rule_key(const sdg_call_t *call, uint64_t *out) {
  (void)call;
  out[0] = rule_number;
  return 1;
}

static const sdg_op_t op = {.knows = knows, .key = rule_key};

static sdg_call_t call_of(uint64_t x, uint64_t y) {
  sdg_call_t call = {.entry = 1, .operands = 2, .op_generation = 5};
  call.operand[0] = (sdg_operand_t){.role = SDG_ROLE_X, .generation = x};
  call.operand[1] = (sdg_operand_t){.role = SDG_ROLE_Y, .generation = y};
  return call;
}

static sdg_plan_entry_t *find(const sdg_call_t *call) {
  sdg_plan_key_t key;
  sdg_plan_key_make(call, &op, &key);
  return sdg_plan_cache_find(&key);
}

static int destroyed;

static void count_destroyed(void *state) {
  (void)state;
  destroyed++;
}

static sdg_plan_t *plan_create(void) {
  sdg_plan_t *plan;
  ck_assert_int_eq((int)sdg_plan_create("test", &plan), 0);
  return plan;
}

static void add(const sdg_call_t *call) {
  sdg_plan_key_t key;
  sdg_plan_entry_t *entry;
  sdg_plan_t *plan = plan_create();
  plan->state_destroy = count_destroyed;
  sdg_plan_key_make(call, &op, &key);
  ck_assert_int_eq((int)sdg_plan_cache_add(&key, plan, NULL, &entry), 0);
  ck_assert_ptr_eq(entry->plan, plan);
}

START_TEST(everything_that_decides_a_plan_is_in_its_key) {
  sdg_call_t call = call_of(7, 8);
  add(&call);
  ck_assert_ptr_nonnull(find(&call));
  call.entry = 2;
  ck_assert_ptr_null(find(&call));
  call = call_of(9, 8);
  ck_assert_ptr_null(find(&call));
  call = call_of(7, 8);
  call.op_generation = 6;
  ck_assert_ptr_null(find(&call));
  call = call_of(7, 8);
  call.operand[1].data = &call;
  ck_assert_ptr_null(find(&call));
  call = call_of(7, 8);
  rule_number = 1;
  ck_assert_ptr_null(find(&call));
  rule_number = 0;
  ck_assert_ptr_nonnull(find(&call));
}
END_TEST

// If an operand is missing, later ones move up: a call with z and without bias
// is not a call with bias and without z.
START_TEST(the_same_descriptor_in_another_role_is_another_call) {
  sdg_call_t call = call_of(7, 8);
  call.operand[1].role = SDG_ROLE_Z;
  add(&call);
  call.operand[1].role = SDG_ROLE_BIAS;
  ck_assert_ptr_null(find(&call));
}
END_TEST

START_TEST(a_full_cache_drops_what_was_used_least_recently) {
  sdg_call_t first = call_of(1, 1), second = call_of(2, 1);
  add(&first);
  add(&second);
  for (uint64_t g = 3; destroyed == 0 && g < 100000; g++) {
    sdg_call_t call = call_of(g, 1);
    ck_assert_ptr_nonnull(find(&first));
    add(&call);
    ck_assert_ptr_nonnull(find(&call));
  }
  ck_assert_int_eq(destroyed, 1);
  ck_assert_ptr_nonnull(find(&first));
  ck_assert_ptr_null(find(&second));
}
END_TEST

START_TEST(plans_of_many_steps_fill_the_cache_sooner) {
  uint64_t g = 1;
  for (; destroyed == 0 && g < 1000; g++) {
    sdg_call_t call = call_of(g, 1);
    sdg_plan_key_t key;
    sdg_plan_entry_t *entry;
    sdg_plan_t *plan = plan_create();
    plan->state_destroy = count_destroyed;
    for (int i = 0; i < 6000; i++)
      ck_assert_int_eq((int)sdg_plan_call(plan, i), 0);
    sdg_plan_key_make(&call, &op, &key);
    ck_assert_int_eq((int)sdg_plan_cache_add(&key, plan, NULL, &entry), 0);
  }
  ck_assert_int_gt((int)g, 10);
  ck_assert_int_lt((int)g, 100);
  ck_assert_int_eq(destroyed, 1);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plancache");
  TCase *cases = tcase_create("plancache");
  tcase_add_test(cases, everything_that_decides_a_plan_is_in_its_key);
  tcase_add_test(cases, the_same_descriptor_in_another_role_is_another_call);
  tcase_add_test(cases, a_full_cache_drops_what_was_used_least_recently);
  tcase_add_test(cases, plans_of_many_steps_fill_the_cache_sooner);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
