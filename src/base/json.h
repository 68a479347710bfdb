/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON (RFC 8259) into a tree. For libsundog.so, which may need no
 * library but libc: the static libjansson cannot be linked into a shared
 * object. The sundog command uses jansson. */
#ifndef SDG_SRC_BASE_JSON_H
#define SDG_SRC_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sdg_json_kind {
  SDG_JSON_NULL,
  SDG_JSON_BOOLEAN,
  SDG_JSON_INTEGER,
  SDG_JSON_REAL,
  SDG_JSON_STRING,
  SDG_JSON_ARRAY,
  SDG_JSON_OBJECT,
} sdg_json_kind_t;

typedef struct sdg_json {
  sdg_json_kind_t kind;
  char *key;       /* of a member; else NULL */
  int64_t integer; /* a boolean too */
  double real;     /* an integer too */
  char *text;
  size_t count; /* of an array or object */
  struct sdg_json *first, *next;
} sdg_json_t;

/* NULL if the text is not one JSON value, has a key twice in one object, is
 * nested more than 64 deep, or if memory is short. The caller frees it. */
sdg_json_t *sdg_json_read(const char *text, size_t bytes);
void sdg_json_free(sdg_json_t *json);

/* The member of an object; NULL if `json` is none (or NULL), or lacks it. */
const sdg_json_t *sdg_json_get(const sdg_json_t *json, const char *key);
/* Whether it is of that kind; false for NULL. */
bool sdg_json_is(const sdg_json_t *json, sdg_json_kind_t kind);
/* The integer; 0 if it is none. The text; NULL if it is none. */
int64_t sdg_json_integer(const sdg_json_t *json);
const char *sdg_json_string(const sdg_json_t *json);
bool sdg_json_is_true(const sdg_json_t *json);

#endif
