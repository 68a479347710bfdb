// SPDX-License-Identifier: Apache-2.0
// Redirects what the dynamic linker has bound: the slots of loaded objects that
// hold a function's address.
#include "interpose/function/bind.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interpose/function/object.h"
#include "src/base/status.h"

#if defined(__x86_64__)
enum {
  PROCEDURE = R_X86_64_JUMP_SLOT,
  DATA = R_X86_64_GLOB_DAT,
  WORD = R_X86_64_64
};
#elif defined(__aarch64__)
enum {
  PROCEDURE = R_AARCH64_JUMP_SLOT,
  DATA = R_AARCH64_GLOB_DAT,
  WORD = R_AARCH64_ABS64
};
#else
#error "sundog knows x86-64 and aarch64"
#endif

typedef struct work {
  const char *name;
  void *real, *code;
  int bound;
  bool failed;
} work_t;

// Whether an address lies in the object: a procedure's slot that was not used
// yet leads there.
static bool holds(const struct dl_phdr_info *info, const void *at) {
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    ElfW(Addr) first = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && (ElfW(Addr))at >= first &&
        (ElfW(Addr))at - first < segment->p_memsz)
      return true;
  }
  return false;
}

// Whether the page of the slot was made read-only after relocation.
static bool is_sealed(const struct dl_phdr_info *info, const void *slot,
                      uintptr_t page) {
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    ElfW(Addr) first = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_GNU_RELRO && (ElfW(Addr))slot >= first &&
        (ElfW(Addr))slot < (first + segment->p_memsz) / page * page)
      return true;
  }
  return false;
}

static void slot_write(const struct dl_phdr_info *info, void **slot,
                       work_t *work) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  void *start = (void *)((uintptr_t)slot / page * page);
  bool sealed = is_sealed(info, slot, page);
  if (sealed && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) {
    work->failed = true;
    return;
  }
  __atomic_store_n(slot, work->code, __ATOMIC_RELEASE);
  if (sealed)
    (void)mprotect(start, page, PROT_READ);
  work->bound++;
}

static void relocation_take(const struct dl_phdr_info *info,
                            const sdg_object_t *object,
                            const ElfW(Rela) * relocation, work_t *work) {
  unsigned kind = (unsigned)ELF64_R_TYPE(relocation->r_info);
  const ElfW(Sym) *symbol = &object->symbol[ELF64_R_SYM(relocation->r_info)];
  if ((kind != PROCEDURE && kind != DATA && kind != WORD) ||
      (kind == WORD && relocation->r_addend != 0) ||
      strcmp(object->string + symbol->st_name, work->name) != 0)
    return;
  void **slot = (void **)(info->dlpi_addr + relocation->r_offset);
  void *is = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  bool unused = kind == PROCEDURE && holds(info, is) && is != work->real;
  if (is == work->real || unused)
    slot_write(info, slot, work);
}

static int object_take(struct dl_phdr_info *info, size_t bytes, void *data) {
  work_t *work = data;
  sdg_object_t object;
  (void)bytes;
  if (!sdg_object_read(info, &object))
    return 0;
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < object.relocations[k]; i++)
      relocation_take(info, &object, &object.relocation[k][i], work);
  return 0;
}

sdg_status_t sdg_function_bind(const char *name, void *real, void *code) {
  work_t work = {.name = name, .real = real, .code = code};
  dl_iterate_phdr(object_take, &work);
  return work.failed
             ? sdg_fail(SDG_E_FUNCTION_UNSEEN,
                        "the system does not let calls of '%s' be redirected",
                        name)
             : SDG_OK;
}
