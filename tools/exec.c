// SPDX-License-Identifier: Apache-2.0
// `sundog exec`: one rank inside a launcher of its own. It stays as the parent
// of the rank's program, so that errors the program ignores are not lost.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/hash.h"
#include "src/base/log.h"
#include "src/base/options.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/launcher.h"
#include "src/bootstrap/rendezvous.h"
#include "src/bootstrap/secret.h"
#include "src/control/control.h"
#include "tools/command.h"
#include "tools/launch/argument.h"
#include "tools/launch/child.h"
#include "tools/launch/descendants.h"
#include "tools/launch/folder.h"
#include "tools/launch/guard.h"
#include "tools/launch/hand_on.h"
#include "tools/launch/launch.h"
#include "tools/launch/ranks.h"
#include "tools/meeting/meeting.h"
#include "tools/meeting/pmi.h"
#include "tools/meeting/relay.h"
#include "tools/program/program.h"
#include "tools/program/setting.h"
#include "tools/record/hold.h"
#include "tools/record/report.h"
#include "tools/report/output.h"

typedef struct single {
  launch_t launch;       // first: the child parser's input
  bool alone;            // --alone
  const char *report;    // --report; NULL: none
  bool report_made;      // as an empty file, if there was none
  char record[PATH_MAX]; // what it is made of
  int rank, size, local_rank;
  meeting_t meeting; // by PMIx or PMI
  relay_t relay;     // between the program and PMI
  bool met;
  char folder[PATH_MAX]; // holds the rank's reports
  bool within_run; // `sundog run` reads the reports and writes notes to the
                   // folder
  char
      *outer; // the former SUNDOG_REPORT: the report folder of an outer command
  int hold;   // of the folder of the record
  pid_t guard; // of the folder
} single_t;

enum { KEY_ALONE = 0x200, KEY_REPORT };

static error_t exec_parse(int key, char *argument, struct argp_state *state) {
  single_t *single = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &single->launch;
    return 0;
  case KEY_ALONE:
    single->alone = true;
    return 0;
  case KEY_REPORT:
    single->report = argument;
    return 0;
  default:
    return launch_program_parse(&single->launch, key, state);
  }
}

static const struct argp_child exec_children[] = {{&launch_argp, 0, NULL, 0},
                                                  {0}};
static const struct argp_option exec_options[] = {
    {"alone", KEY_ALONE, NULL, 0,
     "Be rank 0 of 1, whatever a launcher says; without it a launcher must say "
     "rank and size",
     0},
    {"report", KEY_REPORT, "FILE", 0,
     "Write a page about the run there, as `sundog report` does; for a run of "
     "one rank. Several ranks take --record FOLDER, and `sundog report FOLDER` "
     "afterwards",
     0},
    {0},
};
const struct argp exec_argp = {
    .options = exec_options,
    .parser = exec_parse,
    .children = exec_children,
    .args_doc = "-- PROGRAM [ARGUMENT...]",
    .doc =
        "Becomes one rank of an unmodified cuDNN program, if srun, mpirun or "
        "torchrun starts the ranks.\vRank and size come from SUNDOG_RANK and "
        "SUNDOG_SIZE, torchrun, Open MPI, PMI, PALS, Flux or Slurm. If none of "
        "them says rank and size, nothing is started, unless --alone is given. "
        "{rank}, {size} and {local_rank} in the program's words are "
        "replaced.\n\nThe program has the command's descriptors, process group "
        "and terminal. The command waits for the program and ends with its "
        "status, or by the signal that ended it. If the program ends with 0 "
        "although sundog refused one of its calls, or split no tensor, the "
        "status is 125. Processes that the program leaves behind are ended. "
        "Signals are passed on; if the command is killed, so is the program. "
        "Debuggers and profilers go after the --:\n\n  sundog exec --alone "
        "--device host -- gdb --args ./solver\n\nOn one machine or several, "
        "the ranks find each other by themselves under a launcher that offers "
        "PMIx or PMI (Open MPI, MPICH, Intel MPI, srun --mpi=pmix; Flux "
        "untried):\n\n  "
        "mpirun -n 4 sundog exec --split H --view shard -- "
        "./solver in-{rank}.npy\n  srun -N 2 -n 4 --mpi=pmix sundog exec "
        "--split H --view shard -- ./solver in-{rank}.npy\n\nWith other "
        "launchers, ranks on several machines need a rendezvous on the machine "
        "of rank 0, and a secret:\n\n  export "
        "SUNDOG_RENDEZVOUS=tcp://node1:29400\n  export SUNDOG_SECRET=$(openssl "
        "rand -hex 32)\n  srun -N 2 -n 4 sundog exec --split H --view shard -- "
        "./solver in-{rank}.npy"};

// Sets the rendezvous, and checks it before the program starts.
static sdg_status_t meeting_set(single_t *single) {
  const sdg_options_t *options = sdg_options_get();
  sdg_meeting_point_t point;
  sdg_secret_t secret;
  meeting_way_t way;
  char place[PATH_MAX];
  if (single->size < 2)
    return sdg_control_alone(options->rendezvous);
  if (single->met)
    return SDG_OK;
  SDG_TRY(meeting_way_find(&way));
  switch (way) {
  case MEETING_PMIX:
  case MEETING_PMI:
    single->met = true;
    return meeting_hold(way, single->launch.install.pmix, &single->meeting);
  case MEETING_FOLDER:
    // The place is named after the launcher's process, which is not always
    // visible from the program.
    single->meeting.pmi = sdg_launcher_pmi();
    SDG_TRY(sdg_rendezvous_default(place, sizeof place));
    return setting_make("SUNDOG_RENDEZVOUS", place, SDG_ORIGIN_COMMAND);
  default:
    if (!sdg_rendezvous_is_tcp(options->rendezvous))
      return SDG_OK;
    SDG_TRY(sdg_address_find(options->rendezvous, &point));
    return sdg_secret_find(options->secret, options->secret_file, &secret);
  }
}

// A rank of several has only its own record, and does not know when, and on
// which disks, the others' will be complete.
static sdg_status_t report_check(single_t *single) {
  if (!single->report)
    return SDG_OK;
  if (single->size > 1)
    return sdg_fail(SDG_E_USAGE,
                    "--report is for a run of one rank, and this is one of %d: "
                    "give --record FOLDER, a folder that all ranks see, and "
                    "call `sundog report FOLDER -o %s` when the ranks have "
                    "ended",
                    single->size, single->report);
  SDG_TRY(output_check(sdg_options_get()->record, single->report));
  single->report_made = true;
  return SDG_OK;
}

static sdg_status_t rank_find(single_t *single) {
  const char *origin;
  if (single->alone) {
    single->size = 1;
    return SDG_OK;
  }
  if (!meeting_size_is_hidden())
    return sdg_rank_require(&single->rank, &single->size, &single->local_rank,
                            &origin);
  SDG_TRY(meeting_hold(MEETING_PMIX, single->launch.install.pmix,
                       &single->meeting));
  single->met = true;
  single->rank = single->meeting.rank;
  single->size = single->meeting.size;
  single->local_rank = single->meeting.local_rank;
  return SDG_OK;
}

// Names the launch of this rank, before rank_set() replaces the launcher's
// variables.
static sdg_status_t launch_set(int size) {
  char name[256];
  if (size == 1)
    sdg_launch_alone(name, sizeof name);
  else
    sdg_launch_name(name, SDG_LAUNCH_BYTES);
  return setting_make("SUNDOG_LAUNCH", name, SDG_ORIGIN_COMMAND);
}

// Sets sundog's own variables for rank and size, so that a sundog command
// within the program knows that it runs in a rank.
static sdg_status_t rank_set(int rank, int size, int local_rank) {
  const struct {
    const char *name;
    int value;
  } all[] = {{"SUNDOG_RANK", rank},
             {"SUNDOG_SIZE", size},
             {"SUNDOG_LOCAL_RANK", local_rank}};
  for (int i = 0; i < 3; i++) {
    char text[16];
    snprintf(text, sizeof text, "%d", all[i].value);
    SDG_TRY(setting_make(all[i].name, text, SDG_ORIGIN_COMMAND));
  }
  return SDG_OK;
}

static _Noreturn void program_become(char **words, pid_t parent) {
  // If this command is killed, the system kills the program too.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(COMMAND_FAILED);
  execvp(words[0], words);
  int error = errno;
  (void)sdg_fail(SDG_E_START, "%s: %s", words[0], strerror(error));
  _exit(error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_EXECUTABLE);
}

// Waits for the program, then ends the processes that it leaves behind.
// *out_status is from waitpid. Signals stay blocked.
static sdg_status_t program_wait(single_t *single, int *out_status) {
  sigset_t before, blocked;
  char **words = launch_arguments(single->launch.program, single->rank,
                                  single->size, single->local_rank);
  if (!words)
    return sdg_fail(SDG_E_NO_MEMORY, "for the program's words");
  SDG_TRY(relay_open(single->meeting.pmi, &single->relay));
  if (single->rank == 0)
    argument_pieces_say(single->launch.program, single->size);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  fflush(NULL);
  pid_t self = getpid();
  pid_t pid = child_fork(&before);
  if (pid == 0) {
    relay_attach(&single->relay);
    program_become(words, self);
  }
  if (pid < 0)
    return sdg_fail(SDG_E_START, "fork: %s", strerror(errno));
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  const int kept[] = {single->meeting.port,  single->relay.server,
                      single->relay.near,    single->relay.stop[0],
                      single->relay.stop[1], single->hold};
  guard_close(kept, sizeof kept / sizeof *kept);
  sdg_status_t relayed = relay_start(&single->relay);
  if (relayed != SDG_OK)
    kill(pid, SIGKILL);
  int status = child_wait_status(pid, &blocked);
  // Launchers send SIGKILL soon after SIGTERM.
  family_spare(single->guard);
  ranks_sweep(RANKS_SWEEP_NS);
  if (relayed != SDG_OK)
    return relayed;
  if (relay_stop(&single->relay))
    single->meeting.pmi = -1; // the program has to end its use itself
  *out_status = status;
  return SDG_OK;
}

// Names the job by what all its ranks have. They may reach rank 0 at different
// addresses, but at one port, and with one secret.
static sdg_status_t job_name(const single_t *single, char *out, size_t bytes) {
  const char *place = getenv("SUNDOG_RENDEZVOUS");
  const char *text = getenv("SUNDOG_SECRET"), *port;
  const unsigned char nonce[SDG_NONCE_BYTES] = {0};
  unsigned char proof[SDG_SHA256_BYTES] = {0};
  char launch[SDG_LAUNCH_BYTES];
  sdg_secret_t secret;
  sdg_launch_name(launch, sizeof launch);
  if (single->size == 1)
    place = single->folder; // no other run has this one's
  else if (place && sdg_rendezvous_is_tcp(place) &&
           (port = strrchr(place, ':'))) {
    SDG_TRY(sdg_secret_find(text ? text : "", sdg_options_get()->secret_file,
                            &secret));
    sdg_secret_prove(&secret, "record", nonce, nonce, "", 0, proof);
    place = port;
  }
  snprintf(out, bytes, "%016" PRIx64 " %s %s",
           sdg_hash_bytes(SDG_HASH_SEED, proof, sizeof proof), launch,
           place ? place : "");
  return SDG_OK;
}

// A command in a rank of another one is part of that one's run.
static sdg_status_t record_hold(single_t *single) {
  const char *record = sdg_options_get()->record;
  char job[PATH_MAX + SDG_LAUNCH_BYTES + 32];
  if (!*record || single->outer)
    return SDG_OK;
  SDG_TRY(job_name(single, job, sizeof job));
  return hold_take(record, job, &single->hold);
}

static sdg_status_t environment_set(single_t *single) {
  launch_t *launch = &single->launch;
  if (single->alone && unsetenv("SUNDOG_RENDEZVOUS") != 0)
    return sdg_fail(SDG_E_NO_MEMORY, "for SUNDOG_RENDEZVOUS");
  SDG_TRY(record_hold(single));
  if (single->size == 1)
    SDG_TRY(output_record_set(single->report, single->folder, single->record));
  SDG_TRY(launch_preload(launch, single->folder));
  SDG_TRY(launch_bind(launch, single->local_rank, single->size));
  SDG_TRY(launch_set(single->size));
  SDG_TRY(rank_set(single->rank, single->size, single->local_rank));
  if (single->within_run)
    return SDG_OK;
  return setting_make("SUNDOG_REPORT", single->folder, SDG_ORIGIN_COMMAND);
}

// After this the launcher may end all ranks. On one machine, too, hydra does
// not end them by itself.
static void meeting_end(single_t *single, int exit_status) {
  if (single->meeting.pmi >= 0 &&
      (single->meeting.pmi_asked || exit_status != 0))
    pmi_end(single->meeting.pmi, exit_status);
  single->meeting.pmi = -1;
}

// Runs the program and returns its exit status. If a signal ended it, ends this
// process by the same signal.
static int program_run(single_t *single) {
  int status = 0, exit_status = COMMAND_FAILED;
  if (environment_set(single) == SDG_OK &&
      program_wait(single, &status) == SDG_OK) {
    const report_ranks_t own = {single->rank, single->rank + 1, single->size};
    const launch_t *launch = &single->launch;
    sdg_log_set_rank(single->rank);
    exit_status = child_exit(status);
    if (exit_status == 0 && !single->within_run &&
        report_read(single->folder, own, launch->asked, launch->streams.whole,
                    false) != SDG_OK)
      exit_status = COMMAND_FAILED;
    if (single->report &&
        output_write(single->record, OUTPUT_PAGE, OUTPUT_EVENTS, single->report,
                     false) != SDG_OK)
      exit_status = exit_status ? exit_status : COMMAND_FAILED;
    if (exit_status != 0 && single->rank == 0)
      program_advise(*launch->program);
    if (single->outer && !single->within_run)
      hand_on_reports(single->folder, single->outer);
  }
  if (single->size > 1)
    sdg_rendezvous_sweep(); // the program may have been killed
  folder_remove(single->folder);
  guard_end(single->guard);
  hold_drop(single->hold);
  if (!WIFSIGNALED(status))
    return exit_status;
  meeting_end(single, exit_status);
  return child_end_alike(status);
}

static int rank_run(single_t *single) {
  launch_t *launch = &single->launch;
  if (launch_prepare(launch) != SDG_OK || rank_find(single) != SDG_OK)
    return COMMAND_FAILED;
  if (!launch->asked && single->size > 1 &&
      !sdg_options_replicated(sdg_options_get())) {
    (void)sdg_fail(SDG_E_NOTHING_SPLIT, "%d ranks without --split or --rules",
                   single->size);
    return COMMAND_FAILED;
  }
  // Before there is a folder: the launcher may kill a rank that waits.
  if (report_check(single) != SDG_OK ||
      launch_rules(launch, single->size) != SDG_OK ||
      (!single->alone && meeting_set(single) != SDG_OK))
    return COMMAND_FAILED;
  if (guard_start(single->folder, sizeof single->folder, &single->guard) !=
      SDG_OK)
    return COMMAND_FAILED;
  // Both variables are replaced below.
  const char *outer = getenv("SUNDOG_REPORT"), *by = getenv("SUNDOG_LAUNCH");
  single->outer = outer && *outer ? strdup(outer) : NULL;
  single->within_run = single->outer && by && strcmp(by, LAUNCH_RUN) == 0;
  int status = program_run(single);
  free(single->outer);
  return status;
}

int command_exec(int argc, char **argv) {
  single_t single = {.launch = {.device = LAUNCH_AUTO},
                     .meeting = {.port = -1, .pmi = -1},
                     .hold = -1};
  argp_parse(&exec_argp, argc, argv, ARGP_IN_ORDER, NULL, &single);
  int status = rank_run(&single);
  if (single.report_made)
    output_drop(single.report);
  meeting_end(&single, status);
  return status;
}
