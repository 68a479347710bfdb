// SPDX-License-Identifier: Apache-2.0
// Random attention, forward, backward and as one operation, in pieces, against
// loops in double precision: masks, lengths, biases, groups of heads.
//
// usage: attention LETTERS FIRST COUNT [WORD]...
//   LETTERS    of what is cut: B (batch), H (heads) or S (sequences): with
//              LAYER_VIEW=shard each rank (SUNDOG_RANK of SUNDOG_SIZE) has its
//              piece of it. Two of them, as HS: the second is split over pairs
//              of ranks that follow one another
//   FIRST      seed of the first case; COUNT: how many
//   forward, backward, one                 of this kind only
//   new, old, shuffled                     operations in this order only
//   half, bfloat16, float                  of this type only
//   none, causal, bottom, right, left, band, band_bottom
//                                          with this mask only
//   whole, lengths                         without, with lengths only
//   bias       with a bias, in pieces of sequences, too
//   same_keys, same_queries
//              these have whole sequences on every rank, and tags that say so
//   long       each rank has the lengths of whole sequences, not of its piece
//   columns    split, and it has the columns of a rank's keys and all rows
//   blocks     split, and it has these columns and the rows of its queries
//   hopper     what has an engine on an H100
//   split      what sundog splits
//   all        nothing may be refused
//   shared     one head of keys for all queries, which is tagged as whole
//   blind      rows may see no key
//   made       inputs are results of cudnnTransformTensor
//   same       forward: values are the same tensor as queries
//   list       prints a line for each case
// Graphs are those of this rank's piece: its extents, also where bounds are
// counted from the bottom; its part of a bias (attention.h); what it has of
// each length, or all of that. Prints how many are right, refused
// (CUDNN_STATUS_NOT_SUPPORTED and its kin) and wrong, and fails if any is wrong
// or none is right.
#include "tests/clients/graphs/attention/attention.h"

asked_t asked = {
    .kind = -1, .order = -1, .type = -1, .mask = -1, .lengths = -1};

static bool lists, wants_all;
static double worst; // as a part of what is allowed

static const struct {
  const char *text;
  int *of, value;
} words_known[] = {{"forward", &asked.kind, FORWARD},
                   {"backward", &asked.kind, BACKWARD},
                   {"one", &asked.kind, ONE},
                   {"new", &asked.order, NEW},
                   {"old", &asked.order, OLD},
                   {"shuffled", &asked.order, SHUFFLED},
                   {"half", &asked.type, 0},
                   {"bfloat16", &asked.type, 1},
                   {"float", &asked.type, 2},
                   {"none", &asked.mask, MASK_NONE},
                   {"causal", &asked.mask, MASK_CAUSAL},
                   {"bottom", &asked.mask, MASK_CAUSAL_BOTTOM},
                   {"right", &asked.mask, MASK_RIGHT},
                   {"left", &asked.mask, MASK_CAUSAL_LEFT},
                   {"band", &asked.mask, MASK_BAND},
                   {"band_bottom", &asked.mask, MASK_BAND_BOTTOM},
                   {"whole", &asked.lengths, 0},
                   {"lengths", &asked.lengths, 1}};

static void word_read(const char *word) {
  bool is_known = true;
  if (strcmp(word, "bias") == 0)
    asked.bias = true;
  else if (strcmp(word, "same_keys") == 0)
    asked.same_keys = true;
  else if (strcmp(word, "same_queries") == 0)
    asked.same_queries = true;
  else if (strcmp(word, "long") == 0)
    asked.long_lengths = true;
  else if (strcmp(word, "columns") == 0)
    asked.columns = true;
  else if (strcmp(word, "blocks") == 0)
    asked.blocks = true;
  else if (strcmp(word, "split") == 0)
    asked.split = true;
  else if (strcmp(word, "hopper") == 0)
    asked.for_hopper = true;
  else if (strcmp(word, "shared") == 0)
    asked.shared = true;
  else if (strcmp(word, "blind") == 0)
    asked.blind = true;
  else if (strcmp(word, "made") == 0)
    asked.made = true;
  else if (strcmp(word, "same") == 0)
    asked.same = true;
  else if (strcmp(word, "list") == 0)
    lists = true;
  else if (strcmp(word, "all") == 0)
    wants_all = true;
  else
    is_known = false;
  for (size_t i = 0; i < sizeof words_known / sizeof *words_known; i++)
    if (strcmp(word, words_known[i].text) == 0) {
      *words_known[i].of = words_known[i].value;
      is_known = true;
    }
  CHECK(!is_known);
}

typedef enum { RIGHT, REFUSED, WRONG, VERDICTS } verdict_t;

// False: it is refused.
static bool execute(cudnnHandle_t handle, const case_t *c) {
  static draft_t draft;
  made_t made = graph_make(handle, c, &draft);
  int64_t bytes = 0;
  build_t plan =
      build_first_plan(handle, made.graph, CUDNN_HEUR_MODE_A, &bytes);
  build_destroy(made.graph);
  if (!plan)
    return false;
  cudnnStatus_t status = build_execute_once(handle, plan, made.uids,
                                            made.pointers, made.count, bytes);
  CHECK(cudaDeviceSynchronize());
  build_destroy(plan);
  // In pieces some cases have two meanings, which sundog does not choose from.
  if (status / 1000 * 1000 == CUDNN_STATUS_NOT_SUPPORTED ||
      (is_in_pieces() && status == CUDNN_STATUS_BAD_PARAM))
    return false;
  CHECK(status);
  return true;
}

static verdict_t judged(const case_t *c) {
  static const char *const names[ARRAYS] = {
      [MOST] = "max", [SUM] = "sum", [O] = "o",    [STATS] = "stats",
      [D_Q] = "dq",   [D_K] = "dk",  [D_V] = "dv", [D_BIAS] = "dbias"};
  verdict_t verdict = RIGHT;
  for (int a = 0; a < ARRAYS; a++) {
    if (!c->array[a].exists || !c->array[a].is_result)
      continue;
    double off = array_off(&c->array[a]);
    worst = off <= worst ? worst : off;
    if (off <= 1)
      continue;
    verdict = WRONG;
    fprintf(stderr, "attention %lu: %s is off by %.1f of what it may: %s\n",
            (unsigned long)c->seed, names[a], off, case_text(c));
  }
  return verdict;
}

static verdict_t case_run(cudnnHandle_t handle, uint64_t seed) {
  static const char *const texts[] = {"right", "refused", "wrong"};
  case_t c = case_draw(seed);
  case_compute(&c);
  pieces_put(&c);
  verdict_t verdict = execute(handle, &c) ? judged(&c) : REFUSED;
  if (lists)
    printf("%lu: %s: %s\n", (unsigned long)seed, texts[verdict], case_text(&c));
  pieces_free(&c);
  return verdict;
}

int main(int words, char **word) {
  cudnnHandle_t handle;
  CHECK(words < 4);
  for (int i = 0; i < 2 && word[1][i]; i++) {
    CHECK(!strchr("BHS", word[1][i]));
    asked.cut[i] = word[1][i];
  }
  for (int i = 4; i < words; i++)
    word_read(word[i]);
  uint64_t first = strtoull(word[2], NULL, 10);
  uint64_t count = strtoull(word[3], NULL, 10);
  unsigned long sum[VERDICTS] = {0};
  CHECK(cudnnCreate(&handle));
  for (uint64_t i = 0; i < count; i++)
    sum[case_run(handle, first + i)]++;
  CHECK(cudnnDestroy(handle));
  printf("%lu are right, %lu refused, %lu wrong; off by at most %.2f of what "
         "rounding may do\n",
         sum[RIGHT], sum[REFUSED], sum[WRONG], worst);
  bool fits = !sum[WRONG] && sum[RIGHT] && !(wants_all && sum[REFUSED]);
  return fits ? EXIT_SUCCESS : EXIT_FAILURE;
}
