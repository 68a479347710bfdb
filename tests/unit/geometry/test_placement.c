// SPDX-License-Identifier: Apache-2.0
// Placements: ownership over meshes, derivation from local extents, messages.
#include "src/geometry/placement.h"

#include <string.h>

#include "tests/unit/random.h"

enum { CASES = 20000 };

static const char *const nchw[] = {"N", "C", "H", "W"};

static sdg_mesh_t mesh_of(const char *text, int ranks) {
  sdg_mesh_t mesh;
  ck_assert(sdg_mesh_parse(text, ranks, &mesh) == SDG_OK);
  return mesh;
}

START_TEST(a_placement_is_formatted_like_in_the_first_agreements_line) {
  sdg_mesh_t mesh = mesh_of("y=4", 4);
  sdg_placement_t p;
  sdg_part_t part;
  sdg_split_t over_y = {.axes = 1, .axis = {0}};
  char out[256];
  ck_assert(sdg_placement_init(4, (int64_t[]){1, 3, 9, 64}, &p) == SDG_OK);
  sdg_placement_format(&p, &mesh, nchw, out, sizeof out);
  ck_assert_str_eq(out, "replicated");
  ck_assert(sdg_part_from_sizes(4, (int64_t[]){520, 500, 516, 512}, &part) ==
            SDG_OK);
  ck_assert(sdg_placement_split(&p, &mesh, 2, &over_y, &part) == SDG_OK);
  sdg_placement_format(&p, &mesh, nchw, out, sizeof out);
  ck_assert_str_eq(out, "H 2048 = 520+500+516+512 over y=4");
  sdg_placement_format(&p, &mesh, NULL, out, sizeof out);
  ck_assert_str_eq(out, "dimension 2 2048 = 520+500+516+512 over y=4");
  for (int bytes = 1; bytes < 34; bytes++) { // cut, never overrun
    memset(out, '#', sizeof out);
    sdg_placement_format(&p, &mesh, nchw, out, bytes);
    ck_assert_int_eq((int)strlen(out), bytes - 1);
    ck_assert_int_eq(out[bytes], '#');
  }
  sdg_part_fini(&part);
  sdg_placement_fini(&p);
}
END_TEST

START_TEST(format_names_every_split_dimension_and_axis) {
  sdg_mesh_t mesh = mesh_of("z=2,y=2,x=2", 8);
  sdg_placement_t p;
  sdg_part_t four, two;
  char out[256];
  ck_assert(sdg_placement_init(4, (int64_t[]){1, 3, 8, 5}, &p) == SDG_OK);
  ck_assert(sdg_part_parse("even", 8, 4, &four) == SDG_OK);
  ck_assert(sdg_part_parse("even", 5, 2, &two) == SDG_OK);
  ck_assert(sdg_placement_split(&p, &mesh, 2,
                                &(sdg_split_t){.axes = 2, .axis = {2, 0}},
                                &four) == SDG_OK);
  ck_assert(sdg_placement_split(&p, &mesh, 3,
                                &(sdg_split_t){.axes = 1, .axis = {1}},
                                &two) == SDG_OK);
  sdg_placement_format(&p, &mesh, nchw, out, sizeof out);
  ck_assert_str_eq(out, "H 8 = 2+2+2+2 over x=2,z=2; W 5 = 3+2 over y=2");
  // x varies slowest: rank (z=1,y=0,x=0) is piece 1, (0,0,1) is piece 2.
  ck_assert_int_eq(sdg_split_piece(&p.split[2], &mesh, 4), 1);
  ck_assert_int_eq(sdg_split_piece(&p.split[2], &mesh, 1), 2);
  ck_assert_int_eq((int)sdg_placement_axes(&p), 7);
  sdg_part_fini(&four);
  sdg_part_fini(&two);
  sdg_placement_fini(&p);
}
END_TEST

START_TEST(group_is_along_the_split_axes) {
  sdg_mesh_t mesh = mesh_of("data=2,y=4", 8);
  sdg_placement_t p;
  sdg_part_t part;
  int group[SDG_RANKS_MAX];
  ck_assert(sdg_placement_init(1, (int64_t[]){9}, &p) == SDG_OK);
  ck_assert_int_eq(sdg_placement_group(&p, &mesh, 6, group), 1);
  ck_assert_int_eq(group[0], 6);
  ck_assert(sdg_part_parse("even", 9, 4, &part) == SDG_OK);
  ck_assert(sdg_placement_split(&p, &mesh, 0,
                                &(sdg_split_t){.axes = 1, .axis = {1}},
                                &part) == SDG_OK);
  ck_assert_int_eq(sdg_placement_group(&p, &mesh, 6, group), 4);
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(group[i], 4 + i);
  sdg_part_fini(&part);
  sdg_placement_fini(&p);
}
END_TEST

START_TEST(a_part_that_is_taken_belongs_to_the_placement) {
  sdg_mesh_t mesh = mesh_of("y=2,x=2", 4);
  const sdg_split_t over_y = {.axes = 1, .axis = {0}};
  sdg_placement_t p;
  sdg_part_t two, three;
  ck_assert(sdg_part_parse("even", 8, 2, &two) == SDG_OK);
  ck_assert(sdg_part_parse("even", 8, 3, &three) == SDG_OK);
  ck_assert(sdg_placement_init(2, (int64_t[]){8, 8}, &p) == SDG_OK);
  ck_assert(sdg_placement_take(&p, &mesh, 0, &over_y, &two) == SDG_OK);
  ck_assert(sdg_placement_take(&p, &mesh, 0, &over_y, &three) == SDG_E_PARTS);
  ck_assert_int_eq(p.part[0].pieces, 2);
  sdg_placement_fini(&p);
}
END_TEST

START_TEST(impossible_splits_are_refused_and_change_nothing) {
  sdg_mesh_t mesh = mesh_of("y=2,x=2", 4);
  sdg_placement_t p, before;
  sdg_part_t two, three;
  sdg_split_t over_y = {.axes = 1, .axis = {0}};
  ck_assert(sdg_part_parse("even", 8, 2, &two) == SDG_OK);
  ck_assert(sdg_part_parse("even", 8, 3, &three) == SDG_OK);
  ck_assert(sdg_placement_init(2, (int64_t[]){8, 8}, &p) == SDG_OK);
  ck_assert(sdg_placement_split(&p, &mesh, 0, &over_y, &two) == SDG_OK);
  ck_assert(sdg_placement_copy(&p, &before) == SDG_OK);
  ck_assert(sdg_placement_split(&p, &mesh, 1, &over_y, &two) == SDG_E_PARTS);
  ck_assert(strstr(sdg_last_error(), "axis \"y\" splits one tensor twice"));
  ck_assert(sdg_placement_split(&p, &mesh, 1,
                                &(sdg_split_t){.axes = 2, .axis = {1, 1}},
                                &two) == SDG_E_PARTS);
  ck_assert(sdg_placement_split(&p, &mesh, 0, &over_y, &three) == SDG_E_PARTS);
  ck_assert(strstr(sdg_last_error(), "3 pieces for the 2 ranks"));
  ck_assert(sdg_placement_split(&p, &mesh, 0,
                                &(sdg_split_t){.axes = 1, .axis = {2}},
                                &two) == SDG_E_PARTS);
  ck_assert(sdg_placement_equal(&p, &before));
  // The same dimension may be split anew.
  ck_assert(sdg_placement_split(&p, &mesh, 0,
                                &(sdg_split_t){.axes = 1, .axis = {1}},
                                &two) == SDG_OK);
  ck_assert(!sdg_placement_equal(&p, &before));
  sdg_part_fini(&two);
  sdg_part_fini(&three);
  sdg_placement_fini(&p);
  sdg_placement_fini(&before);
}
END_TEST

typedef struct tensor { // a random placement and its view from every rank
  sdg_mesh_t mesh;
  int dims, ranks;
  sdg_split_t split[SDG_DIMS_MAX];
  int64_t extent[256][SDG_DIMS_MAX];
  int rank[256];
  sdg_placement_t placement;
} tensor_t;

static void tensor_init(tensor_t *t) {
  *t = (tensor_t){.dims = (int)random_in(1, 5)};
  t->mesh.axes = (int)random_in(1, SDG_AXES_MAX);
  for (int a = 0; a < t->mesh.axes; a++) {
    t->mesh.size[a] = (int)random_in(1, 4);
    t->mesh.name[a][0] = (char)('a' + a);
    int d = (int)random_in(-1, t->dims - 1); // -1: along this axis all equal
    if (d >= 0) {
      sdg_split_t *split = &t->split[d];
      int at = (int)random_in(0, split->axes); // any order of axes
      for (int i = split->axes++; i > at; i--)
        split->axis[i] = split->axis[i - 1];
      split->axis[at] = a;
    }
  }
  int64_t extent[SDG_DIMS_MAX], sizes[256];
  for (int d = 0; d < t->dims; d++)
    extent[d] = random_in(0, 30);
  REQUIRE(sdg_placement_init(t->dims, extent, &t->placement) == SDG_OK);
  for (int d = 0; d < t->dims; d++) {
    int pieces = sdg_split_pieces(&t->split[d], &t->mesh);
    sdg_part_t part;
    random_sizes(extent[d], pieces, sizes);
    REQUIRE(sdg_part_from_sizes(pieces, sizes, &part) == SDG_OK);
    REQUIRE(sdg_placement_split(&t->placement, &t->mesh, d, &t->split[d],
                                &part) == SDG_OK);
    sdg_part_fini(&part);
  }
  t->ranks = sdg_mesh_ranks(&t->mesh);
  for (int r = 0; r < t->ranks; r++) {
    sdg_box_t box = sdg_placement_box(&t->placement, &t->mesh, r);
    t->rank[r] = r;
    for (int d = 0; d < t->dims; d++)
      t->extent[r][d] = box.dim[d].hi - box.dim[d].lo;
  }
}

START_TEST(every_element_has_as_many_owners_as_replicas) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    static tensor_t t;
    tensor_init(&t);
    int replicas = t.ranks;
    for (int d = 0; d < t.dims; d++)
      replicas /= t.placement.part[d].pieces;
    int64_t at[SDG_DIMS_MAX], held = 0, count = 1;
    bool any = true;
    for (int d = 0; d < t.dims; d++) {
      int64_t extent = sdg_placement_extent(&t.placement, d);
      count *= extent;
      any &= extent > 0;
      at[d] = any ? random_in(0, extent - 1) : 0;
    }
    int owners = 0;
    for (int r = 0; r < t.ranks; r++) {
      sdg_box_t box = sdg_placement_box(&t.placement, &t.mesh, r);
      bool inside = true;
      for (int d = 0; d < t.dims; d++)
        inside &= at[d] >= box.dim[d].lo && at[d] < box.dim[d].hi;
      owners += inside;
      held += sdg_box_count(&box);
    }
    REQUIRE(owners == (any ? replicas : 0));
    REQUIRE(held == count * replicas);
    sdg_placement_fini(&t.placement);
  }
}
END_TEST

START_TEST(local_extents_give_back_their_placement) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    static tensor_t t;
    tensor_init(&t);
    sdg_placement_t derived;
    REQUIRE(sdg_placement_derive(&t.mesh, t.rank, t.ranks, t.dims, t.split,
                                 nchw, (const int64_t(*)[SDG_DIMS_MAX])t.extent,
                                 &derived) == SDG_OK);
    REQUIRE(sdg_placement_equal(&derived, &t.placement));
    sdg_placement_fini(&derived);

    // One changed size is found, unless its rank is the only one that holds
    // this piece: then it is another, valid tensor.
    int r = (int)random_in(0, t.ranks - 1), d = (int)random_in(0, t.dims - 1);
    bool alone = sdg_split_pieces(&t.split[d], &t.mesh) == t.ranks;
    sdg_extents_conflict_t conflict;
    t.extent[r][d]++;
    bool found = sdg_placement_conflict(
        &t.mesh, t.rank, t.ranks, t.dims, t.split,
        (const int64_t(*)[SDG_DIMS_MAX])t.extent, &conflict);
    REQUIRE(found == !alone);
    REQUIRE(!found || conflict.dim == d);
    REQUIRE(!found || conflict.member == r || conflict.other == r);
    sdg_placement_fini(&t.placement);
  }
}
END_TEST

// The report for extents of 4 ranks on a mesh of y=2,x=2, H over y, W over x.
static const char *report(const int64_t (*extent)[SDG_DIMS_MAX]) {
  sdg_mesh_t mesh = mesh_of("y=2,x=2", 4);
  sdg_split_t split[4] = {
      [2] = {.axes = 1, .axis = {0}}, [3] = {.axes = 1, .axis = {1}}};
  sdg_placement_t p = {.dims = -7};
  ck_assert(sdg_placement_derive(&mesh, (int[]){0, 1, 2, 3}, 4, 4, split, nchw,
                                 extent, &p) == SDG_E_EXTENTS);
  ck_assert_int_eq(p.dims, -7);
  return strchr(sdg_last_error(), ':') + 2;
}

START_TEST(disagreement_names_ranks_and_dimension) {
  ck_assert_str_eq(
      report((const int64_t[4][SDG_DIMS_MAX]){
          {1, 3, 5, 8}, {1, 3, 5, 7}, {1, 4, 4, 8}, {1, 3, 4, 7}}),
      "rank 0 has C = 3, rank 2 has 4; C is not split, so it must be "
      "equal on all ranks");
  ck_assert_str_eq(report((const int64_t[4][SDG_DIMS_MAX]){
                       {1, 3, 5, 8}, {1, 3, 5, 7}, {1, 3, 4, 8}, {1, 3, 9, 7}}),
                   "rank 2 has H = 4, rank 3 has 9; H is split over y=2, "
                   "and both ranks have the same piece of it");
  ck_assert_str_eq(
      report((const int64_t[4][SDG_DIMS_MAX]){
          {1, 3, 5, 8}, {1, 3, 5, -7}, {1, 3, 4, 8}, {1, 3, 4, -7}}),
      "rank 1 has W = -7");
}
END_TEST

START_TEST(a_missing_piece_is_an_internal_error) {
  sdg_mesh_t mesh = mesh_of("y=2,x=2", 4);
  sdg_split_t split = {.axes = 1, .axis = {0}};
  sdg_placement_t p;
  const int64_t extent[2][SDG_DIMS_MAX] = {{5}, {5}};
  ck_assert(sdg_placement_derive(&mesh, (int[]){0, 1}, 2, 1, &split, NULL,
                                 extent, &p) == SDG_E_INTERNAL);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("placement");
  TCase *cases = tcase_create("placement");
  tcase_set_timeout(cases, 120);
  tcase_add_test(cases,
                 a_placement_is_formatted_like_in_the_first_agreements_line);
  tcase_add_test(cases, format_names_every_split_dimension_and_axis);
  tcase_add_test(cases, group_is_along_the_split_axes);
  tcase_add_test(cases, a_part_that_is_taken_belongs_to_the_placement);
  tcase_add_test(cases, impossible_splits_are_refused_and_change_nothing);
  tcase_add_test(cases, every_element_has_as_many_owners_as_replicas);
  tcase_add_test(cases, local_extents_give_back_their_placement);
  tcase_add_test(cases, disagreement_names_ranks_and_dimension);
  tcase_add_test(cases, a_missing_piece_is_an_internal_error);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
