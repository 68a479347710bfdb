// SPDX-License-Identifier: Apache-2.0
// Verdicts derived from the extents of all ranks.
#include "rules/place/tagging.h"

#include <string.h>

#include "tests/unit/agreed.h"
#include "tests/unit/random.h"
#include "tests/unit/fake_cuda.h"

// Adds an agreed tensor of [2, c[r], h[r], 8] on rank r.
static void operand_add(sdg_call_t *call, sdg_role_t role, const int64_t *c,
                        const int64_t *h) {
  static const int64_t w[] = {8, 8, 8};
  agreed_add(call, role, c, h, w);
}

static sdg_call_t call_of(sdg_family_t family, const int64_t *c,
                          const int64_t *h) {
  sdg_call_t call = {.entry_name = "cudnnTest", .family = family};
  operand_add(&call, SDG_ROLE_X, c, h);
  operand_add(&call, SDG_ROLE_Y, c, h);
  return call;
}

static const int64_t same[] = {3, 3, 3}, uneven[] = {90, 110, 120};

static sdg_status_t derive(const sdg_call_t *call, const sdg_rules_t *rules,
                           const char **out_section, sdg_tagging_t *out) {
  const sdg_section_t *section;
  bool local;
  sdg_status_t status = sdg_tagging_derive(call, rules, &section, &local, out);
  *out_section = status != SDG_OK ? "failed"
                 : section        ? section->name
                 : local          ? "local"
                                  : "none";
  return status;
}

static void expect(const sdg_call_t *call, const char *text,
                   const char *expected) {
  sdg_rules_t rules;
  sdg_tagging_t tagging = {0};
  const char *section;
  agreed_rules(text, &rules);
  sdg_status_t status = derive(call, &rules, &section, &tagging);
  REQUIRE_MSG(strcmp(section, expected) == 0, "%s instead of %s: %s", section,
              expected, sdg_last_error());
  REQUIRE(status == SDG_OK || status == SDG_E_EXTENTS);
  if (status == SDG_OK)
    sdg_tagging_fini(&tagging);
  sdg_rules_fini(&rules);
}

static void sections_body(int rank) {
  (void)rank;
  sdg_call_t call = call_of(SDG_FAMILY_CONV, same, uneven);
  // The sum of H is 320.
  expect(&call,
         "[shard a]\nsplit = H\nmatch = H>=321\n"
         "[shard b]\nsplit = H\nmatch = H=320\n",
         "b");
  expect(&call, "[shard a]\nsplit = H\nmatch = H>=321\n", "none");
  expect(&call, "[local l]\nmatch = C=3\n[shard a]\nsplit = H\n", "local");
  expect(&call, "[shard a]\nsplit = H\nop = pool*\n", "none");
}

START_TEST(the_first_section_that_matches_global_extents_decides) {
  fake_cuda_ranks_run("y=3", sections_body);
}
END_TEST

static void parting_body(int rank) {
  (void)rank;
  sdg_call_t call = call_of(SDG_FAMILY_CONV, same, uneven);
  const char *local = "[local l]\nmatch = H>=100\n[shard a]\nsplit = H\n";
  expect(&call, local, "failed");
  REQUIRE(strstr(sdg_last_error(), "rank 2 but not on rank 0"));
  const int64_t channels[] = {4, 3, 4};
  call = call_of(SDG_FAMILY_CONV, channels, uneven);
  expect(&call, "[shard a]\nsplit = H\nmatch = C>=4\n", "failed");
  REQUIRE(strstr(sdg_last_error(), "but not on rank 1"));
  // Unequal channels are an error, even if the section matches on all ranks.
  expect(&call, "[shard a]\nsplit = H\nmatch = C>=3\n", "failed");
  expect(&call, "[shard a]\nsplit = H\nmatch = C>=5\n", "none");
}

START_TEST(ranks_that_see_different_matches_fail_alike) {
  fake_cuda_ranks_run("y=3", parting_body);
}
END_TEST

static void placing_body(int rank) {
  const int64_t one[] = {1, 1, 1};
  sdg_rules_t rules;
  sdg_tagging_t tagging;
  const char *section;
  agreed_rules("[shard a]\nsplit = H\n", &rules);
  sdg_call_t call = call_of(SDG_FAMILY_POINTWISE, same, uneven);
  operand_add(&call, SDG_ROLE_Z, same, one);
  REQUIRE(!derive(&call, &rules, &section, &tagging));
  REQUIRE(tagging.ranks == 3 && tagging.me == rank);
  REQUIRE(tagging.placement[0].part[2].offset[1] == 90);
  REQUIRE(tagging.placement[0].part[2].offset[2] == 200);
  REQUIRE(sdg_placement_extent(&tagging.placement[1], 2) == 320);
  // One row on every rank is a bias, not three rows.
  REQUIRE(sdg_placement_extent(&tagging.placement[2], 2) == 1);
  sdg_tagging_fini(&tagging);
  // The same holds for scales in any op, because no section matches them.
  call = call_of(SDG_FAMILY_NORM, same, uneven);
  operand_add(&call, SDG_ROLE_SCALE, same, one);
  operand_add(&call, SDG_ROLE_SCALE, same, uneven);
  REQUIRE(!derive(&call, &rules, &section, &tagging));
  REQUIRE(tagging.placement[2].split[2].axes == 0);
  REQUIRE(sdg_placement_extent(&tagging.placement[2], 2) == 1);
  REQUIRE(tagging.placement[3].part[2].offset[1] == 90);
  sdg_tagging_fini(&tagging);
  sdg_rules_fini(&rules);
}

START_TEST(activations_have_the_pieces_that_ranks_hold) {
  fake_cuda_ranks_run("y=3", placing_body);
}
END_TEST

static void passing_body(int rank) {
  (void)rank;
  sdg_rules_t rules;
  sdg_call_t call = call_of(SDG_FAMILY_CONV, same, uneven);
  agreed_rules("[shard a]\nsplit = H\nmatch = H>=1000\n", &rules);
  REQUIRE(sdg_tagging_passes(&call, 0, &rules));
  sdg_rules_fini(&rules);
  agreed_rules("[shard a]\nsplit = H\n", &rules);
  REQUIRE(!sdg_tagging_passes(&call, 0, &rules));
  sdg_rules_fini(&rules);
  // A call that is local on some ranks only must not pass on these.
  agreed_rules("[local l]\nmatch = H>=100\n[shard a]\nsplit = H\n", &rules);
  REQUIRE(!sdg_tagging_passes(&call, 0, &rules));
  sdg_rules_fini(&rules);
  // The section may match another entry of the family.
  agreed_rules("[shard a]\nsplit = H\nop = cudnnPoolingForward\n", &rules);
  call.family = SDG_FAMILY_POOL;
  REQUIRE(!sdg_tagging_passes(&call, 0, &rules));
  sdg_rules_fini(&rules);
}

START_TEST(a_descriptor_passes_only_where_no_section_can_match) {
  fake_cuda_ranks_run("y=3", passing_body);
}
END_TEST

// Products with BATCH 5, M 2, and these N and K on the ranks.
static void sizes_expect(sdg_family_t family, const int64_t *n,
                         const int64_t *k, const char *text,
                         const char *expected) {
  static const int64_t batch[] = {5, 5, 5};
  bool graph = family == SDG_FAMILY_MATMUL_GRAPH;
  sdg_call_t call = {.entry_name =
                         graph ? "matmul+add" : "cublasSgemmStridedBatched",
                     .family = family};
  sdg_tagging_t tagging = {0};
  sdg_rules_t rules;
  const char *section;
  if (graph) // the product comes behind the graph's tensors
    agreed_add(&call, SDG_ROLE_A, batch, batch, batch);
  agreed_add(&call, SDG_ROLE_PRODUCT, n, k, batch);
  agreed_rules(text, &rules);
  sdg_status_t status = derive(&call, &rules, &section, &tagging);
  REQUIRE_MSG(strcmp(section, expected) == 0, "%s instead of %s: %s, by %s",
              section, expected, sdg_last_error(), text);
  REQUIRE(status == SDG_OK || status == SDG_E_PRODUCT_TWICE ||
          status == SDG_E_EXTENTS);
  if (status == SDG_OK)
    sdg_tagging_fini(&tagging);
  sdg_rules_fini(&rules);
}

// With N 60.
static void product_expect(const int64_t *k, const char *text,
                           const char *expected) {
  static const int64_t n[] = {60, 60, 60};
  sizes_expect(SDG_FAMILY_MATMUL, n, k, text, expected);
}

#define DOWN "[shard down]\nmatch = N=60 K=48\nsplit = K\nsizes = piece\n"

static void twice_body(int rank) {
  static const int64_t k[] = {16, 16, 16}, pieces[] = {16, 20, 12};
  static const char *const failing[] = {
      // A size is a piece by one section and the whole by the other.
      DOWN "[shard up]\nmatch = M K=16\nsplit = N\nsizes = whole\n",
      DOWN "[shard up]\nmatch = M K<=16\nsplit = N\nsizes = whole\n",
      DOWN "[shard up]\nmatch = M K<=16\nsplit = K\nsizes = whole\n",
      DOWN "[shard up]\nmatch = M N=180 K\nsplit = N\nsizes = piece\n",
      "[shard any]\nmatch = M\nsplit = K\nsizes = piece\n"
      "[shard up]\nmatch = M K=16\nsplit = N\nsizes = whole\n",
      // The second section is found after others, and in lists of numbers.
      DOWN "[local other]\nmatch = K=7\n"
           "[shard up]\nmatch = 2 60 16 5\nop = gemm\nsplit = N\n"
           "sizes = whole\n",
      // By a [local] section sizes are every rank's own.
      DOWN "[local hidden]\nmatch = M N=60 K=16\n",
      "[local hidden]\nmatch = M N=60 K=16\n" DOWN,
      // A section without `sizes` could mean either.
      DOWN "[shard up]\nmatch = M K=16\nsplit = N\n",
  };
  static const struct {
    const char *text, *section;
  } passing[] = {
      // The later section does not decide the size in which they differ.
      {DOWN "[shard any]\nmatch = M N=60 K\nsplit = M\nsizes = whole\n",
       "down"},
      {DOWN "[local any]\nmatch = M N=60\n", "down"},
      {"[local any]\nmatch = M N=60\n" DOWN, "local"},
      // The later section does not match: by sizes, by op, or because it is not
      // for products.
      {DOWN "[shard up]\nmatch = M K=16\nsplit = K\nsizes = piece\n", "down"},
      {DOWN "[shard up]\nmatch = M K=16\nop = gemv\nsplit = N\n"
            "sizes = whole\n",
       "down"},
      {DOWN "[shard x]\nmatch = N=180\nsplit = N\n", "down"},
      // Both mean the same product; the first section says how it is cut.
      {DOWN "[shard too]\nmatch = M K>=17\nsplit = K\nsizes = piece\n", "down"},
      {"[shard a]\nmatch = M K=16\nsplit = K\nsizes = whole\nparts = even\n"
       "[shard b]\nmatch = N=60 K=16\nsplit = N\nsizes = whole\n",
       "a"},
  };
  (void)rank;
  for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
    product_expect(k, failing[i], "failed");
    REQUIRE(strstr(sdg_last_error(), "SDG-624"));
  }
  product_expect(k, failing[0], "failed");
  REQUIRE_MSG(
      strstr(sdg_last_error(),
             "with M 2, N 60, K 16, BATCH 5 on rank 0 is M 2, N 60, "
             "K 48 = 16+16+16, BATCH 5 according to [shard down] (line 1), and "
             "M 2, N 60, K 16, BATCH 5 according to [shard up] (line 5)"),
      "%s", sdg_last_error());
  for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
    product_expect(k, passing[i].text, passing[i].section);
  // If the ranks' sizes differ, they cannot be the whole.
  product_expect(pieces, failing[1], "down");
  product_expect(pieces, failing[6], "down");
}

START_TEST(sizes_that_two_sections_read_differently_fail) {
  fake_cuda_ranks_run("y=3", twice_body);
}
END_TEST

// Gradients of weights, and tokens times weights: their sizes are alike on a
// rank with 16 tokens. Linear layers have N=60 and K=16.
#define GRADIENT "[shard gradient]\nmatch = N=60 K\nsplit = K\nsizes = piece\n"

static void graphs_body(int rank) {
  static const int64_t n[] = {60, 60, 60}, k[] = {16, 16, 16},
                       pieces[] = {16, 20, 12};
  static const char *const failing[] = {
      GRADIENT "[shard linear]\nmatch = M N=60 K=16\nsplit = M\n",
      GRADIENT "[local linear]\nmatch = M N=60 K=16\n",
      "[shard linear]\nop = matmul\nsplit = N\n" GRADIENT
      "[shard other]\nmatch = K=48\nsplit = K\nsizes = piece\n",
  };
  static const struct {
    const char *text, *section;
  } passing[] = {
      // Nothing is added by either.
      {"[shard a]\nop = matmul\nsplit = M\n"
       "[shard b]\nmatch = M N=180 K\nsplit = N\n",
       "a"},
      {"[shard a]\nop = matmul\nsplit = M\n"
       "[shard b]\nmatch = M N K=48\nsplit = K\nsizes = piece\nsum = no\n",
       "a"},
      // The other section is for other calls, or says no number.
      {GRADIENT "[shard linear]\nmatch = M N=60 K=16\nop = cublas*\n"
                "split = M\n",
       "gradient"},
      {GRADIENT "[shard linear]\nop = matmul\nsplit = M\n", "gradient"},
  };
  (void)rank;
  for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
    sizes_expect(SDG_FAMILY_MATMUL_GRAPH, n, k, failing[i], "failed");
    REQUIRE_MSG(strstr(sdg_last_error(), "SDG-624"), "%zu: %s", i,
                sdg_last_error());
    REQUIRE_MSG(i > 0 || strstr(sdg_last_error(), "M 6 = 2+2+2, N 60, K 16"),
                "%s", sdg_last_error());
  }
  for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
    sizes_expect(SDG_FAMILY_MATMUL_GRAPH, n, k, passing[i].text,
                 passing[i].section);
  sizes_expect(SDG_FAMILY_MATMUL_GRAPH, n, pieces, failing[0], "gradient");
}

START_TEST(graphs_that_two_sections_add_differently_fail) {
  fake_cuda_ranks_run("y=3", graphs_body);
}
END_TEST

static void somewhere_body(int rank) {
  static const int64_t n[] = {60, 40, 20}, same_n[] = {60, 60, 60},
                       k[] = {16, 16, 16}, other_k[] = {16, 20, 12};
  static const char only[] =
      "[shard some]\nmatch = N=60 K\nsplit = K\nsizes = piece\n";
  static const char both[] =
      "[shard some]\nmatch = N=60 K\nsplit = K\nsizes = piece\n"
      "[shard not]\nmatch = N=7\nop = matmul\nsplit = N\nsizes = piece\n"
      "[shard all]\nmatch = M N=120 K=16\nop = matmul\nsplit = N\n"
      "sizes = piece\n";
  static const sdg_family_t families[] = {SDG_FAMILY_MATMUL,
                                          SDG_FAMILY_MATMUL_GRAPH};
  (void)rank;
  for (int i = 0; i < 2; i++) {
    sizes_expect(families[i], n, k, both, "all");
    sizes_expect(families[i], same_n, other_k, both, "some");
    sizes_expect(families[i], n, k, only, "failed");
    REQUIRE(strstr(sdg_last_error(), "rank 0 but not on rank 2"));
    // By no section the ranks have one product.
    sizes_expect(families[i], n, other_k, both, "failed");
    REQUIRE(strstr(sdg_last_error(), "rank 0 but not on rank 2"));
    sizes_expect(families[i], n, k,
                 "[local some]\nmatch = M N=60\n"
                 "[shard all]\nmatch = M N=120 K=16\nop = matmul\nsplit = N\n"
                 "sizes = piece\n",
                 "failed");
  }
}

START_TEST(a_section_that_fits_some_ranks_sizes_only_is_passed_over) {
  fake_cuda_ranks_run("y=3", somewhere_body);
}
END_TEST

static void coordinates_body(int rank) {
  sdg_rules_t rules;
  sdg_tagging_t tagging = {0};
  const char *section;
  sdg_call_t call = call_of(SDG_FAMILY_CONV, same, uneven);
  call.operand[call.operands++] =
      (sdg_operand_t){.role = SDG_ROLE_W,
                      .kind = SDG_OPERAND_COORDINATES,
                      .beside = 1,
                      .elem_bytes = 4,
                      .dims = 4,
                      .extent = {2, 2, uneven[rank], 8}};
  agreed_rules("[shard a]\nsplit = H\n", &rules);
  REQUIRE(derive(&call, &rules, &section, &tagging) == SDG_OK);
  const sdg_placement_t *y = &tagging.placement[1],
                        *grid = &tagging.placement[2];
  const int64_t extent[] = {2, 2, 320, 8};
  REQUIRE(grid->dims == 4);
  for (int d = 0; d < 4; d++) {
    REQUIRE(sdg_placement_extent(grid, d) == extent[d]);
    REQUIRE(d == 1 || sdg_part_equal(&grid->part[d], &y->part[d]));
    REQUIRE(grid->split[d].axes == (d == 2));
  }
  sdg_tagging_fini(&tagging);
  sdg_rules_fini(&rules);
}

START_TEST(coordinates_are_split_like_their_tensor) {
  fake_cuda_ranks_run("y=3", coordinates_body);
}
END_TEST

int main(void) {
  fake_cuda_install();
  Suite *suite = suite_create("tagging");
  TCase *cases = tcase_create("tagging");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, the_first_section_that_matches_global_extents_decides);
  tcase_add_test(cases, ranks_that_see_different_matches_fail_alike);
  tcase_add_test(cases, activations_have_the_pieces_that_ranks_hold);
  tcase_add_test(cases, coordinates_are_split_like_their_tensor);
  tcase_add_test(cases, a_descriptor_passes_only_where_no_section_can_match);
  tcase_add_test(cases, sizes_that_two_sections_read_differently_fail);
  tcase_add_test(cases, graphs_that_two_sections_add_differently_fail);
  tcase_add_test(cases,
                 a_section_that_fits_some_ranks_sizes_only_is_passed_over);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
