// SPDX-License-Identifier: Apache-2.0
// `sundog inspect`: runs a program once without changes, and prints the splits
// that its calls allow.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/options.h"
#include "src/call/functions.h"
#include "tools/command.h"
#include "tools/draft/candidate.h"
#include "tools/draft/choices.h"
#include "tools/draft/draft.h"
#include "tools/draft/function.h"
#include "tools/launch/child.h"
#include "tools/launch/folder.h"
#include "tools/launch/launch.h"
#include "tools/program/imports.h"
#include "tools/program/program.h"
#include "tools/record/calls.h"

enum { KEY_DEVICE = 0x100, KEY_STEPS, KEY_SPLIT, KEY_VIEW, KEY_MESH };

typedef struct inspect {
  launch_t launch;
  const char *output;
  int64_t steps; // 0: not given
  const char *mesh, *split;
  wish_t wish;
  char folder[PATH_MAX];
} inspect_t;

// Parses --mesh and --split, which depend on each other.
static sdg_status_t wish_read(inspect_t *inspect) {
  wish_t *wish = &inspect->wish;
  struct stat is;
  if (inspect->output && stat(inspect->output, &is) == 0 && S_ISDIR(is.st_mode))
    return sdg_fail(SDG_E_USAGE, "-o %s is a folder: name a file in it",
                    inspect->output);
  if (inspect->mesh) {
    long product = sdg_mesh_product(inspect->mesh);
    int ranks = product < 1 || product > SDG_RANKS_MAX ? 1 : (int)product;
    if (wish->ranks)
      ranks = wish->ranks;
    if (!*inspect->mesh)
      return sdg_fail(SDG_E_USAGE,
                      "--mesh takes axes as in data=2,y=4, not ''");
    SDG_TRY(sdg_mesh_parse(inspect->mesh, ranks, &wish->mesh));
    wish->ranks = sdg_mesh_ranks(&wish->mesh);
    if (wish->ranks < 2)
      return sdg_fail(SDG_E_USAGE, "--mesh %s is one rank: nothing is split",
                      inspect->mesh);
    return inspect->split ? choices_wish(inspect->split, wish) : SDG_OK;
  }
  for (int i = 0; inspect->split && choices_dim(i, &wish->dim); i++)
    if (strcmp(inspect->split, sdg_dim_name(wish->dim)) == 0)
      return SDG_OK;
  wish->dim = SDG_DIM_COUNT;
  if (inspect->split && strchr(inspect->split, ':'))
    return sdg_fail(SDG_E_USAGE,
                    "--split %s names an axis: say the axes with --mesh, as in "
                    "--mesh data=2,y=4",
                    inspect->split);
  if (inspect->split)
    return sdg_fail(SDG_E_USAGE,
                    "--split takes N, D, H, W, HEADS or SEQ, not '%s'",
                    inspect->split);
  return SDG_OK;
}

static error_t inspect_parse(int key, char *argument,
                             struct argp_state *state) {
  inspect_t *inspect = state->input;
  char *end;
  switch (key) {
  case KEY_DEVICE:
    if (!launch_device_parse(argument, &inspect->launch.device))
      argp_error(state, "--device takes auto, host or cuda, not '%s'",
                 argument);
    return 0;
  case KEY_STEPS:
    inspect->steps = strtoll(argument, &end, 10);
    if (inspect->steps < 1 || *end)
      argp_error(state, "--steps takes a number from 1 up, not '%s'", argument);
    return 0;
  case KEY_SPLIT:
    inspect->split = argument;
    return 0;
  case KEY_MESH:
    inspect->mesh = argument;
    return 0;
  case 'n':
    inspect->wish.ranks = (int)strtol(argument, &end, 10);
    if (*end || end == argument || strlen(argument) > 4 ||
        inspect->wish.ranks < 2 || inspect->wish.ranks > SDG_RANKS_MAX)
      argp_error(state, "-n takes a number of ranks from 2 to %d, not '%s'",
                 SDG_RANKS_MAX, argument);
    return 0;
  case KEY_VIEW:
    if (strcmp(argument, "shard") == 0)
      inspect->wish.view = SDG_VIEW_SHARD;
    if (strcmp(argument, "whole") == 0)
      inspect->wish.view = SDG_VIEW_WHOLE;
    if (inspect->wish.view == SDG_VIEW_UNSAID)
      argp_error(state, "--view takes shard or whole, not '%s'", argument);
    return 0;
  case 'o':
    inspect->output = argument;
    return 0;
  case ARGP_KEY_SUCCESS:
    if (wish_read(inspect) != SDG_OK)
      exit(COMMAND_USAGE);
    return 0;
  default:
    return launch_program_parse(&inspect->launch, key, state);
  }
}

static const struct argp_option inspect_options[] = {
    {"output", 'o', "FILE", 0,
     "Write a rules file for the best split, or that of --split", 0},
    {"ranks", 'n', "N", 0,
     "Judge splits over this number of ranks instead of 2, 4 and 8; default "
     "with --mesh: its product",
     0},
    {"mesh", KEY_MESH, "MESH", 0,
     "Judge splits over these axes of ranks, as in data=2,y=4, and write rules "
     "for them",
     0},
    {"split", KEY_SPLIT, "N|D|H|W|HEADS|SEQ", 0,
     "The dimension for the rules file; with --mesh also N:data,H:y", 0},
    {"view", KEY_VIEW, "shard|whole", 0,
     "The view for the rules file; default: shard, unless something conflicts "
     "with shard and not with whole",
     0},
    {"device", KEY_DEVICE, "auto|host|cuda", 0, "As for `sundog run`", 0},
    {"steps", KEY_STEPS, "N", 0,
     "How many steps the run has; default: how often its windowed calls repeat",
     0},
    {0},
};
const struct argp inspect_argp = {
    .options = inspect_options,
    .parser = inspect_parse,
    .args_doc = "-- PROGRAM [ARGUMENT...]",
    .doc =
        "Runs a program once, as one process without any split, and prints its "
        "distinct calls of cuDNN and products of matrices. For both views, and "
        "each dimension that could be split over 2, 4 and 8 ranks, it says "
        "what the ranks would exchange, how much each would own at least, and "
        "what conflicts with it.\vA split of SEQ splits the tokens of "
        "attention, and with them every tensor and product of "
        "matrices that has one dimension of the same length, over one axis or "
        "over several joined axes. A split of HEADS is about graphs of "
        "attention alone. Other splits leave out products of "
        "matrices: in the shard view these are computed from each rank's part, "
        "in the whole view every rank computes all of them. Neighbourhood "
        "attention is not examined.\n\nFunctions of shared libraries that the "
        "program is linked to are listed if they get addresses in device "
        "memory; the rules file gets a section for each, with a ? for what "
        "has to be filled in. Libraries of the system are left out, and "
        "functions that the program looks up by dlsym.\n\nHalo bytes are the "
        "bytes that all ranks "
        "receive in one step if the longest extents are divided evenly. They "
        "include the rows at the inner borders of convolutions and pooling, "
        "the keys and values in windows of attention, and the sums of products "
        "whose K is split; in the whole view also the inputs of ops without a "
        "rule, which need no exchange if such an op made them. The exit status "
        "is that of the program, 128 + n for signal n, and 125 if it made no "
        "cuDNN call that could be seen.\n\nWith --mesh each axis gets one "
        "dimension, and axes of one dimension are joined. The axes' names "
        "decide between equally good splits: n, batch, data and dp mean N; d, "
        "z and depth D; h, y and height H; w, x and width W; heads and tp "
        "HEADS; seq, tokens, cp and sp SEQ. It prints what each axis does, and "
        "which calls gain "
        "nothing from it.\n\n  sundog inspect -o net.rules -- ./solver "
        "field.npy out.npy\n  sundog inspect --mesh data=2,y=4 -o net.rules -- "
        "./train"};

// Prints facts about the program's file before it runs.
static void program_print(const char *name) {
  program_t program;
  if (program_examine(name, &program) != SDG_OK)
    return;
  printf("program: %s\n", program.path);
  if (*program.interpreter) {
    printf("  a script of %s\n", program.interpreter);
    return;
  }
  for (int i = 0; i < program.needed; i++)
    if (strncmp(program.needed_name[i], "libcud", 6) == 0 ||
        strncmp(program.needed_name[i], "libcublas", 9) == 0 ||
        strncmp(program.needed_name[i], "libnccl", 7) == 0)
      printf("  needs %s\n", program.needed_name[i]);
  if (program.is_elf && program.is_static)
    printf("  static: nothing can be preloaded into it\n");
  if (program.is_privileged)
    printf("  setuid, setgid or capabilities: nothing is preloaded into it\n");
  if (program.static_cudart)
    printf("  the CUDA runtime is linked in: sundog refuses its calls "
           "(SDG-733; use nvcc --cudart shared)\n");
  if (program.static_cudnn)
    printf("  cuDNN is linked in: its calls cannot be seen\n");
  if (program.opens)
    printf("  loads libraries with dlopen\n");
}

// Watches the functions of the program's libraries.
static sdg_status_t functions_watch(launch_t *launch) {
  int more;
  SDG_TRY(imports_find(launch->program[0], SDG_WATCHED_MAX,
                       &launch->function_name, &launch->functions, &more));
  launch->watched = true;
  if (more)
    printf("  %d more functions of its libraries are not watched\n", more);
  return SDG_OK;
}

static sdg_status_t program_run(inspect_t *inspect, int *out_status) {
  sigset_t mask;
  SDG_TRY(functions_watch(&inspect->launch));
  SDG_TRY(folder_create(inspect->folder, sizeof inspect->folder));
  if (setenv("SUNDOG_INSPECT", inspect->folder, 1) != 0)
    return sdg_fail(SDG_E_NO_MEMORY, "for SUNDOG_INSPECT");
  SDG_TRY(launch_preload(&inspect->launch, inspect->folder));
  pid_t pid = child_fork(&mask);
  if (pid < 0)
    return sdg_fail(SDG_E_START, "fork: %s", strerror(errno));
  if (pid == 0) {
    execvp(inspect->launch.program[0], inspect->launch.program);
    int error = errno;
    (void)sdg_fail(SDG_E_START, "%s: %s", inspect->launch.program[0],
                   strerror(error));
    _exit(error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_EXECUTABLE);
  }
  *out_status = child_wait(pid, &mask);
  return SDG_OK;
}

static void product_print(sdg_family_t family, const seen_operand_t *product) {
  for (int d = 0; d < product->dims && d < SDG_SIZES_DIMS; d++)
    printf("  %s %" PRId64, sdg_dim_name(sdg_dim_at(family, d, product->dims)),
           product->extent[d]);
}

// Prints " window 512,all": the numbers of keys that a query sees before and
// after its own position.
static void windows_print(const seen_call_t *call) {
  const int64_t side[] = {call->left, call->right};
  if (call->is_ragged) {
    printf("  windows of another kind");
    return;
  }
  for (int i = 0; i < 2; i++) {
    printf("%s", i ? "," : "  window ");
    if (side[i] < 0)
      printf("all");
    else
      printf("%" PRId64, side[i]);
  }
}

static void call_print(const seen_call_t *call) {
  char text[160];
  printf("%10" PRId64 "  %s", call->count, call->entry);
  if (call->is_opaque)
    printf("  hides its tensors");
  else if (call->is_reduction)
    printf("  of all that the rank has");
  else if (!call->has_rule && !call->is_query)
    printf("  (no rule)");
  int type = -1;
  for (int i = 0; i < call->operands; i++) {
    const seen_operand_t *operand = &call->operand[i];
    if (strcmp(operand->role, sdg_role_name(SDG_ROLE_PRODUCT)) == 0) {
      product_print(call->family, operand);
      continue;
    }
    if (operand->type != type)
      printf("  %s", type_name(operand->type));
    type = operand->type;
    printf("  %s %s%s", operand->role, extents_text(operand, text, sizeof text),
           operand->is_managed ? " (managed)" : "");
  }
  if (call->has_windows)
    windows_print(call);
  for (int d = 0; d < call->spatial; d++)
    printf("%s%" PRId64, d ? "x" : "  window ", call->window[d].kernel);
  bool stride = false, pad = false, dilation = false;
  for (int d = 0; d < call->spatial; d++) {
    stride |= call->window[d].stride != 1;
    pad |= call->window[d].pad != 0;
    dilation |= call->window[d].dilation != 1;
  }
  for (int d = 0; stride && d < call->spatial; d++)
    printf("%s%" PRId64, d ? "x" : " stride ", call->window[d].stride);
  for (int d = 0; pad && d < call->spatial; d++)
    printf("%s%" PRId64, d ? "x" : " pad ", call->window[d].pad);
  for (int d = 0; dilation && d < call->spatial; d++)
    printf("%s%" PRId64, d ? "x" : " dilation ", call->window[d].dilation);
  printf("\n");
}

static void calls_print(const calls_t *calls) {
  for (int i = 0; i < calls->libraries; i++)
    printf("  used %s\n", calls->library[i]);
  if (calls->processes > 1)
    printf("  %d processes called cuDNN; only one of them can be a rank\n",
           calls->processes);
  int managed = 0;
  for (int i = 0; i < calls->count; i++)
    for (int k = 0; k < calls->call[i].operands; k++)
      managed += calls->call[i].operand[k].is_managed;
  if (managed)
    printf("  %d tensors of these calls are in memory of cudaMallocManaged\n",
           managed);
  if (calls->dropped)
    printf("  more than %d distinct calls: the later ones are left out\n",
           calls->count);
  if (!calls->complete)
    printf("  a process ended without its exit functions: counts are 1\n");
  printf("\n%10s  CALL\n", "COUNT");
  for (int queries = 0; queries < 2; queries++)
    for (int i = 0; i < calls->count; i++)
      if (calls->call[i].is_query == queries)
        call_print(&calls->call[i]);
}

// Prints why no rules are drafted.
static void nothing_print(const choices_t *choices, const inspect_t *inspect) {
  bool possible = false, gains = false;
  for (int i = 0; i < choices->count; i++) {
    const candidate_t *c = &choices->candidate[i];
    if (!draft_is_of(c, inspect->wish.dim) ||
        (inspect->wish.view != SDG_VIEW_UNSAID &&
         inspect->wish.view != c->view))
      continue;
    possible |= c->possible;
    gains |= candidate_is_useful(c);
  }
  printf(gains ? "no rules are drafted: every such split has a conflict above "
                 "that is an error\n"
         : possible ? "no rules are drafted: of the calls that this version "
                      "can split, only elementwise\n  ones would be split\n"
                    : "no tensor has such a dimension to split\n");
}

static void choice_print(const calls_t *calls, const choices_t *choices,
                         const inspect_t *inspect, const candidate_t *chosen) {
  char name[CANDIDATE_NAME_BYTES];
  int products = 0;
  for (int i = 0; i < calls->count; i++)
    products += sdg_family_is_product(calls->call[i].family);
  if (!chosen) {
    nothing_print(choices, inspect);
    if (products)
      printf("  for products of matrices alone nothing is drafted: you have to "
             "say which of M,\n  N and K is split (doc/rules.md, man 7 "
             "sundog)\n");
    return;
  }
  printf("best: %s, view %s%s\n", candidate_name(chosen, name, sizeof name),
         view_name(chosen->view),
         chosen->faults ? ", with the conflicts above" : "");
  choices_axes_print(calls, &inspect->wish.mesh, chosen);
  if (chosen->aside)
    printf("  %d distinct calls of attention and products of matrices are made "
           "in full on\n  every rank\n",
           chosen->aside);
  if (chosen->in_full)
    printf("  %d distinct calls without a rule are carried out in full on "
           "every rank\n",
           chosen->in_full);
}

// Writes rules that split functions alone.
static sdg_status_t functions_draft(const inspect_t *inspect,
                                    const calls_t *calls) {
  const wish_t *wish = &inspect->wish;
  return draft_write_functions(
      inspect->output, calls,
      wish->dim == SDG_DIM_COUNT ? SDG_DIM_H : wish->dim,
      wish->view == SDG_VIEW_UNSAID ? SDG_VIEW_SHARD : wish->view,
      inspect->launch.program);
}

static sdg_status_t splits_judge(const inspect_t *inspect,
                                 const calls_t *calls) {
  int64_t steps = inspect->steps ? inspect->steps : calls_steps(calls);
  const wish_t *wish = &inspect->wish;
  choices_t choices;
  sdg_status_t status = choices_judge(calls, wish, steps, &choices);
  if (status == SDG_OK) {
    choices_print(&choices, steps);
    const candidate_t *chosen =
        draft_choose(choices.candidate, choices.count, wish->dim, wish->view);
    choice_print(calls, &choices, inspect, chosen);
    if (inspect->output && chosen)
      status = draft_write(inspect->output, choices.candidate, choices.count,
                           chosen, wish->mesh.axes ? &wish->mesh : NULL, calls,
                           inspect->launch.program);
    else if (inspect->output && calls->functions)
      status = functions_draft(inspect, calls);
    else if (inspect->output)
      status = sdg_fail(SDG_E_NOTHING_MATCHED, "no rules file was written");
  }
  choices_fini(&choices);
  return status;
}

int command_inspect(int argc, char **argv) {
  inspect_t inspect = {.launch = {.device = LAUNCH_AUTO},
                       .wish = {.dim = SDG_DIM_COUNT}};
  calls_t calls;
  const sdg_option_info_t *info;
  int result = COMMAND_FAILED;
  argp_parse(&inspect_argp, argc, argv, ARGP_IN_ORDER, NULL, &inspect);
  // Drops sundog's options from the environment: the program runs on one rank.
  for (unsigned i = 0; (info = sdg_option_at(i)); i++)
    if (strcmp(info->owner, "LIBRARY") == 0)
      unsetenv(info->variable);
  if (launch_prepare(&inspect.launch) != SDG_OK)
    return COMMAND_FAILED;
  program_print(inspect.launch.program[0]);
  sdg_status_t status = program_run(&inspect, &result);
  if (status == SDG_OK)
    status = calls_read(inspect.folder, &calls);
  if (*inspect.folder)
    folder_remove(inspect.folder);
  if (status != SDG_OK)
    return COMMAND_FAILED;
  if (calls.count == 0 && calls.functions) {
    functions_print(&calls);
    if (inspect.output && functions_draft(&inspect, &calls) != SDG_OK)
      result = COMMAND_FAILED;
  } else if (calls.count == 0) {
    if (result == 0) {
      (void)sdg_fail(SDG_E_NOTHING_MATCHED,
                     "no cuDNN call of the program was seen");
      result = COMMAND_FAILED;
    }
  } else {
    calls_print(&calls);
    functions_print(&calls);
    if (splits_judge(&inspect, &calls) != SDG_OK)
      result = COMMAND_FAILED;
  }
  calls_fini(&calls);
  return result;
}
