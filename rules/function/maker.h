/* SPDX-License-Identifier: Apache-2.0 */
/* A function's plan while it is made. Inside this folder only. */
#ifndef SDG_RULES_FUNCTION_MAKER_H
#define SDG_RULES_FUNCTION_MAKER_H

#include "rules/function/function.h"
#include "rules/kit/fetch.h"
#include "src/exchange/exec.h"

/* On a rank's own elements, and on the strips at the ends of each dimension. */
enum { SDG_FUNCTION_PIECES = 1 + 2 * SDG_DIMS_MAX };

/* One call of the function: on which elements, in which memory. */
typedef struct sdg_function_piece {
  sdg_box_t box; /* of the lead, in global coordinates */
  int64_t integer[SDG_ARGUMENTS_MAX];
  unsigned changed;                  /* bits of arguments: not the program's */
  int64_t offset[SDG_ARGUMENTS_MAX]; /* added to the program's value */
  int slab[SDG_OPERANDS_MAX];        /* of each operand */
} sdg_function_piece_t;

/* plan->state. The function is called on the pieces one after another; what it
 * returns for the first is what the program gets. */
typedef struct sdg_function_state {
  int pieces;
  sdg_function_piece_t piece[SDG_FUNCTION_PIECES];
  int result[SDG_OPERANDS_MAX]; /* slab that combines it; -1: its own */
  int returned;                 /* slab that combines what is returned */
  double weight; /* of a mean: this rank's part of all elements */
} sdg_function_state_t;

/* The sub-calls of a plan: the function on piece i is SDG_FUNCTION_CALL + i. */
enum {
  SDG_FUNCTION_WAIT,
  SDG_FUNCTION_UPLOAD,
  SDG_FUNCTION_DOWNLOAD,
  SDG_FUNCTION_CALL,
};
/* plan->run */
int sdg_function_run(void *state, int index, const sdg_call_t *call,
                     const sdg_exec_t *exec);

typedef struct sdg_function_maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  const sdg_function_t *function;
  sdg_plan_t *plan;
  sdg_function_state_t *state;
  sdg_box_t own;                       /* of the lead */
  bool extends;                        /* some rank needs more than its own */
  bool fills;                          /* ghosts of the program's tensors */
  int own_slab[SDG_OPERANDS_MAX];      /* the program's memory */
  sdg_fetch_t fetch[SDG_OPERANDS_MAX]; /* of inputs that extend */
} sdg_function_maker_t;

bool sdg_function_is_combined(const sdg_function_maker_t *m, int index);
/* Whether the function reads an operand: an input, or one updated in place. */
bool sdg_function_reads(const sdg_function_maker_t *m, int index);
bool sdg_function_has_ghosts(const sdg_function_t *function);
/* The elements of an operand in a box of the lead. */
sdg_box_t sdg_function_box(const sdg_function_maker_t *m, int index,
                           const sdg_box_t *lead);
/* The elements of the lead that those of `box` see, cut at ends that are not
 * periodic. */
sdg_box_t sdg_function_around(const sdg_function_t *function,
                              const sdg_placement_t *lead,
                              const sdg_box_t *box);
/* The extents of dimensions that are periodic, 0 of others. out: as many as the
 * lead has. */
void sdg_function_periods(const sdg_function_maker_t *m, int64_t *out);
/* Whether some rank's piece of an operand is larger than what it has. */
bool sdg_function_extends(const sdg_function_maker_t *m, int index);

/* Adds a piece of the call: the arguments with which the function works on
 * `box`. Its slabs are the program's; the caller replaces those that are not.
 */
sdg_status_t sdg_function_piece_add(sdg_function_maker_t *m,
                                    const sdg_box_t *box,
                                    sdg_function_piece_t **out) SDG_MUST_CHECK;
/* Scratch for an operand of a piece, laid out as the function expects. */
sdg_status_t sdg_function_scratch(sdg_function_maker_t *m, int index,
                                  sdg_function_piece_t *piece) SDG_MUST_CHECK;
/* This rank's messages of an input, from the program's memory to slabs. */
sdg_status_t sdg_function_fetch(sdg_function_maker_t *m, int index,
                                const int *into, int intos) SDG_MUST_CHECK;
/* Copies what the rank has of an input, images beyond the ends included; and
 * what has been received, unless that arrived in the slab. */
sdg_status_t sdg_function_own(sdg_function_maker_t *m, int index, int into,
                              sdg_copy_kind_t kind) SDG_MUST_CHECK;
sdg_status_t sdg_function_land(sdg_function_maker_t *m, int index,
                               int into) SDG_MUST_CHECK;

/* Adds the steps that combine the ranks' results. */
sdg_status_t sdg_function_combine(sdg_function_maker_t *m) SDG_MUST_CHECK;
/* Copies results to the slabs that combine them (upload), or back. Returns the
 * vendor's status. */
int sdg_function_results_copy(const sdg_function_state_t *state,
                              const sdg_call_t *call, const sdg_exec_t *exec,
                              bool upload);
/* Gives m->plan its state. */
sdg_status_t sdg_function_state_make(sdg_function_maker_t *m) SDG_MUST_CHECK;
/* The steps after the pieces: results are combined; what a function does on the
 * host is awaited. */
sdg_status_t sdg_function_end(sdg_function_maker_t *m) SDG_MUST_CHECK;
/* Whether memory is neither the device's own, nor managed or pinned, so that it
 * cannot be sent. */
bool sdg_function_is_pageable(const void *at);

/* ---- repair ---------------------------------------------------------------
 *
 * The function is called on the program's memory while the neighbours' elements
 * are on their way. It takes a border of the piece for an end of the domain, so
 * that elements within reach of an inner border are wrong. They come from
 * strips: scratch with the elements around them, on which it is called again.
 */

/* Whether all ranks can do so, and the section leaves it to them. Sets *price
 * if costs were compared. Every rank gets the same answer. */
bool sdg_function_repairs(const sdg_function_maker_t *m,
                          sdg_price_t *out_price);
sdg_status_t sdg_function_repair(sdg_function_maker_t *m) SDG_MUST_CHECK;

#endif
