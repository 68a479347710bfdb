// SPDX-License-Identifier: Apache-2.0
// Finds functions in loaded objects by their GNU hash tables: the hooked dlsym
// needs the real one, and dlvsym, which could tell, is hooked as well.
#include "interpose/symbol.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct search {
  const char *name;
  uint32_t hash;
  bool seen_self;
  void *found;
} search_t;

typedef struct tables {
  const ElfW(Sym) * symbol;
  const char *string;
  const uint32_t *hash; // DT_GNU_HASH
} tables_t;

static bool same_text(const char *a, const char *b) {
  while (*a && *a == *b)
    a++, b++;
  return *a == *b;
}

static uint32_t gnu_hash(const char *name) {
  uint32_t hash = 5381;
  for (const unsigned char *c = (const unsigned char *)name; *c; c++)
    hash = hash * 33 + *c;
  return hash;
}

// ld.so relocates these entries in place, except where the dynamic section is
// read-only (the vdso).
static const void *absolute(ElfW(Addr) base, ElfW(Addr) value) {
  return (const void *)(value < base ? base + value : value);
}

static bool tables_read(const struct dl_phdr_info *info, tables_t *out) {
  *out = (tables_t){0};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
      continue;
    const ElfW(Dyn) *entry =
        (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; entry++) {
      const void *address = absolute(info->dlpi_addr, entry->d_un.d_ptr);
      if (entry->d_tag == DT_SYMTAB)
        out->symbol = address;
      else if (entry->d_tag == DT_STRTAB)
        out->string = address;
      else if (entry->d_tag == DT_GNU_HASH)
        out->hash = address;
    }
  }
  return out->symbol && out->string && out->hash;
}

// Any version will do: the versions of dlsym and dlvsym are one address.
static const ElfW(Sym) *
    symbol_find(const tables_t *tables, const search_t *search) {
  uint32_t buckets = tables->hash[0], first = tables->hash[1];
  const uint32_t *bucket =
      tables->hash + 4 +
      tables->hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t *chain = bucket + buckets;
  if (buckets == 0)
    return NULL;
  uint32_t index = bucket[search->hash % buckets];
  if (index < first)
    return NULL;
  for (;; index++) {
    uint32_t hash = chain[index - first];
    const ElfW(Sym) *symbol = &tables->symbol[index];
    if ((hash | 1) == (search->hash | 1) && symbol->st_shndx != SHN_UNDEF &&
        ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
        same_text(tables->string + symbol->st_name, search->name))
      return symbol;
    if (hash & 1)
      return NULL;
  }
}

static bool holds_self(const struct dl_phdr_info *info) {
  ElfW(Addr) self = (ElfW(Addr)) & sdg_symbol_next;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    ElfW(Addr) low = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && self >= low &&
        self < low + segment->p_memsz)
      return true;
  }
  return false;
}

static int object_search(struct dl_phdr_info *info, size_t bytes, void *data) {
  (void)bytes;
  search_t *search = data;
  if (!search->seen_self) {
    search->seen_self = holds_self(info);
    return 0;
  }
  tables_t tables;
  const ElfW(Sym) *symbol =
      tables_read(info, &tables) ? symbol_find(&tables, search) : NULL;
  if (!symbol)
    return 0;
  search->found = (void *)(info->dlpi_addr + symbol->st_value);
  return 1;
}

void *sdg_symbol_next(const char *name) {
  search_t search = {.name = name, .hash = gnu_hash(name)};
  dl_iterate_phdr(object_search, &search);
  return search.found;
}
