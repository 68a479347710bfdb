// SPDX-License-Identifier: Apache-2.0
// Finds loaded libraries by their names and contents.
#include "interpose/loaded.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
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

typedef struct text_search {
  uintptr_t address;
  const char *text;
  char *name;
  size_t bytes;
  bool found;
} text_search_t;

static bool segment_holds(const struct dl_phdr_info *info,
                          const ElfW(Phdr) * segment, uintptr_t address) {
  uintptr_t low = info->dlpi_addr + segment->p_vaddr;
  return segment->p_type == PT_LOAD && address >= low &&
         address - low < segment->p_memsz;
}

// Not memmem(): under AddressSanitizer it refuses the gaps that the sanitizer
// leaves between a program's constants.
__attribute__((no_sanitize("address"))) static bool
holds(const char *at, size_t bytes, const char *text, size_t length) {
  for (size_t i = 0; i + length <= bytes; i++) {
    size_t same = 0;
    while (same < length && at[i + same] == text[same])
      same++;
    if (same == length)
      return true;
  }
  return false;
}

static int object_read(struct dl_phdr_info *info, size_t bytes, void *data) {
  (void)bytes;
  text_search_t *search = data;
  bool here = false;
  for (int i = 0; i < info->dlpi_phnum && !here; i++)
    here = segment_holds(info, &info->dlpi_phdr[i], search->address);
  if (!here)
    return 0;
  // The main program has no name here.
  const char *path =
      info->dlpi_name[0] ? info->dlpi_name : program_invocation_name;
  const char *slash = strrchr(path, '/');
  snprintf(search->name, search->bytes, "%s", slash ? slash + 1 : path);
  size_t length = strlen(search->text);
  for (int i = 0; i < info->dlpi_phnum && !search->found; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type == PT_LOAD && segment->p_flags & PF_R)
      search->found = holds((const char *)(info->dlpi_addr + segment->p_vaddr),
                            segment->p_filesz, search->text, length);
  }
  return 1;
}

bool sdg_loaded_contains(const void *address, const char *text, char *out_name,
                         size_t bytes) {
  text_search_t search = {.address = (uintptr_t)address,
                          .text = text,
                          .name = out_name,
                          .bytes = bytes};
  dl_iterate_phdr(object_read, &search);
  return search.found;
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
