// SPDX-License-Identifier: Apache-2.0
// Options: which values are accepted, and which messages others get.
#include "src/base/options.h"

#include <stdio.h>
#include <string.h>

#include "src/base/words.h"
#include "tests/unit/harness.h"

enum { VARIABLES_MAX = 4 };

START_TEST(without_options_nothing_is_asked_for) {
  char *none[] = {"HOME=/root", "SUNDOGS_RULES=x", NULL};
  ck_assert_int_eq((int)sdg_options_load(none), 0);
  const sdg_options_t *options = sdg_options_get();
  ck_assert(!sdg_options_asked(options));
  ck_assert_str_eq(options->rules, "");
  ck_assert_str_eq(options->parts, "agree");
  ck_assert_int_eq(options->view, SDG_VIEW_UNSAID);
  ck_assert_int_eq(options->rank, -1);
  ck_assert_double_eq(options->timeout_s, 600);
  ck_assert_int_eq((int)sdg_options_fault(), 0);
  ck_assert_int_eq((int)sdg_options_load(NULL), 0);
}
END_TEST

START_TEST(replicated_asks_for_no_split) {
  char *environment[] = {"SUNDOG_SPLIT=replicated", "SUNDOG_VIEW=whole",
                         "SUNDOG_MESH=y=4", NULL};
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  ck_assert_int_eq((int)sdg_options_fault(), 0);
  ck_assert(sdg_options_replicated(sdg_options_get()));
  ck_assert(!sdg_options_asked(sdg_options_get()));
}
END_TEST

START_TEST(values_are_parsed_and_outlive_the_environment) {
  char split[] = "SUNDOG_SPLIT=H:y,W:x";
  char *environment[] = {split,
                         "SUNDOG_VIEW=shard",
                         "SUNDOG_RANK=3",
                         "SUNDOG_SIZE=4",
                         "SUNDOG_TIMEOUT=0.5",
                         "SUNDOG_CHECK=Yes",
                         "SUNDOG_STRATEGY=extend",
                         "SUNDOG_ON_ERROR=ignore",
                         "SUNDOG_COST=1.3e12,0,.5",
                         NULL};
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  memset(split, 'x', strlen(split));
  const sdg_options_t *options = sdg_options_get();
  ck_assert(sdg_options_asked(options));
  ck_assert_str_eq(options->split, "H:y,W:x");
  ck_assert_int_eq(options->view, SDG_VIEW_SHARD);
  ck_assert_int_eq(options->rank, 3);
  ck_assert_int_eq(options->size, 4);
  ck_assert_double_eq(options->timeout_s, 0.5);
  ck_assert(options->check);
  ck_assert_int_eq(options->strategy, SDG_STRATEGY_EXTEND);
  ck_assert_int_eq(options->on_error, SDG_ON_ERROR_IGNORE);
  ck_assert(options->cost.copy_bytes_s == 1.3e12 &&
            options->cost.launch_us == 0 && options->cost.strip_us == 0.5);
  ck_assert_int_eq(options->origin[SDG_OPTION_SPLIT], SDG_ORIGIN_ENVIRONMENT);
  ck_assert_int_eq(options->origin[SDG_OPTION_MESH], SDG_ORIGIN_DEFAULT);
}
END_TEST

static sdg_origin_t origin_with(const char *sign, uint32_t mark) {
  char origins[64];
  snprintf(origins, sizeof origins, "SUNDOG_ORIGINS=RANK+1 SPLIT%s%08x", sign,
           mark);
  char *environment[] = {"SUNDOG_SPLIT=H", origins, NULL};
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  return sdg_options_get()->origin[SDG_OPTION_SPLIT];
}

START_TEST(a_command_says_what_it_has_set_unless_another_has_set_it_since) {
  ck_assert_int_eq(origin_with("=", sdg_option_mark("H")), SDG_ORIGIN_ARGUMENT);
  ck_assert_int_eq(origin_with("+", sdg_option_mark("H")), SDG_ORIGIN_COMMAND);
  ck_assert_int_eq(origin_with("=", sdg_option_mark("W")),
                   SDG_ORIGIN_ENVIRONMENT);
  ck_assert_int_eq(origin_with("", sdg_option_mark("H")),
                   SDG_ORIGIN_ENVIRONMENT);
}
END_TEST

START_TEST(an_empty_value_counts_as_not_set) {
  char *environment[] = {
      "SUNDOG_SPLIT=", "SUNDOG_RANK=", "SUNDOG_CHECK=", "SUNDOG_VIEW=", NULL};
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  ck_assert(!sdg_options_asked(sdg_options_get()));
}
END_TEST

static const struct bad {
  char *variable[VARIABLES_MAX];
  sdg_status_t status;
  bool asked;
  const char *says; // a part of the message
} bads[] = {
    {{"SUNDOG_SPILT=H"}, SDG_E_OPTION_UNKNOWN, true, "nearest: SUNDOG_SPLIT"},
    {{"SUNDOG_RULE=x"}, SDG_E_OPTION_UNKNOWN, true, "nearest: SUNDOG_RULES"},
    {{"SUNDOG_timeout=3"}, SDG_E_OPTION_UNKNOWN, true, "SUNDOG_TIMEOUT"},
    {{"SUNDOG_=3"}, SDG_E_OPTION_UNKNOWN, true, "SUNDOG_"},
    {{"SUNDOG_VIEW=shards", "SUNDOG_SPLIT=H"},
     SDG_E_OPTION_VALUE,
     true,
     "it takes shard, whole"},
    {{"SUNDOG_TIMEOUT=soon"}, SDG_E_OPTION_VALUE, false, "=soon"},
    {{"SUNDOG_TIMEOUT=0"}, SDG_E_OPTION_VALUE, false, "above 0"},
    {{"SUNDOG_TIMEOUT=nan"}, SDG_E_OPTION_VALUE, false, "above 0"},
    {{"SUNDOG_TIMEOUT=10s"}, SDG_E_OPTION_VALUE, false, "=10s"},
    {{"SUNDOG_CHECK=maybe"}, SDG_E_OPTION_VALUE, false, "neither yes nor no"},
    {{"SUNDOG_RANK=-1", "SUNDOG_SIZE=2"},
     SDG_E_OPTION_VALUE,
     false,
     "SUNDOG_RANK=-1"},
    {{"SUNDOG_RANK=99999999999", "SUNDOG_SIZE=2"},
     SDG_E_OPTION_VALUE,
     false,
     "SUNDOG_RANK=9"},
    {{"SUNDOG_COST=1.3e12"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=1.3e12,5"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=1.3e12,5,42,"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP,RUN"},
    {{"SUNDOG_COST=1.3e12,5,42,-1"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP,RUN"},
    {{"SUNDOG_COST=1.3e12,5,42,64,1"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP,RUN"},
    {{"SUNDOG_COST=1.3e12,5,42,64b"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP,RUN"},
    {{"SUNDOG_COST=1.3e12,5,"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=0,5,42"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=-1,5,42"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=1e400,5,42"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=inf,5,42"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=nan,5,42"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=0x10,5,42"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=1.3e12, 5,42"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=1.3e12,5,42us"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=1.3e12;5;42"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_COST=1.3e12,-5,42"},
     SDG_E_OPTION_VALUE,
     false,
     "is not BYTES,LAUNCH,STRIP"},
    {{"SUNDOG_MESH=y=4"}, SDG_E_OPTION_CONFLICT, true, "SUNDOG_MESH is set"},
    {{"SUNDOG_VIEW=shard"}, SDG_E_OPTION_CONFLICT, true, "SUNDOG_VIEW is set"},
    {{"SUNDOG_PARTS=even"}, SDG_E_OPTION_CONFLICT, true, "SUNDOG_PARTS is set"},
    {{"SUNDOG_SPLIT=replicated", "SUNDOG_PARTS=even"},
     SDG_E_OPTION_CONFLICT,
     true,
     "SUNDOG_PARTS is set but SUNDOG_SPLIT=replicated splits nothing"},
    {{"SUNDOG_SPLIT=replicated", "SUNDOG_STRATEGY=extend"},
     SDG_E_OPTION_CONFLICT,
     true,
     "SUNDOG_STRATEGY is set"},
    {{"SUNDOG_SPLIT=replicated", "SUNDOG_WRAP=H"},
     SDG_E_OPTION_CONFLICT,
     true,
     "SUNDOG_WRAP is set"},
    {{"SUNDOG_SPLIT=replicated", "SUNDOG_WINDOW=local"},
     SDG_E_OPTION_CONFLICT,
     true,
     "SUNDOG_WINDOW is set"},
    {{"SUNDOG_SPLIT=replicated", "SUNDOG_PIECE_VALUES=local"},
     SDG_E_OPTION_CONFLICT,
     true,
     "SUNDOG_PIECE_VALUES is set"},
    {{"SUNDOG_RULES=f", "SUNDOG_SPLIT=H"},
     SDG_E_OPTION_CONFLICT,
     true,
     "exclude each other"},
    {{"SUNDOG_RANK=1"}, SDG_E_OPTION_CONFLICT, false, "without SUNDOG_SIZE"},
    {{"SUNDOG_SIZE=1"}, SDG_E_OPTION_CONFLICT, false, "without SUNDOG_RANK"},
    {{"SUNDOG_RANK=2", "SUNDOG_SIZE=2"},
     SDG_E_OPTION_CONFLICT,
     false,
     "is not below"},
};

START_TEST(a_fault_is_kept_and_says_what) {
  const struct bad *bad = &bads[_i];
  char *environment[VARIABLES_MAX + 1] = {NULL};
  memcpy(environment, bad->variable, sizeof bad->variable);
  ck_assert_int_eq((int)sdg_options_load(environment), (int)bad->status);
  ck_assert_msg(strstr(sdg_options_fault_text(), bad->says), "%s",
                sdg_options_fault_text());
  ck_assert_int_eq(sdg_options_asked(sdg_options_get()), bad->asked);
  ck_assert_str_eq(sdg_last_error(), ""); // no message so far
  ck_assert_int_eq((int)sdg_options_fault(), (int)bad->status);
  ck_assert_msg(strstr(sdg_last_error(), bad->says), "%s", sdg_last_error());
}
END_TEST

START_TEST(the_first_fault_is_kept) {
  char *environment[] = {"SUNDOG_CHECK=?", "SUNDOG_SPILT=H", NULL};
  ck_assert_int_eq((int)sdg_options_load(environment), SDG_E_OPTION_VALUE);
  ck_assert(sdg_options_asked(sdg_options_get()));
}
END_TEST

START_TEST(an_overlong_value_is_a_fault) {
  static char value[70000] = "SUNDOG_RULES=";
  memset(value + 13, 'a', sizeof value - 14);
  char *environment[] = {value, NULL};
  ck_assert_int_eq((int)sdg_options_load(environment), SDG_E_OPTION_VALUE);
  ck_assert_ptr_nonnull(strstr(sdg_options_fault_text(), "too long"));
  ck_assert(sdg_options_asked(sdg_options_get()));
  ck_assert_str_eq(sdg_options_get()->rules, "");
}
END_TEST

START_TEST(the_host_devices_names_are_known) {
  char *environment[] = {"SUNDOG_HOST_ENGINE=onednn", "SUNDOG_HOST_MEMORY=1",
                         "SUNDOG_HOST_POISON=1",
                         "SUNDOG_HOST_GRAPHS=graphs.txt", NULL};
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  ck_assert(!sdg_options_asked(sdg_options_get()));
}
END_TEST

START_TEST(every_option_is_described) {
  const sdg_option_info_t *info;
  unsigned n = 0;
  for (; (info = sdg_option_at(n)); n++) {
    ck_assert_msg(strlen(info->paragraph) > 30, "%s", info->variable);
    ck_assert_msg(strcmp(info->type, "CHOICE") != 0 || *info->words, "%s",
                  info->variable);
  }
  ck_assert_uint_eq(n, SDG_OPTION_COUNT);
}
END_TEST

START_TEST(distances_are_edit_distances) {
  static const struct {
    const char *a, *b;
    int distance;
  } cases[] = {
      {"", "", 0},          {"", "abc", 3},           {"abc", "", 3},
      {"abc", "abc", 0},    {"ABC", "abc", 0},        {"split", "spilt", 1},
      {"rule", "rules", 1}, {"kitten", "sitting", 3}, {"even", "event", 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    ck_assert_int_eq(sdg_word_distance(cases[i].a, cases[i].b),
                     cases[i].distance);
}
END_TEST

START_TEST(lists_of_words_are_indexed) {
  ck_assert_int_eq(sdg_word_index("a|bc|d", "bc", 2), 1);
  ck_assert_int_eq(sdg_word_index("a|bc|d", "b", 1), -1);
  ck_assert_int_eq(sdg_word_index("|a", "", 0), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("options");
  TCase *cases = tcase_create("options");
  tcase_add_test(cases, without_options_nothing_is_asked_for);
  tcase_add_test(cases, replicated_asks_for_no_split);
  tcase_add_test(cases, values_are_parsed_and_outlive_the_environment);
  tcase_add_test(
      cases, a_command_says_what_it_has_set_unless_another_has_set_it_since);
  tcase_add_test(cases, an_empty_value_counts_as_not_set);
  tcase_add_loop_test(cases, a_fault_is_kept_and_says_what, 0,
                      sizeof bads / sizeof *bads);
  tcase_add_test(cases, the_first_fault_is_kept);
  tcase_add_test(cases, an_overlong_value_is_a_fault);
  tcase_add_test(cases, the_host_devices_names_are_known);
  tcase_add_test(cases, every_option_is_described);
  tcase_add_test(cases, distances_are_edit_distances);
  tcase_add_test(cases, lists_of_words_are_indexed);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
