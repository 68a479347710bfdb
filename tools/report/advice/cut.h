/* SPDX-License-Identifier: Apache-2.0 */
/* The one way in which all tensors of a run are cut, and what it moves. */
#ifndef SDG_TOOLS_REPORT_ADVICE_CUT_H
#define SDG_TOOLS_REPORT_ADVICE_CUT_H

#include "tools/record/recorded.h"

typedef struct cut {
  const recorded_t *run;
  const char *dim;       /* "H": the dimension that is cut, in all tensors */
  const json_t *operand; /* the largest of them */
  bool shard;            /* the program's extents are those of pieces */
  /* Received by all ranks in the run: all; halos of windows; tensors that were
   * fetched whole; values of the first rank. */
  int64_t received_bytes, halo_bytes, fetched_bytes, first_bytes;
  int64_t formula_bytes; /* of the windows, by the formula */
} cut_t;

/* Returns false if the record lacks a rank, the mesh has several axes, or
 * tensors are cut in several dimensions. The bytes are not set. */
bool cut_find(const recorded_t *run, cut_t *out);

/* Sets the bytes. Returns false unless the record proves what each byte was
 * for: it is complete, the halos are those of the formula (in the whole view at
 * most, because halos that are there do not travel), whole tensors were fetched
 * by each rank from the others, and no other op moved, or would move, anything.
 */
bool cut_prove(cut_t *cut);

/* Returns the bytes that all ranks would receive in the run if dimension `dim`
 * alone were cut, evenly over `ranks`; -1: not known. */
int64_t cut_predict(const cut_t *cut, const char *dim, int ranks);

/* What all ranks together lack of each tensor of a run. */
typedef struct cut_wholes {
  int64_t *bytes; /* each once; freed by the caller */
  int count;
} cut_wholes_t;

/* Of the tensors that are in pieces (`in_pieces`), or may be. */
cut_wholes_t cut_wholes(const recorded_t *run, bool in_pieces);

/* Whether `bytes` are those of one of the tensors. */
bool cut_is_whole(const cut_wholes_t *wholes, int64_t bytes);

/* Returns the index of the operand's dimension of that name; -1: it has none.
 */
int cut_dim(const json_t *operand, const char *name);

/* Returns a number of one of the operand's lists. */
int64_t cut_item(const json_t *operand, const char *list, int index);

/* The tensor that tells how much a call computes: its first output that is cut,
 * or else its first tensor with a place; NULL: none. */
const json_t *cut_lead(const json_t *plan);

#endif
