/* SPDX-License-Identifier: Apache-2.0 */
/* A call that is tried in pieces, while it lasts. Inside this folder only. */
#ifndef SDG_RULES_CUT_ATTEMPT_H
#define SDG_RULES_CUT_ATTEMPT_H

#include <cuda_runtime_api.h>

#include "rules/cut/cut.h"
#include "rules/place/op.h"
#include "src/rehearse/rehearse.h"

/* The array of an operand as the program has it, ghosts included. Its indices
 * count them. */
typedef struct sdg_cut_array {
  sdg_operand_t operand;
  int64_t before[SDG_DIMS_MAX], behind[SDG_DIMS_MAX]; /* ghosts */
  int twin;     /* the operand that has the copies: itself, or an earlier one */
  size_t bytes; /* from its first element to behind its last one */
  bool on_device; /* else managed or pinned */
  bool on_host;   /* of malloc; a result only */
  char *old;      /* its elements before the call; owned */
} sdg_cut_array_t;

/* What one rank has of an array. */
typedef struct sdg_cut_piece {
  sdg_box_t held; /* indices of the array that its memory has */
  sdg_box_t own;  /* those that the rank computes, or is given */
  int64_t stride[SDG_DIMS_MAX];
  size_t bytes, margin; /* of its elements; of what nobody may touch around */
  char *block;          /* the memory that the function gets, with margins */
  char *given, *after;  /* the block before and after, on the host; owned */
} sdg_cut_piece_t;

typedef struct sdg_cut_rank {
  sdg_call_t call; /* as this rank's program would make it */
  sdg_function_call_t function;
  void *value[SDG_ARGUMENTS_MAX];
  int64_t number[SDG_ARGUMENTS_MAX];
  void *address[SDG_ARGUMENTS_MAX];
  char returned[16];
  sdg_tagging_t tagging; /* its placements are the attempt's */
  sdg_plan_t *plan;
  char *scratch; /* with margins */
  sdg_cut_piece_t piece[SDG_OPERANDS_MAX];
} sdg_cut_rank_t;

/* The number of a rank that makes the whole call, on copies. */
enum { SDG_CUT_ALONE = -1 };

/* All ranks, by one strategy. */
typedef struct sdg_cut_attempt {
  sdg_section_t section; /* a copy, with that strategy */
  sdg_cut_rank_t *rank;  /* owned */
  double terms[SDG_REHEARSED_REDUCTIONS];
  uint64_t told[SDG_ARGUMENTS_MAX]; /* what lies behind an address afterwards */
} sdg_cut_attempt_t;

enum { SDG_CUT_ATTEMPTS = 2, SDG_CUT_TEXT_BYTES = 400 };
struct sdg_cut {
  const sdg_function_t *function;
  const sdg_function_call_t *own; /* the program's; while sdg_cut_begin lasts */
  sdg_call_t call;
  cudaStream_t stream;
  const sdg_mesh_t *mesh;
  const sdg_section_t *section;
  bool whole; /* the view */
  /* The bytes of elements that a rank does not have: a large finite number in
   * every type, so that what is multiplied by 0 stays 0. */
  int nothing;
  sdg_placement_t placement[SDG_OPERANDS_MAX];
  sdg_cut_array_t array[SDG_OPERANDS_MAX];
  /* The whole call with the section's arguments: before the attempts, and after
   * them. */
  sdg_cut_rank_t alone[2];
  int attempts;
  sdg_cut_attempt_t attempt[SDG_CUT_ATTEMPTS];
  /* Of arguments that are addresses and no tensors: the first bytes behind
   * them before the call; and after the whole one, which has written nothing
   * else there, because its outputs are copies. */
  void *told_at[SDG_ARGUMENTS_MAX];
  uint64_t told[SDG_ARGUMENTS_MAX], told_alone[SDG_ARGUMENTS_MAX];
  char why[SDG_CUT_TEXT_BYTES]; /* the reason why it cannot be tried */
  bool in_full; /* every rank makes the call as it is; `why` says why */
};

/* Those that fail return false, with cut->why. */
bool sdg_cut_fails(sdg_cut_t *cut, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The name of an operand's argument. */
const char *sdg_cut_name(const sdg_cut_t *cut, int operand);
int sdg_cut_ranks(const sdg_cut_t *cut);
bool sdg_cut_is_result(const sdg_cut_t *cut, int operand);

/* ---- where the tensors are ----------------------------------------------- */

/* Finds the section and places the tensors, cut as a split run would cut them
 * (evenly where the ranks' programs say). */
bool sdg_cut_place(sdg_cut_t *cut, const sdg_rules_t *rules);

/* ---- memory -------------------------------------------------------------- */

/* Describes the program's arrays, and copies them. */
bool sdg_cut_arrays(sdg_cut_t *cut);
/* Gives a rank its pieces, and arguments for them. */
bool sdg_cut_pieces(sdg_cut_t *cut, int number, sdg_cut_rank_t *out_rank);
/* Gives it the elements that it has before the call: others are
 * `nothing`. After its plan is made. */
bool sdg_cut_fill(sdg_cut_t *cut, int number, sdg_cut_rank_t *rank);
/* Copies what it has after it. */
bool sdg_cut_take(sdg_cut_t *cut, sdg_cut_rank_t *rank);
/* Frees all but what has been copied; and that. */
void sdg_cut_memory_free(sdg_cut_t *cut, sdg_cut_rank_t *rank);
void sdg_cut_copies_free(sdg_cut_t *cut, sdg_cut_rank_t *rank);
bool sdg_cut_copy(sdg_cut_t *cut, void *to, const void *from, size_t bytes);
/* The next index of a box in row-major order; false behind the last. */
bool sdg_cut_next(const sdg_box_t *box, int64_t *io_index);
size_t sdg_cut_byte(const sdg_cut_array_t *array, const int64_t *index);
size_t sdg_cut_byte_of_piece(const sdg_cut_piece_t *piece, int elem_bytes,
                             const int64_t *index);

/* ---- comparison ---------------------------------------------------------- */

/* Whether both calls as a whole have the same results. */
bool sdg_cut_repeats(const sdg_cut_t *cut);

/* Whether an attempt's pieces are what the program's call has computed; false:
 * out_text says what is not. now[i]: the array of operand i after the call.
 */
bool sdg_cut_compare(const sdg_cut_t *cut, const sdg_cut_attempt_t *attempt,
                     char *const *now, const void *returned, char *out_text,
                     size_t text_bytes);

#endif
