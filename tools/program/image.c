// SPDX-License-Identifier: Apache-2.0
// Reads parts of a file that is mapped.
#include "tools/program/image.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool image_open(const char *path, image_t *out_image) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  void *map = MAP_FAILED;
  if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
      info.st_size > 0)
    map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (fd >= 0)
    close(fd);
  if (map == MAP_FAILED)
    return false;
  *out_image = (image_t){map, (uint64_t)info.st_size};
  return true;
}

void image_close(image_t *image) {
  munmap((void *)(uintptr_t)image->bytes, image->size);
}

const void *image_at(const image_t *image, uint64_t offset, uint64_t bytes) {
  return offset % 8 == 0 && offset <= image->size &&
                 bytes <= image->size - offset
             ? image->bytes + offset
             : NULL;
}

const char *image_string(const image_t *image, uint64_t offset) {
  return offset < image->size &&
                 memchr(image->bytes + offset, 0, image->size - offset)
             ? image->bytes + offset
             : "";
}

const Elf64_Ehdr *image_elf(const image_t *image) {
  const Elf64_Ehdr *head = image_at(image, 0, sizeof *head);
  return head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
                 head->e_ident[EI_CLASS] == ELFCLASS64 &&
                 head->e_ident[EI_DATA] == ELFDATA2LSB
             ? head
             : NULL;
}

const Elf64_Shdr *image_section(const image_t *image, unsigned index) {
  const Elf64_Ehdr *head = image_elf(image);
  return head && index < head->e_shnum
             ? image_at(image, head->e_shoff + index * sizeof(Elf64_Shdr),
                        sizeof(Elf64_Shdr))
             : NULL;
}
