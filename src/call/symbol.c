// SPDX-License-Identifier: Apache-2.0
// Walks a mangled name by its grammar; only identifiers are kept.
#include "src/call/symbol.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// "12name": the bytes of an identifier, and where it begins; 0: none stands
// there.
static int identifier_bytes(const char *at, const char **out_begin) {
  int bytes = 0;
  if (!isdigit((unsigned char)*at) || *at == '0')
    return 0;
  for (; isdigit((unsigned char)*at) && bytes < 10000; at++)
    bytes = 10 * bytes + (*at - '0');
  *out_begin = at;
  return memchr(at, '\0', (size_t)bytes) ? 0 : bytes;
}

// Behind "St", "Sa", "S_", "S1A_" or, in the same way, "T_"; NULL: it is none.
static const char *substitution_skip(const char *at) {
  if (islower((unsigned char)at[1]))
    return at + 2;
  for (at++; isdigit((unsigned char)*at) || isupper((unsigned char)*at);)
    at++;
  return *at == '_' ? at + 1 : NULL;
}

// Behind the value of a literal: "Li3E" from the type on.
static const char *literal_skip(const char *at) {
  const char *begin;
  int bytes = identifier_bytes(at, &begin);
  if (bytes > 0) // of an enumeration
    at = begin + bytes;
  else if (*at == 'N' || *at == '_' || *at == 'S')
    return NULL;
  else if (*at)
    at++;
  while (*at && *at != 'E')
    at++;
  return *at ? at + 1 : NULL;
}

// Behind the arguments of a template, from their I on.
static const char *arguments_skip(const char *at) {
  int depth = 0;
  do {
    const char *begin;
    int bytes = identifier_bytes(at, &begin);
    if (bytes > 0) {
      at = begin + bytes;
    } else if (*at == 'S' || *at == 'T') {
      at = substitution_skip(at);
      if (!at)
        return NULL;
    } else if (*at == 'L') {
      at = literal_skip(at + 1);
      if (!at)
        return NULL;
    } else if (*at == 'A' || *at == 'X' || *at == 'D' || *at == '\0') {
      return NULL; // arrays, expressions and what hardly any kernel has
    } else {
      depth +=
          (*at == 'I' || *at == 'N' || *at == 'F' || *at == 'J') - (*at == 'E');
      at++;
    }
  } while (depth > 0);
  return at;
}

static bool name_add(const char *begin, int bytes, char *name,
                     size_t name_bytes) {
  static const char nameless[] = "(anonymous namespace)";
  size_t used = strlen(name);
  if (bytes > 9 && strncmp(begin, "_GLOBAL_", 8) == 0 && begin[9] == 'N')
    begin = nameless, bytes = (int)sizeof nameless - 1;
  int added = snprintf(name + used, name_bytes - used, "%s%.*s",
                       used ? "::" : "", bytes, begin);
  return added > 0 && (size_t)added < name_bytes - used;
}

// One part of a name; *io_at moves behind it.
static bool part_read(const char **io_at, char *name, size_t name_bytes,
                      sdg_symbol_t *out) {
  const char *at = *io_at;
  if (at[0] == 'S' && at[1] == 't') {
    *io_at = at + 2;
    return name_add("std", 3, name, name_bytes);
  }
  if (*at == 'L')
    at++; // of one file only
  out->length = at;
  out->identifier_bytes = identifier_bytes(at, &out->identifier);
  out->is_template = false;
  if (out->identifier_bytes == 0 ||
      !name_add(out->identifier, out->identifier_bytes, name, name_bytes))
    return false;
  at = out->identifier + out->identifier_bytes;
  if (*at == 'I') {
    at = arguments_skip(at);
    out->is_template = true;
  }
  *io_at = at;
  return at != NULL;
}

bool sdg_symbol_read(const char *symbol, char *out_name, size_t name_bytes,
                     sdg_symbol_t *out) {
  char name[1024] = "";
  sdg_symbol_t read = {.is_nested = false};
  const char *at = symbol + 2;
  if (strncmp(symbol, "_Z", 2) != 0)
    return false;
  if (*at == 'N') {
    read.is_nested = true;
    at++;
    while (*at == 'K' || *at == 'V' || *at == 'r')
      at++;
    while (*at != 'E')
      if (!part_read(&at, name, sizeof name, &read))
        return false;
    at++;
  } else if (!part_read(&at, name, sizeof name, &read) ||
             (!read.identifier && !part_read(&at, name, sizeof name, &read))) {
    return false;
  }
  read.end = at;
  if (!read.identifier || strlen(name) >= name_bytes)
    return false;
  strcpy(out_name, name);
  *out = read;
  return true;
}
