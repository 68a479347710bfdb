// SPDX-License-Identifier: Apache-2.0
// Groups the split operands of all plans by their placement.
#include "tools/report/pieces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/record/formula.h"

static bool is_split(const json_t *operand) {
  const json_t *whole = json_object_get(operand, "whole");
  return whole && !json_equal(whole, json_object_get(operand, "own"));
}

static char *key_of(const json_t *operand) {
  char *text = NULL,
       *whole = json_dumps(json_object_get(operand, "whole"), JSON_COMPACT);
  if (whole &&
      asprintf(&text, "%s %s %lld", whole, recorded_text(operand, "split"),
               (long long)recorded_number(operand, "bytes")) < 0)
    text = NULL;
  free(whole);
  return text;
}

static int64_t product_of(const json_t *list) {
  int64_t product = 1;
  size_t index;
  json_t *number;
  json_array_foreach(list, index, number) product *=
      (int64_t)json_integer_value(number);
  return product;
}

static json_t *class_make(const json_t *operand) {
  return json_pack("{s:O,s:O,s:s,s:O,s:I,s:I,s:{},s:[]}", "names",
                   json_object_get(operand, "names"), "whole",
                   json_object_get(operand, "whole"), "split",
                   recorded_text(operand, "split"), "element_bytes",
                   json_object_get(operand, "bytes"), "bytes",
                   (json_int_t)(product_of(json_object_get(operand, "whole")) *
                                recorded_number(operand, "bytes")),
                   "calls", (json_int_t)0, "entries", "pieces");
}

// Returns the piece of this rank in a class, new or known.
static json_t *piece_of(json_t *class, const json_t *operand, int rank) {
  json_t *pieces = json_object_get(class, "pieces"), *piece;
  size_t index;
  json_array_foreach(pieces, index, piece) {
    if (recorded_number(piece, "rank") == rank)
      return piece;
  }
  json_t *own = json_object_get(operand, "own"), *low = json_array(),
         *high = json_array();
  for (size_t d = 0; d < json_array_size(own); d++) {
    (void)json_array_append_new(low, json_integer(0));
    (void)json_array_append_new(high, json_integer(0));
  }
  piece = json_pack(
      "{s:i,s:O,s:O,s:I,s:o,s:o,s:I,s:{}}", "rank", rank, "first",
      json_object_get(operand, "first"), "extent", own, "bytes",
      (json_int_t)(product_of(own) * recorded_number(operand, "bytes")),
      "halo_low", low, "halo_high", high, "received_bytes", (json_int_t)0,
      "neighbours");
  (void)json_array_append_new(pieces, piece);
  return piece;
}

static void largest_set(json_t *list, int index, int64_t number) {
  if (number > (int64_t)json_integer_value(json_array_get(list, (size_t)index)))
    (void)json_array_set_new(list, (size_t)index, json_integer(number));
}

// Widens the halo to what this call needs.
static void halo_note(json_t *piece, const formula_need_t *f) {
  for (int d = 0; d < f->own.dims; d++) {
    largest_set(json_object_get(piece, "halo_low"), d,
                f->own.dim[d].lo - f->need.dim[d].lo);
    largest_set(json_object_get(piece, "halo_high"), d,
                f->need.dim[d].hi - f->own.dim[d].hi);
  }
}

static void neighbours_note(json_t *piece, const recorded_plan_t *plan) {
  json_t *all = json_object_get(piece, "neighbours"), *message;
  size_t index;
  json_array_foreach(json_object_get(plan->line, "messages"), index, message) {
    char rank[24];
    if (json_is_true(json_object_get(message, "send")))
      continue;
    snprintf(rank, sizeof rank, "%lld",
             (long long)recorded_number(message, "rank"));
    (void)json_object_set_new(
        all, rank,
        json_integer(recorded_number(all, rank) +
                     recorded_number(message, "bytes") * plan->calls));
  }
}

static void operand_note(json_t *class, const json_t *operand,
                         const recorded_plan_t *plan, int rank) {
  json_t *piece = piece_of(class, operand, rank),
         *entries = json_object_get(class, "entries");
  const char *entry = recorded_text(plan->line, "entry");
  formula_need_t f;
  (void)json_object_set_new(
      entries, entry,
      json_integer(recorded_number(entries, entry) + plan->calls));
  (void)json_object_set_new(
      class, "calls",
      json_integer(recorded_number(class, "calls") + plan->calls));
  if (!formula_need(plan->line, &f) || f.operand != operand)
    return;
  halo_note(piece, &f);
  neighbours_note(piece, plan);
  (void)json_object_set_new(
      piece, "received_bytes",
      json_integer(recorded_number(piece, "received_bytes") +
                   plan->formula_bytes * plan->calls));
}

static sdg_status_t rank_note(json_t *classes, const recorded_rank_t *rank) {
  for (int i = 0; i < rank->plans; i++) {
    size_t index;
    json_t *operand;
    // A query has no strategy, and moves nothing.
    if (!json_object_get(rank->plan[i].line, "strategy"))
      continue;
    json_array_foreach(json_object_get(rank->plan[i].line, "operands"), index,
                       operand) {
      char *key = is_split(operand) ? key_of(operand) : NULL;
      if (!key)
        continue;
      json_t *class = json_object_get(classes, key);
      if (!class) {
        class = class_make(operand);
        (void)json_object_set_new(classes, key, class);
      }
      free(key);
      if (!class)
        return sdg_fail(SDG_E_NO_MEMORY, "the report's tensors");
      operand_note(class, operand, &rank->plan[i], rank->rank);
    }
  }
  return SDG_OK;
}

static int by_bytes(const void *a, const void *b) {
  int64_t p = recorded_number(*(json_t *const *)a, "bytes"),
          q = recorded_number(*(json_t *const *)b, "bytes");
  return (p < q) - (p > q);
}

json_t *pieces_make(const recorded_t *run) {
  json_t *classes = json_object(), *list = json_array(), *class;
  sdg_status_t status = SDG_OK;
  const char *key;
  for (int r = 0; r < run->found && status == SDG_OK; r++)
    status = rank_note(classes, &run->rank[r]);
  size_t count = json_object_size(classes), at = 0;
  json_t **order = calloc(count + 1, sizeof(json_t *));
  if (order)
    json_object_foreach(classes, key, class) order[at++] = class;
  if (order)
    qsort(order, at, sizeof *order, by_bytes);
  for (size_t i = 0; i < at; i++)
    (void)json_array_append(list, order[i]);
  free(order);
  json_decref(classes);
  return list;
}
