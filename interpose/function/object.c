// SPDX-License-Identifier: Apache-2.0
// Reads the dynamic section of a loaded object.
#include "interpose/function/object.h"

#include <elf.h>

// ld.so relocates these entries in place, unless the section is read-only.
static const void *absolute(const struct dl_phdr_info *info, ElfW(Addr) value) {
  return (const void *)(value < info->dlpi_addr ? info->dlpi_addr + value
                                                : value);
}

bool sdg_object_read(const struct dl_phdr_info *info, sdg_object_t *out) {
  const ElfW(Dyn) *entry = NULL;
  bool rela = true;
  *out = (sdg_object_t){0};
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  for (; entry && entry->d_tag != DT_NULL; entry++) {
    const void *at = absolute(info, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB)
      out->symbol = at;
    else if (entry->d_tag == DT_STRTAB)
      out->string = at;
    else if (entry->d_tag == DT_GNU_HASH)
      out->gnu = at;
    else if (entry->d_tag == DT_HASH)
      out->hash = at;
    else if (entry->d_tag == DT_JMPREL)
      out->relocation[0] = at;
    else if (entry->d_tag == DT_PLTRELSZ)
      out->relocations[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
    else if (entry->d_tag == DT_PLTREL)
      rela = entry->d_un.d_val == DT_RELA;
    else if (entry->d_tag == DT_RELA)
      out->relocation[1] = at;
    else if (entry->d_tag == DT_RELASZ)
      out->relocations[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
    out->symbolic |=
        entry->d_tag == DT_SYMBOLIC ||
        (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_SYMBOLIC));
  }
  for (int k = 0; k < 2; k++)
    if (!out->relocation[k] || (k == 0 && !rela))
      out->relocations[k] = 0;
  return out->symbol && out->string && (out->gnu || out->hash);
}
