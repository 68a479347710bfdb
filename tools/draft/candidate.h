/* SPDX-License-Identifier: Apache-2.0 */
/* The effect that a split of dimensions over some ranks would have on the calls
 * of a program, in one of the two views. */
#ifndef SDG_TOOLS_DRAFT_CANDIDATE_H
#define SDG_TOOLS_DRAFT_CANDIDATE_H

#include <stddef.h>

#include "rules/file/file.h"
#include "src/base/options.h"
#include "tools/record/calls.h"

enum { CANDIDATE_FAULTS_MAX = 64, CANDIDATE_FAULT_BYTES = 256 };
enum { CANDIDATE_COMPANIONS_MAX = 48 };
enum { CANDIDATE_SETS = 1 << SDG_AXES_MAX };
enum { CANDIDATE_AXES_BYTES = SDG_AXES_MAX * SDG_AXIS_NAME_MAX };

/* The split of one dimension over some axes, and the findings about it. */
typedef struct candidate_split {
  sdg_dim_t dim;
  int pieces;
  sdg_axes_t of; /* the axes of the mesh; 0: no mesh is given */
  char axes[CANDIDATE_AXES_BYTES]; /* as rules name them: "data+y", "ranks" */
  bool possible;    /* some tensor has this dimension, larger than 1 */
  int64_t smallest; /* fewest elements of the dimension that a rank would own of
                       any tensor */
  int64_t longest;  /* extent */
  int64_t align; /* inner boundaries of the longest extent must be multiples of
                    this, so that the pieces' sizes add up */
  int gains;     /* distinct calls that the split divides and that are not
                    elementwise; a split with 0 of these saves nothing */
} candidate_split_t;

/* A section for a tensor or product that must be split too: match "M=24 N=50
 * K=8", split "N". */
typedef struct companion {
  char match[96], split[16], window[48]; /* window "": no window key */
  int64_t left, right;                   /* of attention, as in seen_call_t */
  bool is_product;                       /* of matrices */
  bool is_graph;                         /* of attention in a graph */
} companion_t;

typedef struct candidate {
  sdg_view_t view;
  int splits;
  candidate_split_t split[SDG_AXES_MAX];
  int ranks;     /* of the whole mesh */
  int unused;    /* axes of the mesh that split no dimension */
  int named;     /* axes that have the name of the dimension that they split */
  bool possible; /* each split is possible */
  bool has_set[CANDIDATE_SETS]; /* index: a set of splits, bit i for split i;
                                   true if some tensor is divided by exactly
                                   these splits */
  int64_t least[CANDIDATE_SETS]
               [SDG_AXES_MAX]; /* the shortest extents of these tensors */
  int64_t step_bytes; /* bytes that all ranks receive in one step: halos and, in
                         the whole view, an upper bound for the inputs of ops
                         without a rule */
  int64_t run_bytes;  /* bytes that all ranks receive in the whole run */
  bool asks_sizes;  /* sizes add up only because the program asks cuDNN for them
                     */
  bool global_pool; /* a pooling window covers the whole extent */
  bool has_local;   /* windowed calls on tensors that are not split */
  int aside; /* distinct calls of attention and products that this split leaves
                whole, so each rank makes them in full */
  int in_full;    /* distinct calls without a rule; in the whole view each rank
                     carries them out in full */
  int companions; /* number of sections of a split of SEQ */
  companion_t companion[CANDIDATE_COMPANIONS_MAX];
  int fatal;  /* faults that would end a run; the others are warnings */
  int faults; /* number of distinct faults */
  char fault[CANDIDATE_FAULTS_MAX][CANDIDATE_FAULT_BYTES];
} candidate_t;

/* Judges an even split of dimensions in a view. `splits` have their dimension,
 * pieces and axes; SEQ can only be split alone. `ranks`: the ranks of the mesh,
 * a multiple of the product of all pieces. `steps`: how often the program
 * repeats its calls. */
sdg_status_t candidate_judge_all(const calls_t *calls, sdg_view_t view,
                                 const candidate_split_t *splits, int count,
                                 int ranks, int64_t steps,
                                 candidate_t *out_candidate) SDG_MUST_CHECK;
/* Judges an even split of one dimension over one axis with all ranks. */
sdg_status_t candidate_judge(const calls_t *calls, sdg_view_t view,
                             sdg_dim_t dim, int ranks, int64_t steps,
                             candidate_t *out_candidate) SDG_MUST_CHECK;

/* Returns whether a split of `dim` divides this call and saves work. */
bool candidate_gains(const seen_call_t *call, sdg_dim_t dim);
/* Returns whether every split dimension has a call that gains by its split. */
bool candidate_is_useful(const candidate_t *candidate);
/* Writes the candidate's name into out, such as "N:data,H:y", or "H" for one
 * axis with all ranks. */
const char *candidate_name(const candidate_t *candidate, char *out,
                           size_t bytes);
enum { CANDIDATE_NAME_BYTES = SDG_AXES_MAX * (8 + CANDIDATE_AXES_BYTES) };

/* Adds a fault to the list, unless the list has it. */
void candidate_fault(candidate_t *candidate, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a warning: a run would not fail, but its result may not be the intended
 * one. */
void candidate_doubt(candidate_t *candidate, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void candidate_bytes(candidate_t *candidate, const seen_call_t *call,
                     int64_t bytes, int64_t steps);

/* Returns the index of the operand's dimension that a split of `dim` divides;
 * -1: none. */
int candidate_index(const seen_call_t *call, const seen_operand_t *operand,
                    sdg_dim_t dim);
/* Writes the extents into out, such as "1x64x56x56". Returns out. */
const char *extents_text(const seen_operand_t *operand, char *out,
                         size_t bytes);

#endif
