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

// ---- parameters ------------------------------------------------------------

// Behind a type; NULL: it is one that is not read.
static const char *type_skip(const char *at) {
  const char *begin;
  while (*at && strchr("rVKPRO", *at))
    at++;
  int bytes = identifier_bytes(at, &begin);
  if (bytes > 0)
    at = begin + bytes;
  else if (at[0] == 'S' && at[1] == 't' && identifier_bytes(at + 2, &begin) > 0)
    at = begin + identifier_bytes(at + 2, &begin);
  else if (*at == 'S' || *at == 'T')
    at = substitution_skip(at);
  else if (*at == 'N' || *at == 'F')
    return arguments_skip(at);
  else
    return islower((unsigned char)*at) && *at != 'u' ? at + 1 : NULL;
  return at && *at == 'I' ? arguments_skip(at) : at;
}

// Number `index` of a template's arguments; NULL: it is no type, or not known.
static const char *template_argument(const sdg_symbol_t *symbol, int index) {
  const char *at = symbol->identifier + symbol->identifier_bytes;
  if (!symbol->is_template)
    return NULL;
  for (at++; at && *at != 'E' && index > 0; index--)
    at = *at == 'L' ? literal_skip(at + 1) : type_skip(at);
  return at && *at != 'E' && *at != 'L' && type_skip(at) ? at : NULL;
}

static const char *qualifiers_skip(const char *at) {
  while (*at == 'r' || *at == 'V' || *at == 'K')
    at++;
  return at;
}

// Behind qualifiers; what a template's parameter stands for.
static const char *type_begin(const sdg_symbol_t *symbol, const char *at) {
  at = qualifiers_skip(at);
  int index = 0;
  if (*at != 'T')
    return at;
  if (at[1] != '_') {
    if (!isdigit((unsigned char)at[1]) || at[2] != '_')
      return NULL;
    index = at[1] - '0' + 1;
  }
  at = template_argument(symbol, index);
  return at ? qualifiers_skip(at) : NULL;
}

static void number_read(const char *at, sdg_parameter_t *out) {
  static const char letters[] = "bachstijlmxyfd";
  static const char bytes[] = {1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 4, 8};
  const char *letter = at && *at ? strchr(letters, *at) : NULL;
  if (!letter)
    return;
  out->kind = *at == 'f' || *at == 'd' ? 'f' : 'i';
  out->bytes = bytes[letter - letters];
}

static sdg_parameter_t parameter_read(const sdg_symbol_t *symbol,
                                      const char *at) {
  sdg_parameter_t read = {.is_known = false};
  at = type_begin(symbol, at);
  if (!at)
    return read;
  read.is_address = *at == 'P' || *at == 'R';
  number_read(read.is_address ? type_begin(symbol, at + 1) : at, &read);
  read.is_known = read.is_address || read.kind;
  return read;
}

int sdg_symbol_parameters(const sdg_symbol_t *symbol, int room,
                          sdg_parameter_t *out) {
  const char *at = symbol->end;
  int count = 0;
  if (symbol->is_template) // what it returns
    at = type_skip(at);
  if (at && strcmp(at, "v") == 0)
    return 0;
  for (; at && *at; count++) {
    if (count == room)
      return -1;
    out[count] = parameter_read(symbol, at);
    at = type_skip(at);
  }
  return at && count > 0 ? count : -1;
}
