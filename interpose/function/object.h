/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded objects, as their dynamic sections describe them. Inside this folder
 * only. */
#ifndef SDG_INTERPOSE_FUNCTION_OBJECT_H
#define SDG_INTERPOSE_FUNCTION_OBJECT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sdg_object {
  const ElfW(Sym) * symbol;
  const char *string;
  const uint32_t *gnu, *hash;
  bool symbolic; /* calls inside it do not go through the linker */
  /* Relocations of procedures, and all others. */
  const ElfW(Rela) * relocation[2];
  size_t relocations[2];
} sdg_object_t;

/* False if the object has no symbols. */
bool sdg_object_read(const struct dl_phdr_info *info, sdg_object_t *out);

#endif
