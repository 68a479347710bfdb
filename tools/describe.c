// SPDX-License-Identifier: Apache-2.0
// `sundog options` and `sundog explain`: print the tables of options and
// failures.
#include <argp.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/base/options.h"
#include "src/base/status.h"
#include "tools/command.h"
#include "tools/record/explain_call.h"

enum { COLUMNS = 78 };

// Prints a paragraph in lines of COLUMNS characters, indented by `indent`
// spaces.
static void paragraph_print(const char *text, int indent) {
  int column = 0;
  while (*text) {
    int n = (int)strcspn(text, " ");
    if (column > 0 && column + 1 + n > COLUMNS) {
      putchar('\n');
      column = 0;
    }
    if (column == 0)
      column = printf("%*s%.*s", indent, "", n, text);
    else
      column += printf(" %.*s", n, text);
    text += n;
    text += strspn(text, " ");
  }
  if (column > 0)
    putchar('\n');
}

static void option_print(const sdg_option_info_t *info, sdg_origin_t origin) {
  static const char *const said[SDG_ORIGIN_COUNT] = {
      [SDG_ORIGIN_DEFAULT] = "default",
      [SDG_ORIGIN_ENVIRONMENT] = "environment",
      [SDG_ORIGIN_ARGUMENT] = "an argument of sundog",
      [SDG_ORIGIN_COMMAND] = "sundog itself"};
  const char *value = getenv(info->variable);
  bool set = value && *value;
  printf("%s = %s\n", info->variable,
         set && strcmp(info->type, "SECRET") == 0 ? "(set, not shown)"
         : set                                    ? value
         : *info->fallback                        ? info->fallback
                                                  : "(none)");
  printf("    origin: %s; default: %s; takes: ", said[origin],
         *info->fallback ? info->fallback : "(none)");
  if (*info->words) {
    const char *words = *info->words == '|' ? info->words + 1 : info->words;
    for (; *words; words++)
      putchar(*words == '|' ? ' ' : *words);
    putchar('\n');
  } else {
    for (const char *c = info->type; *c; c++)
      putchar(tolower((unsigned char)*c));
    putchar('\n');
  }
  if (strcmp(info->owner, "HOST") == 0)
    printf("    read by the host device\n");
  paragraph_print(info->paragraph, 4);
  putchar('\n');
}

const struct argp options_argp = {
    .doc = "Prints every option: its value in this environment, where the "
           "value comes from, its default and what it does. Options are "
           "environment variables; the arguments of `sundog run` of the same "
           "name set them."};

int command_options(int argc, char **argv) {
  argp_parse(&options_argp, argc, argv, 0, NULL, NULL);
  const sdg_option_info_t *info;
  (void)sdg_options_load(environ); // the last line reports a fault
  for (unsigned i = 0; (info = sdg_option_at(i)); i++)
    option_print(info, sdg_options_get()->origin[i]);
  return command_exit(sdg_options_fault());
}

// Parses a code: "SDG-003", "sdg-3" and "3" give 3. Returns -1 for any other
// text.
static int code_parse(const char *text) {
  if (strncasecmp(text, "SDG-", 4) == 0)
    text += 4;
  if (!isdigit((unsigned char)*text) || strlen(text) > 6)
    return -1;
  char *end;
  long code = strtol(text, &end, 10);
  return *end ? -1 : (int)code;
}

static int codes_list(void) {
  const sdg_error_info_t *info;
  for (unsigned i = 0; (info = sdg_error_at(i)); i++)
    printf("SDG-%03d  %s\n", (int)info->status, info->summary);
  return EXIT_SUCCESS;
}

enum { KEY_RECORD = 0x100, KEY_RANK, KEY_THREAD };

typedef struct explain {
  const char *what, *record;
  int rank, thread;
} explain_t;

static int small_number(const char *argument, struct argp_state *state) {
  char *end;
  long number = strtol(argument, &end, 10);
  if (end == argument || *end || number < 0 || number > 1000000)
    argp_error(state, "'%s' is not a number from 0 up", argument);
  return (int)number;
}

static error_t explain_parse(int key, char *argument,
                             struct argp_state *state) {
  explain_t *explain = state->input;
  switch (key) {
  case KEY_RECORD:
    explain->record = argument;
    return 0;
  case KEY_RANK:
    explain->rank = small_number(argument, state);
    return 0;
  case KEY_THREAD:
    explain->thread = small_number(argument, state);
    return 0;
  case ARGP_KEY_ARG:
    if (explain->what)
      argp_error(state, "one at a time");
    explain->what = argument;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option explain_options[] = {
    {"record", KEY_RECORD, "FOLDER", 0,
     "Explain a call of the run that `sundog run --record FOLDER` recorded "
     "there",
     0},
    {"rank", KEY_RANK, "R", 0, "The call of rank R; default: 0", 0},
    {"thread", KEY_THREAD, "T", 0,
     "The call of the program's T-th thread that makes tagged calls; default: "
     "0",
     0},
    {0},
};
const struct argp explain_argp = {
    .options = explain_options,
    .parser = explain_parse,
    .args_doc = "[SDG-nnn]\n--record FOLDER [CALL]",
    .doc =
        "Prints cause and remedy of a code from a message of sundog; without a "
        "code, lists all codes. With the record of a run, explains one of its "
        "calls by the number in messages: which section of the rules applied, "
        "where its tensors are, what was exchanged, and why with that "
        "strategy; without a number, lists the calls.\v"
        "  sundog run --record kept -n 4 --rules net.rules -- ./train\n"
        "  sundog explain --record kept\n"
        "  sundog explain --record kept --rank 2 17"};

static int call_explain(const explain_t *explain) {
  if (!explain->what)
    return command_exit(
        explain_list(explain->record, explain->rank, explain->thread));
  char *end = NULL;
  int64_t number = strtoll(explain->what, &end, 10);
  if (number < 1 || *end)
    return command_exit(sdg_fail(
        SDG_E_USAGE,
        "'%s' is not the number of a call, which is a number from 1 up",
        explain->what));
  return command_exit(
      explain_call(explain->record, explain->rank, explain->thread, number));
}

int command_explain(int argc, char **argv) {
  explain_t explain = {.what = NULL};
  argp_parse(&explain_argp, argc, argv, 0, NULL, &explain);
  if (explain.record)
    return call_explain(&explain);
  const char *text = explain.what;
  if (!text)
    return codes_list();
  int code = code_parse(text);
  const sdg_error_info_t *info =
      code > 0 ? sdg_error_find((sdg_status_t)code) : NULL;
  if (!info)
    return command_exit(sdg_fail(
        SDG_E_USAGE,
        "'%s' is not a code of this version; `sundog explain` lists the codes",
        text));
  printf("SDG-%03d: %s\n\n", code, info->summary);
  paragraph_print(info->remedy, 0);
  return EXIT_SUCCESS;
}
