// SPDX-License-Identifier: Apache-2.0
// Finds the descendants of this process in /proc.
#include "tools/launch/descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct member {
  pid_t pid, parent;
  bool below; // a descendant
} member_t;

static bool member_read(pid_t pid, member_t *out) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0)
    return false;
  text[n] = '\0';
  // The line is "pid (name) state parent ...". The name may contain any
  // character, so parsing starts at the last parenthesis.
  const char *after = strrchr(text, ')');
  int parent;
  if (!after || sscanf(after + 1, " %*c %d", &parent) != 1)
    return false;
  *out = (member_t){pid, parent, false};
  return true;
}

// Returns all processes, owned by the caller; NULL if /proc is missing or
// memory runs out.
static member_t *members_read(int *out_count) {
  DIR *folder = opendir("/proc");
  int count = 0, room = 256;
  member_t *members = malloc((size_t)room * sizeof *members);
  if (!folder || !members)
    goto fail;
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (!isdigit((unsigned char)entry->d_name[0]))
      continue;
    if (count == room) {
      room *= 2;
      member_t *more = realloc(members, (size_t)room * sizeof *members);
      if (!more)
        goto fail;
      members = more;
    }
    count += member_read((pid_t)atoi(entry->d_name), &members[count]);
  }
  closedir(folder);
  *out_count = count;
  return members;
fail:
  if (folder)
    closedir(folder);
  free(members);
  return NULL;
}

enum { SPARED_MAX = 3 };
static pid_t spared[SPARED_MAX];
static int spared_count;

void family_spare(pid_t pid) {
  if (spared_count < SPARED_MAX)
    spared[spared_count++] = pid;
}

static bool is_spared(pid_t pid) {
  for (int i = 0; i < spared_count; i++)
    if (spared[i] == pid)
      return true;
  return false;
}

int family_signal(int signal_number) {
  int count, present = 0;
  pid_t self = getpid();
  member_t *members = members_read(&count);
  if (!members)
    return 0;
  // Each round adds one generation of children.
  for (bool found = true; found;) {
    found = false;
    for (int i = 0; i < count; i++) {
      bool below = members[i].parent == self;
      for (int k = 0; k < count && !below; k++)
        below = members[k].below && members[k].pid == members[i].parent;
      if (below && !members[i].below)
        members[i].below = found = true;
    }
  }
  for (int i = 0; i < count; i++) {
    if (!members[i].below || is_spared(members[i].pid))
      continue;
    present++;
    // Zombies get the signal too: a zombie may be the first thread of a process
    // whose other threads live.
    if (signal_number)
      kill(members[i].pid, signal_number);
  }
  free(members);
  return present;
}

bool family_has(pid_t pid) {
  enum { GENERATIONS = 1000 };
  member_t member;
  pid_t self = getpid();
  for (int i = 0; i < GENERATIONS && pid > 1 && pid != self; i++) {
    if (!member_read(pid, &member))
      return false;
    if (member.parent == self)
      return true;
    pid = member.parent;
  }
  return false;
}
