// SPDX-License-Identifier: Apache-2.0
// Finds loaded libraries by their names.
#include "interpose/loaded.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

typedef struct search {
  const char *const *prefixes;
  unsigned long long seen, loaded;
  char *name;
  size_t bytes;
  bool found;
} search_t;

// A result other than 0 ends the iteration.
static int object_look(struct dl_phdr_info *info, size_t bytes, void *data) {
  (void)bytes;
  search_t *search = data;
  search->loaded = info->dlpi_adds;
  if (search->loaded == search->seen)
    return 1;
  const char *slash = strrchr(info->dlpi_name, '/');
  const char *file = slash ? slash + 1 : info->dlpi_name;
  for (const char *const *p = search->prefixes; *p && !search->found; p++)
    search->found = strncmp(file, *p, strlen(*p)) == 0;
  if (search->found)
    snprintf(search->name, search->bytes, "%s", file);
  return search->found;
}

bool sdg_loaded_find(const char *const *prefixes, unsigned long long *io_seen,
                     char *out_name, size_t bytes) {
  search_t search = {
      .prefixes = prefixes, .seen = *io_seen, .name = out_name, .bytes = bytes};
  dl_iterate_phdr(object_look, &search);
  if (!search.found)
    *io_seen = search.loaded;
  return search.found;
}
