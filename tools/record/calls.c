// SPDX-License-Identifier: Apache-2.0
// Reads the records of a program's calls.
#include "tools/record/calls.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/file.h"
#include "src/base/hash.h"

static const int64_t ELEMENTS_MAX = (int64_t)1 << 40;
static const int64_t COUNT_MAX = (int64_t)1 << 48;
enum { BYTES_MAX = 32, WINDOW_MAX = 1 << 24 };

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *name) {
  return (int64_t)json_integer_value(json_object_get(object, name));
}

static bool truth_of(const json_t *object, const char *name) {
  return json_is_true(json_object_get(object, name));
}

// Returns the number at `index` of a list in the object; 0 if it is missing.
static int64_t item_of(const json_t *object, const char *name, int index) {
  return (int64_t)json_integer_value(
      json_array_get(json_object_get(object, name), (size_t)index));
}

static int size_of(const json_t *object, const char *name, int most) {
  size_t size = json_array_size(json_object_get(object, name));
  return size > (size_t)most ? most : (int)size;
}

static void operand_read(const json_t *from, seen_operand_t *out) {
  snprintf(out->role, sizeof out->role, "%s", text_of(from, "role"));
  out->is_output = truth_of(from, "output");
  out->is_filter = truth_of(from, "filter");
  out->is_managed = truth_of(from, "managed");
  for (int role = 0; role < SDG_ROLE_COUNT; role++)
    if (strcmp(sdg_role_name((sdg_role_t)role), out->role) == 0)
      out->is_activation =
          !out->is_filter && sdg_role_is_activation((sdg_role_t)role);
  out->type = (int)number_of(from, "type");
  out->bytes = (int)number_of(from, "bytes");
  out->dims = size_of(from, "extent", SDG_DIMS_MAX);
  // The vendor's tensors are not larger; the limit keeps byte counts from
  // overflowing.
  int64_t elements = 1;
  for (int d = 0; d < out->dims; d++) {
    out->extent[d] = item_of(from, "extent", d);
    if (out->extent[d] < 1 || out->extent[d] > ELEMENTS_MAX / elements)
      out->dims = 0;
    else
      elements *= out->extent[d];
  }
  if (out->bytes < 0 || out->bytes > BYTES_MAX)
    out->bytes = 0;
}

static void call_read(const json_t *from, seen_call_t *out) {
  memset(out, 0, sizeof *out);
  snprintf(out->entry, sizeof out->entry, "%s", text_of(from, "entry"));
  out->family = SDG_FAMILY_OTHER;
  for (int family = 0; family < SDG_FAMILY_COUNT; family++)
    if (strcmp(sdg_family_name((sdg_family_t)family),
               text_of(from, "family")) == 0)
      out->family = (sdg_family_t)family;
  out->is_query = truth_of(from, "query");
  out->has_rule = truth_of(from, "rule");
  out->is_opaque = truth_of(from, "opaque");
  out->is_reduction = truth_of(from, "reduction");
  out->count = 1;
  const json_t *window = json_object_get(from, "window");
  out->spatial = size_of(window, "kernel", SDG_DIMS_MAX);
  for (int d = 0; d < out->spatial; d++) {
    out->window[d] = (sdg_window_t){.kernel = item_of(window, "kernel", d),
                                    .stride = item_of(window, "stride", d),
                                    .dilation = item_of(window, "dilation", d),
                                    .pad = item_of(window, "pad", d)};
    // The vendor's library refuses all others; the check keeps later divisions
    // from failing.
    const sdg_window_t *w = &out->window[d];
    if (w->kernel < 1 || w->stride < 1 || w->dilation < 1 || w->pad < 0 ||
        w->kernel > WINDOW_MAX || w->stride > WINDOW_MAX ||
        w->dilation > WINDOW_MAX || w->pad > WINDOW_MAX)
      out->spatial = 0;
  }
  const json_t *attention = json_object_get(from, "attention");
  out->is_ragged = truth_of(attention, "ragged");
  out->one_tensor = truth_of(attention, "same");
  out->left = number_of(attention, "left");
  out->right = number_of(attention, "right");
  // The vendor's values are ints.
  out->has_windows =
      (out->is_ragged || json_object_get(attention, "left") != NULL) &&
      out->left <= INT32_MAX && out->right <= INT32_MAX;
  const json_t *operands = json_object_get(from, "operands");
  size_t index;
  json_t *operand;
  json_array_foreach(operands, index, operand) {
    if (out->operands < SDG_OPERANDS_MAX)
      operand_read(operand, &out->operand[out->operands++]);
  }
}

static bool same_call(const seen_call_t *a, const seen_call_t *b) {
  if (a->hash != b->hash)
    return false;
  seen_call_t other = *b;
  other.count = a->count;
  return memcmp(a, &other, sizeof other) ==
         0; // both were zeroed before they were filled
}

// Returns the index of the call; -1 if memory runs out.
static int call_add(calls_t *calls, const seen_call_t *call) {
  for (int i = 0; i < calls->count; i++)
    if (same_call(&calls->call[i], call))
      return i;
  // Doubles the room when a power of two is full.
  if ((calls->count & (calls->count - 1)) == 0) {
    size_t room = calls->count ? 2 * (size_t)calls->count : 1;
    seen_call_t *more = realloc(calls->call, room * sizeof *more);
    if (!more)
      return -1;
    calls->call = more;
  }
  calls->call[calls->count] = *call;
  calls->call[calls->count].count = 0;
  return calls->count++;
}

static void libraries_add(calls_t *calls, const json_t *list) {
  size_t index;
  json_t *path;
  json_array_foreach(list, index, path) {
    const char *text = json_string_value(path);
    bool there = !text || calls->libraries == CALLS_LIBRARIES_MAX;
    for (int i = 0; !there && i < calls->libraries; i++)
      there = strcmp(calls->library[i], text) == 0;
    if (!there)
      snprintf(calls->library[calls->libraries++], PATH_MAX, "%s", text);
  }
}

static sdg_status_t function_add(calls_t *calls, const json_t *from) {
  seen_function_t function;
  seen_function_read(from, &function);
  for (int i = 0; i < calls->functions; i++)
    if (strcmp(calls->function[i].name, function.name) == 0) {
      calls->function[i].calls += function.calls; // of another process
      return SDG_OK;
    }
  seen_function_t *more =
      realloc(calls->function, ((size_t)calls->functions + 1) * sizeof *more);
  if (!more)
    return sdg_fail(SDG_E_NO_MEMORY, "for the record of functions");
  calls->function = more;
  calls->function[calls->functions++] = function;
  return SDG_OK;
}

static sdg_status_t file_read(const char *path, calls_t *calls) {
  char *line = NULL;
  size_t room = 0;
  int *at = NULL, lines = 0; // the index of each line's call
  bool counted = false;
  sdg_status_t status = SDG_OK;
  FILE *file = fopen(path, "re");
  if (!file)
    return sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno));
  while (status == SDG_OK && getline(&line, &room, file) > 0) {
    json_t *object = json_loads(line, 0, NULL);
    const json_t *counts = json_object_get(object, "counts");
    if (counts) {
      counted = true;
      for (int i = 0; i < lines; i++)
        if (item_of(object, "counts", i) > 0 &&
            item_of(object, "counts", i) < COUNT_MAX)
          calls->call[at[i]].count += item_of(object, "counts", i) - 1;
    } else if (json_object_get(object, "libraries"))
      libraries_add(calls, json_object_get(object, "libraries"));
    else if (json_object_get(object, "dropped"))
      calls->dropped = true;
    else if (json_object_get(object, "function"))
      status = function_add(calls, object);
    else if (object) {
      seen_call_t call;
      int *more = realloc(at, ((size_t)lines + 1) * sizeof *at);
      call_read(object, &call);
      call.hash = sdg_hash_text(SDG_HASH_SEED, line);
      int index = call_add(calls, &call);
      at = more ? more : at;
      if (!more || index < 0)
        status = sdg_fail(SDG_E_NO_MEMORY, "for the record of calls");
      else {
        calls->call[index].count++;
        at[lines++] = index;
      }
    }
    json_decref(object);
  }
  calls->processes++;
  calls->complete &= counted;
  free(at);
  free(line);
  fclose(file);
  return status;
}

sdg_status_t calls_read(const char *folder, calls_t *out_calls) {
  *out_calls = (calls_t){.complete = true};
  sdg_status_t status = SDG_OK;
  char path[2 * PATH_MAX];
  DIR *entries = opendir(folder);
  if (!entries)
    return sdg_fail(SDG_E_FILE_IO, "%s: %s", folder, strerror(errno));
  for (struct dirent *entry; status == SDG_OK && (entry = readdir(entries));) {
    if (strncmp(entry->d_name, "calls-", 6) != 0)
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    status = file_read(path, out_calls);
  }
  closedir(entries);
  if (status != SDG_OK)
    calls_fini(out_calls);
  return status;
}

void calls_fini(calls_t *calls) {
  free(calls->call);
  free(calls->function);
  *calls = (calls_t){.count = 0};
}

const seen_operand_t *call_operand(const seen_call_t *call, const char *role) {
  for (int i = 0; i < call->operands; i++)
    if (strcmp(call->operand[i].role, role) == 0)
      return &call->operand[i];
  return NULL;
}

const char *type_name(int type) {
  static const char *const names[] = {
      "float",  "double",  "half",     "int8",    "int32",
      "int8x4", "uint8",   "uint8x4",  "int8x32", "bfloat16",
      "int64",  "boolean", "fp8-e4m3", "fp8-e5m2"};
  return type >= 0 && type < (int)(sizeof names / sizeof *names) ? names[type]
                                                                 : "?";
}

// Counts windowed calls, or all calls: *out_all receives their number. Returns
// the number of those whose count is near a multiple of `steps`.
static int64_t calls_covered(const calls_t *calls, bool windowed, int64_t steps,
                             int64_t *out_all) {
  int64_t covered = 0;
  *out_all = 0;
  for (int i = 0; i < calls->count; i++) {
    const seen_call_t *call = &calls->call[i];
    if (call->is_query || (windowed && !call->spatial))
      continue;
    int64_t times = (call->count + steps / 2) / steps;
    int64_t off = call->count - times * steps;
    *out_all += call->count;
    if (times > 0 && 4 * (off < 0 ? -off : off) <= steps)
      covered += call->count;
  }
  return covered;
}

int64_t calls_steps(const calls_t *calls) {
  bool windowed = false;
  for (int i = 0; i < calls->count; i++)
    windowed |= !calls->call[i].is_query && calls->call[i].spatial;
  int64_t best = 1, best_covered = 0, enough = 0, all;
  for (int i = 0; i < calls->count; i++) {
    const seen_call_t *call = &calls->call[i];
    if (call->is_query || (windowed && !call->spatial))
      continue;
    int64_t covered = calls_covered(calls, windowed, call->count, &all);
    if (5 * covered >= 4 * all && call->count > enough)
      enough = call->count;
    if (covered > best_covered) {
      best_covered = covered;
      best = call->count;
    }
  }
  return enough ? enough : best;
}
