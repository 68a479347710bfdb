/* SPDX-License-Identifier: Apache-2.0 */
/* A random attention, forward or backward, in pieces, for the program
 * `attention` of this folder. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_ATTENTION_ATTENTION_H
#define SDG_TESTS_CLIENTS_GRAPHS_ATTENTION_ATTENTION_H

#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "tests/clients/graphs/build.h"

enum { BATCH, HEADS, ROWS, DEPTH, DIMS }; /* of all arrays */

/* What a graph reads and writes in memory. MOST and SUM, in place of STATS: the
 * largest score of a row, and the sum of the exponentials of all without it.
 * DELTA and GATHERED are backward's intermediate results: the sums of dO O, and
 * dQ in float. */
enum {
  Q,
  K,
  V,
  O,
  STATS,
  MOST,
  SUM,
  SCALE,
  BIAS,
  LENGTHS_Q,
  LENGTHS_KV,
  D_O,
  D_Q,
  D_K,
  D_V,
  D_BIAS,
  DELTA,
  GATHERED,
  ARRAYS
};

typedef enum { FORWARD, BACKWARD, ONE, KINDS } kind_t; /* ONE operation */

/* The frontend's order of operations: 1.23's, 1.6's, or any order in which
 * operations follow what they read. */
typedef enum { NEW, OLD, SHUFFLED, ORDERS } order_t;

/* B H S D is the order of dimensions; memory has another one. PACKED: B S 3 H
 * D, q, k and v side by side (their gradients, too). */
typedef enum { BSHD, BHSD, SBHD, PACKED, LAYOUTS } layout_t;

/* What each rank has of a bias where its sequences are in pieces: its rows and
 * all columns; all of it, of all heads and batches, too; one row for all, with
 * all columns; all rows and its keys' columns; one row, with its keys' columns;
 * its rows, with its keys' columns. */
typedef enum {
  BIAS_ROWS,
  BIAS_ALL,
  BIAS_ROW,
  BIAS_COLUMNS,
  BIAS_KEYS,
  BIAS_BLOCKS
} bias_form_t;

typedef struct {
  bool exists, is_result;
  cudnnDataType_t type;
  int64_t whole[DIMS], first[DIMS], dim[DIMS], stride[DIMS];
  double *value, *bound; /* of the whole; results: how far off one may be */
  void *memory;          /* of the piece; NULL: another array's */
  void *device;          /* where the first element is */
  int64_t places;        /* elements of `memory` */
} array_t;

typedef struct {
  uint64_t seed;
  kind_t kind;
  order_t order;
  layout_t layout;
  cudnnDataType_t type;
  int64_t b, h, g, s_q, s_kv, d, d_v; /* of the whole; g: heads of keys */
  double scale;
  /* Element (row, column) is seen if row + right >= column and
   * column + left > row; with `bottom` the last row and the last column meet in
   * place of the first ones. */
  bool has_right, has_left, bottom;
  int64_t right, left;
  bool bias, bias_each, bias_one; /* of each batch; one for all heads */
  bias_form_t bias_form;
  bool lengths, stats, sums;    /* sums: MOST and SUM */
  bool scaled, scale_in_memory; /* else by value */
  bool direct, d_bias;          /* backward: dQ without GATHERED */
  array_t array[ARRAYS];
} case_t;

/* What the command line asks for. -1: anything. */
typedef struct {
  char cut[2]; /* letters: B, H, S; 0: none */
  int kind, order, type, mask, lengths;
  bool bias, for_hopper, split; /* split: what sundog splits */
  bool same_keys, same_queries; /* whole on every rank, tagged so */
  bool long_lengths;            /* each rank has those of whole sequences */
  bool columns, blocks; /* a bias has the columns of a rank's keys; and rows */
  bool shared, blind;   /* one head of keys for all; rows that see nothing */
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

/* The operation graph of this rank's piece, the uids and pointers of a variant
 * pack, which live until the next one is made. */
typedef struct {
  build_t graph;
  const int64_t *uids;
  void **pointers;
  const bool *by_value; /* the pointer is one of the host, to 8 bytes */
  int64_t count;
} made_t;
made_t graph_make(cudnnHandle_t handle, const case_t *c);

#endif
