// SPDX-License-Identifier: Apache-2.0
// Reads the tensors of a function: names, element type, extents, strides,
// ghosts.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "rules/file/function/function.h"
#include "rules/file/value.h"

int sdg_argument_find_integer(const void *user, sdg_word_t name) {
  const sdg_function_t *function = user;
  int index = sdg_function_argument(function, name);
  if (index < 0)
    return -1;
  const sdg_argument_t *argument = &function->argument[index];
  return argument->use == SDG_ARGUMENT_NUMBER && argument->members == 0 &&
                 argument->number[0].kind != 'f'
             ? index
             : -1;
}

// The text between [ and ] behind *text.
static sdg_status_t brackets_take(const sdg_location_t *location,
                                  const char **text, const char *what,
                                  sdg_word_t *out) {
  const char *at = *text;
  while (isspace((unsigned char)*at))
    at++;
  const char *close = *at == '[' ? strchr(at, ']') : NULL;
  if (!close)
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             "'%s': %s stand between [ and ]", at, what);
  *out = (sdg_word_t){at + 1, (int)(close - at) - 1};
  *text = close + 1;
  return SDG_OK;
}

// Takes the next expression: up to a blank outside parentheses that no sign is
// beside.
static bool item_next(sdg_word_t *text, sdg_word_t *out) {
  static const char signs[] = "+-*/";
  int begin = 0, depth = 0;
  while (begin < text->length && isspace((unsigned char)text->at[begin]))
    begin++;
  int end = begin;
  for (; end < text->length; end++) {
    char c = text->at[end];
    depth += (c == '(') - (c == ')');
    if (!isspace((unsigned char)c) || depth > 0)
      continue;
    int next = end;
    while (next < text->length && isspace((unsigned char)text->at[next]))
      next++;
    if (next == text->length ||
        !(strchr(signs, text->at[next]) || strchr(signs, text->at[end - 1])))
      break;
    end = next - 1;
  }
  *out = (sdg_word_t){text->at + begin, end - begin};
  text->at += end;
  text->length -= end;
  return out->length > 0;
}

static sdg_status_t extent_parse(const sdg_location_t *location,
                                 sdg_word_t item, const sdg_dim_t *dim,
                                 int dims, const sdg_function_t *function,
                                 sdg_function_tensor_t *io) {
  const char *equals = memchr(item.at, '=', (size_t)item.length);
  int d = io->dims;
  if (equals) {
    sdg_word_t name = {item.at, (int)(equals - item.at)};
    SDG_TRY(sdg_dim_parse(location, name, &io->dim[d]));
    item.length -= name.length + 1;
    item.at = equals + 1;
  } else if (d < dims) {
    io->dim[d] = dim[d];
  } else {
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "extent '%.*s' has no name: `dims` has %d, or "
                             "write H=%.*s",
                             item.length, item.at, dims, item.length, item.at);
  }
  for (int i = 0; i < d; i++)
    if (io->dim[i] == io->dim[d])
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "two extents of a tensor have the name %s",
                               sdg_dim_name(io->dim[d]));
  if (io->dim[d] > SDG_DIM_W)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "%s is no dimension of a function's tensor: those "
                             "are N C D H W",
                             sdg_dim_name(io->dim[d]));
  return sdg_expression_parse(location, item, sdg_argument_find_integer,
                              function, &io->extent[io->dims++]);
}

// "[]" or "[3]": a number of elements that no dimension names.
static bool count_parse(sdg_word_t text, int64_t *out_count) {
  sdg_word_t item;
  *out_count = 1;
  return !item_next(&text, &item) ||
         (sdg_word_number(item, out_count) && *out_count > 0 &&
          !item_next(&text, &item));
}

static sdg_status_t extents_parse(const sdg_location_t *location,
                                  sdg_word_t text, const sdg_dim_t *dim,
                                  int dims, const sdg_function_t *function,
                                  sdg_function_tensor_t *io) {
  sdg_word_t item, all = text;
  bool named = memchr(text.at, '=', (size_t)text.length);
  if (count_parse(text, &io->count))
    return SDG_OK;
  while (item_next(&text, &item)) {
    if (io->dims == SDG_FUNCTION_DIMS)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "a tensor of more than %d dimensions",
                               SDG_FUNCTION_DIMS);
    SDG_TRY(extent_parse(location, item, dim, dims, function, io));
  }
  if (!named && io->dims != dims)
    return sdg_location_fail(
        location, SDG_E_RULES_VALUE,
        "[%.*s] has %d extents, and `dims` %d names: write the names in the "
        "brackets, as in [H=rows]",
        all.length, all.at, io->dims, dims);
  return SDG_OK;
}

static sdg_status_t strides_parse(const sdg_location_t *location,
                                  sdg_word_t text,
                                  const sdg_function_t *function,
                                  sdg_function_tensor_t *io) {
  sdg_word_t item;
  int count = 0;
  while (item_next(&text, &item) && count < io->dims)
    SDG_TRY(sdg_expression_parse(location, item, sdg_argument_find_integer,
                                 function, &io->stride[count++]));
  if (count != io->dims || item_next(&text, &item))
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "a tensor of %d extents needs as many strides",
                             io->dims);
  io->strided = true;
  return SDG_OK;
}

// "1" or "0:1": on each side, or in front and behind.
static bool ghost_number(sdg_word_t item, int64_t *out_before,
                         int64_t *out_behind) {
  const char *colon = memchr(item.at, ':', (size_t)item.length);
  int first = colon ? (int)(colon - item.at) : item.length;
  sdg_word_t second = {item.at + first + 1, item.length - first - 1};
  if (!sdg_word_number((sdg_word_t){item.at, first}, out_before))
    return false;
  *out_behind = *out_before;
  return (!colon || sdg_word_number(second, out_behind)) &&
         *out_before <= INT32_MAX && *out_behind <= INT32_MAX;
}

static sdg_status_t ghosts_parse(const sdg_location_t *location,
                                 sdg_word_t text, sdg_function_tensor_t *io) {
  sdg_word_t item;
  int count = 0;
  for (; item_next(&text, &item) && count < io->dims; count++) {
    int64_t *before = &io->ghost[count].before;
    if (!ghost_number(item, before, &io->ghost[count].behind))
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "'%.*s': ghosts are a number of elements on "
                               "each side, as 1, or two of them, as 0:1",
                               item.length, item.at);
    io->has_ghosts |= *before > 0 || io->ghost[count].behind > 0;
  }
  if (count != io->dims || item.length > 0)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "a tensor of %d extents needs as many numbers of "
                             "ghosts",
                             io->dims);
  io->ghosts_said = true;
  return SDG_OK;
}

int64_t sdg_function_ghosts(const sdg_function_t *function, sdg_dim_t dim) {
  int64_t most = 0;
  for (int t = 0; t < function->tensors; t++)
    for (int i = 0; i < function->tensor[t].dims; i++) {
      const sdg_function_tensor_t *tensor = &function->tensor[t];
      if (tensor->dim[i] != dim)
        continue;
      most = tensor->ghost[i].before > most ? tensor->ghost[i].before : most;
      most = tensor->ghost[i].behind > most ? tensor->ghost[i].behind : most;
    }
  return most;
}

static bool element_named(sdg_word_t word, sdg_number_t *out) {
  if (sdg_word_is(word, "half"))
    *out = (sdg_number_t){'h', 2};
  else if (sdg_word_is(word, "bfloat16"))
    *out = (sdg_number_t){'b', 2};
  else
    return sdg_number_named(word, out);
  return true;
}

// The type in front of the bracket; *text moves to it.
static sdg_status_t element_parse(const sdg_location_t *location,
                                  const char **text, sdg_number_t *out) {
  const char *open = strchr(*text, '[');
  sdg_word_t word;
  const char *rest = *text;
  if (!open || !sdg_word_next(&rest, "[", &word))
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             "'%s': write 'u v: float [rows columns]'", *text);
  if (!element_named(word, out))
    return sdg_location_fail(location, SDG_E_RULES_WORD,
                             "'%.*s' is no type of elements: those are float, "
                             "double, half, bfloat16 and the integers of C",
                             word.length, word.at);
  *text = open;
  return SDG_OK;
}

// Gives the tensor to the arguments of `names`.
static sdg_status_t tensor_give(const sdg_location_t *location,
                                sdg_word_t names,
                                const sdg_function_tensor_t *tensor,
                                sdg_function_t *io) {
  char text[196];
  const char *rest = text;
  sdg_word_t name;
  snprintf(text, sizeof text, "%.*s", names.length, names.at);
  while (sdg_word_next(&rest, " \t", &name)) {
    int index = sdg_function_argument(io, name);
    sdg_argument_t *argument = &io->argument[index < 0 ? 0 : index];
    if (index < 0 || argument->use < SDG_ARGUMENT_IN ||
        argument->use > SDG_ARGUMENT_INOUT)
      return sdg_location_fail(location, SDG_E_RULES_WORD,
                               "'%.*s' is not the name of an argument that is "
                               "in, out or inout",
                               name.length, name.at);
    if (argument->tensor >= 0)
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "'%s' has two tensors", argument->name);
    if (io->tensors == SDG_OPERANDS_MAX)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "more than %d tensors", SDG_OPERANDS_MAX);
    argument->tensor = io->tensors;
    io->tensor[io->tensors] = *tensor;
    io->tensor[io->tensors++].argument = index;
  }
  return SDG_OK;
}

// "u v: float [rows columns] strides [ld 1] ghosts [1 0]"
static sdg_status_t tensor_parse(const sdg_location_t *location,
                                 const char *text, const sdg_dim_t *dim,
                                 int dims, sdg_function_t *io) {
  sdg_function_tensor_t tensor = {.dims = 0};
  sdg_word_t names, inside, word;
  const char *colon = strchr(text, ':');
  if (!colon)
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             "'%s': write 'u v: float [rows columns]'", text);
  names = (sdg_word_t){text, (int)(colon - text)};
  text = colon + 1;
  SDG_TRY(element_parse(location, &text, &tensor.element));
  SDG_TRY(brackets_take(location, &text, "extents", &inside));
  SDG_TRY(extents_parse(location, inside, dim, dims, io, &tensor));
  for (const char *rest = text; sdg_word_next(&rest, " \t[", &word);
       rest = text) {
    bool ghosts = sdg_word_is(word, "ghosts");
    if (!ghosts && !sdg_word_is(word, "strides"))
      return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                               "'%.*s' behind the extents: only 'strides "
                               "[...]' and 'ghosts [...]' may follow",
                               word.length, word.at);
    if (ghosts ? tensor.ghosts_said : tensor.strided)
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "a tensor has '%.*s' twice", word.length,
                               word.at);
    text = strchr(text, '[');
    if (!text)
      text = "";
    SDG_TRY(
        brackets_take(location, &text, ghosts ? "ghosts" : "strides", &inside));
    SDG_TRY(ghosts ? ghosts_parse(location, inside, &tensor)
                   : strides_parse(location, inside, io, &tensor));
  }
  return tensor_give(location, names, &tensor, io);
}

sdg_status_t sdg_tensors_parse(const sdg_location_t *location, const char *text,
                               const sdg_dim_t *dim, int dims,
                               sdg_function_t *io) {
  char line[256];
  sdg_word_t word;
  while (sdg_word_next(&text, ";", &word)) {
    if (word.length >= (int)sizeof line)
      return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                               "'%.*s' is too long", word.length, word.at);
    snprintf(line, sizeof line, "%.*s", word.length, word.at);
    SDG_TRY(tensor_parse(location, line, dim, dims, io));
  }
  return SDG_OK;
}
