// SPDX-License-Identifier: Apache-2.0
// Rules: what is read from a file and from the short form.
#include "tests/unit/rules_text.h"

static const char full[] =
    "[mesh]\n"
    "y = 4                          ; axis name = ranks\n"
    "\n"
    "# a comment\n"
    "[local head]                   ; every rank's own\n"
    "match = N C 1 1\n"
    "[shard field]\n"
    "match = N C H>=64 W>=64        ; global extents\n"
    "  op    = conv* pool*\n"
    "split = H:y\n"
    "parts = 300,300,212,212\n"
    "view  = shard\n"
    "sum   = no\n"
    "keep  = dy\n"
    "values = local\n"
    "wrap  = W\n"
    "strategy = repair\n"
    "window = global\n"
    "[shard]\n"
    "split = W\n"
    "wrap =\n"
    "view = shard\n";

START_TEST(a_full_file_is_read) {
  sdg_rules_t rules;
  ck_assert_int_eq((int)text_load(full, &rules), 0);
  ck_assert_int_eq(rules.sections, 3);
  ck_assert_int_eq(rules.mesh.axes, 1);
  ck_assert_int_eq(rules.mesh.size[0], 4);
  ck_assert_uint_eq(rules.axes, 1);
  const sdg_section_t *head = &rules.section[0], *field = &rules.section[1],
                      *rest = &rules.section[2];
  ck_assert(head->is_local && head->listed);
  ck_assert_str_eq(head->name, "head");
  ck_assert_int_eq(head->line, 5);
  ck_assert_int_eq(head->terms, 4);
  ck_assert(!field->is_local && !field->listed);
  ck_assert_str_eq(field->name, "field");
  ck_assert_int_eq(field->globs, 2);
  ck_assert_int_eq(field->splits, 1);
  ck_assert_int_eq(field->split[0].dim, SDG_DIM_H);
  ck_assert_uint_eq(field->split[0].axes, 1);
  ck_assert_int_eq(field->split[0].pieces, 4);
  ck_assert_str_eq(field->split[0].parts, "300,300,212,212");
  ck_assert_int_eq(field->view, SDG_VIEW_SHARD);
  ck_assert_uint_eq(field->sum_axes, 0);
  ck_assert(field->keeps_dy && !rest->keeps_dy);
  ck_assert_int_eq(field->values, SDG_PIECE_VALUES_LOCAL);
  ck_assert_int_eq(rest->values, SDG_PIECE_VALUES_ERROR);
  ck_assert_uint_eq(field->wrap, 1u << SDG_DIM_W);
  ck_assert_int_eq(field->strategy, SDG_STRATEGY_REPAIR);
  ck_assert_int_eq(field->window, SDG_WINDOW_GLOBAL);
  ck_assert_str_eq(rest->name, "line 19");
  ck_assert_str_eq(rest->split[0].parts, "agree");
  ck_assert_int_eq(rest->split[0].dim, SDG_DIM_W);
  ck_assert_uint_eq(rest->sum_axes, rest->split[0].axes);
  ck_assert_uint_eq(rest->wrap, 0);
  ck_assert_int_eq(rest->window, SDG_WINDOW_UNSAID);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(line_ends_and_a_byte_order_mark_do_not_matter) {
  static const char text[] = "\xEF\xBB\xBF[shard a]\r\nsplit = H:y\r\n"
                             "view = shard"; // no newline at the end
  sdg_rules_t rules;
  ck_assert_int_eq((int)text_load(text, &rules), 0);
  ck_assert_str_eq(rules.section[0].name, "a");
  ck_assert_str_eq(rules.mesh.name[0], "y");
  ck_assert_int_eq(rules.mesh.size[0], RANKS);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(several_axes_and_dimensions_are_read) {
  static const char text[] =
      "[mesh]\ndata=2\ny=2\nx=2\n[shard a]\nview=shard\n"
      "split = N : data , H:y+x\nparts = H:1,2,3,4 N:even/8\n"
      "window = 5,6\n";
  sdg_rules_t rules;
  ck_assert_int_eq((int)bytes_load(text, sizeof text - 1, NULL, 8, &rules), 0);
  const sdg_section_t *a = &rules.section[0];
  ck_assert_int_eq(a->splits, 2);
  ck_assert_int_eq(a->split[0].dim, SDG_DIM_N);
  ck_assert_uint_eq(a->split[0].axes, 1);
  ck_assert_str_eq(a->split[0].parts, "even/8");
  ck_assert_uint_eq(a->split[1].axes, 6);
  ck_assert_int_eq(a->split[1].pieces, 4);
  ck_assert_str_eq(a->split[1].parts, "1,2,3,4");
  ck_assert_uint_eq(rules.axes, 7);
  sdg_rules_fini(&rules);
}
END_TEST

// Names of [extents] stand for numbers, wherever this section is in the file.
START_TEST(names_of_extents_are_their_numbers) {
  static const char text[] =
      "[shard a]\nview = shard\nsplit = H\n"
      "match = N=batch C>=hidden-2 H<tokens_1 W==hidden-2\n"
      "[extents]\nbatch = 1\ntokens_1 = 9007199254740992\nhidden-2=48\n";
  sdg_rules_t rules;
  ck_assert_int_eq((int)text_load(text, &rules), 0);
  const sdg_term_t *term = rules.section[0].term;
  ck_assert_int_eq(rules.section[0].terms, 4);
  ck_assert_int_eq(term[0].value, 1);
  ck_assert_int_eq(term[1].value, 48);
  ck_assert_int_eq(term[1].compare, SDG_COMPARE_GE);
  ck_assert_int_eq(term[2].value, (int64_t)1 << 53);
  ck_assert_int_eq(term[3].value, 48);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(options_are_the_defaults_of_sections) {
  static const char text[] = "[mesh]\ny=3\n[shard a]\nsplit=H:y\n";
  sdg_rules_t rules;
  ck_assert_int_eq(
      (int)bytes_load(text, sizeof text - 1, "SUNDOG_VIEW=shard", 3, &rules),
      0);
  ck_assert_int_eq(rules.section[0].view, SDG_VIEW_SHARD);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(the_mesh_option_replaces_that_of_the_file) {
  static const char text[] = "[mesh]\ny=3\n[shard a]\nsplit=H:y\nview=shard\n";
  sdg_rules_t rules;
  ck_assert_int_eq(
      (int)bytes_load(text, sizeof text - 1, "SUNDOG_MESH=d=2,y=2", 4, &rules),
      0);
  ck_assert_uint_eq(rules.section[0].split[0].axes, 2);
  ck_assert_uint_eq(rules.axes, 2);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(other_keys_follow_the_short_form_behind_semicolons) {
  char *environment[] = {
      "SUNDOG_SPLIT=K:y; sizes = K:piece N:whole ;c=N:y;parts = N:even",
      "SUNDOG_VIEW=shard", NULL};
  sdg_rules_t rules;
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  ck_assert_int_eq((int)sdg_rules_load(sdg_options_get(), 4, &rules), 0);
  const sdg_section_t *section = &rules.section[0];
  ck_assert_int_eq(section->splits, 1);
  ck_assert_int_eq(section->sizes[1], SDG_SIZES_WHOLE);
  ck_assert_int_eq(section->sizes[2], SDG_SIZES_PIECE);
  ck_assert_str_eq(section->matrix[SDG_MATRIX_C].split[0].parts, "even");
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(the_short_form_is_one_section) {
  char *environment[] = {"SUNDOG_SPLIT=H:y,W:x", "SUNDOG_MESH=y=2,x=2",
                         "SUNDOG_VIEW=shard",    "SUNDOG_STRATEGY=extend",
                         "SUNDOG_PARTS=even",    "SUNDOG_WRAP=H W",
                         "SUNDOG_WINDOW=512,0",  NULL};
  sdg_rules_t rules;
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  ck_assert_int_eq((int)sdg_rules_load(sdg_options_get(), 4, &rules), 0);
  ck_assert_int_eq(rules.sections, 1);
  const sdg_section_t *section = &rules.section[0];
  ck_assert_int_eq(section->splits, 2);
  ck_assert_int_eq(section->strategy, SDG_STRATEGY_EXTEND);
  ck_assert_str_eq(section->split[1].parts, "even");
  ck_assert_uint_eq(section->wrap, 1u << SDG_DIM_H | 1u << SDG_DIM_W);
  ck_assert_uint_eq(section->sum_axes, sdg_section_axes(section));
  ck_assert_int_eq(section->window, SDG_WINDOW_SIZES);
  ck_assert_int_eq(section->window_left, 512);
  ck_assert_int_eq(section->window_right, 0);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(a_section_says_what_lengths_count) {
  static const struct {
    const char *split;
    sdg_sizes_t lengths;
  } texts[] = {{"SUNDOG_SPLIT=SEQ", SDG_SIZES_UNSAID},
               {"SUNDOG_SPLIT=SEQ; lengths = piece", SDG_SIZES_PIECE},
               {"SUNDOG_SPLIT=SEQ; lengths = whole", SDG_SIZES_WHOLE}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char split[64];
    char *environment[] = {split, "SUNDOG_VIEW=shard", NULL};
    sdg_rules_t rules;
    snprintf(split, sizeof split, "%s", texts[i].split);
    ck_assert_int_eq((int)sdg_options_load(environment), 0);
    ck_assert_int_eq((int)sdg_rules_load(sdg_options_get(), 4, &rules), 0);
    ck_assert_int_eq(rules.section[0].lengths, texts[i].lengths);
    sdg_rules_fini(&rules);
  }
}
END_TEST

// The window of a section replaces that of the option.
START_TEST(a_window_of_the_section_comes_first) {
  char *environment[] = {"SUNDOG_SPLIT=H; window = local", "SUNDOG_VIEW=shard",
                         "SUNDOG_WINDOW=global", NULL};
  sdg_rules_t rules;
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  ck_assert_int_eq((int)sdg_rules_load(sdg_options_get(), 2, &rules), 0);
  ck_assert_int_eq(rules.section[0].window, SDG_WINDOW_LOCAL);
  sdg_rules_fini(&rules);
}
END_TEST

static sdg_section_t strategy_said(char *said) {
  char *environment[] = {"SUNDOG_SPLIT=H", "SUNDOG_VIEW=shard", said, NULL};
  sdg_rules_t rules;
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  ck_assert_int_eq((int)sdg_rules_load(sdg_options_get(), 2, &rules), 0);
  sdg_section_t section = rules.section[0];
  sdg_rules_fini(&rules);
  return section;
}

START_TEST(a_strategy_option_applies_to_the_ops_that_have_it) {
  sdg_section_t section = strategy_said("SUNDOG_STRATEGY=adjoint");
  ck_assert(section.adjoint && section.strategy == SDG_STRATEGY_AUTO &&
            section.attention == SDG_STRATEGY_AUTO);
  section = strategy_said("SUNDOG_STRATEGY=gather");
  ck_assert(!section.adjoint && section.strategy == SDG_STRATEGY_AUTO &&
            section.attention == SDG_STRATEGY_GATHER);
  section = strategy_said("SUNDOG_STRATEGY=repair");
  ck_assert(!section.adjoint && section.strategy == SDG_STRATEGY_REPAIR &&
            section.attention == SDG_STRATEGY_AUTO);
}
END_TEST

START_TEST(split_tags_leaves_the_split_to_the_programs_tags) {
  char *environment[] = {"SUNDOG_SPLIT=tags", "SUNDOG_MESH=y=2,x=2",
                         "SUNDOG_VIEW=shard", "SUNDOG_STRATEGY=extend", NULL};
  sdg_rules_t rules;
  sdg_section_t section;
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  ck_assert_int_eq((int)sdg_rules_load(sdg_options_get(), 4, &rules), 0);
  ck_assert_int_eq(rules.sections, 0);
  ck_assert_uint_eq(rules.axes, 3); // any axis may be named
  ck_assert_int_eq(
      (int)sdg_rules_label(&rules, sdg_options_get(), "H:y+x", &section), 0);
  ck_assert_int_eq(section.splits, 1);
  ck_assert_uint_eq(section.split[0].axes, 3);
  ck_assert_str_eq(section.split[0].parts, "agree");
  ck_assert_int_eq(section.strategy, SDG_STRATEGY_EXTEND);
  ck_assert(!section.is_local && section.sum_axes == 3);
  int64_t extent[4] = {1, 1, 1, 1};
  ck_assert(sdg_section_match(&section, SDG_FAMILY_CONV, "any", extent, 4));
  sdg_section_fini(&section);
  ck_assert_int_eq(
      (int)sdg_rules_label(&rules, sdg_options_get(), "local", &section), 0);
  ck_assert(section.is_local);
  sdg_section_fini(&section);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(gradients_are_summed_over_the_axes_of_the_key_sum) {
  static const struct {
    const char *sum;
    sdg_axes_t axes;
  } cases[] = {
      {"", 7},          {"sum = yes\n", 7},      {"sum = no\n", 0},
      {"sum = y\n", 2}, {"sum = x + data\n", 5},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[256];
    sdg_rules_t rules;
    snprintf(text, sizeof text,
             "[mesh]\ndata=1\ny=2\nx=2\n[shard a]\nview = shard\n"
             "split = N:data, H:y, W:x\n%s",
             cases[i].sum);
    ck_assert_int_eq((int)text_load(text, &rules), 0);
    ck_assert_uint_eq(rules.section[0].sum_axes, cases[i].axes);
    sdg_rules_fini(&rules);
  }
}
END_TEST

// Any bytes must give a status, and accepted rules must be within bounds. The
// cases are the same every time.
START_TEST(mutated_files_are_read_or_refused) {
  static const char words[] = "[]=:;#,+-/ \t\n\0H9{*";
  char text[sizeof full];
  uint32_t state = 1;
  ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
  int accepted = 0;
  for (int round = 0; round < 3000; round++) {
    memcpy(text, full, sizeof text);
    size_t bytes = sizeof full - 1;
    for (int change = 0; change < 1 + round % 4; change++) {
      state = state * 1664525u + 1013904223u;
      size_t at = (state >> 8) % bytes;
      char byte =
          round % 2 ? words[(state >> 24) % sizeof words] : (char)(state >> 24);
      if (state % 5 == 0) { // removes a few bytes
        size_t end = at + state / 7 % 40 < bytes ? at + state / 7 % 40 : bytes;
        memmove(text + at, text + end, bytes - end);
        bytes -= end - at;
      } else {
        text[at] = byte;
      }
    }
    sdg_rules_t rules;
    if (bytes_load(text, bytes, NULL, RANKS, &rules) != SDG_OK)
      continue;
    accepted++;
    const int64_t extent[SDG_DIMS_MAX] = {1, 3, 64, 64, 64};
    for (int dims = 0; dims <= SDG_DIMS_MAX; dims++)
      (void)sdg_rules_may_match(&rules, SDG_FAMILY_CONV, "", extent, dims);
    for (int i = 0; i < rules.sections; i++)
      ck_assert(rules.section[i].is_local || rules.section[i].splits >= 1);
    sdg_rules_fini(&rules);
  }
  ck_assert_int_gt(accepted, 100);
}
END_TEST

START_TEST(the_longest_line_is_read_in_full) {
  char text[512] = SHARD "split = H\nparts = ";
  // "parts = " has 8 bytes; the list fills the rest of the line.
  size_t head = strlen(text);
  memset(text + head, '0', 196 - 8);
  memcpy(text + head + 196 - 8 - 6, "1,2,34", 6);
  memcpy(text + head, "7,", 2);
  sdg_rules_t rules;
  ck_assert_int_eq((int)text_load(text, &rules), 0);
  const char *parts = rules.section[0].split[0].parts;
  ck_assert_uint_eq(strlen(parts), 196 - 8);
  ck_assert_str_eq(parts + strlen(parts) - 3, ",34");
  sdg_rules_fini(&rules);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rulesfile");
  TCase *cases = tcase_create("rulesfile");
  tcase_add_test(cases, a_full_file_is_read);
  tcase_add_test(cases, line_ends_and_a_byte_order_mark_do_not_matter);
  tcase_add_test(cases, several_axes_and_dimensions_are_read);
  tcase_add_test(cases, names_of_extents_are_their_numbers);
  tcase_add_test(cases, options_are_the_defaults_of_sections);
  tcase_add_test(cases, a_strategy_option_applies_to_the_ops_that_have_it);
  tcase_add_test(cases, split_tags_leaves_the_split_to_the_programs_tags);
  tcase_add_test(cases, the_mesh_option_replaces_that_of_the_file);
  tcase_add_test(cases, the_short_form_is_one_section);
  tcase_add_test(cases, a_section_says_what_lengths_count);
  tcase_add_test(cases, a_window_of_the_section_comes_first);
  tcase_add_test(cases, other_keys_follow_the_short_form_behind_semicolons);
  tcase_add_test(cases, gradients_are_summed_over_the_axes_of_the_key_sum);
  tcase_add_test(cases, mutated_files_are_read_or_refused);
  tcase_add_test(cases, the_longest_line_is_read_in_full);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
