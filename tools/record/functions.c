// SPDX-License-Identifier: Apache-2.0
// Reads the record of a function's arguments.
#include "tools/record/functions.h"

#include <stdio.h>
#include <string.h>

static int64_t number_of(const json_t *object, const char *name) {
  return (int64_t)json_integer_value(json_object_get(object, name));
}

static void text_copy(const json_t *object, const char *name, char *out,
                      size_t bytes) {
  const char *text = json_string_value(json_object_get(object, name));
  snprintf(out, bytes, "%s", text ? text : "");
}

static void place_read(const json_t *from, seen_place_t *out) {
  const json_t *extent = json_object_get(from, "extent");
  size_t dims = json_array_size(extent);
  out->device = number_of(from, "device");
  out->room = number_of(from, "room");
  out->type = (int)number_of(from, "type");
  out->dims = dims > SDG_DIMS_MAX ? SDG_DIMS_MAX : (int)dims;
  for (int d = 0; d < out->dims; d++)
    out->extent[d] =
        (int64_t)json_integer_value(json_array_get(extent, (size_t)d));
  out->has_value = json_object_get(from, "value") != NULL;
  out->value = number_of(from, "value");
  out->is_wide = json_is_true(json_object_get(from, "wide"));
  out->has_behind = json_object_get(from, "behind") != NULL;
  out->behind = number_of(from, "behind");
}

static void types_read(const json_t *from, seen_function_t *out) {
  const char *text = json_string_value(json_object_get(from, "types"));
  out->is_kernel = text != NULL;
  for (int i = 0; i < SEEN_PLACES_MAX; i++) {
    int bytes = text ? (int)strcspn(text, " ") : 0;
    snprintf(out->type[i], sizeof out->type[i], "%.*s", bytes ? bytes : 1,
             bytes ? text : "?");
    text = text && text[bytes] ? text + bytes + 1 : NULL;
  }
}

void seen_function_read(const json_t *from, seen_function_t *out) {
  const json_t *places = json_object_get(from, "places");
  size_t count = json_array_size(places);
  memset(out, 0, sizeof *out);
  text_copy(from, "function", out->name, sizeof out->name);
  text_copy(from, "library", out->library, sizeof out->library);
  out->calls = number_of(from, "calls");
  out->noted = number_of(from, "noted");
  out->places = count > SEEN_PLACES_MAX ? SEEN_PLACES_MAX : (int)count;
  out->registers = (int)number_of(from, "registers");
  if (out->registers < 0 || out->registers > out->places)
    out->registers = out->places;
  types_read(from, out);
  for (int i = 0; i < out->places; i++)
    place_read(json_array_get(places, (size_t)i), &out->place[i]);
}
