// SPDX-License-Identifier: Apache-2.0
// Makes and removes the private folder of a run.
#include "tools/launch/folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

// Bytes of a socket's path that are left for the names of files in the folder.
enum { NAME_ROOM = 40 };

sdg_status_t folder_create(char *out_path, size_t bytes) {
  const char *parents[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
  const size_t longest = sizeof((struct sockaddr_un *)0)->sun_path - NAME_ROOM;
  for (size_t i = 0; i < sizeof parents / sizeof *parents; i++) {
    const char *parent = parents[i];
    if (!parent || *parent != '/' || strpbrk(parent, " \t\n:;") ||
        strlen(parent) > longest || strlen(parent) + NAME_ROOM > bytes)
      continue;
    snprintf(out_path, bytes, "%s/sundog-run-XXXXXX", parent);
    if (mkdtemp(out_path)) // mode 0700
      return SDG_OK;
  }
  return sdg_fail(SDG_E_FOLDER, "/tmp: %s", strerror(errno));
}

static int entry_remove(const char *path, const struct stat *info, int kind,
                        struct FTW *level) {
  (void)info, (void)kind, (void)level;
  (void)remove(path);
  return 0;
}

void folder_remove(const char *path) {
  (void)nftw(path, entry_remove, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
