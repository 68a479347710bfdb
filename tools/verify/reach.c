// SPDX-License-Identifier: Apache-2.0
// Reads the records of tried functions, and prints what they say together.
#include "tools/verify/reach.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/function/function.h"

// What all ranks found about a dimension of a function.
typedef struct reach {
  int tried;      // calls, of all ranks
  int64_t near;   // the largest distance at which a change was seen; -1: none
  json_t *beyond; // the first record of a change beyond the reach, owned
  char why[160];  // the reason why a call was not tried
} reach_t;

typedef reach_t reaches_t[SDG_DIM_COUNT];

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *name) {
  return (int64_t)json_integer_value(json_object_get(object, name));
}

static reach_t *reach_of(const json_t *object, const sdg_rules_t *rules,
                         reaches_t *reaches) {
  for (int f = 0; f < rules->functions; f++)
    for (int dim = 0; dim < SDG_DIM_COUNT; dim++)
      if (strcmp(rules->function[f].name, text_of(object, "function")) == 0 &&
          strcmp(sdg_dim_name((sdg_dim_t)dim), text_of(object, "dim")) == 0)
        return &reaches[f][dim];
  return NULL;
}

static void record_take(json_t *object, const sdg_rules_t *rules,
                        reaches_t *reaches) {
  reach_t *reach = reach_of(object, rules, reaches);
  if (!reach)
    return;
  if (json_object_get(object, "why")) {
    snprintf(reach->why, sizeof reach->why, "%s", text_of(object, "why"));
    return;
  }
  reach->tried++;
  if (number_of(object, "near") > reach->near)
    reach->near = number_of(object, "near");
  if (*text_of(object, "input") && !reach->beyond)
    reach->beyond = json_incref(object);
}

static void file_read(const char *folder, int rank, const sdg_rules_t *rules,
                      reaches_t *reaches) {
  char *path = NULL, *line = NULL;
  size_t room = 0;
  if (asprintf(&path, "%s/reach-%d", folder, rank) < 0)
    return;
  FILE *file = fopen(path, "re"); // a rank that tried nothing has none
  while (file && getline(&line, &room, file) > 0) {
    json_t *object = json_loads(line, 0, NULL);
    record_take(object, rules, reaches);
    json_decref(object);
  }
  if (file)
    fclose(file);
  free(line);
  free(path);
}

// ---- lines -----------------------------------------------------------------

// "H:2", or "H:0:1" for none in front and one behind.
static const char *reach_text(const sdg_function_t *function, sdg_dim_t dim,
                              char *out, size_t bytes) {
  int64_t before = function->sees[dim].before,
          behind = function->sees[dim].behind;
  int used = snprintf(out, bytes, "%s:%" PRId64, sdg_dim_name(dim), before);
  if (before != behind)
    snprintf(out + used, bytes - (size_t)used, ":%" PRId64, behind);
  return out;
}

static void beyond_print(const sdg_function_t *function, sdg_dim_t dim,
                         const json_t *found) {
  char said[48];
  (void)sdg_fail(SDG_E_REACH,
                 "%s: '%s' changes in %s %" PRId64 " of %" PRId64
                 " if '%s' changes %" PRId64 " away; reach says %s",
                 function->name, text_of(found, "output"), sdg_dim_name(dim),
                 number_of(found, "row"), number_of(found, "extent"),
                 text_of(found, "input"), number_of(found, "far"),
                 reach_text(function, dim, said, sizeof said));
}

// True: it was tried.
static bool reach_print(const sdg_function_t *function, sdg_dim_t dim,
                        const reach_t *reach, int calls) {
  char said[48];
  printf("%s: reach %s: ", function->name,
         reach_text(function, dim, said, sizeof said));
  if (reach->beyond) {
    printf("disproved\n");
    return true;
  }
  if (!reach->tried) {
    printf("not checked: ");
    if (*reach->why)
      printf("%s\n", reach->why);
    else
      printf("not among the first %d calls of such functions\n", calls);
    return false;
  }
  printf("not disproved, %d call%s tried\n", reach->tried,
         reach->tried > 1 ? "s" : "");
  if (reach->near < 0)
    printf("  hint: no change to an input was seen in any result of these "
           "calls: try others\n");
  else if (reach->near < function->reach[dim])
    printf("  hint: nothing beyond %" PRId64 " was seen\n", reach->near);
  return true;
}

static bool has_dim(const sdg_function_t *function, sdg_dim_t dim) {
  for (int t = 0; t < function->tensors; t++)
    for (int i = 0; i < function->tensor[t].dims; i++)
      if (function->tensor[t].dim[i] == dim)
        return true;
  return false;
}

static void function_print(const sdg_function_t *function,
                           const reaches_t reaches, int calls, int *io_tried,
                           bool *io_disproved) {
  if (!function->pure) {
    printf("%s: reach not tried: not pure\n", function->name);
    return;
  }
  for (int dim = 0; dim < SDG_DIM_COUNT; dim++) {
    const reach_t *reach = &reaches[dim];
    if (function->reach[dim] < 0 || !has_dim(function, (sdg_dim_t)dim))
      continue;
    *io_tried += reach_print(function, (sdg_dim_t)dim, reach, calls);
    *io_disproved |= reach->beyond != NULL;
    fflush(stdout); // before the error
    if (reach->beyond)
      beyond_print(function, (sdg_dim_t)dim, reach->beyond);
  }
}

sdg_status_t reaches_print(const char *folder, int ranks, int calls,
                           const sdg_rules_t *rules, int *out_tried,
                           bool *out_disproved) {
  reaches_t *reaches;
  *out_tried = 0;
  *out_disproved = false;
  if (rules->functions == 0)
    return SDG_OK;
  SDG_TRY(SDG_ALLOCATE(reaches, rules->functions, "records of functions"));
  for (int f = 0; f < rules->functions; f++)
    for (int dim = 0; dim < SDG_DIM_COUNT; dim++)
      reaches[f][dim].near = -1;
  for (int r = 0; r < ranks; r++)
    file_read(folder, r, rules, reaches);
  for (int f = 0; f < rules->functions; f++)
    function_print(&rules->function[f], reaches[f], calls, out_tried,
                   out_disproved);
  for (int f = 0; f < rules->functions; f++)
    for (int dim = 0; dim < SDG_DIM_COUNT; dim++)
      json_decref(reaches[f][dim].beyond);
  free(reaches);
  return SDG_OK;
}
