// SPDX-License-Identifier: Apache-2.0
// Advises another dimension to cut, whose windows need less.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/advice/advisers.h"
#include "tools/report/advice/cut.h"
#include "tools/report/advice/place.h"
#include "tools/report/advice/said.h"

// Whether a section of functions or kernels may not say how far it reaches in
// dimension `dim`, or how a launch follows it: then the rules would be refused,
// or calls would run in full. What functions do with images is not known.
static bool functions_lack(const recorded_t *run, const char *dim) {
  const char *text = recorded_text(run->rank[0].facts, "rules_text");
  if (strstr(text, "[kernel"))
    return true;
  for (const char *at = strstr(text, "[function"); at;
       at = strstr(at + 1, "[function")) {
    const char *end = strstr(at, "\n["), *reach = strstr(at, "\nreach");
    if (strcmp(dim, "N") == 0 || !reach || (end && reach > end))
      return true;
    reach += strcspn(reach, "=");
    size_t bytes = strcspn(reach, "\n;");
    bool names = memchr(reach, ':', bytes) != NULL, said = !names;
    for (size_t i = 1; i + 1 < bytes && names; i++)
      said |= isspace((unsigned char)reach[i - 1]) && reach[i] == *dim &&
              reach[i + 1] == ':';
    if (!said)
      return true;
  }
  return false;
}

// "H:y" becomes "W:y".
static char *split_value(const place_t *place, const char *dim) {
  char *old = place_value(place, 0, "split");
  const char *axis = old ? strchr(old, ':') : NULL;
  char *value = said_text("%s%s", dim, axis ? axis : "");
  free(old);
  return value;
}

static const char *best_find(const cut_t *cut, int64_t *out_bytes) {
  int dims = (int)json_array_size(json_object_get(cut->operand, "whole"));
  const char *best = NULL;
  for (int d = 0; d < dims; d++) {
    const char *name = json_string_value(
        json_array_get(json_object_get(cut->operand, "names"), (size_t)d));
    if (d == 1 || !name || !*name || strcmp(name, cut->dim) == 0 ||
        functions_lack(cut->run, name))
      continue;
    int64_t bytes = cut_predict(cut, name, cut->run->ranks);
    if (bytes >= 0 && (!best || bytes < *out_bytes)) {
      best = name;
      *out_bytes = bytes;
    }
  }
  return best;
}

static char *text_make(const cut_t *cut, const char *dim) {
  return said_text(
      "Cut %s instead of %s: %s.%s", dim, cut->dim,
      strcmp(dim, "N") == 0 ? "no window sees another image"
                            : "windows need less of other ranks",
      cut->shard
          ? " The program must be able to work on such pieces, and the input "
            "is cut again."
          : "");
}

void advise_axis(const recorded_t *run, json_t *list) {
  cut_t cut;
  place_t place;
  int64_t bytes = 0;
  if (!cut_find(run, &cut) || !cut_prove(&cut) ||
      !place_find_all(run, &place) || place_prescribes(&place))
    return;
  const char *dim = best_find(&cut, &bytes);
  int64_t rest = cut.fetched_bytes + cut.first_bytes;
  // A tenth is not worth new pieces. Uneven pieces may move more than even ones
  // of the same dimension, which would be advised next.
  int64_t even = dim ? cut_predict(&cut, cut.dim, run->ranks) : -1;
  if (!dim || 10 * (bytes - rest) > 9 * cut.halo_bytes ||
      (even >= 0 && 10 * (bytes - rest) > 9 * (even - rest)))
    return;
  char *value = split_value(&place, dim);
  json_t *advice = said_add(
      list,
      &(said_t){.about = "axis",
                .text = text_make(&cut, dim),
                .line = value ? place_line(&place, "split", value) : NULL,
                .where = place_where(&place, "split"),
                .command = cut.shard
                               ? said_text("sundog split --dim %s -n %d FILE",
                                           dim, run->ranks)
                               : NULL,
                .effect = said_bytes_effect(cut.received_bytes, bytes),
                .sections = place_sections(&place)});
  free(value);
  if (advice)
    said_bytes(advice, cut.received_bytes, bytes);
}
