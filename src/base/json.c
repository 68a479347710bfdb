// SPDX-License-Identifier: Apache-2.0
// A recursive reader of JSON.
#include "src/base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, NUMBER_BYTES = 64 };

typedef struct reader {
  const char *at, *end;
  int depth;
} reader_t;

static sdg_json_t *value_read(reader_t *r);

static void space_skip(reader_t *r) {
  while (r->at < r->end && *r->at && strchr(" \t\r\n", *r->at))
    r->at++;
}

static bool take(reader_t *r, char c) {
  space_skip(r);
  if (r->at == r->end || *r->at != c)
    return false;
  r->at++;
  return true;
}

// ---- strings ---------------------------------------------------------------

// The value of four hexadecimal digits; -1: they are none.
static int hex_read(reader_t *r) {
  int value = 0;
  if (r->end - r->at < 4)
    return -1;
  for (int i = 0; i < 4; i++) {
    char c = *r->at++;
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0)
      return -1;
    value = 16 * value + digit;
  }
  return value;
}

// Adds a code point in UTF-8; halves of surrogate pairs are added one by one.
static char *code_put(char *out, int code) {
  if (code < 0x80) {
    *out++ = (char)code;
  } else if (code < 0x800) {
    *out++ = (char)(0xc0 | code >> 6);
    *out++ = (char)(0x80 | (code & 0x3f));
  } else {
    *out++ = (char)(0xe0 | code >> 12);
    *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    *out++ = (char)(0x80 | (code & 0x3f));
  }
  return out;
}

static char *escape_put(reader_t *r, char *out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (r->at == r->end)
    return NULL;
  char c = *r->at++;
  const char *known = c ? strchr(from, c) : NULL;
  if (known) {
    *out++ = to[known - from];
    return out;
  }
  int code = c == 'u' ? hex_read(r) : -1;
  return code > 0 ? code_put(out, code) : NULL; // a text has no NUL
}

// The characters before the closing quote, or before the end.
static size_t string_length(const reader_t *r) {
  const char *at = r->at;
  while (at < r->end && *at != '"')
    at += *at == '\\' && at + 1 < r->end ? 2 : 1;
  return (size_t)(at - r->at);
}

// NULL: no string. A text is never longer than what it is read from.
static char *string_read(reader_t *r) {
  if (!take(r, '"'))
    return NULL;
  char *text = malloc(string_length(r) + 1), *out = text;
  while (out && r->at < r->end && *r->at != '"') {
    if ((unsigned char)*r->at < ' ') {
      out = NULL;
    } else if (*r->at == '\\') {
      r->at++;
      out = escape_put(r, out);
    } else {
      *out++ = *r->at++;
    }
  }
  if (!out || r->at == r->end) {
    free(text);
    return NULL;
  }
  r->at++;
  *out = '\0';
  return text;
}

// ---- numbers ---------------------------------------------------------------

// Whether the text is a number as JSON has them: no +1, 01, .5, 1. or hex.
static bool number_is(const char *text, bool *out_integer) {
  text += *text == '-';
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || (digits > 1 && *text == '0'))
    return false;
  text += digits;
  *out_integer = *text == '\0';
  if (*text == '.') {
    digits = strspn(++text, "0123456789");
    if (digits == 0)
      return false;
    text += digits;
  }
  if (*text == 'e' || *text == 'E') {
    text++;
    text += *text == '+' || *text == '-';
    digits = strspn(text, "0123456789");
    if (digits == 0)
      return false;
    text += digits;
  }
  return *text == '\0';
}

static bool number_read(reader_t *r, sdg_json_t *out) {
  char text[NUMBER_BYTES];
  size_t used = 0;
  bool integer;
  while (r->at < r->end && used + 1 < sizeof text && *r->at &&
         strchr("+-.0123456789eE", *r->at))
    text[used++] = *r->at++;
  text[used] = '\0';
  if (!number_is(text, &integer))
    return false;
  errno = 0;
  out->kind = integer ? SDG_JSON_INTEGER : SDG_JSON_REAL;
  out->integer = integer ? strtoll(text, NULL, 10) : 0;
  out->real = strtod(text, NULL);
  return !integer || errno == 0;
}

// ---- values ----------------------------------------------------------------

static bool word_read(reader_t *r, const char *word) {
  size_t bytes = strlen(word);
  if ((size_t)(r->end - r->at) < bytes || memcmp(r->at, word, bytes) != 0)
    return false;
  r->at += bytes;
  return true;
}

static bool member_read(reader_t *r, sdg_json_t *into, sdg_json_t ***io_last) {
  char *key = NULL;
  if (into->kind == SDG_JSON_OBJECT &&
      (!(key = string_read(r)) || sdg_json_get(into, key) || !take(r, ':'))) {
    free(key);
    return false;
  }
  sdg_json_t *member = value_read(r);
  if (!member) {
    free(key);
    return false;
  }
  member->key = key;
  **io_last = member;
  *io_last = &member->next;
  into->count++;
  return true;
}

static bool members_read(reader_t *r, sdg_json_t *into, char end) {
  sdg_json_t **last = &into->first;
  if (take(r, end))
    return true;
  do {
    if (!member_read(r, into, &last))
      return false;
  } while (take(r, ','));
  return take(r, end);
}

static bool any_read(reader_t *r, sdg_json_t *out) {
  space_skip(r);
  if (r->at == r->end)
    return false;
  switch (*r->at) {
  case '{':
    out->kind = SDG_JSON_OBJECT;
    r->at++;
    return members_read(r, out, '}');
  case '[':
    out->kind = SDG_JSON_ARRAY;
    r->at++;
    return members_read(r, out, ']');
  case '"':
    out->kind = SDG_JSON_STRING;
    out->text = string_read(r);
    return out->text != NULL;
  case 't':
    out->kind = SDG_JSON_BOOLEAN;
    out->integer = 1;
    return word_read(r, "true");
  case 'f':
    out->kind = SDG_JSON_BOOLEAN;
    return word_read(r, "false");
  case 'n':
    return word_read(r, "null");
  default:
    return number_read(r, out);
  }
}

static sdg_json_t *value_read(reader_t *r) {
  sdg_json_t *value = calloc(1, sizeof *value);
  bool good = value && r->depth < DEPTH_MAX;
  r->depth++;
  good = good && any_read(r, value);
  r->depth--;
  if (good)
    return value;
  sdg_json_free(value);
  return NULL;
}

sdg_json_t *sdg_json_read(const char *text, size_t bytes) {
  reader_t reader = {.at = text, .end = text + bytes};
  sdg_json_t *value = value_read(&reader);
  space_skip(&reader);
  if (reader.at == reader.end)
    return value;
  sdg_json_free(value);
  return NULL;
}

void sdg_json_free(sdg_json_t *json) {
  while (json) {
    sdg_json_t *next = json->next;
    sdg_json_free(json->first);
    free(json->key);
    free(json->text);
    free(json);
    json = next;
  }
}

const sdg_json_t *sdg_json_get(const sdg_json_t *json, const char *key) {
  if (!sdg_json_is(json, SDG_JSON_OBJECT))
    return NULL;
  const sdg_json_t *member = json->first;
  while (member && strcmp(member->key, key) != 0)
    member = member->next;
  return member;
}

bool sdg_json_is(const sdg_json_t *json, sdg_json_kind_t kind) {
  return json && json->kind == kind;
}

int64_t sdg_json_integer(const sdg_json_t *json) {
  return sdg_json_is(json, SDG_JSON_INTEGER) ? json->integer : 0;
}

const char *sdg_json_string(const sdg_json_t *json) {
  return sdg_json_is(json, SDG_JSON_STRING) ? json->text : NULL;
}

bool sdg_json_is_true(const sdg_json_t *json) {
  return sdg_json_is(json, SDG_JSON_BOOLEAN) && json->integer;
}
