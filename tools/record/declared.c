// SPDX-License-Identifier: Apache-2.0
// Adds up what the processes of a run say of declared functions.
#include "tools/record/declared.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "rules/file/function/function.h"
#include "src/base/log.h"
#include "src/observe/declared.h"

typedef struct declared {
  int count;
  struct {
    char name[SDG_FUNCTION_NAME_BYTES];
    int is; // the most that a process says of it: sdg_declared_t
  } function[SDG_SECTIONS_MAX];
} declared_t;

static void function_add(declared_t *io, const char *name, int is) {
  int i = 0;
  while (i < io->count && strcmp(io->function[i].name, name) != 0)
    i++;
  if (i == SDG_SECTIONS_MAX)
    return;
  if (i == io->count) {
    snprintf(io->function[i].name, sizeof io->function[i].name, "%s", name);
    io->function[i].is = is;
    io->count++;
  }
  if (is > io->function[i].is)
    io->function[i].is = is;
}

static void file_read(declared_t *io, const char *path) {
  char line[SDG_FUNCTION_NAME_BYTES + 16];
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file)) {
    char *name = strchr(line, ' ');
    if (!name)
      continue;
    *name++ = '\0';
    name[strcspn(name, "\n")] = '\0';
    for (int is = 0; is < SDG_DECLARED_COUNT; is++)
      if (strcmp(line, sdg_declared_name[is]) == 0)
        function_add(io, name, is);
  }
  if (file)
    fclose(file);
}

sdg_status_t declared_check(const char *folder) {
  static declared_t all;
  DIR *entries = opendir(folder);
  all.count = 0;
  for (struct dirent *entry; entries && (entry = readdir(entries));) {
    char path[4096];
    if (strncmp(entry->d_name, "functions-", strlen("functions-")) != 0)
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    file_read(&all, path);
  }
  if (entries)
    closedir(entries);
  for (int i = 0; i < all.count; i++)
    if (all.function[i].is == SDG_DECLARED_ABSENT)
      return sdg_fail(SDG_E_FUNCTION_ABSENT, "'%s'", all.function[i].name);
  for (int i = 0; i < all.count; i++)
    if (all.function[i].is == SDG_DECLARED_UNUSED &&
        strncmp(all.function[i].name, "kernel ", strlen("kernel ")) == 0)
      sdg_log("no launch of %s was seen", all.function[i].name);
    else if (all.function[i].is == SDG_DECLARED_UNUSED)
      sdg_log("no call of function '%s' was seen; those inside a library "
              "linked with -Bsymbolic-functions cannot be",
              all.function[i].name);
  return SDG_OK;
}
