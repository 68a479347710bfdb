// SPDX-License-Identifier: Apache-2.0
// Makes the objects of the report's list of advice.
#include "tools/report/advice/said.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

char *said_text(const char *text, ...) {
  char *out = NULL;
  va_list args;
  va_start(args, text);
  int n = vasprintf(&out, text, args);
  va_end(args);
  return n < 0 ? NULL : out;
}

json_t *said_add(json_t *list, said_t *said) {
  json_t *advice = NULL, *sections = said->sections;
  if (!sections)
    sections = json_array();
  if (said->text && said->line && said->where && said->effect)
    advice = json_pack("{s:s,s:s,s:s,s:s,s:s?,s:s,s:O}", "about", said->about,
                       "text", said->text, "line", said->line, "where",
                       said->where, "command", said->command, "effect",
                       said->effect, "sections", sections);
  if (advice && json_array_append_new(list, advice) != 0)
    advice = NULL;
  json_decref(sections);
  free(said->text);
  free(said->line);
  free(said->where);
  free(said->command);
  free(said->effect);
  return advice;
}

void said_bytes(json_t *advice, int64_t received_bytes,
                int64_t predicted_bytes) {
  (void)json_object_set_new(advice, "received_bytes",
                            json_integer(received_bytes));
  (void)json_object_set_new(advice, "predicted_bytes",
                            json_integer(predicted_bytes));
}

char *said_bytes_effect(int64_t now, int64_t then) {
  return said_text("All ranks receive %" PRId64
                   " bytes in this run instead of %" PRId64 ".",
                   then, now);
}
