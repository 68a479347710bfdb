// SPDX-License-Identifier: Apache-2.0
// The table of descriptors: generations, passes, growth, readers without locks.
#include "src/call/tag.h"

#include <pthread.h>

#include "tests/unit/random.h"
#include "tests/unit/harness.h"

enum { MANY = 20000 };

static char object[MANY];

START_TEST(an_unknown_descriptor_does_not_pass) {
  ck_assert(!sdg_tag_passes(&object[0], SDG_FAMILY_CONV));
  ck_assert(sdg_tag_passes(NULL, SDG_FAMILY_CONV));
  ck_assert_uint_eq(sdg_tag_generation(&object[0]), 0);
}
END_TEST

START_TEST(a_pass_holds_for_one_family_and_one_generation) {
  sdg_tag_touch(&object[0]);
  uint64_t generation = sdg_tag_generation(&object[0]);
  sdg_tag_set_pass(&object[0], generation, SDG_FAMILY_POOL, true);
  ck_assert(sdg_tag_passes(&object[0], SDG_FAMILY_POOL));
  ck_assert(!sdg_tag_passes(&object[0], SDG_FAMILY_CONV));
  sdg_tag_touch(&object[0]);
  ck_assert_uint_gt(sdg_tag_generation(&object[0]), generation);
  ck_assert(!sdg_tag_passes(&object[0], SDG_FAMILY_POOL));
  sdg_tag_set_pass(&object[0], generation, SDG_FAMILY_POOL, true); // too late
  ck_assert(!sdg_tag_passes(&object[0], SDG_FAMILY_POOL));
}
END_TEST

START_TEST(a_vector_holds_for_one_generation) {
  const int64_t extent[] = {1, 2, 3, 4}, nesting[] = {1, 2};
  sdg_tag_touch(&object[0]);
  uint64_t generation = sdg_tag_generation(&object[0]);
  ck_assert_int_eq(
      (int)sdg_tag_set_vector(&object[0], generation, 2, 2, nesting, extent),
      0);
  const sdg_tag_vector_t *vector = sdg_tag_vector(&object[0], generation);
  ck_assert_ptr_nonnull(vector);
  ck_assert_int_eq((int)vector->extent[3], 4);
  ck_assert_int_eq((int)vector->nesting[1], 2);
  ck_assert_ptr_null(sdg_tag_vector(&object[0], generation + 1));
  sdg_tag_forget(&object[0]);
  ck_assert_ptr_null(sdg_tag_vector(&object[0], generation));
  ck_assert_uint_eq(sdg_tag_generation(&object[0]), 0);
}
END_TEST

START_TEST(a_tag_holds_for_one_generation) {
  const int said[] = {3, 0, 4};
  int heard[3] = {0};
  sdg_tag_touch(&object[0]);
  uint64_t generation = sdg_tag_generation(&object[0]);
  ck_assert(!sdg_tag_said(&object[0], generation, 3, heard));
  ck_assert_int_eq((int)sdg_tag_say(&object[0], said, 3), 0);
  ck_assert(sdg_tag_said(&object[0], generation, 3, heard));
  ck_assert_int_eq(heard[0], 3);
  ck_assert_int_eq(heard[2], 4);
  ck_assert(!sdg_tag_said(&object[0], generation, 4, heard));
  ck_assert(!sdg_tag_said(&object[1], generation, 0, NULL));
  sdg_tag_touch(&object[0]);
  generation = sdg_tag_generation(&object[0]);
  ck_assert(!sdg_tag_said(&object[0], generation, 3, heard));
  ck_assert_int_eq((int)sdg_tag_say(&object[0], said + 1, 2), 0);
  ck_assert(sdg_tag_said(&object[0], generation, 2, heard));
  ck_assert_int_eq(heard[1], 4);
  // A label belongs to the same generation of the descriptor.
  ck_assert_int_eq((int)sdg_tag_set_label(&object[0], NULL), 0);
  ck_assert(!sdg_tag_said(&object[0], generation, 2, heard));
  generation = sdg_tag_generation(&object[0]);
  heard[1] = 0;
  ck_assert(sdg_tag_said(&object[0], generation, 2, heard));
  ck_assert_int_eq(heard[1], 4);
  sdg_tag_forget(&object[0]);
  ck_assert(!sdg_tag_said(&object[0], generation, 0, NULL));
}
END_TEST

START_TEST(generations_are_never_reused) {
  uint64_t last = 0;
  for (int i = 0; i < 1000; i++) {
    sdg_tag_touch(&object[i % 7]);
    uint64_t generation = sdg_tag_generation(&object[i % 7]);
    ck_assert_uint_gt(generation, last);
    last = generation;
    if (i % 3 == 0)
      sdg_tag_forget(&object[i % 7]);
  }
}
END_TEST

START_TEST(a_label_holds_for_one_generation) {
  static const sdg_tag_label_t label = {.text = "H"};
  static char named[2];
  sdg_tag_touch(&named[0]);
  uint64_t before = sdg_tag_generation(&named[0]);
  ck_assert_ptr_null(sdg_tag_label(&named[0], before));
  ck_assert_int_eq((int)sdg_tag_set_label(&named[0], &label), 0);
  uint64_t generation = sdg_tag_generation(&named[0]);
  ck_assert_uint_gt(generation, before);
  ck_assert_ptr_eq(sdg_tag_label(&named[0], generation), &label);
  ck_assert_ptr_null(sdg_tag_label(&named[0], before));
  ck_assert_ptr_null(sdg_tag_label(&named[1], generation));
  sdg_tag_touch(&named[0]);
  ck_assert_ptr_null(sdg_tag_label(&named[0], sdg_tag_generation(&named[0])));
  ck_assert_int_eq((int)sdg_tag_set_label(&named[0], &label), 0);
  ck_assert_int_eq((int)sdg_tag_set_label(&named[0], NULL), 0);
  ck_assert_ptr_null(sdg_tag_label(&named[0], sdg_tag_generation(&named[0])));
  sdg_tag_forget(&named[0]);
  ck_assert_ptr_null(sdg_tag_label(&named[0], generation));
}
END_TEST

START_TEST(a_place_holds_for_one_generation) {
  static char named;
  sdg_tag_touch(&named);
  ck_assert_int_eq(sdg_tag_place(&named).dims, 0);
  sdg_tag_place_t place = {
      .generation = sdg_tag_generation(&named), .dims = 1, .first = {3}};
  sdg_tag_set_place(&named, &place);
  ck_assert_int_eq(sdg_tag_place(&named).dims, 1);
  ck_assert_int_eq((int)sdg_tag_place(&named).first[0], 3);
  sdg_tag_touch(&named);
  ck_assert_int_eq(sdg_tag_place(&named).dims, 0);
  sdg_tag_forget(&named);
  ck_assert_int_eq(sdg_tag_place(&named).dims, 0);
}
END_TEST

START_TEST(sharing_drops_passes_and_keeps_only_those_without_agreement) {
  static char named;
  sdg_tag_touch(&named);
  uint64_t generation = sdg_tag_generation(&named);
  sdg_tag_set_pass(&named, generation, SDG_FAMILY_CONV, true);
  ck_assert(sdg_tag_passes(&named, SDG_FAMILY_CONV));
  sdg_tag_share();
  ck_assert(!sdg_tag_passes(&named, SDG_FAMILY_CONV));
  ck_assert_uint_eq(sdg_tag_generation(&named), generation);
  sdg_tag_set_pass(&named, generation, SDG_FAMILY_CONV, true);
  ck_assert(!sdg_tag_passes(&named, SDG_FAMILY_CONV));
  sdg_tag_set_pass(&named, generation, SDG_FAMILY_CONV, false);
  ck_assert(sdg_tag_passes(&named, SDG_FAMILY_CONV));
}
END_TEST

START_TEST(the_table_grows_and_keeps_what_it_knows) {
  for (int i = 0; i < MANY; i++) {
    sdg_tag_touch(&object[i]);
    if (i % 2)
      sdg_tag_set_pass(&object[i], sdg_tag_generation(&object[i]),
                       SDG_FAMILY_CONV, true);
  }
  for (int i = 0; i < MANY; i++)
    REQUIRE(sdg_tag_passes(&object[i], SDG_FAMILY_CONV) == (i % 2 == 1));
}
END_TEST

START_TEST(short_lived_descriptors_do_not_fill_the_table) {
  for (int round = 0; round < 50; round++)
    for (int i = 0; i < MANY; i++) {
      sdg_tag_touch(&object[i]);
      sdg_tag_forget(&object[i]);
    }
  sdg_tag_table_t *table = atomic_load(&sdg_tag_current);
  ck_assert_uint_lt(table->mask, 4 * MANY);
}
END_TEST

static void *reader_main(void *unused) {
  (void)unused;
  for (int i = 0; i < MANY; i++)
    REQUIRE(sdg_tag_passes(&object[0], SDG_FAMILY_CONV));
  return NULL;
}

START_TEST(readers_find_a_descriptor_while_others_are_added) {
  sdg_tag_touch(&object[0]);
  sdg_tag_set_pass(&object[0], sdg_tag_generation(&object[0]), SDG_FAMILY_CONV,
                   true);
  pthread_t reader;
  ck_assert_int_eq(pthread_create(&reader, NULL, reader_main, NULL), 0);
  for (int i = 1; i < MANY; i++)
    sdg_tag_touch(&object[i]);
  pthread_join(reader, NULL);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("tag");
  TCase *cases = tcase_create("tag");
  tcase_add_test(cases, an_unknown_descriptor_does_not_pass);
  tcase_add_test(cases, a_pass_holds_for_one_family_and_one_generation);
  tcase_add_test(cases, a_vector_holds_for_one_generation);
  tcase_add_test(cases, a_tag_holds_for_one_generation);
  tcase_add_test(cases, generations_are_never_reused);
  tcase_add_test(cases, a_label_holds_for_one_generation);
  tcase_add_test(cases, a_place_holds_for_one_generation);
  tcase_add_test(cases,
                 sharing_drops_passes_and_keeps_only_those_without_agreement);
  tcase_add_test(cases, the_table_grows_and_keeps_what_it_knows);
  tcase_add_test(cases, short_lived_descriptors_do_not_fill_the_table);
  tcase_add_test(cases, readers_find_a_descriptor_while_others_are_added);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
