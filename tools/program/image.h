/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory. It may be malformed, so every access is checked. */
#ifndef SDG_TOOLS_PROGRAM_IMAGE_H
#define SDG_TOOLS_PROGRAM_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct image {
  const char *bytes;
  uint64_t size;
} image_t;

/* Maps a regular file that is not empty. False if it cannot be read. */
bool image_open(const char *path, image_t *out_image);
void image_close(image_t *image);

/* Returns NULL outside of the file, and for misaligned offsets, which a correct
 * file does not have. */
const void *image_at(const image_t *image, uint64_t offset, uint64_t bytes);

/* Returns a terminated string; "" if it is outside of the file. */
const char *image_string(const image_t *image, uint64_t offset);

/* The header of an ELF file of 64 bits and this byte order; NULL for others. */
const Elf64_Ehdr *image_elf(const image_t *image);
/* The header of section `index`; NULL if it is outside of the file. */
const Elf64_Shdr *image_section(const image_t *image, unsigned index);

#endif
