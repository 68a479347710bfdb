// SPDX-License-Identifier: Apache-2.0
// Writes each graph that is planned, with what the rules say of it, for judges
// of these rules.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/host/cudnn/plan/plan.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int file = -1;

static void file_open(void) {
  const char *path = getenv("SUNDOG_HOST_GRAPHS");
  if (!path || !*path)
    return;
  file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0)
    perror("sundog host device: the file of SUNDOG_HOST_GRAPHS");
}

void host_plan_record(const sdg_graph_t *graph) {
  static const sdg_graph_config_t none;
  (void)pthread_once(&once, file_open);
  if (file < 0)
    return;
  const char *why = host_plan_refuses(graph);
  char *text = host_plan_write(graph, &none, NULL), *line = NULL;
  // One call, so that lines of several processes do not mix.
  int length =
      text ? asprintf(&line, "%s\t%s\n", why ? why : "taken", text) : 0;
  if (length > 0 && write(file, line, (size_t)length) != length) {
    perror("sundog host device: the file of SUNDOG_HOST_GRAPHS");
    file = -1;
  }
  free(line);
  free(text);
}
