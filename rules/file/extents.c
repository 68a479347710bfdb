// SPDX-License-Identifier: Apache-2.0
// Names for extents, so that a file says each number once.
#include "rules/file/extents.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "rules/file/file.h"

static bool is_name(const char *text) {
  if (!isalpha((unsigned char)*text))
    return false;
  while (isalnum((unsigned char)*text) || *text == '_' || *text == '-')
    text++;
  return *text == '\0';
}

sdg_status_t sdg_extents_add(const sdg_location_t *location, const char *name,
                             const char *value, sdg_extents_t *extents) {
  int64_t number;
  sdg_status_t status = SDG_OK;
  if (!is_name(name))
    return sdg_location_fail(
        location, SDG_E_RULES_VALUE,
        "'%s' is not a name: write a letter, then letters, digits, _ or -",
        name);
  for (int dim = 0; dim < SDG_DIM_COUNT; dim++)
    if (strcmp(name, sdg_dim_name((sdg_dim_t)dim)) == 0)
      return sdg_location_fail(
          location, SDG_E_RULES_VALUE,
          "%s is the name of a dimension: give the extent another name", name);
  for (int i = 0; i < extents->count; i++)
    if (strcmp(name, extents->of[i].name) == 0)
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "'%s' is already in line %d", name,
                               extents->of[i].line);
  if (extents->count == SDG_EXTENTS_MAX)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "[extents] can have at most %d names",
                             SDG_EXTENTS_MAX);
  if (!sdg_word_number((sdg_word_t){value, (int)strlen(value)}, &number) ||
      number < 1) {
    status = sdg_location_fail(
        location, SDG_E_RULES_VALUE,
        "%s = %s: the value must be a number of elements from 1 to 2^53", name,
        value);
    number = 1; // lets later lines use the name
  }
  snprintf(extents->of[extents->count].name, SDG_EXTENT_NAME_BYTES, "%s", name);
  extents->of[extents->count].value = number;
  extents->of[extents->count++].line = location->line;
  return status;
}

sdg_status_t sdg_extents_find(const sdg_location_t *location,
                              const sdg_extents_t *extents, sdg_word_t name,
                              int64_t *out_value) {
  const char *names[SDG_EXTENTS_MAX];
  int count = extents->count;
  for (int i = 0; i < count; i++) {
    names[i] = extents->of[i].name;
    if (sdg_word_is(name, names[i]))
      return *out_value = extents->of[i].value, SDG_OK;
  }
  if (count == 0)
    return sdg_location_fail(location, SDG_E_RULES_WORD,
                             "'%.*s' is not a number, and the file has no "
                             "[extents] section that defines it",
                             name.length, name.at);
  return sdg_word_fail(location, name, "name in [extents]", names, count);
}
