// SPDX-License-Identifier: Apache-2.0
// `sundog rules`: reads rules without a run, and prints their meaning.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules/file/file.h"
#include "rules/file/function/function.h"
#include "src/base/options.h"
#include "tools/command.h"

static const char *const entries[] = {
#include "entrynames.inc"
};

enum { KEY_SPLIT = 0x100, KEY_MESH, KEY_VIEW, KEY_PARTS, KEY_CHECK };

typedef struct rules_words {
  int ranks; // 0: not given
  bool file, split;
} rules_words_t;

static void variable_set(struct argp_state *state, const char *name,
                         const char *value) {
  if (setenv(name, value, 1) != 0)
    argp_failure(state, COMMAND_SYSTEM, 0, "out of memory");
}

static error_t rules_parse(int key, char *argument, struct argp_state *state) {
  rules_words_t *words = state->input;
  char *end;
  long ranks;
  switch (key) {
  case KEY_CHECK:
    return 0; // the other steps are skipped
  case KEY_SPLIT:
    words->split = true;
    variable_set(state, "SUNDOG_SPLIT", argument);
    return 0;
  case KEY_MESH:
    variable_set(state, "SUNDOG_MESH", argument);
    return 0;
  case KEY_VIEW:
    variable_set(state, "SUNDOG_VIEW", argument);
    return 0;
  case KEY_PARTS:
    variable_set(state, "SUNDOG_PARTS", argument);
    return 0;
  case 'n':
    errno = 0;
    ranks = strtol(argument, &end, 10);
    if (errno || *end || end == argument || ranks < 1 || ranks > SDG_RANKS_MAX)
      argp_error(state, "-n takes a number of ranks from 1 to %d, not '%s'",
                 SDG_RANKS_MAX, argument);
    words->ranks = (int)ranks;
    return 0;
  case ARGP_KEY_ARG:
    if (words->file)
      argp_error(state, "one file at a time");
    words->file = true;
    variable_set(state, "SUNDOG_RULES", argument);
    return 0;
  case ARGP_KEY_END:
    if (words->file && words->split)
      argp_error(state, "give a file, or --split in its place");
    if (!words->file && !words->split)
      argp_error(state, "a rules file, or --split, is needed");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option rules_options[] = {
    {"check", KEY_CHECK, NULL, 0, "Read the rules and report every fault", 0},
    {"ranks", 'n', "N", 0,
     "For a run of N ranks; default: as many as the mesh or the parts say", 0},
    {"split", KEY_SPLIT, "SPLIT", 0, "In place of a file, as for `sundog run`",
     0},
    {"mesh", KEY_MESH, "MESH", 0, "Axes of ranks, as in data=2,y=4", 0},
    {"view", KEY_VIEW, "shard|whole", 0, "For sections that do not say it", 0},
    {"parts", KEY_PARTS, "PARTS", 0, "For sections that do not say it", 0},
    {0},
};
const struct argp rules_argp = {
    .options = rules_options,
    .parser = rules_parse,
    .args_doc = "--check FILE\n--check --split SPLIT",
    .doc =
        "Reads a rules file, or the short form, without running a program. "
        "Prints the sections as they were understood, or every fault with its "
        "line and, for a word, the most similar one that is valid.\vOptions in "
        "the environment (SUNDOG_VIEW ...) apply as in a run. Only a run can "
        "show what depends on the program's tensors: whether a section matches "
        "any, whether parts add up.\n\n  sundog rules --check net.rules\n  "
        "sundog rules --check -n 4 --view shard --split H"};

static void axes_print(sdg_axes_t axes, const sdg_mesh_t *mesh) {
  const char *between = "";
  for (int a = 0; a < mesh->axes; a++)
    if (axes >> a & 1) {
      printf("%s%s", between, mesh->name[a]);
      between = "+";
    }
}

static void split_print(const char *head, const sdg_rules_split_t *split,
                        int splits, const sdg_mesh_t *mesh) {
  for (int i = 0; i < splits; i++) {
    printf("%s%s:", i ? ", " : head, sdg_dim_name(split[i].dim));
    axes_print(split[i].axes, mesh);
    printf(" in %d (%s)", split[i].pieces,
           split[i].parts ? split[i].parts : "agree");
  }
}

static void pattern_print(const sdg_section_t *section) {
  static const char *const signs[] = {
      [SDG_COMPARE_ANY] = "", [SDG_COMPARE_GE] = ">=", [SDG_COMPARE_LE] = "<=",
      [SDG_COMPARE_GT] = ">", [SDG_COMPARE_LT] = "<",  [SDG_COMPARE_EQ] = "="};
  for (int i = 0; i < section->terms; i++) {
    const sdg_term_t *term = &section->term[i];
    bool named = term->dim != SDG_DIM_COUNT;
    printf(" %s%s", named ? sdg_dim_name(term->dim) : "",
           named ? signs[term->compare] : "");
    if (term->compare != SDG_COMPARE_ANY)
      printf("%lld", (long long)term->value);
  }
  for (int g = 0; g < section->globs; g++)
    printf("%s%s", g ? " " : ", op ", section->glob[g]);
}

// Prints which sizes of a product the calls give; without this, products fail
// in the shard view.
static void sizes_print(const sdg_section_t *section) {
  static const char *const words[] = {[SDG_SIZES_UNSAID] = "unsaid (SDG-621)",
                                      [SDG_SIZES_PIECE] = "piece",
                                      [SDG_SIZES_WHOLE] = "whole"};
  const char *between = ", sizes ";
  if (!sdg_section_multiplies(section) || section->view == SDG_VIEW_WHOLE)
    return;
  for (int d = 0; d < SDG_SIZES_DIMS; d++) {
    sdg_dim_t dim = sdg_dim_at(SDG_FAMILY_MATMUL, d, SDG_SIZES_DIMS);
    bool cut = false;
    for (int m = -1; m < SDG_MATRICES; m++) {
      const sdg_rules_split_t *split =
          m < 0 ? section->split : section->matrix[m].split;
      int splits = m < 0 ? section->splits : section->matrix[m].splits;
      for (int i = 0; i < splits; i++)
        cut |= split[i].dim == dim;
    }
    if (!cut)
      continue;
    printf("%s%s %s", between, sdg_dim_name(dim), words[section->sizes[d]]);
    between = ", ";
  }
}

static void section_print(const sdg_section_t *section,
                          const sdg_mesh_t *mesh) {
  static const char *const matrices[] = {", a ", ", b ", ", c "};
  printf("  [%s %s] match", section->is_local ? "local" : "shard",
         section->name);
  pattern_print(section);
  if (section->terms == 0)
    printf(section->is_local ? " everything" : " what has the dimensions");
  if (!section->is_local) {
    split_print("; split ", section->split, section->splits, mesh);
    for (int m = 0; m < SDG_MATRICES; m++)
      split_print(matrices[m], section->matrix[m].split,
                  section->matrix[m].splits, mesh);
    sizes_print(section);
    printf(", view %s", section->view == SDG_VIEW_WHOLE ? "whole" : "shard");
  }
  printf("\n");
}

// A part of an expression as text, and how tightly its operator binds.
typedef struct part {
  char text[128];
  int binds; // 1: + and -, 2: * and /, 3: a name or a number
} part_t;

// "left op right", with parentheses where they are needed.
static void part_join(char op, const part_t *right, part_t *io_left) {
  int binds = op == '*' || op == '/' ? 2 : 1;
  bool opens = io_left->binds < binds;
  bool closes = right->binds < binds ||
                (right->binds == binds && (op == '-' || op == '/'));
  part_t both = {.binds = binds};
  snprintf(both.text, sizeof both.text, "%s%.48s%s %c %s%.48s%s",
           opens ? "(" : "", io_left->text, opens ? ")" : "", op,
           closes ? "(" : "", right->text, closes ? ")" : "");
  *io_left = both;
}

static void expression_print(const sdg_function_t *function,
                             const sdg_expression_t *expression) {
  part_t part[SDG_EXPRESSION_STEPS];
  int parts = 0;
  for (int i = 0; i < expression->steps; i++) {
    const sdg_expression_step_t *step = &expression->step[i];
    if (step->op == '#' || step->op == '@') {
      part[parts].binds = 3;
      if (step->op == '#')
        snprintf(part[parts].text, sizeof part[parts].text, "%lld",
                 (long long)step->number);
      else
        snprintf(part[parts].text, sizeof part[parts].text, "%s",
                 function->argument[step->number].name);
      parts++;
    } else {
      parts--;
      part_join(step->op, &part[parts], &part[parts - 1]);
    }
  }
  printf("%s", parts > 0 ? part[0].text : "");
}

static void reach_print(const sdg_function_t *function) {
  const char *between = "; reach ";
  for (int d = 0; d <= SDG_DIM_W; d++) {
    if (function->reach[d] == SDG_REACH_UNSAID)
      continue;
    printf("%s%s:", between, sdg_dim_name((sdg_dim_t)d));
    if (function->reach[d] == SDG_REACH_ALL)
      printf("all");
    else if (function->sees[d].before != function->sees[d].behind)
      printf("%lld:%lld", (long long)function->sees[d].before,
             (long long)function->sees[d].behind);
    else
      printf("%lld", (long long)function->reach[d]);
    between = " ";
  }
}

static void border_print(const sdg_function_t *function) {
  const char *between = "; border ";
  for (int d = 0; d <= SDG_DIM_W; d++) {
    if (function->border[d] == SDG_BORDER_OWN)
      continue;
    printf("%s%s:%s", between, sdg_dim_name((sdg_dim_t)d),
           function->border[d] == SDG_BORDER_WRAP ? "wrap" : "zero");
    between = " ";
  }
}

static void results_print(const sdg_function_t *function) {
  static const char *const word[] = {[SDG_FUNCTION_SUM] = "sum",
                                     [SDG_FUNCTION_MAX] = "max",
                                     [SDG_FUNCTION_MIN] = "min",
                                     [SDG_FUNCTION_MEAN] = "mean"};
  const char *between = "; result ";
  for (int r = 0; r < function->results; r++) {
    int tensor = function->result[r].tensor;
    printf("%s%s %s", between, word[function->result[r].combine],
           function->argument[function->tensor[tensor].argument].name);
    between = ", ";
  }
  if (function->returned.number.bytes)
    printf("%s%s return", between, word[function->returned.combine]);
}

static void grid_print(const sdg_function_t *function) {
  const char *between = "; grid ";
  for (int d = 0; d < SDG_GRID_DIMS; d++) {
    if (!function->grid.said[d])
      continue;
    printf("%s%c: ", between, "xyz"[d]);
    expression_print(function, &function->grid.blocks[d]);
    between = ", ";
  }
  for (int a = 0; a < function->arguments; a++) {
    if (!(function->grid.looped >> a & 1))
      continue;
    printf("%sloop: %s", between, function->argument[a].name);
    between = ", ";
  }
}

static void function_print(const sdg_function_t *function) {
  printf("  [%s %s]", function->is_kernel ? "kernel" : "function",
         function->name);
  if (strcmp(function->name, function->symbol) != 0)
    printf(" symbol %s", function->symbol);
  for (int t = 0; t < function->tensors; t++) {
    const sdg_function_tensor_t *tensor = &function->tensor[t];
    const sdg_argument_t *argument = &function->argument[tensor->argument];
    printf("%s %s %s[", t ? "," : "",
           argument->use == SDG_ARGUMENT_IN    ? "in"
           : argument->use == SDG_ARGUMENT_OUT ? "out"
                                               : "inout",
           argument->name);
    for (int i = 0; i < tensor->dims; i++)
      printf("%s%s", i ? " " : "", sdg_dim_name(tensor->dim[i]));
    if (tensor->dims == 0)
      printf("%lld", (long long)tensor->count);
    putchar(']');
  }
  reach_print(function);
  border_print(function);
  for (int o = 0; o < function->offsets; o++)
    printf("%s%s %s", o ? ", " : "; offset ",
           function->argument[function->offset[o].argument].name,
           sdg_dim_name(function->offset[o].dim));
  results_print(function);
  grid_print(function);
  putchar('\n');
}

static void rules_print(const sdg_rules_t *rules, int ranks) {
  printf("%s: %d section%s, for %d ranks,", rules->source, rules->sections,
         rules->sections == 1 ? "" : "s", ranks);
  for (int a = 0; a < rules->mesh.axes; a++)
    printf(" %s=%d", rules->mesh.name[a], rules->mesh.size[a]);
  printf("\n");
  if (rules->sections == 0)
    printf(sdg_options_replicated(sdg_options_get())
               ? "  nothing is split\n"
               : "  the program says itself what is split (sundog.h)\n");
  for (int s = 0; s < rules->sections; s++)
    section_print(&rules->section[s], &rules->mesh);
  for (int f = 0; f < rules->functions; f++)
    function_print(&rules->function[f]);
}

int command_rules(int argc, char **argv) {
  rules_words_t words = {.ranks = 0};
  argp_parse(&rules_argp, argc, argv, 0, NULL, &words);
  // The command line gives one of the two options; the environment's other one
  // must not count.
  unsetenv(words.file ? "SUNDOG_SPLIT" : "SUNDOG_RULES");
  (void)sdg_options_load(environ); // the next call reports a failure
  sdg_status_t status = sdg_options_fault();
  if (status != SDG_OK)
    return COMMAND_CONFIG;
  sdg_review_t review = {.ranks = words.ranks,
                         .names = entries,
                         .count = sizeof entries / sizeof *entries};
  sdg_rules_t rules;
  status = sdg_rules_review(sdg_options_get(), &review, &rules);
  if (status == SDG_OK) {
    rules_print(&rules, review.ranks);
    sdg_rules_fini(&rules);
    return COMMAND_OK;
  }
  fprintf(stderr, "%d fault%s\n", review.faults, review.faults == 1 ? "" : "s");
  int result = command_exit(status);
  return result == COMMAND_FILE || result == COMMAND_SYSTEM ? result
                                                            : COMMAND_CONFIG;
}
