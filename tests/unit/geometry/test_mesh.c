// SPDX-License-Identifier: Apache-2.0
// The mesh: its text, coordinates and groups.
#include "src/geometry/mesh.h"

#include <stdbool.h>
#include <string.h>

#include "tests/unit/random.h"

enum { CASES = 20000 };

START_TEST(text_names_axes_in_order) {
  static const char *const same[] = {"data=2,y=4", " data = 2 , y=4 ",
                                     "data=2,\ty=04"};
  for (unsigned i = 0; i < sizeof same / sizeof same[0]; i++) {
    sdg_mesh_t mesh;
    ck_assert(sdg_mesh_parse(same[i], 8, &mesh) == SDG_OK);
    ck_assert_int_eq(mesh.axes, 2);
    ck_assert_str_eq(mesh.name[0], "data");
    ck_assert_str_eq(mesh.name[1], "y");
    ck_assert_int_eq(mesh.size[0], 2);
    ck_assert_int_eq(mesh.size[1], 4);
    ck_assert_int_eq(sdg_mesh_ranks(&mesh), 8);
    ck_assert_int_eq(sdg_mesh_axis(&mesh, "y"), 1);
    ck_assert_int_eq(sdg_mesh_axis(&mesh, "x"), -1);
    ck_assert_int_eq(sdg_mesh_axis(&mesh, "dat"), -1);
  }
}
END_TEST

START_TEST(without_a_text_the_mesh_has_one_axis) {
  static const char *const none[] = {NULL, "", "  "};
  for (unsigned i = 0; i < sizeof none / sizeof none[0]; i++) {
    sdg_mesh_t mesh;
    ck_assert(sdg_mesh_parse(none[i], 6, &mesh) == SDG_OK);
    ck_assert_int_eq(mesh.axes, 1);
    ck_assert_str_eq(mesh.name[0], "ranks");
    ck_assert_int_eq(mesh.size[0], 6);
  }
}
END_TEST

START_TEST(longest_name_and_most_axes_are_taken) {
  sdg_mesh_t mesh;
  ck_assert(sdg_mesh_parse("fifteen_letters=1,a=1,b=1,_c1=1", 1, &mesh) ==
            SDG_OK);
  ck_assert_int_eq(mesh.axes, 4);
  ck_assert(sdg_mesh_parse("y=1024", 1024, &mesh) == SDG_OK);
}
END_TEST

START_TEST(bad_text_is_refused_by_its_fault) {
  static const struct {
    const char *text;
    int ranks;
    const char *says;
  } bad[] = {
      {"y", 4, "expected = after axis \"y\""},
      {"y=", 4, "size of axis \"y\""},
      {"=4", 4, "expected the name of an axis at \"=4\""},
      {"4", 4, "expected the name"},
      {"4y=4", 4, "expected the name"},
      {"y=4,", 4, "expected the name"},
      {",y=4", 4, "expected the name"},
      {"y=4,,x=1", 4, "expected the name"},
      {"y=4 x=1", 4, "expected a comma at \"x=1\""},
      {"y=4;x=1", 4, "expected a comma"},
      {"y=4x", 4, "expected a comma at \"x\""},
      {"y=2.0,x=2", 4, "expected a comma at \".0,x=2\""},
      {"y=0", 4, "a number from 1 to 1024"},
      {"y=-4", 4, "a number from 1 to 1024"},
      {"y=+4", 4, "a number from 1 to 1024"},
      {"y=four", 4, "a number from 1 to 1024"},
      {"y=1025", 1024, "a number from 1 to 1024"},
      {"y=99999999999999999999", 4, "a number from 1 to 1024"},
      {"y=2,y=2", 4, "axis \"y\" is named twice"},
      {"y=2,x=3", 4, "lays out 6 ranks, but the job has 4"},
      {"y=2", 4, "lays out 2 ranks, but the job has 4"},
      {"a=1024,b=1024,c=1024,d=1024", 4, "1099511627776 ranks"},
      {"a=1,b=1,c=1,d=1,e=4", 4, "more than 4 axes"},
      {"sixteen_letters_=4", 4, "longer than 15"},
      {"y\xc3\xa4=4", 4, "expected = after axis \"y\""},
      {"y-z=4", 4, "expected ="},
      {"y=1", 0, "0 ranks"},
      {"", 1025, "1025 ranks"},
      {NULL, -1, "-1 ranks"},
  };
  for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sdg_mesh_t mesh = {.axes = -7};
    ck_assert_msg(sdg_mesh_parse(bad[i].text, bad[i].ranks, &mesh) ==
                      SDG_E_MESH,
                  "%s", bad[i].text);
    ck_assert_msg(strstr(sdg_last_error(), bad[i].says), "%s: %s", bad[i].text,
                  sdg_last_error());
    ck_assert_int_eq(mesh.axes, -7); // written only on success
  }
}
END_TEST

START_TEST(ranks_and_coordinates_are_row_major) {
  sdg_mesh_t mesh;
  int coord[SDG_AXES_MAX];
  ck_assert(sdg_mesh_parse("data=2,y=4", 8, &mesh) == SDG_OK);
  sdg_mesh_coords(&mesh, 5, coord);
  ck_assert_int_eq(coord[0], 1);
  ck_assert_int_eq(coord[1], 1);
}
END_TEST

START_TEST(a_group_shares_all_other_coordinates) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_mesh_t mesh = {.axes = (int)random_in(1, SDG_AXES_MAX)};
    for (int a = 0; a < mesh.axes; a++)
      mesh.size[a] = (int)random_in(1, 4);
    int ranks = sdg_mesh_ranks(&mesh), me = (int)random_in(0, ranks - 1);
    sdg_axes_t axes = (sdg_axes_t)random_in(0, (1 << mesh.axes) - 1);
    int group[SDG_RANKS_MAX], own[SDG_AXES_MAX], coord[SDG_AXES_MAX];
    int count = sdg_mesh_group(&mesh, me, axes, group), next = 0;
    sdg_mesh_coords(&mesh, me, own);
    for (int r = 0; r < ranks; r++) {
      sdg_mesh_coords(&mesh, r, coord);
      int back = 0;
      for (int a = 0; a < mesh.axes; a++)
        back = back * mesh.size[a] + coord[a];
      REQUIRE(back == r);
      bool member = true;
      for (int a = 0; a < mesh.axes; a++) {
        REQUIRE(coord[a] >= 0 && coord[a] < mesh.size[a]);
        if (!(axes & 1u << a) && coord[a] != own[a])
          member = false;
      }
      if (member)
        REQUIRE(next < count && group[next++] == r);
    }
    REQUIRE(next == count);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("mesh");
  TCase *cases = tcase_create("mesh");
  tcase_set_timeout(cases, 120);
  tcase_add_test(cases, text_names_axes_in_order);
  tcase_add_test(cases, without_a_text_the_mesh_has_one_axis);
  tcase_add_test(cases, longest_name_and_most_axes_are_taken);
  tcase_add_test(cases, bad_text_is_refused_by_its_fault);
  tcase_add_test(cases, ranks_and_coordinates_are_row_major);
  tcase_add_test(cases, a_group_shares_all_other_coordinates);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
