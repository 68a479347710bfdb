// SPDX-License-Identifier: Apache-2.0
// The words of keys: each means the same in a section and in an option.
#include "rules/file/word.h"

#include "tests/unit/rules_text.h"

// The words of a key in a section, and of the option that is its default: each
// table may have them in its own order.
static const struct {
  sdg_rules_key_t key;
  sdg_option_t option;
} chosen[] = {
    {SDG_KEY_VIEW, SDG_OPTION_VIEW},
    {SDG_KEY_STRATEGY, SDG_OPTION_STRATEGY},
    {SDG_KEY_VALUES, SDG_OPTION_PIECE_VALUES},
};

START_TEST(a_key_and_its_option_take_the_same_words) {
  for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
    sdg_key_words_t words;
    const char *rest = sdg_option_at(chosen[i].option)->words;
    sdg_word_t word;
    char text[32];
    int count = 0;
    sdg_key_words(chosen[i].key, &words);
    for (rest += *rest == '|'; sdg_word_next(&rest, "|", &word); count++) {
      snprintf(text, sizeof text, "%.*s", word.length, word.at);
      ck_assert_msg(sdg_key_takes(chosen[i].key, text), "%s", text);
    }
    ck_assert_int_eq(words.count, count);
  }
}
END_TEST

static sdg_section_t section_by(char *said) {
  char *environment[] = {"SUNDOG_SPLIT=H", "SUNDOG_VIEW=shard", said, NULL};
  sdg_rules_t rules;
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  ck_assert_int_eq((int)sdg_rules_load(sdg_options_get(), 2, &rules), 0);
  sdg_section_t section = rules.section[0];
  sdg_rules_fini(&rules);
  return section;
}

static sdg_section_t section_of(const char *line) {
  char text[128];
  sdg_rules_t rules;
  snprintf(text, sizeof text, SHARD "split = H\n%s\n", line);
  ck_assert_int_eq((int)text_load(text, &rules), 0);
  sdg_section_t section = rules.section[0];
  sdg_rules_fini(&rules);
  return section;
}

START_TEST(each_word_of_a_key_has_its_own_meaning) {
  static const struct {
    const char *word;
    sdg_strategy_t window, attention;
    bool adjoint;
  } strategies[] = {
      {"auto", SDG_STRATEGY_AUTO, SDG_STRATEGY_AUTO, false},
      {"repair", SDG_STRATEGY_REPAIR, SDG_STRATEGY_AUTO, false},
      {"extend", SDG_STRATEGY_EXTEND, SDG_STRATEGY_AUTO, false},
      {"adjoint", SDG_STRATEGY_AUTO, SDG_STRATEGY_AUTO, true},
      {"halo", SDG_STRATEGY_AUTO, SDG_STRATEGY_HALO, false},
      {"heads", SDG_STRATEGY_AUTO, SDG_STRATEGY_HEADS, false},
      {"gather", SDG_STRATEGY_AUTO, SDG_STRATEGY_GATHER, false},
  };
  for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
    char line[64], option[64];
    snprintf(line, sizeof line, "strategy = %s", strategies[i].word);
    snprintf(option, sizeof option, "SUNDOG_STRATEGY=%s", strategies[i].word);
    sdg_section_t section[2] = {section_of(line), section_by(option)};
    for (int k = 0; k < 2; k++) {
      ck_assert_int_eq(section[k].strategy, strategies[i].window);
      ck_assert_int_eq(section[k].attention, strategies[i].attention);
      ck_assert_int_eq(section[k].adjoint, strategies[i].adjoint);
    }
  }
  sdg_section_t kept[4] = {section_of("keep = no"), section_of("keep = dy"),
                           section_of("keep = x"), section_of("keep = x dy")};
  for (int i = 0; i < 4; i++)
    ck_assert(kept[i].keeps_dy == (i % 2 == 1) && kept[i].keeps_x == (i >= 2));
  ck_assert_int_eq(section_of("values = error").values, SDG_PIECE_VALUES_ERROR);
  ck_assert_int_eq(section_of("values = local").values, SDG_PIECE_VALUES_LOCAL);
  ck_assert_int_eq(section_of("values = global").values,
                   SDG_PIECE_VALUES_GLOBAL);
  ck_assert_int_eq(section_of("window = global").window, SDG_WINDOW_GLOBAL);
  ck_assert_int_eq(section_of("window = local").window, SDG_WINDOW_LOCAL);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("word");
  TCase *cases = tcase_create("word");
  tcase_add_test(cases, a_key_and_its_option_take_the_same_words);
  tcase_add_test(cases, each_word_of_a_key_has_its_own_meaning);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
