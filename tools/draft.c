// SPDX-License-Identifier: Apache-2.0
// Chooses a split and writes it down as a rules file.
#include "tools/draft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *view_name(sdg_view_t view) {
  return view == SDG_VIEW_SHARD ? "shard" : "whole";
}

// Smaller is better, field by field.
static bool is_better(const candidate_t *a, const candidate_t *b) {
  bool a_batch = a->dim == SDG_DIM_N, b_batch = b->dim == SDG_DIM_N;
  if ((a->faults > 0) != (b->faults > 0))
    return a->faults == 0;
  if (a_batch != b_batch)
    return b_batch;
  if (a->view != b->view && (a->faults == 0 || a->faults == b->faults))
    return a->view == SDG_VIEW_SHARD;
  if (a->faults != b->faults)
    return a->faults < b->faults;
  if (a->aside != b->aside)
    return a->aside < b->aside;
  // The outer dimension, of which halos are contiguous, and fewer ranks come
  // first.
  return a->dim != b->dim && 2 * a->step_bytes < b->step_bytes;
}

const candidate_t *draft_choose(const candidate_t *candidates, int count,
                                sdg_dim_t dim, sdg_view_t view) {
  const candidate_t *best = NULL;
  for (int i = 0; i < count; i++)
    if (candidates[i].possible && candidates[i].gains > 0 &&
        candidates[i].fatal == 0 &&
        (dim == SDG_DIM_COUNT || dim == candidates[i].dim) &&
        (view == SDG_VIEW_UNSAID || view == candidates[i].view) &&
        (!best || is_better(&candidates[i], best)))
      best = &candidates[i];
  return best;
}

enum { INDENT = 3, WIDTH = 78, LINE_MOST = 150 };

// A word of a comment, on a further line where it would pass the width. Lines
// of rules files have a limit, words of programs have none.
static void word_write(FILE *file, const char *word, int *column) {
  int length = (int)strlen(word);
  if (*column + 1 + length > WIDTH && *column > INDENT) {
    fprintf(file, "\n;  ");
    *column = INDENT;
  }
  fputc(' ', file);
  ++*column;
  for (; *word; word++, ++*column) {
    if (*column == LINE_MOST) {
      fprintf(file, "\n;   ");
      *column = INDENT + 1;
    }
    fputc((unsigned char)*word < ' ' ? '?' : *word, file);
  }
}

static void comment_write(FILE *file, const char *text) {
  char copy[CANDIDATE_FAULT_BYTES + 32];
  int column = 1;
  snprintf(copy, sizeof copy, "%s", text);
  fputc(';', file);
  for (char *rest, *word = strtok_r(copy, " ", &rest); word;
       word = strtok_r(NULL, " ", &rest))
    word_write(file, word, &column);
  fputc('\n', file);
}

static void head_write(FILE *file, const candidate_t *candidates, int count,
                       const candidate_t *chosen, char *const *words) {
  fprintf(file, "; Drafted by `sundog inspect` from one run of\n;  ");
  for (int column = INDENT; *words; words++)
    word_write(file, *words, &column);
  fprintf(file,
          "\n; Use: sundog run -n %d --rules THIS-FILE -- PROGRAM, each rank "
          "with %s.\n; Sections are tried in order; `man 7 sundog` lists the "
          "keys.\n;\n; Splits that were looked at in the %s view (halo: what "
          "all ranks receive in one\n; step):\n",
          chosen->ranks,
          chosen->view == SDG_VIEW_SHARD ? "its own\n; piece of the input"
                                         : "the\n; same input, all of it",
          view_name(chosen->view));
  for (int i = 0; i < count; i++) {
    const candidate_t *c = &candidates[i];
    if (!c->possible || c->view != chosen->view)
      continue;
    fprintf(file,
            ";   %s over %d ranks: halo %.3f MB, %" PRId64
            " or more %s per rank, ",
            sdg_dim_name(c->dim), c->ranks, (double)c->step_bytes / 1e6,
            c->smallest, sdg_dim_name(c->dim));
    if (c->faults)
      fprintf(file, "%d conflict%s\n", c->faults, c->faults > 1 ? "s" : "");
    else
      fprintf(file, "no conflict\n");
  }
}

static const char *view_line(sdg_view_t view) {
  return view == SDG_VIEW_SHARD
             ? "view = shard           ; each rank's tensors are its own "
               "piece\n"
             : "view = whole           ; each rank's tensors are the whole, "
               "and it computes a\n                       ; piece\n";
}

// Where a factor of a product is that has these dimensions beside BATCH.
static void factor_write(FILE *file, char name, const char *dims,
                         const char *split) {
  bool has = strlen(split) > 1 || strchr(dims, *split);
  fprintf(file, has ? "%c = %s:ranks\n" : "%c = replicated\n", name, split);
}

// Attention, and by their extents what goes along with it.
static void companions_write(FILE *file, const candidate_t *c) {
  fprintf(file, "; Tokens are told by their number: what has one dimension as "
                "long as the\n; sequences of attention is split there.\n");
  for (int i = 0; i < c->companions; i++) {
    const companion_t *section = &c->companion[i];
    fprintf(file, "\n[shard tokens-%d]\nmatch = %s\nsplit = %s:ranks\n%s",
            i + 1, section->match, section->split, view_line(c->view));
    if (*section->window)
      fprintf(file, "window = %s\n", section->window);
    if (section->is_product && c->view == SDG_VIEW_SHARD) {
      fprintf(file, "sizes = piece          ; so are the sizes of calls\n");
      factor_write(file, 'a', "MK", section->split);
      factor_write(file, 'b', "KN", section->split);
    }
  }
  if (c->has_local)
    fprintf(file, "\n[local rest]\n; windowed calls on tensors without tokens: "
                  "every rank's own\n");
}

static void section_write(FILE *file, const candidate_t *c) {
  const char *dim = sdg_dim_name(c->dim);
  for (int i = 0; i < c->faults; i++) {
    char text[CANDIDATE_FAULT_BYTES + 32];
    snprintf(text, sizeof text, "conflict: %s", c->fault[i]);
    comment_write(file, text);
  }
  if (c->align > 1)
    fprintf(file,
            "; Cut the input with `sundog split --dim %s --parts even/%" PRId64
            "`: only then the\n; sizes of all outputs add up.\n",
            dim, c->align);
  if (c->in_full)
    fprintf(file,
            "; %d distinct call%s no rule in this version: every rank carries "
            "out all of\n; %s.\n",
            c->in_full, c->in_full > 1 ? "s have" : " has",
            c->in_full > 1 ? "them" : "it");
  if (c->aside)
    fprintf(file,
            "; %d distinct call%s of attention and products of matrices every "
            "rank makes in full.\n",
            c->aside, c->aside > 1 ? "s" : "");
  if (c->asks_sizes)
    fprintf(file, "; Sizes of outputs add up since the program asks cuDNN for "
                  "them.\n");
  if (c->companions) {
    companions_write(file, c);
    return;
  }
  fprintf(file,
          "\n[shard field]\n"
          "; the shortest %s that is split was %" PRId64 "\n"
          "match = %s>=%" PRId64 "\n"
          "split = %s:ranks        ; one axis with all ranks\n",
          dim, c->least, dim, c->least, dim);
  fputs(view_line(c->view), file);
  if (c->view == SDG_VIEW_SHARD)
    fprintf(file,
            "parts = agree          ; the sizes that the ranks' pieces have\n");
  if (c->global_pool)
    fprintf(file, "window = global        ; pooling over the whole extent\n");
  if (c->has_local)
    fprintf(file,
            "\n[local rest]\n; windowed calls on tensors without a %s to "
            "split: every rank's own\n",
            dim);
}

sdg_status_t draft_write(const char *path, const candidate_t *candidates,
                         int count, const candidate_t *chosen,
                         char *const *words) {
  FILE *file = fopen(path, "we");
  if (!file)
    return sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno));
  head_write(file, candidates, count, chosen, words);
  section_write(file, chosen);
  bool bad = ferror(file) != 0;
  if (fclose(file) != 0 || bad)
    return sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno));
  return SDG_OK;
}
