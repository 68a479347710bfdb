/* SPDX-License-Identifier: Apache-2.0 */
/* An attention, and the operation graph of a rank's piece of it. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_ATTENTION_COMPOSE_H
#define SDG_TESTS_CLIENTS_GRAPHS_ATTENTION_COMPOSE_H

#include "tests/clients/graphs/attention/draft.h"

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
  bool values_are_queries;      /* forward: one tensor */
  array_t array[ARRAYS];
} case_t;

/* The operation graph of this rank's piece, and the uids and pointers of a
 * variant pack, which are in the draft that it was made of. */
typedef struct {
  build_t graph;
  const int64_t *uids;
  void **pointers;
  const bool *by_value; /* the pointer is one of the host, to 8 bytes */
  int64_t count;
} made_t;
made_t graph_make(cudnnHandle_t handle, const case_t *c, draft_t *draft);

#endif
