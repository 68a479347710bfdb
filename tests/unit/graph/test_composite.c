// SPDX-License-Identifier: Apache-2.0
// Attention is recognised in graphs as versions of cudnn-frontend state it, and
// in no graph that means something else.
#include "rules/graph/composite/composite.h"

#include <string.h>

#include "tests/unit/graph/composite/forms.h"
#include "tests/unit/harness.h"

static const char *path;

START_TEST(recorded_graphs_are_what_the_program_asked_for) {
  static form_t form[FORMS_MAX];
  int forms = forms_read(path, form), wrong = 0;
  for (int i = 0; i < forms; i++) {
    char text[512];
    if (strcmp(form_summary(form[i].graph, text), form[i].expected) == 0)
      continue;
    printf("# %s %s: %s\n#   for %s\n", form[i].version, form[i].name, text,
           form[i].expected);
    wrong++;
  }
  forms_free(form, forms);
  ck_assert_int_gt(forms, 0);
  ck_assert_int_eq(wrong, 0);
}
END_TEST

int main(int argc, char **argv) {
  if (argc != 2)
    return EXIT_FAILURE;
  path = argv[1];
  Suite *suite = suite_create("graph_composite");
  TCase *tcase = tcase_create("all");
  tcase_add_test(tcase, recorded_graphs_are_what_the_program_asked_for);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
