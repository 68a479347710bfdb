// SPDX-License-Identifier: Apache-2.0
// `sundog run`: the ranks of a program on this machine.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/options.h"
#include "src/bootstrap/launcher.h"
#include "src/geometry/mesh.h"
#include "tools/command.h"
#include "tools/launch/argument.h"
#include "tools/launch/folder.h"
#include "tools/launch/launch.h"
#include "tools/launch/ranks.h"
#include "tools/live/display.h"
#include "tools/outputs/outputs.h"
#include "tools/program/program.h"
#include "tools/program/setting.h"
#include "tools/record/hold.h"
#include "tools/record/report.h"
#include "tools/report/output.h"

typedef struct run {
  launch_t launch; // first: the child parser's input
  int size;        // 0: not given
  bool verbose, labels, progress;
  const char *report;    // where the report of the run goes; NULL: none
  char record[PATH_MAX]; // the folder of the run's record; "": none
  int hold;              // of SUNDOG_RECORD
  char folder[PATH_MAX];
  collect_t collect;
  label_t label;
  display_t display;
} run_t;

enum {
  KEY_RANKS_OUTPUT = 0x200,
  KEY_RANKS_FOLDER,
  KEY_LABEL,
  KEY_REPORT,
  KEY_PROGRESS,
};

static error_t run_parse(int key, char *argument, struct argp_state *state) {
  run_t *run = state->input;
  char *end;
  long size;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &run->launch;
    return 0;
  case 'n':
    errno = 0;
    size = strtol(argument, &end, 10);
    if (errno || *end || end == argument || size < 1 || size > SDG_RANKS_MAX)
      argp_error(state, "-n takes a number of ranks from 1 to %d, not '%s'",
                 SDG_RANKS_MAX, argument);
    run->size = (int)size;
    return 0;
  case 'v':
    run->verbose = true;
    return 0;
  case KEY_RANKS_OUTPUT:
    run->launch.streams.output = argument;
    return 0;
  case KEY_LABEL:
    run->labels = true;
    return 0;
  case KEY_PROGRESS:
    run->progress = true;
    return 0;
  case KEY_REPORT:
    run->report = argument;
    return 0;
  case KEY_RANKS_FOLDER:
    run->launch.streams.folder = argument;
    return 0;
  default:
    return launch_program_parse(&run->launch, key, state);
  }
}

static const struct argp_option run_options[] = {
    {"ranks", 'n', "N", 0,
     "Number of ranks; default: the product of --mesh, else 1", 0},
    {"verbose", 'v', NULL, 0, "Print a table of the tagged calls at the end",
     0},
    {"label", KEY_LABEL, NULL, 0,
     "Put the rank before each line that a rank writes, as in \"3: line\"", 0},
    {"progress", KEY_PROGRESS, NULL, 0,
     "While the program runs, show a line on the terminal: tagged calls per "
     "second of each rank, the share of time that ranks wait, the ranks that "
     "the others wait for, and MB/s of halos of all ranks; nothing if standard "
     "error is not a terminal, TERM is dumb or CI is set",
     0},
    {"report", KEY_REPORT, "FILE", 0,
     "Write a page about the run there, as `sundog report` does; without "
     "--record, the record that it is made of is removed",
     0},
    {"ranks-output", KEY_RANKS_OUTPUT, "DIR", 0,
     "Write standard output and error of the ranks other than 0 to rank-N.out "
     "and rank-N.err in this folder",
     0},
    {"ranks-folder", KEY_RANKS_FOLDER, "DIR", 0,
     "Working folder of each rank, as in tmp/{rank}; it is made if needed", 0},
    {0},
};
static const struct argp_child run_children[] = {{&launch_argp, 0, NULL, 0},
                                                 {0}};
const struct argp run_argp = {
    .options = run_options,
    .parser = run_parse,
    .children = run_children,
    .args_doc = "-- PROGRAM [ARGUMENT...]",
    .doc = "Runs an unmodified cuDNN program as several ranks on this machine, "
           "with the tensors split over them that --split or --rules "
           "names.\v{rank}, {size} and {local_rank} in the program's words are "
           "replaced. With --view shard rank 0 has the standard input and all "
           "ranks write to the standard output. With --view whole every rank "
           "reads a copy of the input, and the output of ranks other than 0 is "
           "dropped, unless --ranks-output keeps it or --label shows it. A "
           "rank that fails ends "
           "the others. The exit status is that of the first rank that failed "
           "by itself, 128 + n for signal n, 125 to 127 if the program was not "
           "started, and not 0 if a split was asked for and no tensor matched. "
           "Equal messages of several ranks within 0.3 s are printed once, as "
           "in \"sundog: ranks 0-2, 5: SDG-204 ...\".\n\n  sundog run -n 4 "
           "--split H --view whole -- ./solver in.npy\n  sundog run -n 4 "
           "--split H --view shard -- ./solver in-{rank}.npy\n  sundog run "
           "--mesh y=2,x=2 --rules net.rules -- ./train\n\nSettings may come "
           "from the environment too: see `sundog options`."};

// Returns the number of ranks of a mesh; 1 if sdg_mesh_parse would refuse it.
static int ranks_of(const char *mesh) {
  long product = *mesh ? sdg_mesh_product(mesh) : 1;
  return product < 1 || product > SDG_RANKS_MAX ? 1 : (int)product;
}

// A launcher that starts this command several times was meant to start `sundog
// exec`.
static void outer_say(int size) {
  static const char *const outer[][2] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      // SLURM_NTASKS would be the allocation's, also in the one task of
      // salloc's interactive step.
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (size_t i = 0; i < sizeof outer / sizeof *outer; i++) {
    const char *rank = getenv(outer[i][0]), *ranks = getenv(outer[i][1]);
    if (!rank || !ranks || strcmp(rank, "0") != 0 || atoi(ranks) < 2)
      continue;
    sdg_log(
        "this command is started %s times (%s): each starts %d ranks of its "
        "own, and all of them do the same. If they are to be one run, start "
        "`sundog exec` in its place",
        ranks, outer[i][1], size);
    return;
  }
}

// Finds mistakes before a rank starts.
static sdg_status_t run_check(run_t *run) {
  const sdg_options_t *options = sdg_options_get();
  if (options->origin[SDG_OPTION_RANK] != SDG_ORIGIN_DEFAULT)
    return sdg_fail(SDG_E_NESTED, "SUNDOG_RANK=%d is set", options->rank);
  SDG_TRY(launch_prepare(&run->launch));
  if (run->size == 0)
    run->size = ranks_of(options->mesh);
  if (!run->launch.asked && run->size > 1 && !sdg_options_replicated(options))
    return sdg_fail(SDG_E_NOTHING_SPLIT, "%d ranks without --split or --rules",
                    run->size);
  int gpus = run->launch.device == LAUNCH_CUDA ? launch_gpus() : -1;
  if (gpus >= 0 && run->size > gpus)
    return sdg_fail(SDG_E_GPUS, "%d ranks, %d GPUs", run->size, gpus);
  SDG_TRY(launch_rules(&run->launch, run->size));
  argument_pieces_say(run->launch.program, run->size);
  outer_say(run->size);
  return SDG_OK;
}

static sdg_status_t variable_set(const char *name, const char *head,
                                 const char *path, const char *tail) {
  char text[PATH_MAX + 64];
  snprintf(text, sizeof text, "%s%s%s", head, path, tail);
  return setting_make(name, text, SDG_ORIGIN_COMMAND);
}

static sdg_status_t environment_set(run_t *run) {
  char launch[256];
  if (*sdg_options_get()->record) // the run's folder names this run
    SDG_TRY(hold_take(sdg_options_get()->record, run->folder, &run->hold));
  SDG_TRY(output_record_set(run->report, run->folder, run->record));
  SDG_TRY(launch_preload(&run->launch, run->folder));
  SDG_TRY(variable_set("SUNDOG_REPORT", "", run->folder, ""));
  if (run->size == 1)
    sdg_launch_alone(launch, sizeof launch);
  else
    snprintf(launch, sizeof launch, LAUNCH_RUN);
  SDG_TRY(variable_set("SUNDOG_LAUNCH", "", launch, ""));
  if (run->verbose)
    SDG_TRY(setting_make("SUNDOG_WAITS", "yes", SDG_ORIGIN_ARGUMENT));
  return variable_set("SUNDOG_RENDEZVOUS", "file:", run->folder, "/rendezvous");
}

// Runs in a child of the command that becomes the ranks' parent. If one of the
// two processes is killed, the other one cleans up. The child leaves the
// process group, so that no signal to the group, not even SIGKILL, ends both.
static int run_watch(run_t *run, const sigset_t *set, const sigset_t *mask,
                     pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent)
    return COMMAND_FAILED;
  pid_t group = getpgrp();
  setpgid(0, 0);
  static outputs_t outputs; // large
  outputs_note(&run->launch, run->size, &outputs);
  run->launch.wrote_bytes = outputs.word ? outputs.wrote_bytes : NULL;
  int status = ranks_run(&run->launch, run->size, set, mask, group, run->folder,
                         &run->collect, &run->label);
  if (status == 0 &&
      report_read(run->folder, (report_ranks_t){0, run->size, run->size},
                  run->launch.asked, run->launch.streams.whole,
                  run->verbose) != SDG_OK)
    status = COMMAND_FAILED;
  if (status == 0)
    outputs_say(&outputs);
  outputs_fini(&outputs);
  if (run->report && output_write(run->record, OUTPUT_PAGE, OUTPUT_EVENTS,
                                  run->report, false) != SDG_OK)
    status = status ? status : COMMAND_FAILED;
  if (status != 0)
    program_advise(*run->launch.program);
  folder_remove(run->folder);
  return status;
}

// Waits for the watching process and hands it the signals that end a run.
static int run_wait(pid_t watcher, const sigset_t *set, const run_t *run) {
  for (;;) {
    siginfo_t info;
    int status, number = sigwaitinfo(set, &info);
    // A terminal sends a signal to the whole group, ranks included. Exception:
    // if it hangs up, only the session's leader gets SIGHUP, and this process
    // may be the leader.
    bool ranks_know = info.si_code > 0 && number != SIGHUP;
    const union sigval value = {ranks_know ? RANKS_KNOW : 0};
    if (number > 0 && number != SIGCHLD && number != SIGTTOU)
      sigqueue(watcher, number, value);
    if (waitpid(watcher, &status, WNOHANG) != watcher)
      continue;
    if (WIFEXITED(status))
      return WEXITSTATUS(status);
    ranks_sweep(0);
    label_wait(&run->label);
    collect_wait(&run->collect);
    (void)sdg_fail(SDG_E_RANK_FAILED,
                   "the process that watches the ranks was killed by signal "
                   "%d; all ranks were ended",
                   WTERMSIG(status));
    return 128 + WTERMSIG(status);
  }
}

static void signal_pass(int number) {
  (void)number;
}

// A closed pipe or a full disk must not end this process before it has ended
// the ranks and removed the folder. It sets handlers because programs would
// inherit SIG_IGN.
static void signals_survive(void) {
  const int numbers[] = {SIGPIPE, SIGXFSZ};
  for (int i = 0; i < 2; i++) {
    struct sigaction action;
    sigaction(numbers[i], NULL, &action);
    if (action.sa_handler != SIG_DFL)
      continue;
    action = (struct sigaction){.sa_handler = signal_pass};
    sigaction(numbers[i], &action, NULL);
  }
}

int command_run(int argc, char **argv) {
  run_t run = {.hold = -1, .label = {.done = -1}};
  sigset_t set, mask;
  argp_parse(&run_argp, argc, argv, ARGP_IN_ORDER, NULL, &run);
  (void)sdg_options_load(environ); // launch_prepare reports
  if (run_check(&run) != SDG_OK)
    return COMMAND_FAILED;
  signals_survive();
  ranks_signals(&set);
  sigprocmask(SIG_BLOCK, &set, &mask);
  if (run.report &&
      output_check(sdg_options_get()->record, run.report) != SDG_OK)
    return COMMAND_FAILED;
  int status = COMMAND_FAILED;
  if (folder_create(run.folder, sizeof run.folder) != SDG_OK)
    goto drop_report;
  if (environment_set(&run) != SDG_OK)
    goto remove_folder;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (run.progress && display_possible() &&
      display_start(run.size, run.folder, &run.display) != SDG_OK)
    goto remove_folder;
  collect_start(run.size, &run.collect);
  if (run.labels &&
      label_start(run.size, run.collect.messages, &run.label) != SDG_OK)
    goto remove_folder;
  pid_t self = getpid(), watcher = fork();
  if (watcher == 0)
    exit(run_watch(&run, &set, &mask, self));
  if (watcher < 0)
    (void)sdg_fail(SDG_E_START, "fork: %s", strerror(errno));
  collect_leave(&run.collect);
  label_leave(&run.label);
  if (watcher > 0)
    status = run_wait(watcher, &set, &run);
  collect_reap(&run.collect);
remove_folder:
  display_end(&run.display);
  folder_remove(run.folder);
  hold_drop(run.hold);
drop_report:
  if (run.report)
    output_drop(run.report);
  return status;
}
