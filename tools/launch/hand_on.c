// SPDX-License-Identifier: Apache-2.0
// Copies the reports of a rank's processes for an outer command.
#include "tools/launch/hand_on.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// Copies the file `from` to the new file `to`. Returns false with EEXIST if
// `to` exists.
static bool file_copy(const char *from, const char *to) {
  char text[4096];
  FILE *in = fopen(from, "re"), *out = in ? fopen(to, "wxe") : NULL;
  int error = out ? 0 : errno;
  for (size_t n; out && (n = fread(text, 1, sizeof text, in)) > 0;)
    (void)fwrite(text, 1, n, out);
  // An incomplete copy is found when it is read.
  if (out)
    fclose(out);
  if (in)
    fclose(in);
  errno = error;
  return out != NULL;
}

// Copies "rank-0.json" to the first free name of rank-0.json, rank-0-2.json ...
static void entry_hand_on(const char *folder, const char *outer,
                          const char *name) {
  enum { PLACES_MAX = 10000 };
  char from[4096], to[4096];
  int rank = -1, used = 0;
  snprintf(from, sizeof from, "%s/%s", folder, name);
  snprintf(to, sizeof to, "%s/%s", outer, name);
  // Other names contain a pid, so they are unique.
  bool is_rank = sscanf(name, "rank-%d%n", &rank, &used) == 1 && used > 0;
  if (!is_rank) {
    (void)file_copy(from, to);
    return;
  }
  for (int number = 1; number < PLACES_MAX; number++) {
    if (number == 1)
      snprintf(to, sizeof to, "%s/rank-%d.json", outer, rank);
    else
      snprintf(to, sizeof to, "%s/rank-%d-%d.json", outer, rank, number);
    if (file_copy(from, to) || errno != EEXIST)
      return;
  }
}

void hand_on_reports(const char *folder, const char *outer) {
  DIR *files = opendir(folder);
  for (struct dirent *entry; files && (entry = readdir(files));)
    if (strncmp(entry->d_name, "rank-", 5) == 0 ||
        strncmp(entry->d_name, "seen-", 5) == 0 ||
        strncmp(entry->d_name, "failed-", 7) == 0 ||
        strncmp(entry->d_name, "unlaunched-", 11) == 0)
      entry_hand_on(folder, outer, entry->d_name);
  if (files)
    closedir(files);
}
