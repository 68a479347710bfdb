// SPDX-License-Identifier: Apache-2.0
// Which rules are the same rules: ranks with other ones are refused.
#include "tests/unit/rules_text.h"

static uint64_t digest_of(const char *text, const char *option) {
  sdg_rules_t rules;
  ck_assert_int_eq((int)bytes_load(text, strlen(text), option, RANKS, &rules),
                   0);
  uint64_t digest = rules.digest;
  sdg_rules_fini(&rules);
  return digest;
}

#define PLAIN SHARD "match = N C H W\nsplit = H\nwrap = W\n"

START_TEST(the_same_rules_have_one_digest_however_they_are_written) {
  static const struct {
    const char *text, *option;
  } same[] = {
      {"# another comment\n[shard b]\nwrap=W\n\nview = shard\n"
       "match  =  N C H W\nsplit=H\n",
       NULL},
      {PLAIN "strategy = extend\n", NULL},
      {PLAIN, "SUNDOG_STRATEGY=repair"},
      {PLAIN, "SUNDOG_VIEW=shard"},
      {PLAIN, "SUNDOG_WRAP=H"}, // the section's counts
      {PLAIN, "SUNDOG_PIECE_VALUES=error"},
      {"[shard a]\nmatch = N C H W\nsplit = H\nwrap = W\n",
       "SUNDOG_VIEW=shard"},
      {SHARD "match = N C H W\nsplit = H\n", "SUNDOG_WRAP=W"},
      {PLAIN "parts = agree\nsum = yes\nkeep = no\nvalues = error\n", NULL},
  };
  uint64_t digest = digest_of(PLAIN, NULL);
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    ck_assert_msg(digest_of(same[i].text, same[i].option) == digest, "%zu: %s",
                  i, same[i].text);
  ck_assert(
      digest_of("[extents]\nrows = 64\n" SHARD
                "match = H>=rows\nsplit = H\nparts = 16, 16,16,16\n",
                NULL) ==
      digest_of(SHARD "match = H>=64\nsplit = H\nparts = 16,16,16,16\n", NULL));
}
END_TEST

#define FUNCTION                                                               \
  "[function step]\narguments = in u, out v, int n\n"                          \
  "tensor = u v: float [H=n]\nstream = none\n"

START_TEST(libraries_may_have_other_file_names) {
  uint64_t digest = digest_of(SHARD "split = H\n" FUNCTION "reach = H:1\n"
                                    "library = libstep.so.1\n",
                              NULL);
  ck_assert(digest == digest_of(SHARD "split = H\n" FUNCTION "reach = H:1\n"
                                      "library = libstep.so.2\n",
                                NULL));
  ck_assert(digest !=
            digest_of(SHARD "split = H\n" FUNCTION "reach = H:2\n", NULL));
}
END_TEST

START_TEST(other_rules_have_other_digests) {
  static const struct {
    const char *text, *option;
  } other[] = {
      {SHARD "split = H\n", NULL},
      {SHARD "split = W\n", NULL},
      {SHARD "split = H\nmatch = H>=64\n", NULL},
      {"[extents]\nrows = 65\n" SHARD "split = H\nmatch = H>=rows\n", NULL},
      {SHARD "split = H\nmatch = H>64\n", NULL},
      {SHARD "split = H\nmatch = W>=64\n", NULL},
      {SHARD "split = H\nop = conv*\n", NULL},
      {SHARD "split = H\nop = conv* pool*\n", NULL},
      {SHARD "split = H\nparts = even\n", NULL},
      {SHARD "split = H\nparts = 9,9,9,8\n", NULL},
      {SHARD "split = H\n", "SUNDOG_PARTS=9,9,8,9"},
      {"[shard a]\nview = whole\nsplit = H\n", NULL},
      {SHARD "split = H\nsum = no\n", NULL},
      {SHARD "split = H\nwrap = H\n", NULL},
      {SHARD "split = H\n", "SUNDOG_WRAP=W"},
      {SHARD "split = H\nwindow = global\n", NULL},
      {SHARD "split = H\nwindow = 5,0\n", NULL},
      {SHARD "split = H\n", "SUNDOG_WINDOW=0,5"},
      {SHARD "split = H\nkeep = x\n", NULL},
      {SHARD "split = H\nkeep = dy\n", NULL},
      {SHARD "split = H\nvalues = local\n", NULL},
      {SHARD "split = H\n", "SUNDOG_PIECE_VALUES=global"},
      {SHARD "split = SEQ\nlengths = piece\n", NULL},
      {SHARD "split = SEQ\nlengths = whole\n", NULL},
      {SHARD "split = K\nsizes = piece\n", NULL},
      {SHARD "split = K\nsizes = whole\n", NULL},
      {SHARD "split = K\nsizes = K:piece N:whole\nc = N\n", NULL},
      {SHARD "split = M\nsizes = M:piece N:whole\na = M\nb = N\n", NULL},
      {SHARD "split = M\nsizes = M:piece K:whole\na = M\nb = K\n", NULL},
      {SHARD "split = H:y\n", "SUNDOG_MESH=y=2,x=2"},
      {SHARD "split = H:x\n", "SUNDOG_MESH=y=2,x=2"},
      {SHARD "split = H:y\n", "SUNDOG_MESH=x=2,y=2"},
      {"[mesh]\ny = 2\nx = 2\nsame = x\n" SHARD "split = H:y\n", NULL},
      {SHARD "split = H\n" SHARD_B, NULL},
      {SHARD_B SHARD "split = H\n", NULL},
      {SHARD "split = H\n[local b]\n", NULL},
      {SHARD "split = H\n[local b]\nop = pool*\n", NULL},
  };
  enum { COUNT = sizeof other / sizeof *other };
  uint64_t digest[COUNT];
  for (int i = 0; i < COUNT; i++) {
    digest[i] = digest_of(other[i].text, other[i].option);
    for (int j = 0; j < i; j++)
      ck_assert_msg(digest[i] != digest[j], "%s and %s", other[i].text,
                    other[j].text);
  }
}
END_TEST

static uint64_t tags_digest(char *option) {
  char *environment[] = {"SUNDOG_SPLIT=tags", "SUNDOG_VIEW=shard", option,
                         NULL};
  sdg_rules_t rules;
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  ck_assert_int_eq((int)sdg_rules_load(sdg_options_get(), RANKS, &rules), 0);
  uint64_t digest = rules.digest;
  sdg_rules_fini(&rules);
  return digest;
}

START_TEST(options_that_hold_for_tags_count_where_the_program_tags) {
  uint64_t digest = tags_digest(NULL);
  ck_assert(digest == tags_digest("SUNDOG_STRATEGY=extend"));
  ck_assert(digest != tags_digest("SUNDOG_WRAP=W"));
  ck_assert(digest != tags_digest("SUNDOG_PIECE_VALUES=local"));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("file_digest");
  TCase *cases = tcase_create("digest");
  tcase_add_test(cases,
                 the_same_rules_have_one_digest_however_they_are_written);
  tcase_add_test(cases, libraries_may_have_other_file_names);
  tcase_add_test(cases, other_rules_have_other_digests);
  tcase_add_test(cases,
                 options_that_hold_for_tags_count_where_the_program_tags);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
