// SPDX-License-Identifier: Apache-2.0
// Asks each adviser what to change.
#include "tools/report/advice/advice.h"

#include <string.h>

#include "tools/report/advice/advisers.h"

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

static bool is_alone(const json_t *list) {
  return strcmp(recorded_text(json_array_get(list, 0), "about"), "alone") == 0;
}

json_t *advice_make(const recorded_t *run) {
  json_t *list = json_array();
  for (size_t i = 0; list && i < sizeof advisers / sizeof *advisers; i++)
    if (!advisers[i].of_several || !is_alone(list))
      advisers[i].advise(run, list);
  return list;
}
