// SPDX-License-Identifier: Apache-2.0
// Finds the CUDA version that a program and its libraries need: asks the
// dynamic linker for the libraries that it would load, without running the
// program.
#include "tools/program/needs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/program/program.h"

static const char *const stems[] = {"libcudart.so.", "libcublas.so.",
                                    "libcublasLt.so."};

static void name_take(const char *name, bool *found12, bool *found13) {
  for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
    size_t length = strlen(stems[i]);
    if (strncmp(name, stems[i], length) != 0)
      continue;
    *found12 = *found12 || atoi(name + length) == 12;
    *found13 = *found13 || atoi(name + length) == 13;
  }
}

void needs_ask(const char *path, void (*take)(const char *line, void *user),
               void *user) {
  int ends[2];
  char line[4096];
  if (pipe(ends) != 0)
    return;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(null, STDERR_FILENO) < 0 || dup2(ends[1], STDOUT_FILENO) < 0 ||
        setenv("LD_TRACE_LOADED_OBJECTS", "1", 1) != 0 ||
        unsetenv("LD_PRELOAD") != 0)
      _exit(127);
    close(ends[0]);
    close(ends[1]);
    execl(path, path, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  FILE *in = fdopen(ends[0], "r");
  while (pid > 0 && in && fgets(line, sizeof line, in))
    take(line, user);
  if (in)
    fclose(in);
  else
    close(ends[0]);
  if (pid > 0)
    (void)waitpid(pid, NULL, 0);
}

typedef struct versions {
  bool twelve, thirteen;
} versions_t;

static void line_take(const char *line, void *user) {
  versions_t *found = user;
  name_take(line + strspn(line, " \t"), &found->twelve, &found->thirteen);
}

bool needs_twelve(const char *name) {
  program_t program;
  versions_t found = {false, false};
  if (!program_readable(name) || program_examine(name, &program) != SDG_OK ||
      !program.is_elf)
    return false;
  for (int i = 0; i < program.needed; i++)
    name_take(program.needed_name[i], &found.twelve, &found.thirteen);
  // A static program would run; the linker would not answer for a privileged
  // one.
  if (!found.twelve && !found.thirteen && program.needed > 0 &&
      !program.is_static && !program.is_privileged)
    needs_ask(program.path, line_take, &found);
  return found.twelve && !found.thirteen;
}
