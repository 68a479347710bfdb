// SPDX-License-Identifier: Apache-2.0
// Attention is recognised in graphs as versions of cudnn-frontend state it, and
// in no graph that means something else.
#include "rules/graph/composite/composite.h"

#include <math.h>
#include <string.h>

#include "tests/unit/graph/composite/forms.h"
#include "tests/unit/graph/composite/meaning.h"
#include "tests/unit/graph/composite/mutate.h"
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

static bool is_readable(const form_t *form, sdg_composite_t *out) {
  bool is;
  return !sdg_composite_read(form->graph, &is, out) && !out->unified;
}

START_TEST(recorded_graphs_compute_what_is_recognised) {
  static form_t form[FORMS_MAX];
  int forms = forms_read(path, form), read = 0;
  for (int i = 0; i < forms; i++) {
    sdg_composite_t composite;
    program_t program;
    if (!is_readable(&form[i], &composite))
      continue;
    read++;
    program_create(&program, form[i].graph, &composite);
    REQUIRE_MSG(meaning_of(form[i].graph, &program) == MEANING_RIGHT, "%s %s",
                form[i].version, form[i].name);
    program_destroy(&program);
  }
  forms_free(form, forms);
  ck_assert_int_gt(read, 0);
}
END_TEST

// Of the forms, and of what is tried with each.
static double share(void) {
  return sqrt(cases_factor());
}

typedef struct judge {
  const form_t *form;
  const program_t *program;
  double due;
  int refused, right, wrong;
} judge_t;

static void judge_mutant(const sdg_graph_t *mutant, const char *text, bool must,
                         void *of) {
  judge_t *judge = of;
  if (!case_is_due(share(), &judge->due))
    return;
  meaning_t meaning = meaning_of(mutant, judge->program);
  judge->refused += meaning == MEANING_REFUSED;
  judge->right += meaning == MEANING_RIGHT && !must;
  if (meaning == MEANING_REFUSED || (meaning == MEANING_RIGHT && !must))
    return;
  if (judge->wrong++ < 10)
    printf("# %s %s: %s: recognised%s\n", judge->form->version,
           judge->form->name, text,
           meaning == MEANING_WRONG ? ", and computes something else" : "");
}

START_TEST(mutants_are_refused_or_mean_what_is_recognised) {
  static form_t form[FORMS_MAX];
  int forms = forms_read(path, form);
  judge_t judge = {.due = 1};
  double due = 1;
  for (int i = 0; i < forms; i++) {
    sdg_composite_t composite;
    program_t program;
    if (!case_is_due(share(), &due) || !is_readable(&form[i], &composite))
      continue;
    program_create(&program, form[i].graph, &composite);
    judge.form = &form[i];
    judge.program = &program;
    mutate(form[i].graph, judge_mutant, &judge);
    program_destroy(&program);
  }
  forms_free(form, forms);
  printf("# %d mutants refused, %d mean what is recognised\n", judge.refused,
         judge.right);
  fflush(stdout); // Check ends the process without
  ck_assert_int_gt(judge.right, 0);
  ck_assert_int_ge(judge.refused, random_cases(100 * forms));
  ck_assert_int_eq(judge.wrong, 0);
}
END_TEST

START_TEST(numbers_are_refused_or_mean_what_is_recognised) {
  static const double numbers[] = {-100, -1, 0, 0.5, 1, 2, 16};
  static form_t form[FORMS_MAX];
  int forms = forms_read(path, form), counts[3] = {0};
  double due = 1, form_due = 1;
  for (int i = 0; i < forms; i++) {
    const sdg_graph_t *graph = form[i].graph;
    sdg_composite_t composite;
    program_t program;
    if (!case_is_due(share(), &form_due) || !is_readable(&form[i], &composite))
      continue;
    program_create(&program, graph, &composite);
    for (int t = 0; t < graph->tensor_count; t++)
      for (size_t k = 0;
           program.pointer[t] && k < sizeof numbers / sizeof *numbers; k++) {
        const sdg_graph_tensor_t *tensor = &graph->tensor[t];
        double right = program.value[t][0];
        if ((tensor->type == CUDNN_DATA_INT32 && numbers[k] == 0.5) ||
            !case_is_due(share(), &due))
          continue;
        program_number(&program, tensor, t, numbers[k]);
        meaning_t meaning = meaning_of(graph, &program);
        REQUIRE_MSG(meaning != MEANING_WRONG, "%s %s: %g in tensor %d",
                    form[i].version, form[i].name, numbers[k], t);
        counts[meaning]++;
        program_number(&program, tensor, t, right);
      }
    program_destroy(&program);
  }
  forms_free(form, forms);
  ck_assert_int_gt(counts[MEANING_REFUSED], 0);
  ck_assert_int_gt(counts[MEANING_RIGHT], 0);
}
END_TEST

int main(int argc, char **argv) {
  if (argc != 2)
    return EXIT_FAILURE;
  path = argv[1];
  Suite *suite = suite_create("graph_composite");
  TCase *tcase = tcase_create("all");
  tcase_add_test(tcase, recorded_graphs_are_what_the_program_asked_for);
  tcase_add_test(tcase, recorded_graphs_compute_what_is_recognised);
  tcase_add_test(tcase, mutants_are_refused_or_mean_what_is_recognised);
  tcase_add_test(tcase, numbers_are_refused_or_mean_what_is_recognised);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
