// SPDX-License-Identifier: Apache-2.0
// Finds functions in loaded objects by their GNU hash tables. The hooked dlsym
// needs the real one, and dlvsym, which could find it, is hooked as well.
#include "interpose/symbol.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

// ld.so relocates these entries in place, unless the dynamic section is
// read-only (the vdso).
static const void *absolute(ElfW(Addr) base, ElfW(Addr) value) {
  return (const void *)(value < base ? base + value : value);
}

static bool tables_read(const struct link_map *map, tables_t *out) {
  *out = (tables_t){0};
  for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
    const void *address = absolute(map->l_addr, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB)
      out->symbol = address;
    else if (entry->d_tag == DT_STRTAB)
      out->string = address;
    else if (entry->d_tag == DT_GNU_HASH)
      out->hash = address;
  }
  return out->symbol && out->string && out->hash;
}

// Any version is right: all versions of dlsym and dlvsym have one address.
static const ElfW(Sym) *
    symbol_find(const tables_t *tables, const char *name, uint32_t wanted) {
  uint32_t buckets = tables->hash[0], first = tables->hash[1];
  const uint32_t *bucket =
      tables->hash + 4 +
      tables->hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t *chain = bucket + buckets;
  if (buckets == 0)
    return NULL;
  uint32_t index = bucket[wanted % buckets];
  if (index < first)
    return NULL;
  for (;; index++) {
    uint32_t hash = chain[index - first];
    const ElfW(Sym) *symbol = &tables->symbol[index];
    if ((hash | 1) == (wanted | 1) && symbol->st_shndx != SHN_UNDEF &&
        ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
        same_text(tables->string + symbol->st_name, name))
      return symbol;
    if (hash & 1)
      return NULL;
  }
}

// Weak, so that the library does not need ld.so by name. It always exists.
extern struct r_debug _r_debug __attribute__((weak));
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

void *sdg_symbol_next(const char *name) {
  uint32_t hash = gnu_hash(name);
  bool seen_self = false;
  // All objects up to libc are loaded at the start and stay, so the list can be
  // read without the linker's lock.
  for (const struct link_map *map = &_r_debug ? _r_debug.r_map : NULL; map;
       map = map->l_next) {
    tables_t tables;
    if (seen_self && tables_read(map, &tables)) {
      const ElfW(Sym) *symbol = symbol_find(&tables, name, hash);
      if (symbol)
        return (void *)(map->l_addr + symbol->st_value);
    }
    seen_self |= map->l_ld == _DYNAMIC;
  }
  return NULL;
}
