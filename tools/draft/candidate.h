/* SPDX-License-Identifier: Apache-2.0 */
/* What a split of dimensions over some ranks would mean for the calls of a
 * program, in one of the two views. */
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

/* One dimension over some axes, and what was found of it. */
typedef struct candidate_split {
  sdg_dim_t dim;
  int pieces;
  sdg_axes_t of;                   /* the axes of a mesh; 0: there is none */
  char axes[CANDIDATE_AXES_BYTES]; /* as rules name them: "data+y", "ranks" */
  bool possible;    /* some tensor has this dimension, larger than 1 */
  int64_t smallest; /* elements of the dimension that a rank would own, of the
                       tensor with fewest */
  int64_t longest;  /* extent */
  int64_t align;    /* inner boundaries of the longest extent have to be
                       multiples of this, for sizes that add up */
  int gains;        /* distinct calls that it divides and that compute more than
                       element by element: without one it is of no use */
} candidate_split_t;

/* A section for what is split along: "M=24 N=50 K=8", "N". */
typedef struct companion {
  char match[96], split[16], window[48]; /* window "": none is said */
  int64_t left, right;                   /* of attention, as in seen_call_t */
  bool is_product;                       /* of matrices */
} companion_t;

typedef struct candidate {
  sdg_view_t view;
  int splits;
  candidate_split_t split[SDG_AXES_MAX];
  int ranks;     /* of the whole mesh */
  int unused;    /* axes of the mesh over which nothing is split */
  int named;     /* axes that are named like what they divide */
  bool possible; /* each split is */
  bool has_set[CANDIDATE_SETS]; /* bit i: tensors that split i divides, and no
                                   split whose bit is not set */
  int64_t least[CANDIDATE_SETS][SDG_AXES_MAX]; /* their shortest extents */
  int64_t step_bytes; /* that all ranks receive in one step: halos, and in the
                         whole view at most the inputs of ops without a rule */
  int64_t run_bytes;  /* and in the whole run */
  bool asks_sizes;    /* sizes add up only since the program asks cuDNN */
  bool global_pool;   /* a pooling window takes in the whole extent */
  bool has_local;     /* windowed calls on tensors that are not split */
  int aside;          /* distinct calls of attention and products that each rank
                         makes in full, as they are not split with this */
  int in_full;        /* distinct calls that each rank of the whole view carries
                         out in full, there being no rule */
  int companions;     /* of a split of SEQ: all of its sections */
  companion_t companion[CANDIDATE_COMPANIONS_MAX];
  int fatal;  /* faults that end in an error; others are doubts */
  int faults; /* why it will not work, distinct */
  char fault[CANDIDATE_FAULTS_MAX][CANDIDATE_FAULT_BYTES];
} candidate_t;

/* Judges splitting dimensions evenly in a view, `steps` being how often the
 * program repeats itself. `splits` have their dimension, pieces and axes;
 * several split other dimensions than SEQ. `ranks`: those of the mesh, a
 * multiple of the product of all pieces. */
sdg_status_t candidate_judge_all(const calls_t *calls, sdg_view_t view,
                                 const candidate_split_t *splits, int count,
                                 int ranks, int64_t steps,
                                 candidate_t *out_candidate) SDG_MUST_CHECK;
/* The same of one dimension over one axis with all ranks. */
sdg_status_t candidate_judge(const calls_t *calls, sdg_view_t view,
                             sdg_dim_t dim, int ranks, int64_t steps,
                             candidate_t *out_candidate) SDG_MUST_CHECK;

/* Whether a split divides this call, and that saves work. */
bool candidate_gains(const seen_call_t *call, sdg_dim_t dim);
/* Whether every dimension that is split has a call that gains by it. */
bool candidate_is_useful(const candidate_t *candidate);
/* "N:data,H:y"; "H" for one axis that has all ranks. */
const char *candidate_name(const candidate_t *candidate, char *out,
                           size_t bytes);
enum { CANDIDATE_NAME_BYTES = SDG_AXES_MAX * (8 + CANDIDATE_AXES_BYTES) };

/* Adds why it will not work, unless that was said; and what all ranks receive
 * for one call. */
void candidate_fault(candidate_t *candidate, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same where a run would not fail, but might not be what is meant. */
void candidate_doubt(candidate_t *candidate, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void candidate_bytes(candidate_t *candidate, const seen_call_t *call,
                     int64_t bytes, int64_t steps);

/* The dimension of an operand that a split of `dim` divides, -1: none. */
int candidate_index(const seen_call_t *call, const seen_operand_t *operand,
                    sdg_dim_t dim);
/* "1x64x56x56" into out; borrowed back. */
const char *extents_text(const seen_operand_t *operand, char *out,
                         size_t bytes);

#endif
