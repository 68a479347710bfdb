/* SPDX-License-Identifier: Apache-2.0 */
/* [extents] of a rules file: names for numbers, which patterns may use in their
 * place. Inside rules/ only. */
#ifndef SDG_RULES_FILE_EXTENTS_H
#define SDG_RULES_FILE_EXTENTS_H

#include <stdint.h>

#include "rules/file/word.h"

enum { SDG_EXTENTS_MAX = 32, SDG_EXTENT_NAME_BYTES = 48 };

typedef struct sdg_extents {
  int count;
  struct {
    char name[SDG_EXTENT_NAME_BYTES];
    int64_t value; /* elements, at least 1 */
    int line;
  } of[SDG_EXTENTS_MAX];
} sdg_extents_t;

/* Adds the line "name = value". A name begins with a letter, has letters,
 * digits, _ and -, and is no dimension's. SDG_E_RULES_VALUE, SDG_E_RULES_TWICE.
 */
sdg_status_t sdg_extents_add(const sdg_location_t *location, const char *name,
                             const char *value,
                             sdg_extents_t *extents) SDG_MUST_CHECK;

/* The number that has this name.
 * SDG_E_RULES_WORD where none has it. */
sdg_status_t sdg_extents_find(const sdg_location_t *location,
                              const sdg_extents_t *extents, sdg_word_t name,
                              int64_t *out_value) SDG_MUST_CHECK;

#endif
