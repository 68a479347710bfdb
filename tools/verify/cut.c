// SPDX-License-Identifier: Apache-2.0
// Reads the record of calls in pieces, and prints what it says.
#include "tools/verify/cut.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/function/function.h"

// What was found about a function.
typedef struct found {
  int same;        // calls
  json_t *differs; // the first record of one that differs, owned
  json_t *names;   // of the ways in which it was called, owned
  json_t *why;     // the last record of why one was not tried, owned
  json_t *full;    // of why every rank makes a call in full, owned
  bool open;       // a call has begun and not ended
} found_t;

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

static void keep(json_t **io, json_t *object) {
  json_decref(*io);
  *io = json_incref(object);
}

static void record_take(json_t *object, const sdg_rules_t *rules,
                        found_t *found) {
  int f = 0;
  while (f < rules->functions &&
         strcmp(rules->function[f].name, text_of(object, "function")) != 0)
    f++;
  if (f == rules->functions)
    return;
  found[f].open = json_object_get(object, "begins") != NULL;
  if (json_object_get(object, "same")) {
    found[f].same++;
    keep(&found[f].names, object);
  } else if (json_object_get(object, "differs") && !found[f].differs) {
    keep(&found[f].differs, object);
  } else if (json_object_get(object, "why")) {
    keep(&found[f].why, object);
  } else if (json_object_get(object, "full")) {
    keep(&found[f].full, object);
  }
}

static sdg_status_t file_read(const char *folder, const sdg_rules_t *rules,
                              found_t *found) {
  char *path = NULL, *line = NULL;
  size_t room = 0;
  if (asprintf(&path, "%s/cuts", folder) < 0)
    return sdg_fail(SDG_E_NO_MEMORY, "the name of a file");
  FILE *file = fopen(path, "re"); // a run that tried nothing has none
  while (file && getline(&line, &room, file) > 0) {
    json_t *object = json_loads(line, 0, NULL);
    if (object)
      record_take(object, rules, found);
    json_decref(object);
  }
  if (file)
    fclose(file);
  free(line);
  free(path);
  return SDG_OK;
}

static void found_print(const sdg_function_t *function, int ranks,
                        const found_t *found) {
  printf("%s: in the pieces of %d ranks: ", function->name, ranks);
  if (found->differs || found->open)
    printf("differs\n");
  else if (found->same)
    printf("as a whole, %d call%s tried (%s)\n", found->same,
           found->same > 1 ? "s" : "", text_of(found->names, "same"));
  else if (found->full)
    printf("every rank calls it in full: %s\n", text_of(found->full, "full"));
  else
    printf("not checked: %s\n", found->why
                                    ? text_of(found->why, "why")
                                    : "no call of it was seen among the first");
  fflush(stdout); // before the error
  if (found->open)
    (void)sdg_fail(SDG_E_CUT,
                   "%s: the program ended in a call on a piece: compare "
                   "arguments, types, extents and strides with the declaration",
                   function->name);
  else if (found->differs)
    (void)sdg_fail(SDG_E_CUT, "%s: %s", function->name,
                   text_of(found->differs, "differs"));
}

sdg_status_t cuts_print(const char *folder, int ranks, bool ended,
                        const sdg_rules_t *rules, int *out_tried,
                        bool *out_differs, bool *out_ended) {
  found_t *found;
  *out_tried = 0;
  *out_differs = *out_ended = false;
  SDG_TRY(SDG_ALLOCATE(found, rules->functions + 1, "records of functions"));
  sdg_status_t status = file_read(folder, rules, found);
  for (int f = 0; f < rules->functions && status == SDG_OK; f++) {
    found[f].open &= ended;
    *out_ended |= found[f].open;
    *out_tried +=
        found[f].same > 0 || found[f].differs || found[f].full || found[f].open;
    *out_differs |= found[f].differs || found[f].open;
    found_print(&rules->function[f], ranks, &found[f]);
  }
  for (int f = 0; f < rules->functions; f++) {
    json_decref(found[f].differs);
    json_decref(found[f].names);
    json_decref(found[f].why);
    json_decref(found[f].full);
  }
  free(found);
  return status;
}
