// SPDX-License-Identifier: Apache-2.0
// Asks each adviser what to change.
#include "tools/report/advice/advice.h"

#include <stdlib.h>
#include <string.h>

#include "tools/report/advice/advisers.h"
#include "tools/report/advice/said.h"

// In the order of the page. Whoever runs one rank alone needs no other parts of
// several.
static const struct {
  adviser_t *advise;
  bool of_several;
} advisers[] = {
    {advise_alone, false}, {advise_axis, true},  {advise_ranks, true},
    {advise_parts, true},  {advise_keep, false}, {advise_op, false},
    {advise_full, false},
};

// Whether it is about the pieces: others of the kind are for other pieces.
static bool is_of_pieces(const json_t *advice) {
  const char *about = recorded_text(advice, "about");
  return strcmp(about, "axis") == 0 || strcmp(about, "ranks") == 0 ||
         strcmp(about, "parts") == 0 || strcmp(about, "slow") == 0;
}

static void choice_say(json_t *advice) {
  char *text = said_text(
      "%s Do either this or what is said of the pieces above, and look at the "
      "next run's page: both are for the pieces of this run.",
      recorded_text(advice, "text"));
  if (text)
    (void)json_object_set_new(advice, "text", json_string(text));
  free(text);
}

static void choices_say(json_t *list) {
  size_t index, before = 0;
  json_t *advice;
  json_array_foreach(list, index, advice) {
    if (is_of_pieces(advice) && before++ > 0)
      choice_say(advice);
  }
}

static bool is_alone(const json_t *list) {
  return strcmp(recorded_text(json_array_get(list, 0), "about"), "alone") == 0;
}

json_t *advice_make(const recorded_t *run) {
  json_t *list = json_array();
  for (size_t i = 0; list && i < sizeof advisers / sizeof *advisers; i++)
    if (!advisers[i].of_several || !is_alone(list))
      advisers[i].advise(run, list);
  choices_say(list);
  return list;
}
