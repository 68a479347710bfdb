// SPDX-License-Identifier: Apache-2.0
// Examines a program's file: its kind, privileges, libraries, and statically
// linked NVIDIA code.
#include "tools/program/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "src/base/log.h"
#include "tools/program/image.h"

static bool has_text(const image_t *image, const char *text) {
  return memmem(image->bytes, image->size, text, strlen(text)) != NULL;
}

// Returns the file offset of an address; UINT64_MAX if no segment contains it.
static uint64_t offset_of(const image_t *image, const Elf64_Ehdr *head,
                          uint64_t address) {
  for (int i = 0; i < head->e_phnum; i++) {
    const Elf64_Phdr *segment = image_at(
        image, head->e_phoff + (uint64_t)i * sizeof *segment, sizeof *segment);
    if (segment && segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
        address - segment->p_vaddr < segment->p_filesz)
      return segment->p_offset + (address - segment->p_vaddr);
  }
  return UINT64_MAX;
}

static void dynamic_read(const image_t *image, const Elf64_Ehdr *head,
                         const Elf64_Phdr *segment, program_t *out) {
  uint64_t count = segment->p_filesz / sizeof(Elf64_Dyn), strings = UINT64_MAX;
  const Elf64_Dyn *entry =
      image_at(image, segment->p_offset, count * sizeof(Elf64_Dyn));
  for (uint64_t i = 0; entry && i < count && entry[i].d_tag != DT_NULL; i++)
    if (entry[i].d_tag == DT_STRTAB)
      strings = offset_of(image, head, entry[i].d_un.d_ptr);
  if (strings == UINT64_MAX)
    return;
  for (uint64_t i = 0; i < count && entry[i].d_tag != DT_NULL; i++) {
    if (entry[i].d_tag != DT_NEEDED || out->needed == PROGRAM_NEEDED_MAX)
      continue;
    snprintf(out->needed_name[out->needed++], PROGRAM_NAME_BYTES, "%s",
             image_string(image, strings + entry[i].d_un.d_val));
  }
}

static void symbol_note(const char *name, bool defined, program_t *out) {
  if (strcmp(name, "dlopen") == 0 && !defined)
    out->opens = true;
  if (strcmp(name, "cudaLaunchKernel") == 0 ||
      strcmp(name, "cudaGetDeviceCount") == 0)
    out->static_cudart |= defined;
  if (strcmp(name, "cudnnCreate") == 0)
    out->static_cudnn |= defined;
}

static void symbols_read(const image_t *image, const Elf64_Ehdr *head,
                         program_t *out) {
  for (int i = 0; i < head->e_shnum; i++) {
    const Elf64_Shdr *table = image_section(image, (unsigned)i);
    if (!table ||
        (table->sh_type != SHT_SYMTAB && table->sh_type != SHT_DYNSYM))
      continue;
    const Elf64_Shdr *strings = image_section(image, table->sh_link);
    uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbol =
        image_at(image, table->sh_offset, count * sizeof(Elf64_Sym));
    for (uint64_t s = 0; strings && symbol && s < count; s++) {
      char name[64]; // the symbol's name without its version, such as
                     // "@GLIBC_2.34"
      const char *text =
          image_string(image, strings->sh_offset + symbol[s].st_name);
      snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "@"), text);
      symbol_note(name, symbol[s].st_shndx != SHN_UNDEF, out);
    }
  }
}

static void elf_read(const image_t *image, program_t *out) {
  const Elf64_Ehdr *head = image_elf(image);
  if (!head)
    return;
  out->is_elf = true;
  out->is_static = true;
  for (int i = 0; i < head->e_phnum; i++) {
    const Elf64_Phdr *segment = image_at(
        image, head->e_phoff + (uint64_t)i * sizeof *segment, sizeof *segment);
    if (segment && segment->p_type == PT_INTERP)
      out->is_static = false;
    if (segment && segment->p_type == PT_DYNAMIC)
      dynamic_read(image, head, segment, out);
  }
  symbols_read(image, head, out);
  // The runtime's message is present even if the symbols were stripped.
  if (has_text(image, "CUDA driver version is insufficient for CUDA runtime"))
    out->static_cudart = true;
}

static void script_read(const image_t *image, program_t *out) {
  const char *line = image->bytes + 2;
  size_t n = (size_t)(image->size - 2), skip = 0;
  while (skip < n && (line[skip] == ' ' || line[skip] == '\t'))
    skip++;
  size_t end = skip;
  while (end < n && line[end] > ' ')
    end++;
  snprintf(out->interpreter, sizeof out->interpreter, "%.*s",
           (int)(end - skip < PATH_MAX ? end - skip : PATH_MAX - 1),
           line + skip);
}

// Finds the program in the same way as execvp(3).
static bool program_find(const char *name, char *out_path) {
  char path[2 * PATH_MAX];
  if (strchr(name, '/'))
    return realpath(name, out_path) && access(out_path, X_OK) == 0;
  const char *folders = getenv("PATH");
  if (!folders)
    folders = "/bin:/usr/bin";
  for (const char *rest = folders;; rest++) {
    size_t n = strcspn(rest, ":");
    struct stat info;
    snprintf(path, sizeof path, "%.*s%s%s", (int)(n < PATH_MAX ? n : 0), rest,
             n ? "/" : "", name);
    if (realpath(path, out_path) && access(out_path, X_OK) == 0 &&
        stat(out_path, &info) == 0 && S_ISREG(info.st_mode))
      return true;
    rest += n;
    if (!*rest)
      return false;
  }
}

sdg_status_t program_examine(const char *name, program_t *out_program) {
  struct stat info;
  memset(out_program, 0, sizeof *out_program);
  if (!program_find(name, out_program->path))
    return sdg_fail(SDG_E_START, "%s: no such program", name);
  int fd = open(out_program->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    int error = fd < 0 ? errno : EACCES;
    if (fd >= 0)
      close(fd);
    return sdg_fail(SDG_E_START, "%s: %s", out_program->path, strerror(error));
  }
  image_t image = {.size = (uint64_t)info.st_size};
  void *map = image.size ? mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0)
                         : MAP_FAILED;
  close(fd);
  out_program->is_privileged =
      info.st_mode & (S_ISUID | S_ISGID) ||
      getxattr(out_program->path, "security.capability", NULL, 0) > 0;
  if (map == MAP_FAILED)
    return SDG_OK; // an empty file needs no libraries
  image.bytes = map;
  if (image.size > 4 && memcmp(image.bytes, ELFMAG, SELFMAG) == 0)
    elf_read(&image, out_program);
  else if (image.size > 2 && memcmp(image.bytes, "#!", 2) == 0)
    script_read(&image, out_program);
  munmap(map, image.size);
  return SDG_OK;
}

const char *program_needs(const program_t *program, const char *stem) {
  for (int i = 0; i < program->needed; i++)
    if (strncmp(program->needed_name[i], stem, strlen(stem)) == 0)
      return program->needed_name[i];
  return NULL;
}

bool program_readable(const char *name) {
  char path[PATH_MAX];
  struct stat info;
  return program_find(name, path) && access(path, R_OK) == 0 &&
         stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

void program_advise(const char *name) {
  program_t program;
  if (!program_readable(name) || program_examine(name, &program) != SDG_OK)
    return;
  if (program.is_elf && program.is_static)
    sdg_log("%s is linked statically, so nothing can be preloaded into it; "
            "link it to shared libraries",
            program.path);
  if (program.is_privileged)
    sdg_log("%s is setuid, setgid or has capabilities, so nothing is preloaded "
            "into it",
            program.path);
  if (program.static_cudart)
    sdg_log("the CUDA runtime is linked into %s, and sundog refuses its calls "
            "(SDG-733); link it to the shared one (nvcc --cudart shared)",
            program.path);
  if (program.static_cudnn)
    sdg_log("cuDNN is linked into %s: its calls cannot be seen; link it to the "
            "shared one",
            program.path);
}
