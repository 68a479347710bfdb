// SPDX-License-Identifier: Apache-2.0
// Asks a child process which libraries the dynamic linker finds for a rank, and
// checks them.
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/checkup/checkup.h"

enum {
  LINE_BYTES = 4608,
  FIELDS = 3,
  NCCL_LEAST = 21800, // the first with ncclCommSplit and splitShare
};

typedef struct findings {
  int cudart, cudnn, nccl, driver; // versions; 0: not found
  char cudart_path[LINE_BYTES], cudnn_path[LINE_BYTES], nccl_path[LINE_BYTES];
  char preloaded[LINE_BYTES], broken[LINE_BYTES], nodevice[LINE_BYTES];
  char device[LINE_BYTES];
  int devices; // -1: unknown
} findings_t;

static void version_take(char **field, int *out_version, char *out_path) {
  *out_version = atoi(field[1]);
  if (out_path)
    snprintf(out_path, LINE_BYTES, "%s", field[2]);
}

static void line_take(char *line, findings_t *found) {
  char *field[FIELDS] = {line, strchr(line, '\0'), strchr(line, '\0')};
  for (int i = 1; i < FIELDS; i++) {
    char *tab = strchr(field[i - 1], '\t');
    if (!tab)
      break;
    *tab = '\0';
    field[i] = tab + 1;
  }
  if (strcmp(line, "preloaded") == 0)
    snprintf(found->preloaded, LINE_BYTES, "%s", field[1]);
  else if (strcmp(line, "cudart") == 0)
    version_take(field, &found->cudart, found->cudart_path);
  else if (strcmp(line, "cudnn") == 0)
    version_take(field, &found->cudnn, found->cudnn_path);
  else if (strcmp(line, "nccl") == 0)
    version_take(field, &found->nccl, found->nccl_path);
  else if (strcmp(line, "driver") == 0)
    version_take(field, &found->driver, NULL);
  else if (strcmp(line, "devices") == 0)
    version_take(field, &found->devices, found->device);
  else if (strcmp(line, "nodevice") == 0)
    snprintf(found->nodevice, LINE_BYTES, "%s", field[1]);
  else if (strcmp(line, "broken") == 0)
    snprintf(found->broken, LINE_BYTES, "%s", field[2]);
}

// Runs the helper. Returns its exit status, 128 + n for signal n, -1 if it was
// not started.
static int helper_run(const char *helper, findings_t *found) {
  int ends[2], status = 0;
  char line[LINE_BYTES];
  if (pipe(ends) != 0)
    return -1;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(helper, helper, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  FILE *in = fdopen(ends[0], "r");
  while (pid > 0 && in && fgets(line, sizeof line, in)) {
    line[strcspn(line, "\n")] = '\0';
    line_take(line, found);
  }
  if (in)
    fclose(in);
  else
    close(ends[0]);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  if (pid < 0)
    return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Prints a version number: 13000 as 13.0, 91900 as 9.19.0, 22807 as 2.28.7.
static void version_say(checkup_t *checkup, checkup_grade_t grade,
                        const char *topic, int version, const char *path,
                        int major, int minor) {
  if (minor == 10)
    checkup_say(checkup, grade, topic, "%d.%d, %s", version / major,
                version % major / minor, path);
  else
    checkup_say(checkup, grade, topic, "%d.%d.%d, %s", version / major,
                version % major / minor, version % minor, path);
}

static void nccl_say(checkup_t *checkup, const findings_t *found) {
  bool old = found->nccl < NCCL_LEAST;
  version_say(checkup, old ? CHECKUP_FAIL : CHECKUP_OK, "NCCL", found->nccl,
              found->nccl_path, 10000, 100);
  if (old)
    checkup_remedy("sundog needs NCCL 2.18 or later: install one, and put its "
                   "folder first in LD_LIBRARY_PATH");
}

static void missing_say(checkup_t *checkup, const char *topic,
                        const char *soname) {
  checkup_say(checkup, CHECKUP_FAIL, topic, "the linker cannot find %s",
              soname);
  checkup_remedy("install it, or put its folder into LD_LIBRARY_PATH; without "
                 "a GPU use --device host");
}

static void libraries_judge(checkup_t *checkup, const findings_t *found) {
  if (found->cudart)
    version_say(checkup, CHECKUP_OK, "CUDA runtime", found->cudart,
                found->cudart_path, 1000, 10);
  else
    missing_say(checkup, "CUDA runtime", "libcudart.so.13 or .12");
  if (found->cudnn)
    version_say(checkup, CHECKUP_OK, "cuDNN", found->cudnn, found->cudnn_path,
                10000, 100);
  else
    missing_say(checkup, "cuDNN", "libcudnn.so.9");
  if (found->nccl)
    nccl_say(checkup, found);
  else
    missing_say(checkup, "NCCL", "libnccl.so.2");
  if (*found->broken) {
    checkup_say(checkup, CHECKUP_FAIL, "library", "%s", found->broken);
    checkup_remedy(
        "install the library that it needs, or another version of it");
  }
}

static void devices_judge(checkup_t *checkup, const findings_t *found,
                          int gpu) {
  if (found->devices > 0) {
    checkup_say(checkup, CHECKUP_OK, "devices", "%d, the first is %s",
                found->devices, found->device);
    return;
  }
  if (!found->cudart)
    return;
  checkup_say(checkup, CHECKUP_FAIL, "devices", "none: %s",
              *found->nodevice ? found->nodevice : "the runtime counts 0");
  if (gpu && found->driver && found->driver / 1000 < found->cudart / 1000)
    checkup_remedy("the driver is older than the runtime: install a newer "
                   "driver or an older toolkit");
  else
    checkup_remedy("look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use "
                   "--device host");
}

void checkup_libraries(checkup_t *checkup, const char *helper, int gpu) {
  findings_t *found = calloc(1, sizeof *found);
  if (!found)
    return;
  found->devices = -1;
  int status = *helper ? helper_run(helper, found) : -1;
  if (status == -1 || status == 127) {
    checkup_say(checkup, CHECKUP_FAIL, "libraries",
                "cannot examine the libraries: %s does not start",
                *helper ? helper : "sundog-libraries");
    checkup_remedy("build or install sundog completely");
    free(found);
    return;
  }
  if (*found->preloaded)
    checkup_say(checkup, CHECKUP_OK, "preload", "%s", found->preloaded);
  else {
    checkup_say(checkup, CHECKUP_FAIL, "preload",
                "the linker does not preload libsundog.so");
    checkup_remedy("run this in the environment of the program; the folder "
                   "may be mounted noexec");
  }
  libraries_judge(checkup, found);
  if (status != 0) {
    checkup_say(checkup, CHECKUP_FAIL, "libraries",
                status == 128 + 14 ? "the CUDA runtime does not answer"
                                   : "a process that loads them ends with "
                                     "status %d",
                status);
    checkup_remedy(status == 128 + 14
                       ? "look at nvidia-smi; the driver may hang"
                       : "run sundog-libraries by itself to see why");
  } else
    devices_judge(checkup, found, gpu);
  free(found);
}
