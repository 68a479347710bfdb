// SPDX-License-Identifier: Apache-2.0
// Reads the arguments of a function.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "rules/file/function/function.h"

static const struct {
  const char *word;
  sdg_number_t number;
} types[] = {
    {"int", {'i', sizeof(int)}},
    {"unsigned", {'u', sizeof(unsigned)}},
    {"unsigned int", {'u', sizeof(unsigned)}},
    {"long", {'i', sizeof(long)}},
    {"unsigned long", {'u', sizeof(long)}},
    {"long long", {'i', sizeof(long long)}},
    {"unsigned long long", {'u', sizeof(long long)}},
    {"short", {'i', sizeof(short)}},
    {"unsigned short", {'u', sizeof(short)}},
    {"char", {'i', 1}},
    {"signed char", {'i', 1}},
    {"unsigned char", {'u', 1}},
    {"bool", {'u', sizeof(bool)}},
    {"size_t", {'u', sizeof(size_t)}},
    {"ptrdiff_t", {'i', sizeof(size_t)}},
    {"int8_t", {'i', 1}},
    {"uint8_t", {'u', 1}},
    {"int16_t", {'i', 2}},
    {"uint16_t", {'u', 2}},
    {"int32_t", {'i', 4}},
    {"uint32_t", {'u', 4}},
    {"int64_t", {'i', 8}},
    {"uint64_t", {'u', 8}},
    {"float", {'f', sizeof(float)}},
    {"double", {'f', sizeof(double)}},
};
enum { TYPES = sizeof types / sizeof *types };

static const struct {
  const char *word;
  sdg_argument_use_t use;
} uses[] = {
    {"in", SDG_ARGUMENT_IN},           {"out", SDG_ARGUMENT_OUT},
    {"inout", SDG_ARGUMENT_INOUT},     {"stream", SDG_ARGUMENT_STREAM},
    {"pointer", SDG_ARGUMENT_POINTER},
};
enum { USES = sizeof uses / sizeof *uses };

bool sdg_number_named(sdg_word_t word, sdg_number_t *out) {
  for (int i = 0; i < TYPES; i++)
    if (sdg_word_is(word, types[i].word)) {
      *out = types[i].number;
      return true;
    }
  return false;
}

int sdg_function_argument(const sdg_function_t *function, sdg_word_t name) {
  for (int i = 0; i < function->arguments; i++)
    if (sdg_word_is(name, function->argument[i].name))
      return i;
  return -1;
}

static bool is_name(sdg_word_t word) {
  if (word.length == 0 || word.length >= SDG_ARGUMENT_NAME_BYTES ||
      isdigit((unsigned char)*word.at))
    return false;
  for (int i = 0; i < word.length; i++)
    if (!isalnum((unsigned char)word.at[i]) && word.at[i] != '_')
      return false;
  return true;
}

static sdg_word_t trimmed(sdg_word_t word) {
  while (word.length > 0 && isspace((unsigned char)*word.at))
    word.at++, word.length--;
  while (word.length > 0 && isspace((unsigned char)word.at[word.length - 1]))
    word.length--;
  return word;
}

// Words of a type with one blank between them.
static sdg_word_t spaced(sdg_word_t word, char *out, int out_bytes) {
  int used = 0;
  for (int i = 0; i < word.length && used < out_bytes - 1; i++)
    if (!isspace((unsigned char)word.at[i]) ||
        (used > 0 && !isspace((unsigned char)word.at[i - 1])))
      out[used++] = isspace((unsigned char)word.at[i]) ? ' ' : word.at[i];
  out[used] = '\0';
  return (sdg_word_t){out, used};
}

static sdg_status_t type_fail(const sdg_location_t *location, sdg_word_t word) {
  const char *names[TYPES + USES];
  for (int i = 0; i < USES; i++)
    names[i] = uses[i].word;
  for (int i = 0; i < TYPES; i++)
    names[USES + i] = types[i].word;
  return sdg_word_fail(location, word, "kind or type of an argument", names,
                       TYPES + USES);
}

// "{double double int}"
static sdg_status_t struct_parse(const sdg_location_t *location,
                                 sdg_word_t text, sdg_argument_t *out) {
  char inside[128];
  const char *rest = inside;
  sdg_word_t word;
  snprintf(inside, sizeof inside, "%.*s", text.length, text.at);
  while (sdg_word_next(&rest, " \t", &word)) {
    if (out->members == SDG_MEMBERS_MAX)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "a struct of more than %d numbers",
                               SDG_MEMBERS_MAX);
    if (!sdg_number_named(word, &out->number[out->members++]))
      return type_fail(location, word);
  }
  return out->members ? SDG_OK
                      : sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                                          "a struct of nothing");
}

// What stands in front of the name: "in", "unsigned long *", "struct {int}".
static sdg_status_t kind_parse(const sdg_location_t *location, sdg_word_t text,
                               sdg_argument_t *out) {
  char word[128];
  text = trimmed(text);
  if (text.length > 0 &&
      (text.at[text.length - 1] == '*' || text.at[text.length - 1] == '&')) {
    out->by_reference = true;
    text.length--;
    text = trimmed(text);
  }
  const char *open =
      text.length > 0 ? memchr(text.at, '{', (size_t)text.length) : NULL;
  if (open && text.at[text.length - 1] == '}' && !out->by_reference &&
      sdg_word_is(trimmed((sdg_word_t){text.at, (int)(open - text.at)}),
                  "struct"))
    return struct_parse(
        location,
        (sdg_word_t){open + 1, (int)(text.at + text.length - open) - 2}, out);
  sdg_word_t kind = spaced(text, word, sizeof word);
  for (int i = 0; i < USES; i++)
    if (sdg_word_is(kind, uses[i].word) && !out->by_reference) {
      out->use = uses[i].use;
      return SDG_OK;
    }
  return sdg_number_named(kind, out->number) ? SDG_OK
                                             : type_fail(location, kind);
}

static sdg_status_t argument_parse(const sdg_location_t *location,
                                   sdg_word_t text, sdg_function_t *io) {
  if (io->arguments == SDG_ARGUMENTS_MAX)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "more than %d arguments", SDG_ARGUMENTS_MAX);
  sdg_argument_t *argument = &io->argument[io->arguments];
  *argument = (sdg_argument_t){.tensor = -1};
  int kind = text.length;
  while (kind > 0 && (isalnum((unsigned char)text.at[kind - 1]) ||
                      text.at[kind - 1] == '_'))
    kind--;
  sdg_word_t name = {text.at + kind, text.length - kind};
  if (kind == 0 && sdg_word_is(name, "stream")) { // it needs no name
    argument->use = SDG_ARGUMENT_STREAM;
  } else {
    if (kind == 0 || !is_name(name))
      return sdg_location_fail(
          location, SDG_E_RULES_SYNTAX,
          "'%.*s': an argument is a kind or type and a name, as 'in u', "
          "'int rows', 'double *dt'",
          text.length, text.at);
    SDG_TRY(kind_parse(location, (sdg_word_t){text.at, kind}, argument));
    if (sdg_function_argument(io, name) >= 0)
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "two arguments have the name '%.*s'",
                               name.length, name.at);
  }
  snprintf(argument->name, sizeof argument->name, "%.*s", name.length, name.at);
  if (argument->use == SDG_ARGUMENT_STREAM) {
    if (io->stream >= 0)
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "two arguments are streams");
    io->stream = io->arguments;
  }
  io->arguments++;
  return SDG_OK;
}

sdg_status_t sdg_arguments_parse(const sdg_location_t *location,
                                 const char *text, sdg_function_t *io) {
  sdg_word_t word;
  while (sdg_word_next(&text, ",", &word))
    SDG_TRY(argument_parse(location, word, io));
  return io->arguments ? SDG_OK
                       : sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                                           "a function without arguments has "
                                           "no tensor");
}
