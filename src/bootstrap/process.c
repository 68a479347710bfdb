// SPDX-License-Identifier: Apache-2.0
// Reads the data of a process from /proc.
#include "src/bootstrap/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"

enum { PARENT = 4, START = 22, GENERATIONS = 1000 }; // fields of proc(5)

// Reads /proc/PID/FILE; false if it does not exist.
static bool file_read(int32_t pid, const char *name, char *out, size_t bytes) {
  char path[48];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  int fd = sdg_fd_raise(open(path, O_RDONLY | O_CLOEXEC));
  if (fd < 0)
    return false;
  ssize_t n = read(fd, out, bytes - 1);
  close(fd);
  out[n > 0 ? n : 0] = '\0';
  return n > 0;
}

// Reads the number in field `index` of /proc/PID/stat, and the process's
// state.
static bool field_read(int32_t pid, int index, char *out_state,
                       unsigned long long *out_number) {
  char text[1024];
  if (pid <= 0 || !file_read(pid, "stat", text, sizeof text))
    return false;
  // The second field is in parentheses and may contain spaces and parentheses.
  const char *field = strrchr(text, ')');
  if (!field || !field[1])
    return false;
  *out_state = field[2];
  for (int i = 2; field && i < index; i++)
    field = strchr(field + 1, ' ');
  return field && sscanf(field, " %llu", out_number) == 1;
}

static uint64_t name_space(void) {
  struct stat is;
  return stat("/proc/self/ns/pid", &is) == 0 ? (uint64_t)is.st_ino : 0;
}

sdg_process_t sdg_process_self(void) {
  unsigned long long start = 0;
  char state;
  sdg_process_t self = {.pid = (int32_t)getpid(), .name_space = name_space()};
  if (field_read(self.pid, START, &state, &start))
    self.start = start;
  return self;
}

bool sdg_process_lives(const sdg_process_t *process) {
  unsigned long long start;
  char state;
  return process->pid > 0 && process->name_space == name_space() &&
         field_read(process->pid, START, &state, &start) &&
         start == process->start && state != 'Z' && state != 'X';
}

bool sdg_process_is_stopped(int32_t pid) {
  unsigned long long start;
  char state;
  return field_read(pid, START, &state, &start) &&
         (state == 'T' || state == 't');
}

bool sdg_process_maps(int32_t pid, dev_t device, ino_t inode) {
  char path[48], line[512];
  snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
  FILE *maps = pid > 0 ? fopen(path, "re") : NULL;
  if (!maps)
    return false;
  bool found = false;
  while (!found && fgets(line, sizeof line, maps)) {
    unsigned long long mapped;
    unsigned major_number, minor_number;
    found = sscanf(line, "%*s %*s %*s %x:%x %llu", &major_number, &minor_number,
                   &mapped) == 3 &&
            mapped == inode && major_number == major(device) &&
            minor_number == minor(device);
  }
  fclose(maps);
  return found;
}

bool sdg_process_is_above(int32_t pid) {
  unsigned long long parent;
  char state;
  int32_t at = (int32_t)getpid();
  for (int i = 0; i < GENERATIONS && at > 0; i++) {
    if (at == pid)
      return true;
    if (!field_read(at, PARENT, &state, &parent))
      return false;
    at = (int32_t)parent;
  }
  return false;
}

void sdg_process_name(int32_t pid, char *out, size_t bytes) {
  if (pid <= 0 || !file_read(pid, "comm", out, bytes))
    out[0] = '\0';
  out[strcspn(out, "\n")] = '\0';
}
