// SPDX-License-Identifier: Apache-2.0
// Chooses a split and writes it down as a rules file.
#include "tools/draft/draft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/draft/function.h"

const char *view_name(sdg_view_t view) {
  return view == SDG_VIEW_SHARD ? "shard" : "whole";
}

// Whether it splits what programs usually split themselves: samples, or heads
// with their weights.
static bool is_usual(const candidate_t *candidate) {
  for (int i = 0; i < candidate->splits; i++)
    if (candidate->split[i].dim == SDG_DIM_N ||
        candidate->split[i].dim == SDG_DIM_HEADS)
      return true;
  return false;
}

static bool same_dims(const candidate_t *a, const candidate_t *b) {
  bool same = a->splits == b->splits;
  for (int i = 0; same && i < a->splits; i++)
    same =
        a->split[i].dim == b->split[i].dim && a->split[i].of == b->split[i].of;
  return same;
}

// Smaller is better, field by field.
static bool is_better(const candidate_t *a, const candidate_t *b) {
  bool a_usual = is_usual(a), b_usual = is_usual(b);
  if (a->unused != b->unused)
    return a->unused < b->unused;
  if ((a->faults > 0) != (b->faults > 0))
    return a->faults == 0;
  if (a->named != b->named)
    return a->named > b->named;
  if (a->splits != b->splits)
    return a->splits > b->splits;
  if (a_usual != b_usual)
    return b_usual;
  if (a->view != b->view && (a->faults == 0 || a->faults == b->faults))
    return a->view == SDG_VIEW_SHARD;
  if (a->faults != b->faults)
    return a->faults < b->faults;
  if (a->aside != b->aside)
    return a->aside < b->aside;
  // The outer dimension comes first, because its halos are contiguous; then
  // fewer ranks.
  return !same_dims(a, b) && 2 * a->step_bytes < b->step_bytes;
}

bool draft_is_of(const candidate_t *candidate, sdg_dim_t dim) {
  return dim == SDG_DIM_COUNT ||
         (candidate->splits == 1 && candidate->split[0].dim == dim);
}

const candidate_t *draft_choose(const candidate_t *candidates, int count,
                                sdg_dim_t dim, sdg_view_t view) {
  const candidate_t *best = NULL;
  for (int i = 0; i < count; i++)
    if (candidate_is_useful(&candidates[i]) && candidates[i].fatal == 0 &&
        draft_is_of(&candidates[i], dim) &&
        (view == SDG_VIEW_UNSAID || view == candidates[i].view) &&
        (!best || is_better(&candidates[i], best)))
      best = &candidates[i];
  return best;
}

enum { INDENT = 3, WIDTH = 78, LINE_MOST = 150 };

// Writes a word of a comment, on a new line if the line would become too long.
// Lines of rules files have a limit, words of a program have none.
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
  char name[CANDIDATE_NAME_BYTES];
  fprintf(file, "; Drafted by `sundog inspect` from one run of\n;  ");
  for (int column = INDENT; *words; words++)
    word_write(file, *words, &column);
  fprintf(file,
          "\n; Use: sundog run -n %d --rules THIS-FILE -- PROGRAM, each rank "
          "with %s.\n; Sections are tried in order; `man 7 sundog` lists the "
          "keys.\n;\n; Splits that were examined in the %s view (halo: what "
          "all ranks receive in one\n; step):\n",
          chosen->ranks,
          chosen->view == SDG_VIEW_SHARD ? "its own\n; piece of the input"
                                         : "the\n; same input, all of it",
          view_name(chosen->view));
  for (int i = 0; i < count; i++) {
    const candidate_t *c = &candidates[i];
    if (!c->possible || c->view != chosen->view || c->unused > chosen->unused)
      continue;
    fprintf(file, ";   %s over %d ranks: halo %.3f MB, ",
            candidate_name(c, name, sizeof name), c->ranks,
            (double)c->step_bytes / 1e6);
    for (int k = 0; k < c->splits; k++)
      fprintf(file, "%s%" PRId64 " or more %s", k ? ", " : "",
              c->split[k].smallest, sdg_dim_name(c->split[k].dim));
    fprintf(file, " per rank, ");
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

// Writes the place of a product's factor that has the dimensions `dims` besides
// BATCH.
static void factor_write(FILE *file, char name, const char *dims,
                         const char *split, const char *axes) {
  if (strlen(split) > 1 || strchr(dims, *split))
    fprintf(file, "%c = %s:%s\n", name, split, axes);
  else
    fprintf(file, "%c = replicated\n", name);
}

// Writes the sections of attention, and of the tensors and products that have
// its tokens.
static void companions_write(FILE *file, const candidate_t *c) {
  fprintf(
      file,
      "; Tokens are recognised by their number: a tensor with one dimension as "
      "long as\n; the sequences of attention is split there.\n");
  for (int i = 0; i < c->companions; i++) {
    const companion_t *section = &c->companion[i];
    fprintf(file, "\n[shard tokens-%d]\nmatch = %s\nsplit = %s:%s\n%s", i + 1,
            section->match, section->split, c->split[0].axes,
            view_line(c->view));
    if (section->is_graph && c->view == SDG_VIEW_SHARD)
      fprintf(file,
              "strategy = auto        ; or halo, ring, heads; bytes above "
              "are those of halo\n");
    if (*section->window)
      fprintf(file, "window = %s\n", section->window);
    if (section->is_product && c->view == SDG_VIEW_SHARD) {
      fprintf(file, "sizes = piece          ; so are the sizes of calls\n");
      factor_write(file, 'a', "MK", section->split, c->split[0].axes);
      factor_write(file, 'b', "KN", section->split, c->split[0].axes);
    }
  }
  if (c->has_local)
    fprintf(file, "\n[local rest]\n; windowed calls on tensors without tokens, "
                  "which belong to each rank alone\n");
}

// Writes the split dimensions, each with a prefix and its axes.
static void dims_write(FILE *file, const candidate_t *c, int set,
                       const char *key) {
  bool first = true;
  fprintf(file, "%s =", key);
  for (int i = 0; i < c->splits; i++) {
    const candidate_split_t *split = &c->split[i];
    if (!(set >> i & 1))
      continue;
    if (strcmp(key, "match") == 0)
      fprintf(file, " %s>=%" PRId64, sdg_dim_name(split->dim),
              c->least[set][i]);
    else
      fprintf(file, "%s%s:%s", first ? " " : ", ", sdg_dim_name(split->dim),
              split->axes);
    first = false;
  }
}

// Writes the section of tensors that have exactly these split dimensions.
// Sections with more dimensions come first, because the patterns of the others
// match these tensors too.
static void field_write(FILE *file, const candidate_t *c, int set, int number) {
  fprintf(file, "\n[shard field");
  if (number > 1)
    fprintf(file, "-%d", number);
  fprintf(file, "]\n");
  for (int i = 0; i < c->splits; i++)
    if (set >> i & 1)
      fprintf(file, "; the shortest %s that is split was %" PRId64 "\n",
              sdg_dim_name(c->split[i].dim), c->least[set][i]);
  dims_write(file, c, set, "match");
  fputc('\n', file);
  dims_write(file, c, set, "split");
  fputs(c->split[0].of ? "\n" : "        ; one axis with all ranks\n", file);
  fputs(view_line(c->view), file);
  if (c->view == SDG_VIEW_SHARD)
    fprintf(file,
            "parts = agree          ; the sizes that the ranks' pieces have\n");
  if (c->global_pool)
    fprintf(file, "window = global        ; pooling over the whole extent\n");
}

static void fields_write(FILE *file, const candidate_t *c) {
  int number = 0;
  for (int bits = c->splits; bits > 0; bits--)
    for (int set = 1; set < 1 << c->splits; set++)
      if (c->has_set[set] && __builtin_popcount((unsigned)set) == bits)
        field_write(file, c, set, ++number);
}

static void mesh_write(FILE *file, const sdg_mesh_t *mesh,
                       const candidate_t *c) {
  sdg_axes_t used = 0;
  const char *same = "same =";
  for (int i = 0; i < c->splits; i++)
    used |= c->split[i].of;
  fprintf(file, "\n[mesh]\n");
  for (int a = 0; a < mesh->axes; a++)
    fprintf(file, "%s = %d\n", mesh->name[a], mesh->size[a]);
  for (int a = 0; a < mesh->axes; a++)
    if (!(used >> a & 1)) {
      fprintf(file, "%s %s", same, mesh->name[a]);
      same = "";
    }
  if (c->unused)
    fprintf(file, "       ; no section splits over it: its ranks compute the "
                  "same\n");
}

// Writes how the input must be cut so that sizes add up.
static void alignment_write(FILE *file, const candidate_t *c) {
  for (int i = 0; i < c->splits; i++)
    if (c->split[i].align > 1)
      fprintf(file,
              "; Cut %s of the input with `sundog split --parts even/%" PRId64
              "`: only then the\n; sizes of all outputs add up.\n",
              sdg_dim_name(c->split[i].dim), c->split[i].align);
}

static void section_write(FILE *file, const candidate_t *c,
                          const sdg_mesh_t *mesh) {
  char name[CANDIDATE_NAME_BYTES];
  for (int i = 0; i < c->faults; i++) {
    char text[CANDIDATE_FAULT_BYTES + 32];
    snprintf(text, sizeof text, "conflict: %s", c->fault[i]);
    comment_write(file, text);
  }
  alignment_write(file, c);
  if (c->in_full)
    fprintf(file,
            "; %d distinct call%s no rule in this version: every rank carries "
            "out all of\n; %s.\n",
            c->in_full, c->in_full > 1 ? "s have" : " has",
            c->in_full > 1 ? "them" : "it");
  if (c->aside)
    fprintf(file,
            "; Every rank carries out %d distinct call%s of attention and "
            "products of matrices in full.\n",
            c->aside, c->aside > 1 ? "s" : "");
  if (c->asks_sizes)
    fprintf(
        file,
        "; Sizes of outputs add up because the program asks cuDNN for them.\n");
  if (mesh)
    mesh_write(file, mesh, c);
  if (c->companions) {
    companions_write(file, c);
    return;
  }
  fields_write(file, c);
  if (c->has_local)
    fprintf(file,
            "\n[local rest]\n; windowed calls on tensors without a %s to "
            "split, which belong to each rank alone\n",
            candidate_name(c, name, sizeof name));
}

static sdg_status_t file_close(FILE *file, const char *path) {
  bool bad = ferror(file) != 0;
  return fclose(file) != 0 || bad
             ? sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno))
             : SDG_OK;
}

sdg_status_t draft_write(const char *path, const candidate_t *candidates,
                         int count, const candidate_t *chosen,
                         const sdg_mesh_t *mesh, const calls_t *calls,
                         char *const *words) {
  FILE *file = fopen(path, "we");
  if (!file)
    return sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno));
  head_write(file, candidates, count, chosen, words);
  section_write(file, chosen, mesh);
  functions_write_sections(file, calls);
  return file_close(file, path);
}

sdg_status_t draft_write_functions(const char *path, const calls_t *calls,
                                   sdg_dim_t dim, sdg_view_t view,
                                   char *const *words) {
  FILE *file = fopen(path, "we");
  if (!file)
    return sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno));
  fprintf(file, "; Drafted by `sundog inspect` from one run of\n;  ");
  for (int column = INDENT; *words; words++)
    word_write(file, *words, &column);
  fprintf(file,
          "\n; It made no call of cuDNN that could be split: only tensors of "
          "functions are.\n");
  functions_write_sections(file, calls);
  fprintf(file, "\n[shard field]\nop = function\nsplit = %s\n%s",
          sdg_dim_name(dim), view_line(view));
  return file_close(file, path);
}
