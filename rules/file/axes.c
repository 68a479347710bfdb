// SPDX-License-Identifier: Apache-2.0
// The values of keys that name axes of the mesh: sums, and pending values.
#include <stdio.h>
#include <string.h>

#include "rules/file/value.h"

sdg_axes_t sdg_section_axes(const sdg_section_t *section) {
  sdg_axes_t axes = 0;
  for (int i = 0; i < section->splits; i++)
    axes |= section->split[i].axes;
  return axes;
}

// Parses a list of axes separated by `between`, all from `allowed`. `words` of
// them may be given instead.
static sdg_status_t axes_parse(const sdg_location_t *location, const char *text,
                               const char *between, const sdg_mesh_t *mesh,
                               sdg_axes_t allowed, const char *const *instead,
                               int words, sdg_axes_t *out) {
  const char *names[SDG_AXES_MAX + SDG_KEY_WORDS_MAX];
  sdg_word_t word;
  int count = 0;
  for (; count < words; count++)
    names[count] = instead[count];
  for (int a = 0; a < mesh->axes; a++)
    if (allowed >> a & 1)
      names[count++] = mesh->name[a];
  *out = 0;
  while (sdg_word_next(&text, between, &word)) {
    sdg_axes_t axis = 0;
    for (int a = 0; a < mesh->axes; a++)
      if ((allowed >> a & 1) && sdg_word_is(word, mesh->name[a]))
        axis = (sdg_axes_t)1 << a;
    if (!axis)
      return sdg_word_fail(location, word, "axis for this key", names, count);
    *out |= axis;
  }
  return SDG_OK;
}

sdg_status_t sdg_sum_parse(const sdg_location_t *location, const char *text,
                           const sdg_mesh_t *mesh, sdg_section_t *section) {
  sdg_key_words_t words;
  sdg_key_words(SDG_KEY_SUM, &words);
  sdg_axes_t all = sdg_section_axes(section);
  bool yes = strcmp(text, "yes") == 0;
  section->sum_axes = yes ? all : 0;
  if (yes || strcmp(text, "no") == 0)
    return SDG_OK;
  return axes_parse(location, text, "+", mesh, all, words.at, words.count,
                    &section->sum_axes);
}

sdg_status_t sdg_label_parse(const sdg_location_t *location, const char *text,
                             const sdg_mesh_t *mesh, sdg_section_t *section) {
  char splits[256] = "", pending[256] = "";
  size_t used = 0;
  sdg_word_t item;
  for (const char *rest = text; sdg_word_next(&rest, ",", &item);) {
    bool max = strncmp(item.at, "max:", 4) == 0;
    if (max || strncmp(item.at, "sum:", 4) == 0) {
      if (*pending)
        return sdg_location_fail(location, SDG_E_RULES_TWICE,
                                 "'sum:' or 'max:' is twice in '%s'", text);
      snprintf(pending, sizeof pending, "%.*s", item.length - 4, item.at + 4);
      section->pending_max = max;
    } else if (used < sizeof splits) {
      used += (size_t)snprintf(splits + used, sizeof splits - used, "%s%.*s",
                               used ? "," : "", item.length, item.at);
    }
  }
  SDG_TRY(sdg_split_parse(location, splits, mesh, section));
  sdg_axes_t free_axes = ((sdg_axes_t)1 << mesh->axes) - 1;
  free_axes &= ~sdg_section_axes(section);
  SDG_TRY(axes_parse(location, pending, "+", mesh, free_axes, NULL, 0,
                     &section->pending));
  if (section->splits == 0 && !section->pending)
    return sdg_location_fail(location, SDG_E_RULES_EMPTY, "'%s' splits nothing",
                             text);
  return SDG_OK;
}

sdg_status_t sdg_same_parse(const sdg_location_t *location, const char *text,
                            const sdg_mesh_t *mesh, sdg_axes_t split,
                            sdg_axes_t *out) {
  sdg_axes_t all = ((sdg_axes_t)1 << mesh->axes) - 1, same;
  SDG_TRY(axes_parse(location, text, ", \t", mesh, all, NULL, 0, &same));
  for (int a = 0; a < mesh->axes; a++)
    if ((same & split) >> a & 1)
      return sdg_location_fail(
          location, SDG_E_RULES_VALUE,
          "'same' names %s, but a section splits over this axis, so its ranks "
          "compute different parts",
          mesh->name[a]);
  *out = same;
  return SDG_OK;
}
