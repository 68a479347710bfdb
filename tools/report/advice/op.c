// SPDX-License-Identifier: Apache-2.0
// Whole view: advises `op = *`, where every rank makes ops in full because no
// section names them. A few more words might do harm: results that are whole
// now would be in pieces for the ops that are still left out.
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/advice/advisers.h"
#include "tools/report/advice/cut.h"
#include "tools/report/advice/place.h"
#include "tools/report/advice/said.h"

// Ops that need nothing, or little, but the rank's own piece of what they read.
static const struct {
  const char *entry, *word;
} local[] = {
    {"cudnnActivation", "pointwise"},    {"cudnnAddTensor", "pointwise"},
    {"cudnnOpTensor", "pointwise"},      {"cudnnScaleTensor", "pointwise"},
    {"cudnnBatchNormalization", "norm"}, {"cudnnNormalization", "norm"},
    {"cudnnSoftmax", "softmax"},         {"cudnnPooling", "pool"},
};

static const char *word_of(const char *entry) {
  for (size_t i = 0; i < sizeof local / sizeof *local; i++)
    if (strncmp(entry, local[i].entry, strlen(local[i].entry)) == 0)
      return local[i].word;
  return NULL;
}

// Whether the words have one for the entry: then it is its extents that no
// section matches.
static bool names(const char *words, const char *word, const char *entry) {
  for (const char *at = words; *at;) {
    size_t bytes = strcspn(at, " \t,");
    char *glob = strndup(at, bytes);
    bool found = glob && *glob &&
                 (fnmatch(glob, word, 0) == 0 || fnmatch(glob, entry, 0) == 0);
    free(glob);
    if (found)
      return true;
    at += bytes;
    at += strspn(at, " \t,");
  }
  return false;
}

// What was fetched for calls of one entry that no section matches.
typedef struct fetched {
  int64_t bytes, most; // of all fetches, and of one
  bool whole;          // each fetch brought a tensor that a section has cut
} fetched_t;

static fetched_t fetched_of(const recorded_t *run, const cut_wholes_t *wholes,
                            int kind) {
  fetched_t fetched = {0, 0, true};
  int at[SDG_RANKS_MAX] = {0};
  for (bool more = true; more;) {
    int64_t bytes = 0;
    more = false;
    for (int r = 0; r < run->found; r++) {
      const recorded_rank_t *rank = &run->rank[r];
      while (at[r] < rank->calls &&
             (rank->call[at[r]].number || rank->call[at[r]].kind != kind ||
              rank->call[at[r]].plan >= 0))
        at[r]++;
      if (at[r] == rank->calls)
        continue;
      bytes += rank->call[at[r]++].received_bytes;
      more = true;
    }
    fetched.bytes += bytes;
    fetched.most = bytes > fetched.most ? bytes : fetched.most;
    fetched.whole &= bytes == 0 || cut_is_whole(wholes, bytes);
  }
  return fetched;
}

// The bytes that windows need, and have because a call in full left them here.
static int64_t at_hand(const recorded_t *run) {
  int64_t bytes = 0;
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].calls; i++) {
      const recorded_call_t *call = &run->rank[r].call[i];
      int64_t need = call->number && call->plan >= 0
                         ? run->rank[r].plan[call->plan].formula_bytes
                         : -1;
      bytes += need > call->received_bytes ? need - call->received_bytes : 0;
    }
  return bytes;
}

// Appends text, and frees the one before.
static char *append(char *before, const char *between, const char *more) {
  char *text =
      before ? said_text("%s%s%s", before, *before ? between : "", more) : NULL;
  free(before);
  return text;
}

void advise_op(const recorded_t *run, json_t *list) {
  cut_t cut;
  place_t place;
  int64_t bytes = 0, most = 0;
  if (!cut_find(run, &cut) || cut.shard || !place_find_all(run, &place) ||
      place.sections > 1 ||
      place_has(recorded_text(run->rank[0].facts, "rules_text"), "local"))
    return;
  char *words = place_value(&place, 0, "op"), *entries = said_text("%s", "");
  cut_wholes_t wholes = cut_wholes(run, true);
  for (int k = 0; k < run->kinds && words; k++) {
    const recorded_kind_t *kind = &run->kind[k];
    const char *word = word_of(kind->entry);
    if (!word || strcmp(kind->strategy, "update") != 0)
      continue;
    fetched_t fetched = fetched_of(run, &wholes, k);
    if (!fetched.bytes || !fetched.whole || names(words, word, kind->entry))
      continue;
    entries = append(entries, ", ", kind->entry);
    bytes += fetched.bytes;
    most = fetched.most > most ? fetched.most : most;
  }
  // Windows may fetch what they have at hand now, and the program a result.
  if (bytes > at_hand(run) + most)
    (void)said_add(
        list,
        &(said_t){
            .about = "op",
            .text = said_text("`op` leaves out %s, so that every rank "
                              "makes these calls in full, on tensors "
                              "that are fetched whole. With all ops, "
                              "results stay in pieces.",
                              entries ? entries : ""),
            .line = place_line(&place, "op", "*"),
            .where = place_where(&place, "op"),
            .effect = said_text(
                "The ranks share these calls, for which they received %" PRId64
                " bytes. What cannot be shared, and reads their results, then "
                "fetches these.",
                bytes),
            .sections = place_sections(&place)});
  free(wholes.bytes);
  free(words);
  free(entries);
}
