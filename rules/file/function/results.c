// SPDX-License-Identifier: Apache-2.0
// Reads the results of a function: numbers over all elements.
#include <stdio.h>

#include "rules/file/function/function.h"
#include "rules/file/value.h"

// NCCL has no integers of two bytes; unsigned ones are compared as signed.
static sdg_status_t type_check(const sdg_location_t *location, const char *name,
                               sdg_number_t number,
                               sdg_function_combine_t combine) {
  bool compares = combine == SDG_FUNCTION_MAX || combine == SDG_FUNCTION_MIN;
  bool integer = number.kind == 'i' || number.kind == 'u';
  if (combine == SDG_FUNCTION_MEAN && number.kind != 'f')
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "'%s': a mean is a float or a double", name);
  if (integer && number.bytes < 4)
    return sdg_location_fail(
        location, SDG_E_RULES_VALUE,
        "'%s': results that are integers need 4 or 8 bytes", name);
  if (number.kind == 'u' && compares)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "'%s': the largest or smallest of unsigned "
                             "numbers cannot be found: use a signed type",
                             name);
  return SDG_OK;
}

// "double", "unsigned long"
static sdg_status_t returned_parse(const sdg_location_t *location,
                                   const char *type,
                                   sdg_function_combine_t combine,
                                   sdg_function_t *io) {
  char text[48] = "";
  sdg_word_t word;
  int used = 0;
  if (io->returned.number.bytes)
    return sdg_location_fail(location, SDG_E_RULES_TWICE,
                             "`result` has 'return' twice");
  while (used < (int)sizeof text && sdg_word_next(&type, " \t", &word))
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%.*s",
                     used ? " " : "", word.length, word.at);
  if (used >= (int)sizeof text ||
      !sdg_number_named((sdg_word_t){text, used}, &io->returned.number))
    return sdg_location_fail(location, SDG_E_RULES_WORD,
                             "'%s' is no type of a number: write its type "
                             "behind return, as 'sum return double'",
                             text);
  io->returned.combine = combine;
  return type_check(location, "return", io->returned.number, combine);
}

static sdg_status_t result_parse(const sdg_location_t *location,
                                 sdg_word_t item, sdg_function_t *io) {
  static const char *const words[] = {[SDG_FUNCTION_SUM] = "sum",
                                      [SDG_FUNCTION_MAX] = "max",
                                      [SDG_FUNCTION_MIN] = "min",
                                      [SDG_FUNCTION_MEAN] = "mean"};
  char line[128], word[16];
  const char *rest = line;
  sdg_word_t how = {rest, 0}, name = {rest, 0}, more;
  int which;
  snprintf(line, sizeof line, "%.*s", item.length, item.at);
  if (!sdg_word_next(&rest, " \t", &how) || !sdg_word_next(&rest, " \t", &name))
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             "'%s': write sum, max, min or mean, and an "
                             "argument, or return and its type",
                             line);
  snprintf(word, sizeof word, "%.*s", how.length, how.at);
  SDG_TRY(sdg_choice_parse(location, word, "kind of result", words,
                           sizeof words / sizeof *words, &which));
  sdg_function_combine_t combine = (sdg_function_combine_t)which;
  int index = sdg_function_argument(io, name);
  if (index < 0 && sdg_word_is(name, "return"))
    return returned_parse(location, rest, combine, io);
  int tensor = index < 0 ? -1 : io->argument[index].tensor;
  if (tensor < 0 || io->argument[index].use != SDG_ARGUMENT_OUT)
    return sdg_location_fail(location, SDG_E_RULES_WORD,
                             "'%.*s' is not the name of an argument that is "
                             "out and has a tensor",
                             name.length, name.at);
  if (sdg_word_next(&rest, " \t", &more))
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             "'%.*s' behind '%.*s': a comma stands between "
                             "results",
                             more.length, more.at, name.length, name.at);
  if (io->results == SDG_RESULTS_MAX)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "more than %d results", SDG_RESULTS_MAX);
  for (int r = 0; r < io->results; r++)
    if (io->result[r].tensor == tensor)
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "'%.*s' is a result twice", name.length,
                               name.at);
  io->result[io->results].tensor = tensor;
  io->result[io->results++].combine = combine;
  return type_check(location, io->argument[index].name,
                    io->tensor[tensor].element, combine);
}

sdg_status_t sdg_results_parse(const sdg_location_t *location, const char *text,
                               sdg_function_t *io) {
  sdg_word_t item;
  while (sdg_word_next(&text, ",", &item))
    SDG_TRY(result_parse(location, item, io));
  return SDG_OK;
}
