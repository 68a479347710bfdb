// SPDX-License-Identifier: Apache-2.0
// Compares tensors with the words of the rules, one by one.
#include "rules/view/nearest.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "rules/file/file.h"
#include "rules/file/setup.h"
#include "src/observe/report.h"

// The words of a section that a tensor does not fit.
typedef struct lack {
  int misses;
  char text[160]; // of the first ones
} lack_t;

__attribute__((format(printf, 2, 3))) static void
lack_add(lack_t *lack, const char *format, ...) {
  size_t used = strlen(lack->text);
  va_list args;
  va_start(args, format);
  if (lack->misses++ > 0 && used + 2 < sizeof lack->text)
    used += (size_t)snprintf(lack->text + used, sizeof lack->text - used, ", ");
  vsnprintf(lack->text + used, sizeof lack->text - used, format, args);
  va_end(args);
}

static const char *const signs[] = {
    [SDG_COMPARE_ANY] = "", [SDG_COMPARE_GE] = ">=", [SDG_COMPARE_LE] = "<=",
    [SDG_COMPARE_GT] = ">", [SDG_COMPARE_LT] = "<",  [SDG_COMPARE_EQ] = "="};

static bool holds(const sdg_term_t *term, int64_t extent) {
  const int64_t value = term->value;
  switch (term->compare) {
  case SDG_COMPARE_GE:
    return extent >= value;
  case SDG_COMPARE_LE:
    return extent <= value;
  case SDG_COMPARE_GT:
    return extent > value;
  case SDG_COMPARE_LT:
    return extent < value;
  case SDG_COMPARE_EQ:
    return extent == value;
  case SDG_COMPARE_ANY:
    break;
  }
  return true;
}

// How many pieces make the tensor in this dimension. In the shard view a call
// has this rank's piece; the other ranks' are assumed to be as large.
static int64_t pieces_of(const sdg_section_t *section, sdg_dim_t dim) {
  for (int i = 0; section->view == SDG_VIEW_SHARD && i < section->splits; i++)
    if (section->split[i].dim == dim)
      return section->split[i].pieces;
  return 1;
}

static bool names_dim(const sdg_section_t *section, sdg_dim_t dim) {
  for (int i = 0; i < section->terms; i++)
    if (section->term[i].dim == dim)
      return true;
  return false;
}

static void terms_judge(const sdg_section_t *section, sdg_family_t family,
                        const sdg_operand_t *operand, lack_t *lack) {
  if (section->listed && section->terms != operand->dims)
    lack_add(lack, "the section lists %d dimensions", section->terms);
  for (int i = 0; i < section->terms; i++) {
    const sdg_term_t *term = &section->term[i];
    int index =
        section->listed ? i : sdg_dim_index(family, term->dim, operand->dims);
    if (index < 0 || index >= operand->dims) {
      if (!section->listed)
        lack_add(lack, "it has no %s", sdg_dim_name(term->dim));
      continue;
    }
    sdg_dim_t dim = sdg_dim_at(family, index, operand->dims);
    int64_t pieces = pieces_of(section, dim), extent = operand->extent[index];
    if (holds(term, extent * pieces))
      continue;
    lack_add(lack, "%s%s%lld is required, %s %lld%s",
             dim == SDG_DIM_COUNT ? "" : sdg_dim_name(dim),
             signs[term->compare], (long long)term->value,
             pieces > 1 ? "this rank has" : "it is", (long long)extent,
             pieces > 1 ? " of it" : "");
  }
  for (int i = 0; i < section->splits; i++)
    if (sdg_dim_index(family, section->split[i].dim, operand->dims) < 0 &&
        !names_dim(section, section->split[i].dim))
      lack_add(lack, "it has no %s", sdg_dim_name(section->split[i].dim));
}

// True if `op =` names neither the entry nor its family, or if only one of
// section and call is about products.
static bool op_lacks(const sdg_section_t *section, const sdg_call_t *call) {
  bool product = sdg_family_is_product(call->family);
  if (product != sdg_section_multiplies(section))
    return true;
  for (int g = 0; g < section->globs; g++)
    if (product ||
        fnmatch(section->glob[g], sdg_family_name(call->family), 0) == 0 ||
        fnmatch(section->glob[g], call->entry_name, 0) == 0)
      return false;
  return section->globs > 0;
}

static void extents_write(const sdg_operand_t *operand, char *out,
                          size_t bytes) {
  size_t used = 0;
  *out = '\0';
  for (int d = 0; d < operand->dims && used < bytes; d++)
    used += (size_t)snprintf(out + used, bytes - used, "%s%lld", d ? "x" : "",
                             (long long)operand->extent[d]);
}

void sdg_nearest_note(const sdg_call_t *call) {
  const sdg_rules_t *rules;
  if (!sdg_setup_ready(&rules))
    return;
  for (int s = 0; s < rules->sections; s++)
    for (int i = 0; i < call->operands; i++) {
      const sdg_section_t *section = &rules->section[s];
      const sdg_operand_t *operand = &call->operand[i];
      lack_t lack = {.misses = 0};
      char extents[96], text[512];
      if (section->is_local || !sdg_role_is_activation(operand->role))
        continue;
      terms_judge(section, call->family, operand, &lack);
      if (op_lacks(section, call))
        lack_add(&lack, "it is for another op");
      if (lack.misses == 0) // a [local] section or its op was first
        lack_add(&lack, "another section comes before, or this version cannot "
                        "split its op");
      extents_write(operand, extents, sizeof extents);
      snprintf(text, sizeof text, "%s, %s %s, for section '%s': %s",
               call->entry_name, sdg_role_name(operand->role), extents,
               section->name, lack.text);
      // If two tensors fit equally well, one of a computing call is preferred.
      sdg_report_near(2 * lack.misses + call->is_query, text);
    }
}
