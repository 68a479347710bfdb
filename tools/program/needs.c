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

// Reads lines such as "\tlibcudart.so.12 => not found" from the dynamic linker,
// which a child runs instead of the program.
static void linker_ask(const char *path, bool *found12, bool *found13) {
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
    name_take(line + strspn(line, " \t"), found12, found13);
  if (in)
    fclose(in);
  else
    close(ends[0]);
  if (pid > 0)
    (void)waitpid(pid, NULL, 0);
}

bool needs_twelve(const char *name) {
  program_t program;
  bool found12 = false, found13 = false;
  if (!program_readable(name) || program_examine(name, &program) != SDG_OK ||
      !program.is_elf)
    return false;
  for (int i = 0; i < program.needed; i++)
    name_take(program.needed_name[i], &found12, &found13);
  // A static program would run; the linker would not answer for a privileged
  // one.
  if (!found12 && !found13 && program.needed > 0 && !program.is_static &&
      !program.is_privileged)
    linker_ask(program.path, &found12, &found13);
  return found12 && !found13;
}
