// SPDX-License-Identifier: Apache-2.0
// Searches the loaded objects for a function, and whether its calls are seen.
#include "interpose/function/real.h"

#include <elf.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "interpose/function/object.h"
#include "src/base/status.h"
#include "src/call/functions.h"

typedef struct search {
  const char *name, *pattern;
  void *found;
  char file[128]; // of the found one
  int others;     // further objects that have the function
  bool program, symbolic, hidden;
} search_t;

// The number of symbols.
static uint32_t symbols_of(const sdg_object_t *object) {
  if (object->hash)
    return object->hash[1];
  uint32_t buckets = object->gnu[0], first = object->gnu[1], last = 0;
  const uint32_t *bucket =
      object->gnu + 4 +
      object->gnu[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t *chain = bucket + buckets;
  for (uint32_t b = 0; b < buckets; b++)
    last = bucket[b] > last ? bucket[b] : last;
  if (last < first)
    return 0;
  while (!(chain[last - first] & 1))
    last++;
  return last + 1;
}

static const ElfW(Sym) *
    symbol_find(const sdg_object_t *object, const char *name, int type) {
  uint32_t count = symbols_of(object);
  for (uint32_t i = 1; i < count; i++) {
    const ElfW(Sym) *symbol = &object->symbol[i];
    if (symbol->st_shndx != SHN_UNDEF &&
        ELF64_ST_TYPE(symbol->st_info) == type &&
        ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
        strcmp(object->string + symbol->st_name, name) == 0)
      return symbol;
  }
  return NULL;
}

static int object_look(struct dl_phdr_info *info, size_t bytes, void *data) {
  (void)bytes;
  search_t *search = data;
  sdg_object_t object;
  const char *slash = strrchr(info->dlpi_name, '/');
  const char *file = slash ? slash + 1 : info->dlpi_name;
  if (!sdg_object_read(info, &object) ||
      symbol_find(&object, SDG_FUNCTIONS_TABLE, STT_OBJECT) ||
      symbol_find(&object, SDG_WATCHED_TABLE, STT_OBJECT)) // sundog's stubs
    return 0;
  const ElfW(Sym) *symbol = symbol_find(&object, search->name, STT_FUNC);
  if (!symbol ||
      (*search->pattern && *file && fnmatch(search->pattern, file, 0) != 0))
    return 0;
  if (search->found) {
    search->others++;
    return 0;
  }
  search->found = (void *)(info->dlpi_addr + symbol->st_value);
  search->program = *info->dlpi_name == '\0';
  search->symbolic = object.symbolic;
  search->hidden = ELF64_ST_VISIBILITY(symbol->st_other) != STV_DEFAULT;
  snprintf(search->file, sizeof search->file, "%s", file);
  return 0;
}

bool sdg_function_exists(const char *name, const char *pattern) {
  search_t search = {.name = name, .pattern = pattern};
  dl_iterate_phdr(object_look, &search);
  return search.found != NULL;
}

void *sdg_function_look(const char *name, char *out_file, size_t file_bytes) {
  search_t search = {.name = name, .pattern = ""};
  dl_iterate_phdr(object_look, &search);
  snprintf(out_file, file_bytes, "%s", search.file);
  return search.found;
}

void *sdg_function_real(const char *name, const char *pattern) {
  search_t search = {.name = name, .pattern = pattern};
  dl_iterate_phdr(object_look, &search);
  if (!search.found)
    (void)!sdg_fail(SDG_E_FUNCTION_UNSEEN, "no loaded library has '%s'", name);
  else if (search.program)
    (void)!sdg_fail(SDG_E_FUNCTION_UNSEEN, "'%s' is in the program's own file",
                    name);
  else if (search.symbolic || search.hidden)
    (void)!sdg_fail(SDG_E_FUNCTION_UNSEEN, "'%s' in %s, which %s", name,
                    search.file,
                    search.symbolic ? "was linked with -Bsymbolic"
                                    : "gives it protected visibility");
  else if (search.others > 0)
    (void)!sdg_fail(SDG_E_FUNCTION_UNSEEN,
                    "'%s' is in %s and in %d other loaded objects: write "
                    "`library`",
                    name, search.file, search.others);
  else
    return search.found;
  return NULL;
}
