// SPDX-License-Identifier: Apache-2.0
// Asks NVIDIA's library whether its engines take operation graphs, and compares
// with what the host device said of them. Needs no GPU.
//
// usage: judge [--list] [--plan] [--within PERCENT] LIBRARY [DEVICE...] <GRAPHS
//   LIBRARY  libcudnn.so.9 of a toolkit; a driver (driver.c) has to be found,
//   too DEVICE   H100, A100, B200; default: all GRAPHS   lines: what the host
//   device says ("taken", or a reason), a tab, a
//            plan's JSON, of whose engine nothing is asked
//   --list   prints, in front of every line, for each device: an engine's
//            number, "none", or the status of the operation or the graph that
//            cannot be finalized
//   --plan   makes plans, which compile kernels; without it, an engine is found
//            if the heuristics propose one, and plans are made only of graphs
//            that the host device refuses
//   --within the verdicts may differ for so many of the graphs; default 0
// Prints the lines where the verdicts differ, and the sums of both. The exit
// status is 1 if there are more such lines, or no lines at all: a graph that
// the host device takes must have an engine on every device, and one that it
// refuses must have none on the first.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/planner/planner.h"

static planner_device_t asked[PLANNER_DEVICES];
static int devices;
static bool list, plan;
static double percent;

// A verdict for each device; returns how many have an engine.
typedef struct {
  bool engine[PLANNER_DEVICES];
  char text[PLANNER_DEVICES][32];
} verdict_t;

static bool has_engine(planner_graph_t *graph, planner_device_t device,
                       bool takes, sdg_graph_config_t *config) {
  bool proposed = planner_graph_proposes(graph, device, config);
  // Proposals may fail, so that none is held against a refusal.
  return proposed &&
         ((takes && !plan) || planner_graph_plans(graph, device, config));
}

static void judge(const sdg_graph_t *graph, bool takes, verdict_t *out) {
  cudnnStatus_t status;
  int kind;
  planner_graph_t *planner = planner_graph_create(graph, &status, &kind);
  memset(out, 0, sizeof *out);
  for (int i = 0; i < devices; i++) {
    sdg_graph_config_t config;
    out->engine[i] = planner && has_engine(planner, asked[i], takes, &config);
    if (!planner)
      snprintf(out->text[i], sizeof out->text[i], "status %d of %d",
               (int)status, kind);
    else if (out->engine[i])
      snprintf(out->text[i], sizeof out->text[i], "%" PRId64, config.engine);
    else
      snprintf(out->text[i], sizeof out->text[i], "none");
  }
  planner_graph_destroy(planner);
}

static void print(const verdict_t *verdict, const char *line) {
  for (int i = 0; i < devices; i++)
    printf("%s%s=%s", i ? " " : "", planner_device_name(asked[i]),
           verdict->text[i]);
  printf("\t%s", line);
  fflush(stdout);
}

static bool devices_read(char **words) {
  bool given = *words;
  for (; *words; words++) {
    int d = 0;
    while (d < PLANNER_DEVICES &&
           strcmp(planner_device_name((planner_device_t)d), *words) != 0)
      d++;
    if (d == PLANNER_DEVICES || devices == PLANNER_DEVICES)
      return false;
    asked[devices++] = (planner_device_t)d;
  }
  for (int d = 0; d < PLANNER_DEVICES && !given; d++)
    asked[devices++] = (planner_device_t)d;
  return true;
}

int main(int argc, char **argv) {
  for (; argc > 1 && argv[1][0] == '-'; argc--, argv++)
    if (strcmp(argv[1], "--list") == 0)
      list = true;
    else if (strcmp(argv[1], "--plan") == 0)
      plan = true;
    else if (strcmp(argv[1], "--within") == 0 && argc > 2) {
      percent = atof(argv[2]);
      argc--, argv++;
    } else
      return 2;
  if (argc < 2 || !devices_read(argv + 2) || !planner_open(argv[1]))
    return 2;
  char *line = NULL;
  size_t room = 0;
  int lines = 0, taken = 0, wrong = 0;
  for (ssize_t length; (length = getline(&line, &room, stdin)) > 0; lines++) {
    char *text = strchr(line, '\t');
    sdg_graph_t *graph = NULL;
    sdg_graph_config_t config;
    if (!text || sdg_graph_read(text + 1, length - (text + 1 - line), &graph,
                                &config) != SDG_GRAPH_READ) {
      fprintf(stderr, "line %d is no graph\n", lines + 1);
      return 2;
    }
    verdict_t verdict;
    bool takes = strncmp(line, "taken\t", 6) == 0, differs = false;
    judge(graph, takes, &verdict);
    sdg_graph_release(graph);
    for (int i = 0; i < devices; i++)
      differs |= verdict.engine[i] != takes && (takes || i == 0);
    taken += takes;
    wrong += differs;
    if (list || differs)
      print(&verdict, line);
  }
  free(line);
  printf("%d graphs, %d taken by the host device; of %d NVIDIA's library says "
         "otherwise, and of %g %% it may\n",
         lines, taken, wrong, percent);
  return 100.0 * wrong > percent * lines || !lines;
}
