// SPDX-License-Identifier: Apache-2.0
// Reads the dynamic symbols of a program and its libraries.
#include "tools/program/imports.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tools/program/image.h"
#include "tools/program/needs.h"
#include "tools/program/program.h"

enum { OBJECTS_MAX = 512 };

typedef enum use {
  IMPORTED, // by the program or a library of its own
  DEFINED,  // by a library of its own, as a plain function
  OCCUPIED, // defined otherwise, or elsewhere
} use_t;

typedef struct symbol {
  const char *name; // in an image
  use_t use;
} symbol_t;

typedef struct imports {
  int objects;
  image_t object[OBJECTS_MAX];
  size_t count, room;
  symbol_t *symbol; // owned
  bool failed;
} imports_t;

// ---- files -----------------------------------------------------------------

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

// Whether a library is of the system, or one whose functions are no ops of the
// program's.
static bool is_systems(const char *path) {
  static const char *const folder[] = {
      "/lib/", "/lib32/", "/lib64/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/"};
  static const char *const stem[] = {
      "ld-linux", "libc.",     "libm.",       "libmvec.",    "libpthread",
      "libdl.",   "librt.",    "libutil.",    "libresolv",   "libstdc++",
      "libgcc_s", "libatomic", "libgfortran", "libquadmath", "libgomp",
      "libomp",   "libiomp",   "libcu",       "libnccl",     "libnv",
      "libnpp",   "libmpi",    "libopen-",    "libpmix",     "libprrte",
      "libucp",   "libucs",    "libuct",      "libucm",      "libfabric",
      "libhdf5",  "libnetcdf", "libpython",   "libsundog",   "libasan",
      "libtsan",  "libubsan",  "liblsan",     "linux-vdso"};
  const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
  for (size_t i = 0; i < sizeof folder / sizeof *folder; i++)
    if (begins(path, folder[i]))
      return true;
  for (size_t i = 0; i < sizeof stem / sizeof *stem; i++)
    if (begins(file, stem[i]))
      return true;
  return false;
}

// ---- symbols ---------------------------------------------------------------

static void symbol_add(imports_t *io, const char *name, use_t use) {
  if (io->count == io->room) {
    size_t room = io->room ? 2 * io->room : 1024;
    symbol_t *more = realloc(io->symbol, room * sizeof *more);
    io->failed |= !more;
    if (!more)
      return;
    io->symbol = more;
    io->room = room;
  }
  io->symbol[io->count++] = (symbol_t){name, use};
}

// A function that a jump in another file can stand for. On aarch64 another bit
// says that its registers of arguments are not the usual ones.
static bool is_plain(const Elf64_Sym *symbol) {
  return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
         ELF64_ST_VISIBILITY(symbol->st_other) == STV_DEFAULT &&
         !(symbol->st_other & ~3);
}

static void symbol_take(imports_t *io, const Elf64_Sym *symbol,
                        const char *name, bool own, bool program) {
  int type = ELF64_ST_TYPE(symbol->st_info);
  if (!*name || ELF64_ST_BIND(symbol->st_info) == STB_LOCAL)
    return;
  if (symbol->st_shndx != SHN_UNDEF)
    symbol_add(io, name,
               own && !program && is_plain(symbol) ? DEFINED : OCCUPIED);
  else if (own && (type == STT_FUNC || type == STT_NOTYPE))
    symbol_add(io, name, IMPORTED);
}

static void symbols_read(imports_t *io, const image_t *image, bool own,
                         bool program) {
  const Elf64_Ehdr *head = image_elf(image);
  for (unsigned i = 0; head && i < head->e_shnum; i++) {
    const Elf64_Shdr *table = image_section(image, i);
    if (!table || table->sh_type != SHT_DYNSYM)
      continue;
    const Elf64_Shdr *strings = image_section(image, table->sh_link);
    uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbol =
        image_at(image, table->sh_offset, count * sizeof *symbol);
    for (uint64_t s = 0; strings && symbol && s < count; s++)
      symbol_take(io, &symbol[s],
                  image_string(image, strings->sh_offset + symbol[s].st_name),
                  own, program);
  }
}

static void object_read(imports_t *io, const char *path, bool program) {
  image_t *image = &io->object[io->objects];
  if (io->objects == OBJECTS_MAX || !image_open(path, image))
    return;
  io->objects++;
  symbols_read(io, image, program || !is_systems(path), program);
}

// "\tlibwave.so => /home/me/libwave.so (0x7f...)", "\t/home/me/libwave.so (0x"
static void line_take(const char *line, void *user) {
  char path[PATH_MAX];
  const char *arrow = strstr(line, " => ");
  const char *from = arrow ? arrow + 4 : line + strspn(line, " \t");
  const char *end = NULL;
  for (const char *at = from; (at = strstr(at, " (0x")); at++)
    end = at;
  if (!end || end - from >= (ptrdiff_t)sizeof path)
    return;
  memcpy(path, from, (size_t)(end - from));
  path[end - from] = '\0';
  if (strchr(path, '/'))
    object_read(user, path, false);
}

// ---- the list --------------------------------------------------------------

static int symbol_compare(const void *a, const void *b) {
  return strcmp(((const symbol_t *)a)->name, ((const symbol_t *)b)->name);
}

static sdg_status_t names_take(imports_t *io, int most, char **out_names,
                               int *out_count, int *out_more) {
  if (io->count > 0)
    qsort(io->symbol, io->count, sizeof *io->symbol, symbol_compare);
  for (size_t i = 0, next; i < io->count; i = next) {
    int uses[OCCUPIED + 1] = {0};
    for (next = i; next < io->count &&
                   symbol_compare(&io->symbol[i], &io->symbol[next]) == 0;
         next++)
      uses[io->symbol[next].use]++;
    if (!uses[IMPORTED] || uses[DEFINED] != 1 || uses[OCCUPIED])
      continue;
    if (*out_count == most) {
      (*out_more)++;
      continue;
    }
    char *name = strdup(io->symbol[i].name);
    if (!name)
      return sdg_fail(SDG_E_NO_MEMORY, "names of functions");
    out_names[(*out_count)++] = name;
  }
  return SDG_OK;
}

sdg_status_t imports_find(const char *name, int most, char ***out_names,
                          int *out_count, int *out_more) {
  program_t program;
  imports_t *all;
  *out_count = *out_more = 0;
  SDG_TRY(SDG_ALLOCATE(*out_names, most, "names of functions"));
  if (!program_readable(name) || program_examine(name, &program) != SDG_OK ||
      !program.is_elf || program.is_static || program.is_privileged)
    return SDG_OK;
  SDG_TRY(SDG_ALLOCATE(all, 1, "the program's symbols"));
  object_read(all, program.path, true);
  needs_ask(program.path, line_take, all);
  sdg_status_t status =
      all->failed ? sdg_fail(SDG_E_NO_MEMORY, "the program's symbols")
                  : names_take(all, most, *out_names, out_count, out_more);
  for (int i = 0; i < all->objects; i++)
    image_close(&all->object[i]);
  free(all->symbol);
  free(all);
  return status;
}
