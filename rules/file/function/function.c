// SPDX-License-Identifier: Apache-2.0
// Reads a [function] or [kernel] section: its lines, then their values.
#include "rules/file/function/function.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/value.h"

const char *const sdg_function_key_name[SDG_FUNCTION_KEY_COUNT] = {
#define SDG_RULES_FUNCTION_KEY(name, key, value, otherwise, view, example,     \
                               meaning)                                        \
  [SDG_FUNCTION_##name] = key,
#include "rules/file/keys.def"
};

// ---- lines -----------------------------------------------------------------

// What joins the lines of a key that may have several; NULL: it has one.
static const char *joint(int key) {
  return key == SDG_FUNCTION_ARGUMENTS ? ", "
         : key == SDG_FUNCTION_TENSOR  ? "; "
                                       : NULL;
}

sdg_status_t sdg_function_draft_add(const sdg_location_t *location,
                                    sdg_function_draft_t *draft, int key,
                                    const char *value) {
  const char *between = joint(key), *first = draft->value[key];
  if (draft->line[key] && !between)
    return sdg_location_fail(location, SDG_E_RULES_TWICE,
                             "'%s' is already in line %d",
                             sdg_function_key_name[key], draft->line[key]);
  if (!draft->line[key])
    draft->line[key] = location->line;
  if (*value == '\0')
    return SDG_OK; // as if it were not there
  size_t bytes =
      (first ? strlen(first) + strlen(between) : 0) + strlen(value) + 1;
  char *text = malloc(bytes);
  if (!text)
    return sdg_fail(SDG_E_NO_MEMORY, "for the rules");
  snprintf(text, bytes, "%s%s%s", first ? first : "", first ? between : "",
           value);
  free(draft->value[key]);
  draft->value[key] = text;
  return SDG_OK;
}

void sdg_function_draft_fini(sdg_function_draft_t *draft) {
  for (int key = 0; key < SDG_FUNCTION_KEY_COUNT; key++)
    free(draft->value[key]);
  *draft = (sdg_function_draft_t){.source = NULL};
}

// ---- values ----------------------------------------------------------------

// The value of a key and its location; "" if it is not given.
static const char *value_of(const sdg_function_draft_t *draft, int key,
                            sdg_location_t *out_location) {
  *out_location = (sdg_location_t){
      draft->source, draft->line[key] ? draft->line[key] : draft->head};
  return draft->value[key] ? draft->value[key] : "";
}

static sdg_status_t required(const sdg_function_draft_t *draft, int key) {
  sdg_location_t location = {draft->source, draft->head};
  return draft->value[key]
             ? SDG_OK
             : sdg_location_fail(&location, SDG_E_RULES_SYNTAX,
                                 "%s '%s' has no '%s =' line",
                                 draft->is_kernel ? "kernel" : "function",
                                 draft->name, sdg_function_key_name[key]);
}

static sdg_status_t dims_parse(const sdg_location_t *location, const char *text,
                               sdg_dim_t *out, int *out_dims) {
  sdg_word_t word;
  *out_dims = 0;
  while (sdg_word_next(&text, " \t", &word)) {
    if (*out_dims == SDG_FUNCTION_DIMS)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "more than %d dimensions", SDG_FUNCTION_DIMS);
    SDG_TRY(sdg_dim_parse(location, word, &out[(*out_dims)++]));
  }
  return SDG_OK;
}

// One item "H:2" or, for all dimensions, "2".
static sdg_status_t item_parse(const sdg_location_t *location, sdg_word_t item,
                               sdg_dim_t *out_dim, sdg_word_t *out_value) {
  const char *colon = memchr(item.at, ':', (size_t)item.length);
  *out_dim = SDG_DIM_COUNT;
  *out_value = item;
  if (!colon)
    return SDG_OK;
  sdg_word_t name = {item.at, (int)(colon - item.at)};
  *out_value = (sdg_word_t){colon + 1, item.length - name.length - 1};
  return sdg_dim_parse(location, name, out_dim);
}

// "2", "all", or, in front and behind, "0:1".
static bool reach_number(sdg_word_t value, int64_t *out_before,
                         int64_t *out_behind) {
  const char *colon = memchr(value.at, ':', (size_t)value.length);
  int first = colon ? (int)(colon - value.at) : value.length;
  sdg_word_t second = {value.at + first + 1, value.length - first - 1};
  *out_before = *out_behind = SDG_REACH_ALL;
  if (sdg_word_is(value, "all"))
    return true;
  if (!sdg_word_number((sdg_word_t){value.at, first}, out_before))
    return false;
  *out_behind = *out_before;
  return (!colon || sdg_word_number(second, out_behind)) &&
         *out_before <= INT32_MAX && *out_behind <= INT32_MAX;
}

static sdg_status_t reach_parse(const sdg_location_t *location,
                                const char *text, sdg_function_t *io) {
  sdg_word_t item, value;
  sdg_dim_t dim;
  int64_t before, behind;
  while (sdg_word_next(&text, " \t,", &item)) {
    SDG_TRY(item_parse(location, item, &dim, &value));
    if (!reach_number(value, &before, &behind))
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "'%.*s': reach is a number of elements, as "
                               "H:2, two of them, in front and behind, as "
                               "H:0:1, or all",
                               item.length, item.at);
    for (int d = 0; d < SDG_DIM_COUNT; d++)
      if (dim == SDG_DIM_COUNT || d == (int)dim) {
        io->reach[d] = before > behind ? before : behind;
        io->sees[d].before = before;
        io->sees[d].behind = behind;
      }
  }
  return SDG_OK;
}

static sdg_status_t border_parse(const sdg_location_t *location,
                                 const char *text, sdg_function_t *io) {
  static const char *const words[] = {[SDG_BORDER_OWN] = "own",
                                      [SDG_BORDER_WRAP] = "wrap",
                                      [SDG_BORDER_ZERO] = "zero"};
  sdg_word_t item, value;
  sdg_dim_t dim;
  char word[16];
  int border;
  while (sdg_word_next(&text, " \t,", &item)) {
    SDG_TRY(item_parse(location, item, &dim, &value));
    snprintf(word, sizeof word, "%.*s", value.length, value.at);
    SDG_TRY(sdg_choice_parse(location, word, "border", words,
                             sizeof words / sizeof *words, &border));
    for (int d = 0; d < SDG_DIM_COUNT; d++)
      if (dim == SDG_DIM_COUNT || d == (int)dim)
        io->border[d] = (sdg_border_t)border;
  }
  return SDG_OK;
}

// "row0 H, column0 W"
static sdg_status_t offset_parse(const sdg_location_t *location,
                                 const char *text, sdg_function_t *io) {
  sdg_word_t item;
  while (sdg_word_next(&text, ",", &item)) {
    char words[128];
    const char *rest = words;
    sdg_word_t name = {rest, 0}, dim = {rest, 0}, more;
    snprintf(words, sizeof words, "%.*s", item.length, item.at);
    if (!sdg_word_next(&rest, " \t", &name) ||
        !sdg_word_next(&rest, " \t", &dim) || sdg_word_next(&rest, " ", &more))
      return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                               "'%s': write an argument and a dimension, as "
                               "'row0 H'",
                               words);
    int index = sdg_function_argument(io, name);
    const sdg_argument_t *argument = &io->argument[index < 0 ? 0 : index];
    if (index < 0 || argument->use != SDG_ARGUMENT_NUMBER ||
        argument->members || argument->number[0].kind == 'f')
      return sdg_location_fail(location, SDG_E_RULES_WORD,
                               "'%.*s' is not the name of an argument that is "
                               "an integer",
                               name.length, name.at);
    if (io->offsets == SDG_OFFSETS_MAX)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "more than %d offsets", SDG_OFFSETS_MAX);
    io->offset[io->offsets].argument = index;
    SDG_TRY(sdg_dim_parse(location, dim, &io->offset[io->offsets++].dim));
  }
  return SDG_OK;
}

// "yes" or "no"
static sdg_status_t yes_parse(const sdg_function_draft_t *draft, int key,
                              bool *out) {
  static const char *const words[] = {"no", "yes"};
  sdg_location_t location;
  const char *text = value_of(draft, key, &location);
  int which = 0;
  if (*text)
    SDG_TRY(sdg_choice_parse(&location, text, "value", words, 2, &which));
  *out = which;
  return SDG_OK;
}

// Where the function computes: on a stream that it is given, on the default
// stream, or on the host before it returns.
static sdg_status_t stream_parse(const sdg_function_draft_t *draft,
                                 sdg_function_t *io) {
  static const char *const words[] = {"default", "none"};
  sdg_location_t location;
  const char *text = value_of(draft, SDG_FUNCTION_STREAM, &location);
  int which = 0;
  if (io->stream >= 0 && *text)
    return sdg_location_fail(&location, SDG_E_RULES_TWICE,
                             "the stream is an argument already");
  if (io->stream >= 0)
    return SDG_OK;
  if (!*text)
    return sdg_location_fail(&location, SDG_E_RULES_SYNTAX,
                             "function '%s' has no argument 'stream': write "
                             "'stream = default' if it computes on the default "
                             "stream, 'stream = none' if it has computed when "
                             "it returns",
                             draft->name);
  SDG_TRY(sdg_choice_parse(&location, text, "stream", words, 2, &which));
  io->on_host = which == 1;
  return SDG_OK;
}

// What a launch says by itself, and what only a launch has.
static sdg_status_t kernel_check(const sdg_function_draft_t *draft,
                                 const sdg_function_t *function) {
  static const int of_functions[] = {SDG_FUNCTION_LIBRARY, SDG_FUNCTION_SYMBOL,
                                     SDG_FUNCTION_STREAM};
  sdg_location_t location;
  for (int k = 0; k < 3; k++)
    if (*value_of(draft, of_functions[k], &location))
      return sdg_location_fail(&location, SDG_E_RULES_VALUE,
                               "'%s' is a key of [function]: a kernel is found "
                               "by its name, and its launch has a stream",
                               sdg_function_key_name[of_functions[k]]);
  (void)value_of(draft, SDG_FUNCTION_RESULT, &location);
  if (function->returned.number.bytes)
    return sdg_location_fail(&location, SDG_E_RULES_VALUE,
                             "a kernel returns nothing");
  (void)value_of(draft, SDG_FUNCTION_ARGUMENTS, &location);
  for (int a = 0; a < function->arguments; a++) {
    const sdg_argument_t *argument = &function->argument[a];
    if (argument->use == SDG_ARGUMENT_STREAM || argument->by_reference)
      return sdg_location_fail(
          &location, SDG_E_RULES_VALUE,
          argument->by_reference
              ? "'%s': a kernel has no numbers of the host by address"
              : "'%s': a kernel has no argument that is a stream",
          argument->name);
  }
  return SDG_OK;
}

static bool depends_on(const sdg_function_t *function, int argument) {
  for (int t = 0; t < function->tensors; t++)
    for (int i = 0; i < function->tensor[t].dims; i++) {
      const sdg_function_tensor_t *tensor = &function->tensor[t];
      if (sdg_expression_names(&tensor->extent[i], argument) ||
          (tensor->strided &&
           sdg_expression_names(&tensor->stride[i], argument)))
        return true;
    }
  return false;
}

// ---- what must fit together ------------------------------------------------

static sdg_status_t function_check(const sdg_location_t *location,
                                   const sdg_function_t *function) {
  bool writes = function->returned.number.bytes > 0; // a result of all ranks
  for (int t = 0; t < function->tensors; t++) {
    const sdg_argument_t *argument =
        &function->argument[function->tensor[t].argument];
    writes |= argument->use != SDG_ARGUMENT_IN;
  }
  if (!writes)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "'%s' writes no tensor and returns no result: say "
                             "which arguments are 'out' or 'inout', or "
                             "'result = sum return double'",
                             function->name);
  for (int a = 0; a < function->arguments; a++)
    if ((function->argument[a].use == SDG_ARGUMENT_OUT ||
         function->argument[a].use == SDG_ARGUMENT_INOUT) &&
        function->argument[a].tensor < 0)
      return sdg_location_fail(location, SDG_E_RULES_VALUE,
                               "'%s' is written, and no `tensor` says what it "
                               "is",
                               function->argument[a].name);
  for (int r = 0; r < function->results; r++)
    if (function->result[r].combine == SDG_FUNCTION_MEAN && !function->on_host)
      return sdg_location_fail(
          location, SDG_E_RULES_VALUE,
          "function '%s' has a mean, and computes on a stream: a mean needs "
          "'stream = none'. Let it write a sum",
          function->name);
  for (int r = 0; r < function->results; r++)
    if (function->tensor[function->result[r].tensor].dims > 0)
      return sdg_location_fail(
          location, SDG_E_RULES_VALUE,
          "'%s' is a result: write the number of its elements, as in "
          "'tensor = total: double []'",
          function
              ->argument[function->tensor[function->result[r].tensor].argument]
              .name);
  return SDG_OK;
}

// A key that `sundog inspect` left open. In patterns of files a ? is any
// character.
static sdg_status_t filled_check(const sdg_function_draft_t *draft) {
  char open[128] = "";
  sdg_location_t location = {draft->source, 0};
  for (int key = 0; key < SDG_FUNCTION_KEY_COUNT; key++) {
    if (key == SDG_FUNCTION_LIBRARY || !draft->value[key] ||
        !strchr(draft->value[key], '?'))
      continue;
    size_t used = strlen(open);
    snprintf(open + used, sizeof open - used, "%s%s", used ? ", " : "",
             sdg_function_key_name[key]);
    if (!location.line)
      location.line = draft->line[key];
  }
  return !*open ? SDG_OK
                : sdg_location_fail(&location, SDG_E_RULES_UNFILLED,
                                    "function '%s' still has a ? in: %s",
                                    draft->name, open);
}

// Keeps a text in room for `bytes`, which it has to fit.
static sdg_status_t text_keep(const sdg_location_t *location, const char *what,
                              const char *text, char *out, size_t bytes) {
  if (strlen(text) >= bytes)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "%s is longer than %zu characters", what,
                             bytes - 1);
  memcpy(out, text, strlen(text) + 1);
  return SDG_OK;
}

sdg_status_t sdg_function_parse(const sdg_function_draft_t *draft,
                                sdg_function_t *out) {
  sdg_location_t location, head = {draft->source, draft->head};
  sdg_dim_t dim[SDG_FUNCTION_DIMS];
  int dims;
  *out = (sdg_function_t){
      .is_kernel = draft->is_kernel, .line = draft->head, .stream = -1};
  for (int d = 0; d < SDG_DIM_COUNT; d++)
    out->reach[d] = SDG_REACH_UNSAID;
  snprintf(out->name, sizeof out->name, "%s", draft->name);
  const char *text = value_of(draft, SDG_FUNCTION_SYMBOL, &location);
  SDG_TRY(text_keep(&location, "symbol", *text ? text : draft->name,
                    out->symbol, sizeof out->symbol));
  SDG_TRY(filled_check(draft));
  SDG_TRY(required(draft, SDG_FUNCTION_ARGUMENTS));
  SDG_TRY(required(draft, SDG_FUNCTION_TENSOR));
  SDG_TRY(required(draft, SDG_FUNCTION_REACH));
  text = value_of(draft, SDG_FUNCTION_LIBRARY, &location);
  SDG_TRY(
      text_keep(&location, "library", text, out->library, sizeof out->library));
  text = value_of(draft, SDG_FUNCTION_ARGUMENTS, &location);
  SDG_TRY(sdg_arguments_parse(&location, text, out));
  text = value_of(draft, SDG_FUNCTION_DIMS_OF, &location);
  SDG_TRY(dims_parse(&location, text, dim, &dims));
  text = value_of(draft, SDG_FUNCTION_TENSOR, &location);
  SDG_TRY(sdg_tensors_parse(&location, text, dim, dims, out));
  text = value_of(draft, SDG_FUNCTION_REACH, &location);
  SDG_TRY(reach_parse(&location, text, out));
  text = value_of(draft, SDG_FUNCTION_BORDER, &location);
  SDG_TRY(border_parse(&location, text, out));
  text = value_of(draft, SDG_FUNCTION_OFFSET, &location);
  SDG_TRY(offset_parse(&location, text, out));
  text = value_of(draft, SDG_FUNCTION_RESULT, &location);
  SDG_TRY(sdg_results_parse(&location, text, out));
  SDG_TRY(yes_parse(draft, SDG_FUNCTION_COPY, &out->copies));
  SDG_TRY(yes_parse(draft, SDG_FUNCTION_PURE, &out->pure));
  SDG_TRY(draft->is_kernel ? kernel_check(draft, out)
                           : stream_parse(draft, out));
  text = value_of(draft, SDG_FUNCTION_GRID, &location);
  if (*text && !draft->is_kernel)
    return sdg_location_fail(&location, SDG_E_RULES_VALUE,
                             "'grid' is a key of [kernel]");
  SDG_TRY(sdg_grid_parse(&location, text, out));
  for (int a = 0; a < out->arguments; a++)
    out->argument[a].is_size = depends_on(out, a);
  return function_check(&head, out);
}
