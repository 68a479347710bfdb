// SPDX-License-Identifier: Apache-2.0
// Products of matrices: which rank multiplies what, and what ranks send each
// other, checked by brute force.
#include "rules/product/rule.h"

#include <string.h>

#include "tests/unit/product/gemm.h"

// ---- which rank computes what -----------------------------------------------

typedef struct setting {
  sdg_mesh_t mesh;
  sdg_section_t section;
  sdg_call_t call;
  sdg_gemm_t gemm;
  int ranks;
} setting_t;

static char agree[] = "agree";

static void split_add(sdg_rules_split_t *split, int *count, sdg_dim_t dim,
                      const sdg_mesh_t *mesh, int axis) {
  split[(*count)++] = (sdg_rules_split_t){.dim = dim,
                                          .axes = 1u << axis,
                                          .pieces = mesh->size[axis],
                                          .parts = agree};
}

// Draws a mesh of one or two axes; each cuts M, N, K or the batch.
static void setting_draw(setting_t *s) {
  static const sdg_dim_t dims[] = {SDG_DIM_M, SDG_DIM_N, SDG_DIM_K,
                                   SDG_DIM_BATCH};
  memset(s, 0, sizeof *s);
  s->gemm = gemm_draw(true);
  s->mesh.axes = (int)draw(1, 2);
  s->ranks = 1;
  int first = (int)draw(0, 3), second = (int)draw(1, 3);
  s->section.view = SDG_VIEW_WHOLE;
  for (int a = 0; a < s->mesh.axes; a++) {
    s->mesh.name[a][0] = (char)('x' + a);
    s->mesh.size[a] = (int)draw(1, 4);
    s->ranks *= s->mesh.size[a];
    split_add(s->section.split, &s->section.splits,
              dims[a == 0 ? first : (first + second) % 4], &s->mesh, a);
    s->section.sum_axes |= 1u << a;
  }
  s->gemm.batch += first == 3 || s->mesh.axes == 2; // or it is not shared
  sdg_rules_matrix_t *c = &s->section.matrix[SDG_MATRIX_C];
  for (int a = 0; a < s->mesh.axes && draw(0, 1); a++)
    if (s->section.split[a].dim == SDG_DIM_K) {
      bool rows = false;
      for (int i = 0; i < s->section.splits; i++)
        rows |= s->section.split[i].dim == SDG_DIM_M;
      split_add(c->split, &c->splits, rows ? SDG_DIM_N : SDG_DIM_M, &s->mesh,
                a);
      c->said = true;
    }
  s->call = (sdg_call_t){.entry_name = "product", .family = SDG_FAMILY_MATMUL};
  sdg_product_read(&s->gemm, &s->call);
}

static void tagging_make(const setting_t *s, int rank, sdg_tagging_t *out) {
  memset(out, 0, sizeof *out);
  out->section = &s->section;
  out->mesh = &s->mesh;
  out->rank = out->me = rank;
  out->ranks = s->ranks;
  for (int r = 0; r < s->ranks; r++)
    out->rank_list[r] = r;
  out->axes = sdg_section_axes(&s->section);
  out->sum_axes = s->section.sum_axes;
  sdg_placement_t *product = &out->placement[0];
  REQUIRE(!sdg_placement_init(4, s->call.operand[0].extent, product));
  for (int i = 0; i < s->section.splits; i++) {
    const sdg_rules_split_t *said = &s->section.split[i];
    int d = sdg_dim_index(SDG_FAMILY_MATMUL, said->dim, 4);
    sdg_split_t split = {.axes = 1, .axis = {i}};
    sdg_part_t part;
    REQUIRE(!sdg_part_divide(s->call.operand[0].extent[d], said->pieces,
                             SDG_PART_EVEN, 1, &part));
    REQUIRE(!sdg_placement_split(product, &s->mesh, d, &split, &part));
    sdg_part_fini(&part);
  }
}

static void tagging_free(sdg_tagging_t *tagging) {
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    sdg_placement_fini(&tagging->placement[i]);
}

static bool holds(const sdg_box_t *box, const int64_t *at) {
  for (int d = 0; d < box->dims; d++)
    if (at[d] < box->dim[d].lo || at[d] >= box->dim[d].hi)
      return false;
  return true;
}

// Every term is multiplied once, and one of the ranks with its terms makes each
// element of the result.
static void cover_check(const setting_t *s, const sdg_product_parts_t *m) {
  const int64_t *e = s->call.operand[0].extent;
  int64_t at[4];
  for (at[0] = 0; at[0] < e[0]; at[0]++)
    for (at[1] = 0; at[1] < e[1]; at[1]++)
      for (at[3] = 0; at[3] < e[3]; at[3]++) {
        int makers = 0;
        const sdg_matrix_t *result = &m->product.matrix[SDG_RESULT];
        int64_t of_result[3] = {0};
        for (int d = 0; d < result->dims; d++)
          of_result[d] = at[result->dim[d]];
        for (at[2] = 0; at[2] < e[2]; at[2]++) {
          int terms = 0;
          for (int r = 0; r < s->ranks; r++) {
            sdg_box_t box = sdg_product_own_box(m, r);
            terms += holds(&box, at);
          }
          REQUIRE(terms == 1);
        }
        for (int r = 0; r < s->ranks; r++) {
          sdg_box_t piece = sdg_product_piece(m, r);
          sdg_box_t all = sdg_product_need(m, SDG_RESULT, r);
          REQUIRE(!holds(&piece, of_result) || holds(&all, of_result));
          makers += holds(&piece, of_result);
        }
        REQUIRE(makers == 1);
      }
}

// What a rank receives: its partners' terms for its piece; and the other
// pieces, unless C stays in pieces.
static int64_t received_expected(const setting_t *s,
                                 const sdg_product_parts_t *m, int rank) {
  if (!m->sum_axes)
    return 0;
  sdg_box_t piece = sdg_product_piece(m, rank);
  sdg_box_t all = sdg_product_need(m, SDG_RESULT, rank);
  int64_t elements = 0;
  for (int r = 0; r < s->ranks; r++) {
    sdg_box_t box = sdg_product_own_box(m, r);
    bool terms = box.dim[SDG_K].hi > box.dim[SDG_K].lo;
    if (r != rank && terms && sdg_product_partners(m, r, rank))
      elements += sdg_box_count(&piece);
  }
  if (s->section.matrix[SDG_MATRIX_C].splits == 0)
    elements += sdg_box_count(&all) - sdg_box_count(&piece);
  return elements * (int64_t)sizeof(float);
}

// For each pair of ranks, sent bytes equal received bytes.
static void messages_check(sdg_plan_t **plan, int ranks) {
  for (int from = 0; from < ranks; from++)
    for (int to = 0; to < ranks; to++) {
      size_t sent = 0, received = 0;
      for (int i = 0; i < plan[from]->parcels; i++)
        if (plan[from]->parcel[i].is_send && plan[from]->parcel[i].peer == to)
          sent += plan[from]->parcel[i].bytes;
      for (int i = 0; i < plan[to]->parcels; i++)
        if (!plan[to]->parcel[i].is_send && plan[to]->parcel[i].peer == from)
          received += plan[to]->parcel[i].bytes;
      REQUIRE(sent == received);
    }
}

START_TEST(ranks_share_a_product_and_send_no_more_than_its_sums_take) {
  sdg_library_set_finder(find);
  seed = 7;
  for (int64_t i = 0; i < random_cases(400); i++) {
    static setting_t s;
    static sdg_tagging_t tagging;
    sdg_plan_t *plan[16];
    setting_draw(&s);
    for (int r = 0; r < s.ranks; r++) {
      sdg_product_parts_t m;
      tagging_make(&s, r, &tagging);
      REQUIRE(!sdg_product_open(&s.call, &tagging, &m));
      if (r == 0)
        cover_check(&s, &m);
      REQUIRE(!sdg_product_share(&s.call, &tagging, &plan[r]));
      REQUIRE(plan[r]->received_bytes == received_expected(&s, &m, r));
      sdg_product_fini(&m);
      for (int o = 0; o < SDG_OPERANDS_MAX; o++)
        sdg_placement_fini(&tagging.placement[o]);
    }
    messages_check(plan, s.ranks);
    for (int r = 0; r < s.ranks; r++)
      sdg_plan_destroy(plan[r]);
  }
}
END_TEST

// A product of 60 x n, whose K is split over so many ranks.
static setting_t sums_setting(int n, int type, int ranks) {
  setting_t s = {.ranks = ranks};
  s.gemm = gemm_of(60, n, 32);
  s.gemm.type_a = s.gemm.type_b = s.gemm.type_c = type;
  s.mesh = (sdg_mesh_t){.axes = 1, .name = {"y"}, .size = {ranks}};
  s.section.view = SDG_VIEW_WHOLE;
  s.section.sum_axes = 1;
  split_add(s.section.split, &s.section.splits, SDG_DIM_K, &s.mesh, 0);
  return s;
}

static void sums_read(setting_t *s) {
  s->call = (sdg_call_t){.entry_name = "product", .family = SDG_FAMILY_MATMUL};
  sdg_product_read(&s->gemm, &s->call);
  s->call.operand[0].extent[SDG_BATCH] = 1;
}

// Engines load 16 bytes at once.
START_TEST(pieces_of_sums_begin_at_multiples_of_16_bytes) {
  static const struct {
    int n, type, ranks;
    int64_t first[7];
  } row[] = {
      {88, CUDA_R_16F, 6, {0, 16, 32, 48, 64, 80, 88}},
      {22, CUDA_R_32F, 3, {0, 8, 16, 22}},
      {10, CUDA_R_64F, 3, {0, 4, 8, 10}},
      {40, CUDA_R_16F, 6, {0, 7, 14, 21, 28, 34, 40}}, // less than 8 for each
  };
  sdg_library_set_finder(find);
  for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
    static sdg_tagging_t tagging;
    sdg_product_parts_t m;
    setting_t s = sums_setting(row[i].n, row[i].type, row[i].ranks);
    sums_read(&s);
    tagging_make(&s, 0, &tagging);
    REQUIRE(!sdg_product_open(&s.call, &tagging, &m));
    int d = m.product.matrix[SDG_RESULT].outer;
    for (int r = 0; r < s.ranks; r++) {
      sdg_box_t piece = sdg_product_piece(&m, r);
      ck_assert_int_eq(piece.dim[d].lo, row[i].first[r]);
      ck_assert_int_eq(piece.dim[d].hi, row[i].first[r + 1]);
    }
    sdg_product_fini(&m);
    for (int o = 0; o < SDG_OPERANDS_MAX; o++)
      sdg_placement_fini(&tagging.placement[o]);
  }
}
END_TEST

// Results of 60 x 48: a reduce-scatter moves (P-1)/P mn, an all-reduce twice
// that.
START_TEST(sums_over_three_ranks_receive_the_bytes_of_the_formulas) {
  sdg_library_set_finder(find);
  for (int stays = 0; stays < 2; stays++) {
    setting_t s = sums_setting(48, CUDA_R_32F, 3);
    sdg_rules_matrix_t *c = &s.section.matrix[SDG_MATRIX_C];
    if (stays)
      split_add(c->split, &c->splits, SDG_DIM_N, &s.mesh, 0);
    sums_read(&s);
    for (int r = 0; r < 3; r++) {
      static sdg_tagging_t tagging;
      sdg_plan_t *plan;
      tagging_make(&s, r, &tagging);
      REQUIRE(!sdg_product_share(&s.call, &tagging, &plan));
      REQUIRE(plan->received_bytes == (stays ? 1 : 2) * 2 * 60 * 48 / 3 * 4);
      sdg_plan_destroy(plan);
      for (int o = 0; o < SDG_OPERANDS_MAX; o++)
        sdg_placement_fini(&tagging.placement[o]);
    }
  }
}
END_TEST

// ---- the shard view ---------------------------------------------------------

// What each of three ranks receives: hidden units are cut into 11+11+10, tokens
// into 20+20+20.
typedef struct row {
  const char *what;
  sdg_dim_t split;
  int64_t m, n, k; // 32 hidden, 60 tokens, 24 inputs
  int matrix;      // the matrix that is cut otherwise; -1: none
  sdg_dim_t dim;   // the dimension that it is cut in; SDG_DIM_COUNT: none
  bool stays;      // the sums stay in pieces along N
  int64_t tokens;  // floats of each token of another rank that come here
  int64_t sums;    // floats of sums, from each other rank
} row_t;

static const int64_t hidden[] = {11, 11, 10};

// C (32 x 60) = A (32 x 24) B (24 x 60); with K = 32 C is 24 x 60.
static const row_t rows[] = {
    {"rows of A", SDG_DIM_M, 32, 60, 24, -1, 0, false, 0, 0},
    {"columns of B gathered for rows of A", SDG_DIM_M, 32, 60, 24, SDG_MATRIX_B,
     SDG_DIM_N, false, 24, 0},
    {"terms of B gathered for rows of A", SDG_DIM_M, 32, 24, 60, SDG_MATRIX_B,
     SDG_DIM_K, false, 24, 0},
    {"rows of A gathered for columns of B", SDG_DIM_N, 60, 32, 24, SDG_MATRIX_A,
     SDG_DIM_M, false, 24, 0},
    {"terms, scattered", SDG_DIM_K, 24, 60, 32, -1, 0, true, 0, 24 * 20},
    {"terms, everywhere", SDG_DIM_K, 24, 60, 32, -1, 0, false, 24, 24 * 20},
    {"all of B, terms of A", SDG_DIM_K, 24, 60, 32, SDG_MATRIX_B, SDG_DIM_COUNT,
     true, 0, 24 * 20},
};

static void row_setting(const row_t *row, setting_t *s) {
  memset(s, 0, sizeof *s);
  s->ranks = 3;
  s->mesh = (sdg_mesh_t){.axes = 1, .name = {"y"}, .size = {3}};
  s->section.view = SDG_VIEW_SHARD;
  s->section.sum_axes = 1;
  split_add(s->section.split, &s->section.splits, row->split, &s->mesh, 0);
  if (row->stays) {
    sdg_rules_matrix_t *c = &s->section.matrix[SDG_MATRIX_C];
    split_add(c->split, &c->splits, SDG_DIM_N, &s->mesh, 0);
  }
  if (row->matrix >= 0) {
    sdg_rules_matrix_t *said = &s->section.matrix[row->matrix];
    said->said = true;
    if (row->dim != SDG_DIM_COUNT)
      split_add(said->split, &said->splits, row->dim, &s->mesh, 0);
  }
}

static int64_t row_received(const row_t *row, int rank) {
  static setting_t s;
  static sdg_tagging_t tagging;
  const int64_t whole[] = {row->m, row->n, row->k, 1};
  int64_t own[] = {row->m, row->n, row->k};
  int cut = sdg_dim_index(SDG_FAMILY_MATMUL, row->split, 4);
  row_setting(row, &s);
  own[cut] = hidden[rank];
  s.gemm = gemm_of(own[0], own[1], own[2]);
  s.gemm.in_pieces = true;
  s.gemm.lda = s.gemm.ldb = s.gemm.ldc = 100;
  s.call = (sdg_call_t){.entry_name = "product", .family = SDG_FAMILY_MATMUL};
  sdg_product_read(&s.gemm, &s.call);
  memcpy(s.call.operand[0].extent, whole, sizeof whole);
  tagging_make(&s, rank, &tagging); // even parts of 32 are 11+11+10
  sdg_plan_t *plan;
  REQUIRE(!sdg_product_plan(&s.call, &tagging, &plan));
  int64_t bytes = plan->received_bytes;
  sdg_plan_destroy(plan);
  for (int o = 0; o < SDG_OPERANDS_MAX; o++)
    sdg_placement_fini(&tagging.placement[o]);
  return bytes;
}

START_TEST(pieces_receive_the_bytes_of_the_table) {
  sdg_library_set_finder(find);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    for (int rank = 0; rank < 3; rank++) {
      int64_t floats = 2 * (20 * rows[i].tokens + rows[i].sums);
      int64_t bytes = row_received(&rows[i], rank);
      REQUIRE_MSG(bytes == floats * 4, "%s: %lld bytes, not %lld", rows[i].what,
                  (long long)bytes, (long long)floats * 4);
    }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("matmul");
  TCase *cases = tcase_create("matmul");
  tcase_add_test(cases,
                 ranks_share_a_product_and_send_no_more_than_its_sums_take);
  tcase_add_test(cases,
                 sums_over_three_ranks_receive_the_bytes_of_the_formulas);
  tcase_add_test(cases, pieces_of_sums_begin_at_multiples_of_16_bytes);
  tcase_add_test(cases, pieces_receive_the_bytes_of_the_table);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
