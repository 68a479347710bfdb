// SPDX-License-Identifier: Apache-2.0
// Gathers what a process knows of its run.
#include "src/observe/run_facts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/json_text.h"
#include "src/base/options.h"
#include "src/base/stopwatch.h"
#include "src/job/job.h"
#include "src/observe/report.h"

enum { RULES_BYTES = 1 << 18, WORD_BYTES = 1 << 12 };

static void text_put(FILE *to, const char *name, const char *text) {
  fprintf(to, ",\"%s\":", name);
  sdg_json_text(to, text);
}

// The words of the command line, each cut at WORD_BYTES bytes.
static void command_write(FILE *to) {
  char word[WORD_BYTES];
  size_t used = 0;
  const char *before = "";
  FILE *file = fopen("/proc/self/cmdline", "re");
  fprintf(to, ",\"command\":[");
  for (int c; file && (c = fgetc(file)) != EOF;) {
    if (c && used + 1 < sizeof word)
      word[used++] = (char)c;
    if (c)
      continue;
    word[used] = '\0';
    fputs(before, to);
    sdg_json_text(to, word);
    before = ",";
    used = 0;
  }
  fprintf(to, "]");
  if (file)
    fclose(file);
}

static void mesh_write(FILE *to) {
  const sdg_mesh_t *mesh = sdg_job_mesh();
  fprintf(to, ",\"mesh\":[");
  for (int i = 0; i < mesh->axes; i++)
    fprintf(to, "%s{\"axis\":\"%s\",\"ranks\":%d}", i ? "," : "", mesh->name[i],
            mesh->size[i]);
  fprintf(to, "]");
}

// All options with their values and origins; of ranks but the first, those that
// are not the default.
static void options_write(FILE *to) {
  const sdg_option_info_t *info;
  const char *before = "";
  fprintf(to, ",\"options\":[");
  for (unsigned i = 0; (info = sdg_option_at(i)); i++) {
    sdg_origin_t origin = sdg_options_get()->origin[i];
    const char *value = getenv(info->variable);
    bool set = origin != SDG_ORIGIN_DEFAULT && value && *value;
    if ((!set && sdg_job_rank() > 0) || i == SDG_OPTION_ORIGINS)
      continue;
    fprintf(to, "%s{\"name\":\"%s\",\"value\":", before, info->variable);
    sdg_json_text(to, !set                                ? info->fallback
                      : strcmp(info->type, "SECRET") == 0 ? "(set, not shown)"
                                                          : value);
    fprintf(to, ",\"origin\":\"%s\"}",
            sdg_origin_name(set ? origin : SDG_ORIGIN_DEFAULT));
    before = ",";
  }
  fprintf(to, "]");
}

static void rules_write(FILE *to) {
  const char *path = sdg_options_get()->rules;
  FILE *file = *path ? fopen(path, "re") : NULL;
  char *text = file ? malloc(RULES_BYTES) : NULL;
  if (text) {
    text[fread(text, 1, RULES_BYTES - 1, file)] = '\0';
    text_put(to, "rules", path);
    text_put(to, "rules_text", text);
  }
  free(text);
  if (file)
    fclose(file);
}

void sdg_run_facts_write(FILE *to) {
  char host[256] = "", folder[WORD_BYTES];
  struct timespec now;
  gethostname(host, sizeof host - 1);
  clock_gettime(CLOCK_REALTIME, &now);
  uint64_t monotonic_ns = sdg_monotonic_ns();
  fprintf(to,
          "{\"rank\":%d,\"size\":%d,\"pid\":%d,\"process\":%d,\"monotonic_ns\":"
          "%" PRIu64 ",\"realtime_ns\":%lld",
          sdg_job_rank(), sdg_job_size(), (int)getpid(), sdg_report_process(),
          monotonic_ns, (long long)now.tv_sec * 1000000000 + now.tv_nsec);
  text_put(to, "host", host);
  text_put(to, "version", SUNDOG_VERSION);
  text_put(to, "folder", getcwd(folder, sizeof folder) ? folder : "");
  command_write(to);
  mesh_write(to);
  options_write(to);
  if (sdg_job_rank() == 0)
    rules_write(to);
  fprintf(to, "}");
}
