// SPDX-License-Identifier: Apache-2.0
// Proves what a run's bytes were for.
#include "tools/report/advice/cut.h"

#include <stdlib.h>
#include <string.h>

#include "tools/record/formula.h"
#include "tools/report/advice/sums.h"

int64_t cut_item(const json_t *operand, const char *list, int index) {
  return (int64_t)json_integer_value(
      json_array_get(json_object_get(operand, list), (size_t)index));
}

static int dims_of(const json_t *operand) {
  return (int)json_array_size(json_object_get(operand, "whole"));
}

static const char *name_at(const json_t *operand, int dim) {
  const char *name = json_string_value(
      json_array_get(json_object_get(operand, "names"), (size_t)dim));
  return name ? name : "";
}

int cut_dim(const json_t *operand, const char *name) {
  for (int d = 0; d < dims_of(operand); d++)
    if (strcmp(name_at(operand, d), name) == 0)
      return d;
  return -1;
}

// -1: a damaged record.
static int64_t bytes_of(const json_t *operand) {
  int64_t bytes = recorded_number(operand, "bytes");
  for (int d = 0; d < dims_of(operand); d++)
    if (__builtin_mul_overflow(bytes, cut_item(operand, "whole", d), &bytes) ||
        bytes > INT64_MAX / SDG_RANKS_MAX)
      return -1;
  return bytes;
}

static bool is_cut(const json_t *operand, int dim) {
  return cut_item(operand, "own", dim) != cut_item(operand, "whole", dim);
}

const json_t *cut_lead(const json_t *plan) {
  const json_t *first = NULL;
  size_t index;
  json_t *operand;
  json_array_foreach(json_object_get(plan, "operands"), index, operand) {
    bool output = json_is_true(json_object_get(operand, "output"));
    for (int d = 0; d < dims_of(operand) && output; d++)
      if (is_cut(operand, d))
        return operand;
    if (!first && dims_of(operand) > 0)
      first = operand;
  }
  return first;
}

// ---- how the run is cut ----------------------------------------------------

// Notes an operand; false if it is cut otherwise than those before.
static bool operand_note(cut_t *cut, const json_t *operand, int64_t *most) {
  for (int d = 0; d < dims_of(operand); d++) {
    if (!is_cut(operand, d))
      continue;
    const char *name = name_at(operand, d);
    if (!*name || (cut->dim && strcmp(cut->dim, name) != 0))
      return false;
    cut->dim = name;
    if (json_equal(json_object_get(operand, "own"),
                   json_object_get(operand, "extent")))
      cut->shard = true;
    if (bytes_of(operand) > *most) {
      *most = bytes_of(operand);
      cut->operand = operand;
    }
  }
  return true;
}

bool cut_find(const recorded_t *run, cut_t *out) {
  int64_t most = 0;
  *out = (cut_t){.run = run};
  // Other axes of the mesh are the program's own.
  if (run->found < run->ranks || run->ranks < 2 ||
      json_array_size(json_object_get(run->rank[0].facts, "mesh")) != 1)
    return false;
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++) {
      size_t index;
      json_t *operand;
      const json_t *plan = run->rank[r].plan[i].line;
      if (!json_object_get(plan, "strategy"))
        continue;
      json_array_foreach(json_object_get(plan, "operands"), index, operand) {
        if (!operand_note(out, operand, &most))
          return false;
      }
    }
  return out->dim != NULL;
}

// ---- what the bytes were for -----------------------------------------------

static bool is_complete(const recorded_t *run) {
  for (int r = 0; r < run->found; r++)
    if (!run->rank[r].totals || run->rank[r].full || run->rank[r].broken)
      return false;
  return true;
}

// Whether an output has one element in each dimension of space.
static bool is_number(const json_t *operand) {
  for (int d = 2; d < dims_of(operand); d++)
    if (cut_item(operand, "whole", d) != 1)
      return false;
  return true;
}

// Whether a call moves nothing however space is cut, sums apart.
static bool is_still(const json_t *plan) {
  const char *family = recorded_text(plan, "family");
  size_t index;
  json_t *operand;
  if (strcmp(recorded_text(plan, "strategy"), "whole") == 0 ||
      strcmp(family, "pointwise") == 0 || strcmp(family, "norm") == 0 ||
      strcmp(family, "softmax") == 0 ||
      strcmp(recorded_text(plan, "entry"), "cudnnConvolutionBackwardBias") == 0)
    return true;
  if (strcmp(family, "reduce") != 0)
    return false;
  json_array_foreach(json_object_get(plan, "operands"), index, operand) {
    if (json_is_true(json_object_get(operand, "output")) && !is_number(operand))
      return false;
  }
  return true;
}

static bool is_plan_of(const json_t *plan, const recorded_kind_t *kind) {
  return strcmp(recorded_text(plan, "entry"), kind->entry) == 0 &&
         strcmp(recorded_text(plan, "section"), kind->rule) == 0 &&
         strcmp(recorded_text(plan, "strategy"), kind->strategy) == 0;
}

// Whether all of a kind's calls have a formula, or move nothing.
static bool kind_known(const recorded_t *run, int kind, int64_t bytes) {
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++) {
      const recorded_plan_t *plan = &run->rank[r].plan[i];
      if (is_plan_of(plan->line, &run->kind[kind]) && plan->formula_bytes < 0 &&
          (bytes > 0 || !is_still(plan->line)))
        return false;
    }
  return true;
}

static bool is_in_pieces(const json_t *operand) {
  return !json_equal(json_object_get(operand, "own"),
                     json_object_get(operand, "whole"));
}

static void whole_add(cut_wholes_t *wholes, int64_t bytes) {
  if (bytes <= 0 || cut_is_whole(wholes, bytes))
    return;
  int64_t *more =
      realloc(wholes->bytes, ((size_t)wholes->count + 1) * sizeof *more);
  if (!more)
    return;
  wholes->bytes = more;
  wholes->bytes[wholes->count++] = bytes;
}

cut_wholes_t cut_wholes(const recorded_t *run, bool in_pieces) {
  cut_wholes_t wholes = {NULL, 0};
  for (int i = 0; i < run->rank[0].plans; i++) {
    size_t index;
    json_t *operand;
    json_array_foreach(json_object_get(run->rank[0].plan[i].line, "operands"),
                       index, operand) {
      if (dims_of(operand) > 0 && (!in_pieces || is_in_pieces(operand)))
        whole_add(&wholes, bytes_of(operand) * (run->ranks - 1));
    }
  }
  return wholes;
}

bool cut_is_whole(const cut_wholes_t *wholes, int64_t bytes) {
  for (int i = 0; i < wholes->count; i++)
    if (wholes->bytes[i] == bytes)
      return true;
  return false;
}

// What the ranks received in one fetch, or when the host read the first rank's
// values.
typedef struct fetch {
  int64_t bytes, least; // of all ranks; of those behind the first one
  int64_t first, most;
} fetch_t;

static void fetch_add(fetch_t *fetch, int rank, int64_t bytes) {
  fetch->bytes += bytes;
  if (rank == 0)
    fetch->first = bytes;
  else if (rank == 1)
    fetch->least = fetch->most = bytes;
  fetch->least = rank && bytes < fetch->least ? bytes : fetch->least;
  fetch->most = rank && bytes > fetch->most ? bytes : fetch->most;
}

// A small copy to the host gives every rank the first one's values; otherwise a
// whole tensor was completed. Tensors whose halos have been brought would be
// other bytes if another dimension were cut.
static bool fetch_known(const cut_wholes_t *wholes, const fetch_t *fetch) {
  enum { HOST_READ_BYTES = 4096 };
  bool of_first = fetch->first == 0 && fetch->least == fetch->most &&
                  fetch->most <= HOST_READ_BYTES;
  return fetch->bytes == 0 || of_first || cut_is_whole(wholes, fetch->bytes);
}

// Whether it is known what each fetch brought. They come in the same order on
// all ranks.
static bool fetches_known(const recorded_t *run, const cut_wholes_t *wholes,
                          int64_t fetched_bytes) {
  int at[SDG_RANKS_MAX] = {0};
  int64_t all = 0;
  for (bool more = true; more;) {
    fetch_t fetch = {0};
    more = false;
    for (int r = 0; r < run->found; r++) {
      const recorded_rank_t *rank = &run->rank[r];
      while (at[r] < rank->calls && rank->call[at[r]].number)
        at[r]++;
      if (at[r] == rank->calls)
        continue;
      fetch_add(&fetch, r, rank->call[at[r]++].received_bytes);
      more = true;
    }
    if (!fetch_known(wholes, &fetch))
      return false;
    all += fetch.bytes;
  }
  return all == fetched_bytes;
}

bool cut_prove(cut_t *cut) {
  const recorded_t *run = cut->run;
  if (!is_complete(run))
    return false;
  for (int k = 0; k < run->kinds; k++) {
    const recorded_kind_t *kind = &run->kind[k];
    int64_t bytes = 0;
    for (int r = 0; r < run->found; r++)
      bytes += sums_rank(run, &run->rank[r], k).received_bytes;
    cut->received_bytes += bytes;
    // Of calls that launches of CUDA graphs make, no lines tell what they need.
    if (strncmp(kind->entry, "cudaGraphLaunch", 15) == 0 ||
        strcmp(kind->strategy, "replay") == 0 ||
        strcmp(kind->strategy, "failed") == 0 ||
        strcmp(kind->strategy, "unknown") == 0)
      return false;
    if (strcmp(kind->strategy, "update") == 0)
      cut->fetched_bytes += bytes;
    else if (strcmp(kind->strategy, "from the first rank") == 0)
      cut->first_bytes += bytes;
    else if (!kind_known(run, k, bytes))
      return false;
    else
      cut->halo_bytes += bytes;
  }
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++) {
      const recorded_plan_t *plan = &run->rank[r].plan[i];
      if (plan->formula_bytes > 0)
        cut->formula_bytes += plan->formula_bytes * plan->calls;
    }
  if (cut->halo_bytes <= 0 ||
      (cut->shard ? cut->halo_bytes != cut->formula_bytes
                  : cut->halo_bytes > cut->formula_bytes))
    return false;
  cut_wholes_t wholes = cut_wholes(run, false);
  bool known = fetches_known(run, &wholes, cut->fetched_bytes);
  free(wholes.bytes);
  return known;
}
