// SPDX-License-Identifier: Apache-2.0
// An ELF file of two segments: code with what the linker reads, and data.
#include "tools/program/functions.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/call/functions.h"

// A segment begins at a multiple of the largest page that these processors
// have.
enum { PAGE = 0x10000, CODE_BYTES = 32, SEGMENTS = 4, TAGS = 11 };

// Offsets in the file, which are the addresses in memory.
typedef struct layout {
  int count;
  const char *table_name, *routine;
  size_t hash, symbols, strings, relocations, code, text_end;
  size_t dynamic, got, table, end;
  size_t string_bytes;
} layout_t;

static const char soname[] = "sundog-functions.so";

static size_t aligned(size_t at, size_t to) {
  return (at + to - 1) / to * to;
}

// The null symbol, the functions, the table, the routine.
static size_t symbols_of(int count) {
  return (size_t)count + 3;
}

// Three pointers of each row, and the address of the routine.
static size_t relocations_of(int count) {
  return 3 * (size_t)count + 1;
}

static size_t row_at(const layout_t *l, int index) {
  return l->table + sizeof(sdg_functions_t) +
         (size_t)index * sizeof(sdg_functions_row_t);
}

static layout_t layout_make(const char *const *names, int count, bool watched) {
  layout_t l = {.count = count,
                .table_name = watched ? SDG_WATCHED_TABLE : SDG_FUNCTIONS_TABLE,
                .routine =
                    watched ? SDG_WATCHED_ROUTINE : SDG_FUNCTIONS_RESOLVE};
  l.string_bytes =
      1 + sizeof soname + strlen(l.table_name) + strlen(l.routine) + 2;
  for (int i = 0; i < count; i++)
    l.string_bytes += strlen(names[i]) + 1;
  l.hash = aligned(sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr), 8);
  // One bucket for each symbol, one link for each symbol.
  l.symbols =
      aligned(l.hash + (2 + 2 * symbols_of(count)) * sizeof(Elf64_Word), 8);
  l.strings = l.symbols + symbols_of(count) * sizeof(Elf64_Sym);
  l.relocations = aligned(l.strings + l.string_bytes, 8);
  l.code = aligned(l.relocations + relocations_of(count) * sizeof(Elf64_Rela),
                   CODE_BYTES);
  l.text_end = l.code + (size_t)count * CODE_BYTES;
  l.dynamic = aligned(l.text_end, PAGE);
  l.got = l.dynamic + TAGS * sizeof(Elf64_Dyn);
  l.table = l.got + sizeof(uint64_t);
  l.end = row_at(&l, count);
  return l;
}

static uint32_t elf_hash(const char *name) {
  uint32_t hash = 0;
  for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
    hash = (hash << 4) + *c;
    uint32_t high = hash & 0xf0000000;
    hash ^= high >> 24;
    hash &= ~high;
  }
  return hash;
}

// ---- code ------------------------------------------------------------------

#if defined(__x86_64__)

enum {
  MACHINE = EM_X86_64,
  RELATIVE = R_X86_64_RELATIVE,
  GLOBAL = R_X86_64_GLOB_DAT
};

static size_t bytes_put(char *to, const void *bytes, size_t count) {
  memcpy(to, bytes, count);
  return count;
}

// jmp *target(%rip), which ends at `end`.
static size_t jump_put(char *to, size_t end, size_t target) {
  static const unsigned char jump[] = {0xff, 0x25};
  int32_t distance = (int32_t)((int64_t)target - (int64_t)end);
  size_t used = bytes_put(to, jump, sizeof jump);
  return used + bytes_put(to + used, &distance, sizeof distance);
}

// A jump through the slot; then what the slot holds at first: pushq, and a jump
// to the routine.
static void code_put(char *file, const layout_t *l, int index) {
  static const unsigned char branch_target[] = {0xf3, 0x0f, 0x1e, 0xfa},
                             push = 0x68;
  size_t at = l->code + (size_t)index * CODE_BYTES;
  int32_t number = SDG_FUNCTIONS_FIRST + index;
  memset(file + at, 0x90, CODE_BYTES);
  bytes_put(file + at, branch_target, sizeof branch_target);
  jump_put(file + at + 4, at + 10,
           row_at(l, index) + offsetof(sdg_functions_row_t, slot));
  at += CODE_BYTES / 2;
  bytes_put(file + at, &push, 1);
  bytes_put(file + at + 1, &number, sizeof number);
  jump_put(file + at + 5, at + 11, l->got);
}

#elif defined(__aarch64__)

enum {
  MACHINE = EM_AARCH64,
  RELATIVE = R_AARCH64_RELATIVE,
  GLOBAL = R_AARCH64_GLOB_DAT
};

// adrp x16, target; ldr x16, [x16, target's low bits]; br x16
static void jump_put(char *file, size_t at, size_t target) {
  int64_t pages = (int64_t)(target >> 12) - (int64_t)(at >> 12);
  const uint32_t code[] = {0x90000010u | (uint32_t)(pages & 3) << 29 |
                               (uint32_t)(pages >> 2 & 0x7ffff) << 5,
                           0xf9400210u | (uint32_t)((target & 0xfff) / 8) << 10,
                           0xd61f0200u};
  memcpy(file + at, code, sizeof code);
}

static void code_put(char *file, const layout_t *l, int index) {
  size_t at = l->code + (size_t)index * CODE_BYTES;
  // movz w17, number
  const uint32_t number = 0x52800011u | (uint32_t)(SDG_FUNCTIONS_FIRST + index)
                                            << 5;
  jump_put(file, at, row_at(l, index) + offsetof(sdg_functions_row_t, slot));
  at += CODE_BYTES / 2;
  memcpy(file + at, &number, sizeof number);
  jump_put(file, at + 4, l->got);
}

#else
#error "sundog knows x86-64 and aarch64"
#endif

// ---- parts of the file -----------------------------------------------------

static void head_put(char *file, const layout_t *l) {
  Elf64_Ehdr *head = (void *)file;
  Elf64_Phdr *segment = (void *)(file + sizeof *head);
  memcpy(head->e_ident, ELFMAG, SELFMAG);
  head->e_ident[EI_CLASS] = ELFCLASS64;
  head->e_ident[EI_DATA] = ELFDATA2LSB;
  head->e_ident[EI_VERSION] = EV_CURRENT;
  head->e_type = ET_DYN;
  head->e_machine = MACHINE;
  head->e_version = EV_CURRENT;
  head->e_phoff = sizeof *head;
  head->e_ehsize = sizeof *head;
  head->e_phentsize = sizeof *segment;
  head->e_phnum = SEGMENTS;
  head->e_shentsize = sizeof(Elf64_Shdr);
  segment[0] = (Elf64_Phdr){.p_type = PT_LOAD,
                            .p_flags = PF_R | PF_X,
                            .p_filesz = l->text_end,
                            .p_memsz = l->text_end,
                            .p_align = PAGE};
  segment[1] = (Elf64_Phdr){.p_type = PT_LOAD,
                            .p_flags = PF_R | PF_W,
                            .p_offset = l->dynamic,
                            .p_vaddr = l->dynamic,
                            .p_paddr = l->dynamic,
                            .p_filesz = l->end - l->dynamic,
                            .p_memsz = l->end - l->dynamic,
                            .p_align = PAGE};
  segment[2] = segment[1];
  segment[2].p_type = PT_DYNAMIC;
  segment[2].p_filesz = segment[2].p_memsz = TAGS * sizeof(Elf64_Dyn);
  segment[2].p_align = 8;
  segment[3] = (Elf64_Phdr){
      .p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W, .p_align = 16};
}

static void dynamic_put(char *file, const layout_t *l, size_t name) {
  const Elf64_Dyn tags[TAGS] = {
      {DT_SONAME, {name}},
      {DT_HASH, {l->hash}},
      {DT_SYMTAB, {l->symbols}},
      {DT_SYMENT, {sizeof(Elf64_Sym)}},
      {DT_STRTAB, {l->strings}},
      {DT_STRSZ, {l->string_bytes}},
      {DT_RELA, {l->relocations}},
      {DT_RELASZ, {relocations_of(l->count) * sizeof(Elf64_Rela)}},
      {DT_RELAENT, {sizeof(Elf64_Rela)}},
      {DT_FLAGS, {DF_BIND_NOW}},
      {DT_NULL, {0}},
  };
  memcpy(file + l->dynamic, tags, sizeof tags);
}

// Appends a string; returns its offset among the strings.
static size_t string_put(char *file, const layout_t *l, size_t *io_used,
                         const char *text) {
  size_t at = *io_used;
  strcpy(file + l->strings + at, text);
  *io_used += strlen(text) + 1;
  return at;
}

static void hash_put(char *file, const layout_t *l) {
  Elf64_Word *hash = (void *)(file + l->hash);
  const Elf64_Sym *symbol = (const void *)(file + l->symbols);
  uint32_t count = (uint32_t)symbols_of(l->count);
  Elf64_Word *bucket = hash + 2, *chain = bucket + count;
  hash[0] = hash[1] = count;
  for (uint32_t i = 1; i < count; i++) {
    uint32_t b = elf_hash(file + l->strings + symbol[i].st_name) % count;
    chain[i] = bucket[b];
    bucket[b] = i;
  }
}

static Elf64_Sym symbol_make(size_t name, int type, size_t at, size_t bytes) {
  return (Elf64_Sym){
      .st_name = (Elf64_Word)name,
      .st_info = ELF64_ST_INFO(STB_GLOBAL, type),
      .st_other = STV_DEFAULT,
      .st_shndx = at ? 1 : SHN_UNDEF, // there are no sections
      .st_value = at,
      .st_size = bytes,
  };
}

static void relocation_put(Elf64_Rela **io, size_t at, size_t value) {
  *(*io)++ = (Elf64_Rela){.r_offset = at,
                          .r_info = ELF64_R_INFO(0, RELATIVE),
                          .r_addend = (Elf64_Sxword)value};
}

static void file_fill(char *file, const layout_t *l, const char *const *names) {
  size_t used = 1;
  Elf64_Sym *symbol = (void *)(file + l->symbols);
  Elf64_Rela *relocation = (void *)(file + l->relocations);
  head_put(file, l);
  dynamic_put(file, l, string_put(file, l, &used, soname));
  const sdg_functions_t head = {SDG_FUNCTIONS_VERSION, (uint64_t)l->count};
  memcpy(file + l->table, &head, sizeof head);
  symbol++;
  for (int i = 0; i < l->count; i++) {
    size_t name = string_put(file, l, &used, names[i]);
    size_t stub = l->code + (size_t)i * CODE_BYTES, row = row_at(l, i);
    code_put(file, l, i);
    *symbol++ = symbol_make(name, STT_FUNC, stub, CODE_BYTES / 2);
    relocation_put(&relocation, row + offsetof(sdg_functions_row_t, name),
                   l->strings + name);
    relocation_put(&relocation, row + offsetof(sdg_functions_row_t, stub),
                   stub);
    relocation_put(&relocation, row + offsetof(sdg_functions_row_t, slot),
                   stub + CODE_BYTES / 2);
  }
  size_t name = string_put(file, l, &used, l->table_name);
  *symbol++ = symbol_make(name, STT_OBJECT, l->table, l->end - l->table);
  name = string_put(file, l, &used, l->routine);
  *symbol = symbol_make(name, STT_FUNC, 0, 0);
  *relocation =
      (Elf64_Rela){.r_offset = l->got,
                   .r_info = ELF64_R_INFO(symbols_of(l->count) - 1, GLOBAL)};
  hash_put(file, l);
}

sdg_status_t functions_write(const char *path, const char *const *names,
                             int count, bool watched) {
  layout_t l = layout_make(names, count, watched);
  char *bytes;
  SDG_TRY(SDG_ALLOCATE(bytes, l.end, "functions of the program"));
  file_fill(bytes, &l, names);
  FILE *file = fopen(path, "wbe");
  bool good = file && fwrite(bytes, 1, l.end, file) == l.end;
  int error = errno;
  if (file && fclose(file) != 0 && good) {
    good = false;
    error = errno;
  }
  free(bytes);
  return good ? SDG_OK
              : sdg_fail(SDG_E_FOLDER, "%s: %s", path, strerror(error));
}
