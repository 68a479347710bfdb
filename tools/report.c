// SPDX-License-Identifier: Apache-2.0
// `sundog report`: what a recorded run did, as a page or as JSON.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tools/command.h"
#include "tools/report/output.h"

enum { KEY_JSON = 0x100, KEY_EVENTS, KEY_TRACE };

typedef struct report {
  const char *folder, *output, *trace;
  output_form_t form;
  int64_t events;
} report_t;

static error_t report_parse(int key, char *argument, struct argp_state *state) {
  report_t *report = state->input;
  char *end;
  switch (key) {
  case 'o':
    report->output = argument;
    return 0;
  case KEY_JSON:
    report->form = OUTPUT_JSON;
    return 0;
  case KEY_TRACE:
    report->trace = argument;
    return 0;
  case KEY_EVENTS:
    errno = 0;
    report->events = strtoll(argument, &end, 10);
    if (errno || *end || end == argument || report->events < 0)
      argp_error(state, "--events takes a number from 0 up, not '%s'",
                 argument);
    return 0;
  case ARGP_KEY_ARG:
    if (report->folder)
      argp_error(state, "one folder at a time");
    report->folder = argument;
    return 0;
  case ARGP_KEY_END:
    if (!report->folder)
      argp_error(state, "no folder");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option report_options[] = {
    {"output", 'o', "FILE", 0,
     "Where to write it; default: report.html in the folder, for --json the "
     "standard output",
     0},
    {"json", KEY_JSON, NULL, 0, "Write the page's data instead of the page", 0},
    {"trace", KEY_TRACE, "FILE", 0,
     "Write the time line there as Perfetto and chrome://tracing open it; the "
     "page only with --output",
     0},
    {"events", KEY_EVENTS, "N", 0,
     "Draw at most N events of the time line, by making neighbours one; 0: all "
     "of them; default: 400000",
     0},
    {0},
};
const struct argp report_argp = {
    .options = report_options,
    .parser = report_parse,
    .args_doc = "FOLDER",
    .doc = "Writes a page about the run that `sundog run --record FOLDER` "
           "recorded: the mesh over the domain, a time line of each rank, the "
           "kinds of calls with their bytes, and the run's facts. The page is "
           "one file that needs no network.\v"
           "  sundog run --record kept -n 4 --rules net.rules -- ./train\n"
           "  sundog report kept -o run.html\n"
           "  sundog report kept --json | jq .kinds\n"
           "  sundog report kept --trace trace.json"};

static bool same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
         x.st_ino == y.st_ino && S_ISREG(x.st_mode);
}

int command_report(int argc, char **argv) {
  report_t report = {.events = OUTPUT_EVENTS};
  char path[PATH_MAX];
  argp_parse(&report_argp, argc, argv, 0, NULL, &report);
  if (report.trace) {
    sdg_status_t status =
        output_write(report.folder, OUTPUT_TRACE, 0, report.trace, true);
    if (status != SDG_OK || (!report.output && report.form == OUTPUT_PAGE))
      return command_exit(status);
    if (report.output && same_file(report.trace, report.output))
      return command_exit(sdg_fail(SDG_E_OVERWRITE,
                                   "--trace and --output name one file, %s",
                                   report.output));
  }
  const char *output = report.output;
  if (!output && report.form == OUTPUT_JSON) {
    output = "-";
  } else if (!output) {
    snprintf(path, sizeof path, "%s/report.html", report.folder);
    output = path;
  }
  sdg_status_t status = output_write(report.folder, report.form, report.events,
                                     output, !report.trace);
  if (status == SDG_OK && !report.output && report.form == OUTPUT_PAGE)
    printf("%s\n", output);
  return command_exit(status);
}
