// SPDX-License-Identifier: Apache-2.0
// Asks each adviser what to change.
#include "tools/report/advice/advice.h"

#include "tools/report/advice/advisers.h"

// In the order of the page.
static adviser_t *const advisers[] = {
    advise_alone, advise_axis, advise_ranks, advise_parts,
    advise_keep,  advise_op,   advise_full,
};

json_t *advice_make(const recorded_t *run) {
  json_t *list = json_array();
  for (size_t i = 0; list && i < sizeof advisers / sizeof *advisers; i++)
    advisers[i](run, list);
  return list;
}
