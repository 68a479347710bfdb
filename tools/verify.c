// SPDX-License-Identifier: Apache-2.0
// `sundog verify`: runs a program on one rank and on several, and compares the
// results.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rules/file/file.h"
#include "src/base/options.h"
#include "tools/command.h"
#include "tools/launch/argument.h"
#include "tools/launch/child.h"
#include "tools/launch/folder.h"
#include "tools/launch/launch.h"
#include "tools/verify/cut.h"
#include "tools/verify/reach.h"
#include "tools/record/values.h"

enum {
  FILES_MAX = 16,
  NAME_BYTES = PATH_MAX + 64,
  KEY_INPUT = 0x200,
  KEY_OUTPUT,
  KEY_DIM,
  KEY_KEEP,
  KEY_RTOL,
  KEY_ATOL,
  KEY_CALLS,
};

typedef struct verify {
  launch_t launch; // first: the child parser's input
  const char *ranks, *dim, *keep, *rtol, *atol, *calls;
  bool verbose;
  bool whole; // the view: ranks get whole files, and rank 0's output counts
  bool ruled; // rules could be read
  sdg_rules_t rules; // owned
  int inputs, outputs;
  const char *input[FILES_MAX], *output[FILES_MAX];
  char self[PATH_MAX], folder[PATH_MAX];
} verify_t;

static bool number_is(const char *text, long least, long most) {
  char *end;
  errno = 0;
  long number = strtol(text, &end, 10);
  return !errno && end != text && !*end && number >= least && number <= most;
}

static error_t verify_parse(int key, char *argument, struct argp_state *state) {
  verify_t *verify = state->input;
  char *end;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &verify->launch;
    return 0;
  case 'n':
    if (!number_is(argument, 1, SDG_RANKS_MAX))
      argp_error(state, "-n takes a number of ranks from 1 to %d, not '%s'",
                 SDG_RANKS_MAX, argument);
    verify->ranks = argument;
    return 0;
  case 'v':
    verify->verbose = true;
    return 0;
  case KEY_INPUT:
    if (verify->inputs == FILES_MAX)
      argp_error(state, "at most %d inputs", FILES_MAX);
    verify->input[verify->inputs++] = argument;
    return 0;
  case KEY_OUTPUT:
    if (verify->outputs == FILES_MAX)
      argp_error(state, "at most %d outputs", FILES_MAX);
    verify->output[verify->outputs++] = argument;
    return 0;
  case KEY_DIM:
    verify->dim = argument;
    return 0;
  case KEY_KEEP:
    verify->keep = argument;
    return 0;
  case KEY_RTOL:
  case KEY_ATOL:
    if (!(strtod(argument, &end) >= 0) || end == argument || *end)
      argp_error(state, "'%s' is not a tolerance: write a number from 0 up",
                 argument);
    *(key == KEY_RTOL ? &verify->rtol : &verify->atol) = argument;
    return 0;
  case KEY_CALLS:
    if (!number_is(argument, 1, INT_MAX))
      argp_error(state, "--calls takes a number from 1 up, not '%s'", argument);
    verify->calls = argument;
    return 0;
  case ARGP_KEY_SUCCESS:
    if (!verify->ranks || (verify->outputs == 0 && !verify->calls))
      argp_error(state, "-n is needed, and --output or --calls");
    return 0;
  default:
    return launch_program_parse(&verify->launch, key, state);
  }
}

static const struct argp_option verify_options[] = {
    {"ranks", 'n', "N", 0, "Number of ranks to compare with one", 0},
    {"input", KEY_INPUT, "FILE", 0,
     "An array file that the program reads; each rank gets a piece. May be "
     "repeated",
     0},
    {"output", KEY_OUTPUT, "FILE", 0,
     "An array file that the program writes; the ranks' pieces are joined and "
     "compared. May be repeated",
     0},
    {"dim", KEY_DIM, "DIM", 0,
     "How files are cut, as for `sundog split`; default: as in --split, or H",
     0},
    {"rtol", KEY_RTOL, "R", 0, "As for `sundog diff`", 0},
    {"atol", KEY_ATOL, "A", 0, "As for `sundog diff`", 0},
    {"calls", KEY_CALLS, "N", 0,
     "Compare the outputs of tagged calls among the first N calls of cuDNN and "
     "products of matrices, too; names the first call and element that differ. "
     "Also tries whether [function] and [kernel] sections fit (the first 4 "
     "calls of each), and the reach of functions that say `pure = yes` (the "
     "first 8). Slow: waits for each call and writes its outputs to files",
     0},
    {"keep", KEY_KEEP, "FOLDER", 0,
     "Write all files there and keep them; default: a private folder that is "
     "removed",
     0},
    {"verbose", 'v', NULL, 0, "Show what the program and the commands print",
     0},
    {0},
};
static const struct argp_child verify_children[] = {{&launch_argp, 0, NULL, 0},
                                                    {0}};
const struct argp verify_argp = {
    .options = verify_options,
    .parser = verify_parse,
    .children = verify_children,
    .args_doc = "-- PROGRAM [ARGUMENT...]",
    .doc =
        "Runs a program on one rank, without a split, and on N ranks with the "
        "given split, and compares the files that they write.\vThe words of "
        "PROGRAM are those of the run on one rank. If a word names an --input, "
        "each of the N ranks gets its piece of that file instead. If a word "
        "names an --output, each rank writes a piece, and the one rank writes "
        "another file, so that nothing is overwritten. In the whole view every "
        "rank reads the --input itself, and rank 0's file is compared. Without "
        "--rtol and --atol differences that rounding explains are allowed, as "
        "by `sundog diff --rounding`; `--rtol 0` allows none. The exit status "
        "is 0 if no difference is larger, 1 if one is, 125 if a run "
        "fails.\n\nWith --calls both runs must make the same calls from their "
        "first thread. This works for any program, whether it reads and writes "
        "array files or not. Functions and kernels of the rules are tried in a "
        "third run, as one process: at their first calls it calls them on "
        "copies, piece by piece as N ranks would, and compares all pieces with "
        "the program's own call. What that run writes to an --output counts "
        "for nothing. Functions that are pure are also called with elements "
        "of the inputs changed beyond the reach of a row: if results in that "
        "row change, the reach is too small. In both cases the exit status is "
        "then 1. If nothing is found, nothing is proved: other rows, values "
        "or calls may differ.\n\n  sundog verify -n 4 --split H --view shard "
        "--input in.npy --output out.npy -- ./solver in.npy out.npy"};

// What a run of `sundog` is for.
typedef enum purpose {
  CUTTING, // of files
  ALONE,   // the program as one process
  SPLIT,   // on all ranks
  CUT,     // as one process that calls functions in pieces, too
} purpose_t;

// Returns the path of a file in the folder, owned. Ends the command if memory
// runs out.
static char *name_of(const verify_t *verify, const char *what, int index,
                     const char *tail) {
  char *name = NULL;
  if (asprintf(&name, "%s/%s%d%s", verify->folder, what, index, tail) < 0)
    return NULL;
  return name;
}

static bool folder_make(const char *folder) {
  if (folder)
    folder_remove(folder); // remains of an earlier run
  return folder && mkdir(folder, 0700) == 0;
}

// In the child: asks for the records of a run of the program.
static bool records_ask(const verify_t *verify, purpose_t purpose) {
  const char *folder = purpose == CUT
                           ? name_of(verify, "cuts", 0, "")
                           : name_of(verify, "values", purpose != ALONE, "");
  if (!folder_make(folder) ||
      setenv("SUNDOG_VALUES_CALLS", verify->calls, 1) != 0)
    return false;
  if (purpose == CUT) // a record is of the split run
    return unsetenv("SUNDOG_RECORD") == 0 && unsetenv("SUNDOG_TRACE") == 0 &&
           setenv("SUNDOG_CUTS", folder, 1) == 0 &&
           setenv("SUNDOG_CUT_RANKS", verify->ranks, 1) == 0;
  return setenv("SUNDOG_VALUES", folder, 1) == 0;
}

// Runs `sundog` with these words, which it frees. Returns the exit status,
// COMMAND_FAILED if it could not be started. Alone the options that ask for a
// split are dropped.
static int self_run(const verify_t *verify, arguments_t *words,
                    purpose_t purpose, bool shown) {
  sigset_t mask;
  words->at[words->count] = NULL;
  if (words->count == ARGUMENTS_MAX) {
    (void)sdg_fail(SDG_E_USAGE, "more than %d words", ARGUMENTS_MAX);
    arguments_fini(words);
    return COMMAND_FAILED;
  }
  pid_t pid = child_fork(&mask);
  if (pid == 0) {
    const sdg_option_info_t *info;
    for (unsigned i = 0; purpose == ALONE && (info = sdg_option_at(i)); i++)
      if (strcmp(info->owner, "LIBRARY") == 0)
        unsetenv(info->variable);
    if (verify->calls && purpose != CUTTING && !records_ask(verify, purpose))
      _exit(COMMAND_FAILED);
    int null = shown ? -1 : open("/dev/null", O_WRONLY);
    if (null >= 0)
      dup2(null, STDOUT_FILENO);
    execv(verify->self, (char **)(uintptr_t)words->at);
    _exit(COMMAND_NOT_EXECUTABLE);
  }
  arguments_fini(words);
  return pid < 0 ? COMMAND_FAILED : child_wait(pid, &mask);
}

static const char *set_value(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

// Adds the options of `split` and `join` that say how files are cut.
static void cut_add(const verify_t *verify, arguments_t *words) {
  const char *dim = verify->dim ? verify->dim : set_value("SUNDOG_SPLIT");
  const char *mesh = set_value("SUNDOG_MESH"),
             *parts = set_value("SUNDOG_PARTS");
  if (dim)
    arguments_add(words, "--dim", dim, NULL);
  if (mesh)
    arguments_add(words, "--mesh", mesh, NULL);
  if (parts && strcmp(parts, "agree") != 0)
    arguments_add(words, "--parts", parts, NULL);
}

static int inputs_cut(const verify_t *verify) {
  int status = 0;
  for (int i = 0; i < verify->inputs && status == 0; i++) {
    arguments_t words = {.count = 0};
    arguments_add(&words, "sundog", "split", "-n", verify->ranks, NULL);
    cut_add(verify, &words);
    arguments_add(
        &words, "-o",
        arguments_own(&words, name_of(verify, "in", i, ".{rank}.npy")),
        verify->input[i], NULL);
    status = self_run(verify, &words, CUTTING, verify->verbose);
  }
  return status;
}

// Runs the program on one rank, or on all ranks.
static int program_run(const verify_t *verify, purpose_t purpose) {
  static const char *const outputs[] = {
      [ALONE] = "one", [SPLIT] = "many", [CUT] = "cut"};
  bool alone = purpose != SPLIT;
  static const char *const devices[] = {"auto", "host", "cuda"};
  const char *tail = alone ? ".npy" : ".{rank}.npy";
  arguments_t words = {.count = 0};
  arguments_add(&words, "sundog", "run", "-n", alone ? "1" : verify->ranks,
                "--device", devices[verify->launch.device], "--", NULL);
  const char *in[FILES_MAX], *out[FILES_MAX];
  for (int i = 0; i < verify->inputs; i++)
    in[i] = arguments_own(&words, name_of(verify, "in", i, tail));
  for (int i = 0; i < verify->outputs; i++)
    out[i] = arguments_own(&words, name_of(verify, outputs[purpose], i, tail));
  for (char **word = verify->launch.program; *word; word++) {
    char *replaced = NULL;
    bool pieces = !alone && !verify->whole;
    for (int i = 0; i < verify->inputs && !replaced && pieces; i++)
      replaced = argument_replace(*word, verify->input[i], in[i]);
    for (int i = 0; i < verify->outputs && !replaced; i++)
      replaced = argument_replace(*word, verify->output[i], out[i]);
    arguments_add(&words, replaced ? arguments_own(&words, replaced) : *word,
                  NULL);
  }
  return self_run(verify, &words, purpose, verify->verbose);
}

static int output_join(const verify_t *verify, int index) {
  arguments_t words = {.count = 0};
  arguments_add(&words, "sundog", "join", NULL);
  cut_add(verify, &words);
  arguments_add(
      &words, arguments_own(&words, name_of(verify, "many", index, ".npy")),
      arguments_own(&words, name_of(verify, "many", index, ".{rank}.npy")),
      NULL);
  return self_run(verify, &words, CUTTING, verify->verbose);
}

static int output_compare(const verify_t *verify, int index) {
  arguments_t words = {.count = 0};
  arguments_add(&words, "sundog", "diff", NULL);
  if (!verify->rtol && !verify->atol)
    arguments_add(&words, "--rounding", NULL);
  if (verify->rtol)
    arguments_add(&words, "--rtol", verify->rtol, NULL);
  if (verify->atol)
    arguments_add(&words, "--atol", verify->atol, NULL);
  arguments_add(
      &words,
      arguments_own(&words, name_of(verify, "many", index,
                                    verify->whole ? ".0.npy" : ".npy")),
      arguments_own(&words, name_of(verify, "one", index, ".npy")), NULL);
  printf("%s: %s ranks against one: ", verify->output[index], verify->ranks);
  return self_run(verify, &words, CUTTING, true);
}

// Checks that every file is named by some word of the program. Otherwise all
// runs would write the same file, and nothing would be compared.
static sdg_status_t files_check(const verify_t *verify) {
  for (int i = 0; i < verify->inputs + verify->outputs; i++) {
    bool input = i < verify->inputs, named = false;
    const char *file =
        input ? verify->input[i] : verify->output[i - verify->inputs];
    for (char **word = verify->launch.program; *word && !named; word++)
      named = argument_place(*word, file) != NULL;
    if (!named)
      return sdg_fail(SDG_E_VERIFY, "no word of the program is the %s %s",
                      input ? "--input" : "--output", file);
  }
  return SDG_OK;
}

// cut: how many functions were called in pieces.
static sdg_status_t calls_compare(const verify_t *verify, int cut,
                                  int *io_result) {
  char *one = name_of(verify, "values", 0, "");
  char *many = name_of(verify, "values", 1, "");
  bool differs = false, disproved = false;
  int tried = 0;
  values_allowed_t allowed = {
      .rtol = verify->rtol ? strtod(verify->rtol, NULL) : 0,
      .atol = verify->atol ? strtod(verify->atol, NULL) : 0,
      .rounding = !verify->rtol && !verify->atol};
  sdg_status_t status =
      many && verify->ruled
          ? reaches_print(many, atoi(verify->ranks), atoi(verify->calls),
                          &verify->rules, &tried, &disproved)
          : SDG_OK;
  allowed.nothing = tried + cut > 0;
  if (status == SDG_OK)
    status = one && many
                 ? values_compare(one, many, atoi(verify->ranks),
                                  atoi(verify->calls), &allowed, &differs)
                 : sdg_fail(SDG_E_NO_MEMORY, "for names of folders");
  free(one);
  free(many);
  *io_result |= differs || disproved;
  return status;
}

// The run itself reports faults in the rules.
static void rules_read(verify_t *verify) {
  verify->ruled = sdg_options_load(environ) == SDG_OK &&
                  sdg_options_asked(sdg_options_get()) &&
                  sdg_rules_load(sdg_options_get(), atoi(verify->ranks),
                                 &verify->rules) == SDG_OK;
  verify->whole = verify->ruled && verify->rules.view == SDG_VIEW_WHOLE;
}

// Calls the functions of the rules in pieces, in a run whose own results count
// for nothing.
static sdg_status_t functions_cut(const verify_t *verify, int *io_tried,
                                  bool *out_differs) {
  *out_differs = false;
  if (!verify->calls || !verify->ruled || verify->rules.functions == 0)
    return SDG_OK;
  int failed = program_run(verify, CUT);
  char *folder = name_of(verify, "cuts", 0, "");
  bool ended = false;
  sdg_status_t status =
      folder ? cuts_print(folder, atoi(verify->ranks), failed != 0,
                          &verify->rules, io_tried, out_differs, &ended)
             : sdg_fail(SDG_E_NO_MEMORY, "for names of folders");
  free(folder);
  if (status == SDG_OK && failed && !ended)
    status =
        sdg_fail(SDG_E_VERIFY, "the run that calls functions in pieces failed");
  return status;
}

static int verify_run(const verify_t *verify) {
  bool cuts_differ;
  int tried = 0;
  if (program_run(verify, ALONE) != 0) {
    (void)sdg_fail(SDG_E_VERIFY, "the run on one rank failed");
    return COMMAND_FAILED;
  }
  if (functions_cut(verify, &tried, &cuts_differ) != SDG_OK)
    return COMMAND_FAILED;
  if ((!verify->whole && inputs_cut(verify) != 0) ||
      program_run(verify, SPLIT) != 0) {
    (void)sdg_fail(SDG_E_VERIFY, "the run on %s ranks failed", verify->ranks);
    return COMMAND_FAILED;
  }
  int result = cuts_differ ? EXIT_FAILURE : EXIT_SUCCESS;
  if (verify->calls && calls_compare(verify, tried, &result) != SDG_OK)
    return COMMAND_FAILED;
  for (int i = 0; i < verify->outputs; i++) {
    if (!verify->whole && output_join(verify, i) != 0) {
      (void)sdg_fail(SDG_E_VERIFY, "the pieces of %s do not fit together",
                     verify->output[i]);
      return COMMAND_FAILED;
    }
    int differs = output_compare(verify, i);
    if (differs > 1)
      return COMMAND_FAILED;
    result |= differs;
  }
  return result;
}

int command_verify(int argc, char **argv) {
  verify_t verify = {.launch = {.device = LAUNCH_AUTO}};
  argp_parse(&verify_argp, argc, argv, ARGP_IN_ORDER, NULL, &verify);
  ssize_t n = readlink("/proc/self/exe", verify.self, sizeof verify.self - 1);
  if (n < 0) {
    (void)sdg_fail(SDG_E_INSTALL, "/proc/self/exe: %s", strerror(errno));
    return COMMAND_FAILED;
  }
  verify.self[n] = '\0';
  if (files_check(&verify) != SDG_OK)
    return COMMAND_REFUSED;
  if (verify.keep) {
    if (mkdir(verify.keep, 0777) != 0 && errno != EEXIST) {
      (void)sdg_fail(SDG_E_FILE_IO, "%s: %s", verify.keep, strerror(errno));
      return COMMAND_FAILED;
    }
    snprintf(verify.folder, sizeof verify.folder, "%s", verify.keep);
  } else if (folder_create(verify.folder, sizeof verify.folder) != SDG_OK)
    return COMMAND_FAILED;
  rules_read(&verify);
  int result = verify_run(&verify);
  if (verify.ruled)
    sdg_rules_fini(&verify.rules);
  if (!verify.keep)
    folder_remove(verify.folder);
  return result;
}
