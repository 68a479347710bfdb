// SPDX-License-Identifier: Apache-2.0
// Rules: the messages about faults in a file and in the short form.
#include "tests/unit/rules_text.h"

static const struct bad {
  const char *text;
  sdg_status_t status;
  int line; // 0: none
  const char *says;
} bads[] = {
    {"", SDG_E_RULES_EMPTY, 0, "no [shard] section"},
    {"[mesh]\ny=4\n", SDG_E_RULES_EMPTY, 0, "no [shard]"},
    {"[local a]\nmatch = N C 1 1\n", SDG_E_RULES_EMPTY, 0, "no [shard]"},
    {SHARD, SDG_E_RULES_EMPTY, 1, "no 'split ='"},
    {SHARD "split =\n", SDG_E_RULES_EMPTY, 1, "no 'split ='"},
    {SHARD "split = ,\n", SDG_E_RULES_WORD, 3, "dimension"},
    {"[shard a]\nsplit = H\n", SDG_E_VIEW_UNSAID, 1, "view = shard"},
    {"[mesh]\na=2\nb=2\n[shard s]\nview=shard\nsplit=H:a\nsum=b\n",
     SDG_E_RULES_WORD, 7, "nearest: a"},
    {"[shard a]\nsplit = H\nview = whole\nsum = no\n", SDG_E_VIEW_WHOLE, 3,
     "the key 'sum' in section 'a'"},
    {"[shard a]\nsplit = H\nview = whole\n[shard b]\nsplit = H\nview = shard\n",
     SDG_E_RULES_VALUE, 6, "another view"},
    {SHARD "split = H\nkeep = dx\n", SDG_E_RULES_WORD, 4, "nearest: dy"},
    {SHARD "split = H\nvalues = globl\n", SDG_E_RULES_WORD, 4,
     "nearest: global"},
    {"[shard a]\nsplit = H\nview = hole\n", SDG_E_RULES_WORD, 3,
     "nearest: whole"},
    {"[shrad a]\nsplit = H\n", SDG_E_RULES_WORD, 1, "nearest: shard"},
    {"[]\n", SDG_E_RULES_WORD, 1, "nearest"},
    {"[shard a\nsplit = H\n", SDG_E_RULES_SYNTAX, 1, "needs a ]"},
    {"[shard a] split = H\n", SDG_E_RULES_SYNTAX, 1,
     "must not follow [section]"},
    {"[shard a b]\nsplit = H\n", SDG_E_RULES_SYNTAX, 1, "one word"},
    {"[mesh a]\ny = 4\n", SDG_E_RULES_SYNTAX, 1, "cannot have a name"},
    {"split = H\n", SDG_E_RULES_SYNTAX, 1, "before the first section"},
    {SHARD "split\n", SDG_E_RULES_SYNTAX, 3, "'split' is neither"},
    {SHARD "split = H\nmatch = H=rows\n", SDG_E_RULES_WORD, 4,
     "no [extents] section that defines it"},
    {"[extents]\nrows = 4\n" SHARD "split = H\nmatch = H=row\n",
     SDG_E_RULES_WORD, 6,
     "'row' is not a known name in [extents]; nearest: rows"},
    {"[extents]\nrows = 4\nrows = 4\n", SDG_E_RULES_TWICE, 3,
     "already in line 2"},
    {"[extents]\nH = 4\n", SDG_E_RULES_VALUE, 2,
     "H is the name of a dimension"},
    {"[extents]\n4 = 4\n", SDG_E_RULES_VALUE, 2, "'4' is not a name"},
    {"[extents]\nrows = 0\n", SDG_E_RULES_VALUE, 2, "a number of elements"},
    {"[extents]\nrows = 9007199254740993\n", SDG_E_RULES_VALUE, 2,
     "a number of elements"},
    {"[extents]\nrows = columns\n", SDG_E_RULES_VALUE, 2, "rows = columns"},
    {"[extents]\n[extents]\n", SDG_E_RULES_TWICE, 2,
     "[extents] is already in line 1"},
    {"[extents x]\n", SDG_E_RULES_SYNTAX, 1, "cannot have a name"},
    {SHARD "spilt = H\n", SDG_E_RULES_WORD, 3, "nearest: split"},
    {SHARD "split = H\nsplit = W\n", SDG_E_RULES_TWICE, 4, "line 3"},
    {SHARD "split = H\n" SHARD "split = W\n", SDG_E_RULES_TWICE, 4, "line 1"},
    {"[mesh]\ny=4\n[mesh]\nx=1\n", SDG_E_RULES_TWICE, 3, "line 1"},
    {SHARD "split = X\n", SDG_E_RULES_WORD, 3, "'X' is not a known dimension"},
    {SHARD "split = h\n", SDG_E_RULES_WORD, 3, "nearest: H"},
    {SHARD "split = SQE\n", SDG_E_RULES_WORD, 3, "nearest: SEQ"},
    {"[mesh]\nyy = 4\n" SHARD "split = H:yx\n", SDG_E_RULES_WORD, 5,
     "nearest: yy"},
    {SHARD "split = H:\n", SDG_E_RULES_VALUE, 3, "no axis"},
    {SHARD "split = H:y,W:y\n", SDG_E_RULES_TWICE, 3, "axis 'y'"},
    {SHARD "split = H:y+y\n", SDG_E_RULES_TWICE, 3, "axis 'y'"},
    {SHARD "split = H:y,H:y\n", SDG_E_RULES_TWICE, 3, "H is split twice"},
    {"[mesh]\ny=2\nx=2\n" SHARD "split = H:x+y\n", SDG_E_RULES_VALUE, 6,
     "order"},
    {"[mesh]\ny=2\nx=2\n" SHARD "split = H\n", SDG_E_RULES_VALUE, 6, "H:y"},
    {SHARD "split = H:y,W:x\n", SDG_E_RULES_MESH, 0, "several axes"},
    {"[mesh]\ny = 3\n" SHARD "split = H:y\n", SDG_E_RULES_MESH, 1,
     "y=3 does not have 4 ranks"},
    {"[mesh]\ny = 0\n" SHARD "split = H:y\n", SDG_E_RULES_VALUE, 2, "y = 0"},
    {"[mesh]\ny = four\n" SHARD "split = H:y\n", SDG_E_RULES_VALUE, 2, "four"},
    {"[mesh]\ny = 99999999999999999999\n" SHARD "split = H:y\n",
     SDG_E_RULES_VALUE, 2, "y = 9"},
    {"[mesh]\ny=4\ny=1\n" SHARD "split = H:y\n", SDG_E_MESH, 0, "twice"},
    {SHARD "split = H\nparts = evne\n", SDG_E_RULES_WORD, 4, "nearest: even"},
    {SHARD "split = H\nparts = evn/32\n", SDG_E_RULES_WORD, 4,
     "nearest: even/32"},
    {SHARD "split = H\nparts = evne/64\n", SDG_E_RULES_WORD, 4,
     "nearest: even/64"},
    {SHARD "split = H\nparts = even/0\n", SDG_E_RULES_VALUE, 4, "even/"},
    {SHARD "split = H\nparts = even/x\n", SDG_E_RULES_VALUE, 4, "even/"},
    {SHARD "split = H\nparts = 1,2,3\n", SDG_E_RULES_VALUE, 4,
     "3 sizes are given for the 4 parts of H"},
    {SHARD "split = H\nparts = 1,2,3,\n", SDG_E_RULES_VALUE, 4, "not a list"},
    {SHARD "split = H\nparts = 1,,2,3\n", SDG_E_RULES_VALUE, 4, "not a list"},
    {SHARD "split = H\nparts = 1,-2,3,4\n", SDG_E_RULES_VALUE, 4, "not a list"},
    {SHARD "split = H\nparts = W:even\n", SDG_E_RULES_VALUE, 4, "W, which"},
    {SHARD "split = H\nparts = even # all\n", SDG_E_RULES_WORD, 4, "#all"},
    {SHARD "split = H\nmatch = N C G>=4\n", SDG_E_RULES_WORD, 4, "'G'"},
    {SHARD "split = H\nmatch = N C H >= 4\n", SDG_E_RULES_WORD, 4, ""},
    {SHARD "split = H\nmatch = N C H>=\n", SDG_E_RULES_VALUE, 4, "H>=64"},
    {SHARD "split = H\nmatch = H>=4k\n", SDG_E_RULES_VALUE, 4, "H>=64"},
    {SHARD "split = H\nmatch = N H 1 1\n", SDG_E_RULES_VALUE, 4,
     "H cannot be dimension 2 of 4"},
    {SHARD "split = H\nmatch = N C 1 N\n", SDG_E_RULES_TWICE, 4, "twice"},
    {SHARD "split = H\nop = convo\n", SDG_E_RULES_WORD, 4, "nearest: conv"},
    {SHARD "split = H\nsum = maybe\n", SDG_E_RULES_WORD, 4, "'maybe'"},
    {SHARD "split = H\nwrap = C\n", SDG_E_RULES_VALUE, 4, "periodic"},
    {SHARD "split = H\nwrap = Z\n", SDG_E_RULES_WORD, 4, "'Z'"},
    {SHARD "split = H\nstrategy = repiar\n", SDG_E_RULES_WORD, 4,
     "nearest: repair"},
    {SHARD "split = H\nwindow = globl\n", SDG_E_RULES_WORD, 4,
     "nearest: global"},
    {SHARD "split = H\nwindow = 5\n", SDG_E_RULES_VALUE, 4, "512,512"},
    {"[local a]\nsplit = H\n", SDG_E_RULES_VALUE, 2, "key of [shard]"},
};

START_TEST(a_faulty_file_is_answered_with_place_and_word) {
  const struct bad *bad = &bads[_i];
  sdg_rules_t rules;
  char place[64];
  ck_assert_msg((int)text_load(bad->text, &rules) == (int)bad->status,
                "%s\nfor\n%s", sdg_last_error(), bad->text);
  if (bad->line)
    snprintf(place, sizeof place, "%s:%d: ", path, bad->line);
  else
    snprintf(place, sizeof place, "SDG-");
  ck_assert_msg(strstr(sdg_last_error(), place), "%s", sdg_last_error());
  ck_assert_msg(strstr(sdg_last_error(), bad->says), "%s", sdg_last_error());
}
END_TEST

START_TEST(a_nul_byte_is_a_fault) {
  static const char text[] = SHARD "split = H\0:y\n";
  sdg_rules_t rules;
  ck_assert_int_eq((int)bytes_load(text, sizeof text - 1, NULL, 4, &rules),
                   SDG_E_RULES_SYNTAX);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), ":3: the line has a NUL"));
}
END_TEST

START_TEST(an_overlong_line_or_name_is_a_fault) {
  char text[1024];
  sdg_rules_t rules;
  snprintf(text, sizeof text, SHARD "split = H%*s\nview = shard\n", 400, "");
  // Spaces at the end do not count.
  ck_assert_int_eq((int)text_load(text, &rules), SDG_E_RULES_TWICE);
  snprintf(text, sizeof text, SHARD "split = H%0*d\n", 200, 1);
  ck_assert_int_eq((int)text_load(text, &rules), SDG_E_RULES_SYNTAX);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), ":3: the line is longer"));
  snprintf(text, sizeof text, SHARD "split%0*d = H\n", 60, 1);
  ck_assert_int_eq((int)text_load(text, &rules), SDG_E_RULES_SYNTAX);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "name is longer"));
  snprintf(text, sizeof text, "[shard a%0*d]\n", 60, 1);
  ck_assert_int_eq((int)text_load(text, &rules), SDG_E_RULES_SYNTAX);
}
END_TEST

START_TEST(files_that_are_not_regular_are_faults) {
  static char *const files[] = {"SUNDOG_RULES=/nonexistent/x",
                                "SUNDOG_RULES=/tmp", "SUNDOG_RULES=/dev/zero"};
  for (int i = 0; i < 3; i++) {
    char *environment[] = {files[i], NULL};
    sdg_rules_t rules;
    ck_assert_int_eq((int)sdg_options_load(environment), 0);
    ck_assert_int_eq((int)sdg_rules_load(sdg_options_get(), 4, &rules),
                     SDG_E_RULES_FILE);
  }
}
END_TEST

static const struct bad_short {
  char *variable[4];
  sdg_status_t status;
  const char *says;
} bad_shorts[] = {
    {{"SUNDOG_SPLIT=X", "SUNDOG_VIEW=shard"},
     SDG_E_RULES_WORD,
     "SUNDOG_SPLIT: 'X' is not a known dimension"},
    {{"SUNDOG_SPLIT=K; sizes", "SUNDOG_VIEW=shard"},
     SDG_E_RULES_SYNTAX,
     "'sizes' should be like 'sizes = piece'"},
    {{"SUNDOG_SPLIT=K; size = piece", "SUNDOG_VIEW=shard"},
     SDG_E_RULES_WORD,
     "nearest: sizes"},
    {{"SUNDOG_SPLIT=K; sizes = piece; sizes = whole", "SUNDOG_VIEW=shard"},
     SDG_E_RULES_TWICE,
     "'sizes' is given twice"},
    {{"SUNDOG_SPLIT=H"}, SDG_E_VIEW_UNSAID, "SUNDOG_VIEW"},
    {{"SUNDOG_SPLIT=tags"}, SDG_E_VIEW_UNSAID, "SUNDOG_VIEW"},
    {{"SUNDOG_SPLIT=tags", "SUNDOG_VIEW=whole"},
     SDG_E_VIEW_WHOLE,
     "SUNDOG_SPLIT"},
    {{"SUNDOG_SPLIT=H:y", "SUNDOG_VIEW=shard", "SUNDOG_MESH=x=4"},
     SDG_E_RULES_WORD,
     "nearest: x"},
    {{"SUNDOG_SPLIT=H:y", "SUNDOG_VIEW=shard", "SUNDOG_MESH=y=2,x=3"},
     SDG_E_RULES_MESH,
     "SUNDOG_MESH: the mesh y=2,x=3"},
    {{"SUNDOG_SPLIT=H", "SUNDOG_VIEW=shard", "SUNDOG_PARTS=chunky"},
     SDG_E_RULES_WORD,
     "SUNDOG_PARTS: 'chunky'"},
    {{"SUNDOG_SPLIT=H", "SUNDOG_VIEW=shard", "SUNDOG_WRAP=N"},
     SDG_E_RULES_VALUE,
     "SUNDOG_WRAP: N"},
    {{"SUNDOG_SPLIT=SEQ", "SUNDOG_VIEW=shard", "SUNDOG_WINDOW=512"},
     SDG_E_RULES_VALUE,
     "SUNDOG_WINDOW: '512' is not a window"},
};

START_TEST(a_faulty_short_form_is_answered_with_the_option) {
  const struct bad_short *bad = &bad_shorts[_i];
  char *environment[4] = {NULL};
  sdg_rules_t rules;
  memcpy(environment, bad->variable, sizeof bad->variable);
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  ck_assert_int_eq((int)sdg_rules_load(sdg_options_get(), RANKS, &rules),
                   (int)bad->status);
  ck_assert_msg(strstr(sdg_last_error(), bad->says), "%s", sdg_last_error());
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rulesfaults");
  TCase *cases = tcase_create("rulesfaults");
  tcase_add_loop_test(cases, a_faulty_file_is_answered_with_place_and_word, 0,
                      sizeof bads / sizeof *bads);
  tcase_add_test(cases, a_nul_byte_is_a_fault);
  tcase_add_test(cases, an_overlong_line_or_name_is_a_fault);
  tcase_add_test(cases, files_that_are_not_regular_are_faults);
  tcase_add_loop_test(cases, a_faulty_short_form_is_answered_with_the_option, 0,
                      sizeof bad_shorts / sizeof *bad_shorts);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
