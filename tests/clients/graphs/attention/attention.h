/* SPDX-License-Identifier: Apache-2.0 */
/* A random attention, forward or backward, in pieces, for the program
 * `attention` of this folder. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_ATTENTION_ATTENTION_H
#define SDG_TESTS_CLIENTS_GRAPHS_ATTENTION_ATTENTION_H

#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "tests/clients/graphs/attention/compose.h"

/* What the command line asks for. -1: anything. */
typedef struct {
  char cut[2]; /* letters: B, H, S; 0: none */
  int kind, order, type, mask, lengths;
  bool bias, for_hopper, split; /* split: what sundog splits */
  bool same_keys, same_queries; /* whole on every rank, tagged so */
  bool long_lengths;            /* each rank has those of whole sequences */
  bool columns, blocks; /* a bias has the columns of a rank's keys; and rows */
  bool shared, blind;   /* one head of keys for all; rows that see nothing */
  bool made;            /* inputs are results of calls of cuDNN */
  bool same;            /* forward: values are the tensor of queries */
} asked_t;
extern asked_t asked;

enum {
  MASK_NONE,
  MASK_CAUSAL,
  MASK_CAUSAL_BOTTOM,
  MASK_RIGHT,
  MASK_CAUSAL_LEFT,
  MASK_BAND,
  MASK_BAND_BOTTOM,
  MASKS
};

static inline int64_t count_of(const int64_t dim[DIMS]) {
  return dim[BATCH] * dim[HEADS] * dim[ROWS] * dim[DEPTH];
}
/* Element (b, h, s, d) of the whole; extents of 1 are for all. */
static inline int64_t index_of(const array_t *a, int64_t b, int64_t h,
                               int64_t s, int64_t d) {
  const int64_t *dim = a->whole;
  return (((dim[BATCH] == 1 ? 0 : b) * dim[HEADS] + (dim[HEADS] == 1 ? 0 : h)) *
              dim[ROWS] +
          (dim[ROWS] == 1 ? 0 : s)) *
             dim[DEPTH] +
         d;
}

/* The case of a seed, without values. */
case_t case_draw(uint64_t seed);
/* A random number from lo to hi, of this case. */
int64_t draw_in(int64_t lo, int64_t hi);
/* A word for the kind, order, extents and mask of a case. */
const char *case_text(const case_t *c);
bool cuts(char letter);
/* Whether there are several ranks that have pieces. */
bool is_in_pieces(void);

/* A number as the type keeps it. */
double rounded(cudnnDataType_t type, double value);

/* Gives inputs values, and results what loops in double precision make of
 * them. */
void case_compute(case_t *c);

/* Gives this rank its piece of all arrays, in device memory; results and DELTA
 * are NaN, GATHERED is 0. */
void pieces_put(case_t *c);
/* The largest difference of a result, as a part of what is allowed; NaN if an
 * element is. */
double array_off(const array_t *a);
void pieces_free(case_t *c);

#endif
