/* SPDX-License-Identifier: Apache-2.0 */
/* The user's rules: which tensors are split over the ranks, and how.
 *
 * A file of sections (INI), tried in order; the first that matches a tensor
 * decides. Or the short form: SUNDOG_SPLIT, with the options that go
 * with it, is one [shard] section.
 *
 * rules/file/keys.def has every key with a sentence, and what patterns,
 * dimensions and sections about products mean; doc/rules.md shows it to
 * users. */
#ifndef SDG_RULES_FILE_FILE_H
#define SDG_RULES_FILE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/options.h"
#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/box.h"
#include "src/geometry/mesh.h"

enum {
  SDG_SECTIONS_MAX = 32,
  SDG_SECTION_NAME_BYTES = 48,
  SDG_TERMS_MAX = 16,
  SDG_GLOBS_MAX = 16,
  SDG_GLOB_BYTES = 64,
  SDG_SPLITS_MAX = 4,
  SDG_PARTS_BYTES = 4096,
};

typedef enum sdg_dim {
  SDG_DIM_N,
  SDG_DIM_C,
  SDG_DIM_D,
  SDG_DIM_H,
  SDG_DIM_W,
  SDG_DIM_SEQ,
  SDG_DIM_HEAD,
  SDG_DIM_BATCH,
  SDG_DIM_M,
  SDG_DIM_K,
  SDG_DIM_HEADS,
  SDG_DIM_COUNT, /* as a value: a dimension without a name */
} sdg_dim_t;

const char *sdg_dim_name(sdg_dim_t dim);
/* The index of the dimension with this name in a tensor of `dims` dimensions,
 * -1 if none has it. H of four is 2. */
int sdg_dim_index(sdg_family_t family, sdg_dim_t dim, int dims);
/* The name of dimension `index`; SDG_DIM_COUNT if it has none. */
sdg_dim_t sdg_dim_at(sdg_family_t family, int index, int dims);
/* Returns true if it is the name of dimension `index` in some family. */
bool sdg_dim_may_be_at(sdg_dim_t dim, int index, int dims);

typedef enum sdg_compare {
  SDG_COMPARE_ANY,
  SDG_COMPARE_GE,
  SDG_COMPARE_LE,
  SDG_COMPARE_GT,
  SDG_COMPARE_LT,
  SDG_COMPARE_EQ,
} sdg_compare_t;

typedef struct sdg_term {
  sdg_dim_t dim; /* SDG_DIM_COUNT: a bare number */
  sdg_compare_t compare;
  int64_t value;
} sdg_term_t;

typedef struct sdg_rules_split {
  sdg_dim_t dim;
  sdg_axes_t axes;
  int pieces; /* product of the axes' sizes */
  /* "agree", or a text for sdg_part_parse(), checked except for its sum; in the
   * shard view the ranks' parts must equal it. */
  char *parts;
} sdg_rules_split_t;

/* Where a matrix of a product is. */
enum { SDG_MATRIX_A, SDG_MATRIX_B, SDG_MATRIX_C, SDG_MATRICES };
typedef struct sdg_rules_matrix {
  bool said;  /* false: as the product is split; C's sums are on every rank */
  int splits; /* 0: replicated */
  sdg_rules_split_t split[SDG_SPLITS_MAX];
} sdg_rules_matrix_t;

/* What a product's call states for a dimension that is cut. */
typedef enum sdg_sizes {
  SDG_SIZES_UNSAID,
  SDG_SIZES_PIECE,
  SDG_SIZES_WHOLE,
} sdg_sizes_t;
enum { SDG_SIZES_DIMS = 4 }; /* M N K BATCH */

typedef enum sdg_window_choice {
  SDG_WINDOW_UNSAID,
  SDG_WINDOW_GLOBAL, /* over the whole extent; attention: all keys */
  SDG_WINDOW_LOCAL,  /* pooling: windows fill the shard by chance; attention:
                        only keys of the shard */
  SDG_WINDOW_SIZES,  /* attention: window_left, window_right */
} sdg_window_choice_t;

typedef struct sdg_section {
  bool is_local; /* [local]: members after `globs` are unused */
  char name[SDG_SECTION_NAME_BYTES];
  int line; /* of its head; 0 in the short form */
  int terms;
  sdg_term_t term[SDG_TERMS_MAX];
  bool listed; /* term i describes dimension i, and there are `terms` dimensions
                */
  int globs;   /* 0: every op */
  char glob[SDG_GLOBS_MAX][SDG_GLOB_BYTES];
  int op_line; /* the line of `op`; 0 without */
  int splits;  /* >= 1 */
  sdg_rules_split_t split[SDG_SPLITS_MAX];
  sdg_view_t view;
  sdg_axes_t sum_axes; /* over these, gradients of parameters are summed */
  sdg_axes_t pending;  /* for a label: axes over which values are still to be */
  bool pending_max;    /* combined: by their maximum, not their sum */
  bool keeps_dy;       /* see `keep` above */
  bool keeps_x;
  sdg_piece_values_t values;
  unsigned wrap;            /* bit 1 << sdg_dim_t */
  sdg_strategy_t strategy;  /* for windows: auto, repair, extend */
  bool adjoint;             /* asked for; for data gradients of convolutions */
  sdg_strategy_t attention; /* auto, halo, heads, gather */
  sdg_window_choice_t window;
  int64_t window_left, window_right;
  sdg_sizes_t lengths; /* attention: of sequences in pieces */
  sdg_rules_matrix_t matrix[SDG_MATRICES];
  sdg_sizes_t sizes[SDG_SIZES_DIMS];
} sdg_section_t;

/* Pure data, immutable once loaded. */
typedef struct sdg_rules {
  const char *source; /* the file, or "SUNDOG_SPLIT"; owned */
  sdg_mesh_t mesh;
  sdg_axes_t axes; /* axes that some split names, and `same`: the group of
                      agreements */
  sdg_axes_t same; /* those of [mesh] same */
  sdg_view_t view; /* the same in every [shard] section */
  int sections;
  sdg_section_t *section; /* owned */
  int functions;
  struct sdg_function *function; /* rules/file/function/function.h; owned */
  uint64_t digest; /* of what has to be alike on all ranks: all but names of
                      sections, file names of libraries, and the strategy,
                      which ranks agree on in each call */
} sdg_rules_t;

/* Reads the rules that the options ask for (sdg_options_asked), for a job of
 * `ranks` ranks; fails if they ask for none. Reports the first fault with its
 * location and, for a word, the nearest valid one: SDG_E_RULES_*,
 * SDG_E_OPTION_CONFLICT. Allocates; takes no lock. */
sdg_status_t sdg_rules_load(const sdg_options_t *options, int ranks,
                            sdg_rules_t *out_rules) SDG_MUST_CHECK;
void sdg_rules_fini(sdg_rules_t *rules);

/* Arguments for reading rules without a run. */
typedef struct sdg_review {
  int ranks; /* 0: as the mesh or a list of parts says, or else 2; set to the
                number used */
  const char *const *names; /* entries that `op` may name */
  int count;
  int faults; /* out: the number of faults reported */
} sdg_review_t;
/* The same as sdg_rules_load and sdg_rules_check_entries, but reports every
 * fault that does not follow from earlier ones. Returns the status of the
 * first. */
sdg_status_t sdg_rules_review(const sdg_options_t *options,
                              sdg_review_t *review,
                              sdg_rules_t *out_rules) SDG_MUST_CHECK;

/* The section that a program's label stands for. `text` is a value of `split`,
 * which may have items "sum:AXIS[+AXIS]" or "max:..."; or "local"; or
 * "replicated". Everything else is as the options say. Freed by
 * sdg_section_fini, also after an error. */
sdg_status_t sdg_rules_label(const sdg_rules_t *rules,
                             const sdg_options_t *options, const char *text,
                             sdg_section_t *out_section) SDG_MUST_CHECK;
/* The same for a product of matrices: a split of M, N, K and BATCH, followed by
 * "a = ...", "b = ...", "c = ...", "sizes = ...", "parts = ...", "values = ..."
 * and "sum = no" after semicolons; or "local". */
sdg_status_t sdg_rules_product(const sdg_rules_t *rules,
                               const sdg_options_t *options, const char *text,
                               sdg_section_t *out_section) SDG_MUST_CHECK;
void sdg_section_fini(sdg_section_t *section);
/* Whether a word of `op` means products of matrices: matmul, or in short gemm
 * or gemv. */
bool sdg_glob_names_product(const char *glob);
/* True if the section is for products of matrices, and so not for other ops
 * that have a dimension N or BATCH. */
bool sdg_section_multiplies(const sdg_section_t *section);
/* True if a [shard] section is for products. */
bool sdg_rules_multiply(const sdg_rules_t *rules);
/* All axes that the section splits over. */
sdg_axes_t sdg_section_axes(const sdg_section_t *section);

/* Fails (SDG_E_RULES_WORD) if an `op` of the rules matches neither a family nor
 * one of these entry names, which a higher layer lists. */
sdg_status_t sdg_rules_check_entries(const sdg_rules_t *rules,
                                     const char *const *names,
                                     int count) SDG_MUST_CHECK;

/* True if the section matches this activation: op, pattern and, for [shard],
 * the dimensions that it splits. `extent` is global: summed over the section's
 * axes in the dimensions that it splits. Exact, without an exchange; ranks that
 * pass the same get the same. */
bool sdg_section_match(const sdg_section_t *section, sdg_family_t family,
                       const char *entry, const int64_t *extent, int dims);

/* False if this rank's extents show, equally on every rank, that no [shard]
 * section can match: because of the op, the number of dimensions, a dimension
 * that no section splits, or an earlier [local] section that uses no split
 * dimension. Then the call needs no agreement. Dimensions that some section
 * splits have no influence, because they differ between ranks. */
bool sdg_rules_may_match(const sdg_rules_t *rules, sdg_family_t family,
                         const char *entry, const int64_t *local_extent,
                         int dims);

/* True if a [shard] section would match this activation with another `op`: the
 * tensor may be split, and the rules say nothing about this op on it. As exact
 * as sdg_rules_may_match. */
bool sdg_rules_leave_out(const sdg_rules_t *rules, sdg_family_t family,
                         const char *entry, const int64_t *local_extent,
                         int dims);

#endif
