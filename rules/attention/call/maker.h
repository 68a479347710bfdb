/* SPDX-License-Identifier: Apache-2.0 */
/* A plan of attention while it is made: each rank computes its own queries on
 * the keys and values that they see. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_CALL_MAKER_H
#define SDG_RULES_ATTENTION_CALL_MAKER_H

#include "rules/attention/call/call.h"
#include "rules/attention/call/length.h"
#include "rules/place/op.h"
#include "rules/vendor/sequence.h"

enum { SDG_ATTENTION_KEYS, SDG_ATTENTION_VALUES, SDG_ATTENTION_SIDES };

typedef struct sdg_attention_maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  sdg_attention_t a;
  const sdg_section_t *section; /* that says what windows mean */
  sdg_plan_t *plan;
  const sdg_placement_t *rows; /* of the queries */
  /* Of keys and values; owned. */
  sdg_placement_t side[SDG_ATTENTION_SIDES];
  /* What a query sees: by windows of all queries, or, where lo is NULL, by the
   * band; the rank's own keys alone if `local`; all if `everything`, whatever
   * is masked of them. */
  sdg_windows_t windows;
  sdg_band_t band;
  bool local, everything;
  bool merges;     /* queries stay, and so do keys
                      (rules/attention/strategy/merge.h) */
  sdg_axes_t sums; /* along which all that the ranks have of dk and dv are
                      terms; 0: they go back to their owners */
  sdg_attention_lengths_t queries, keys; /* of all sequences; owned */
  sdg_box_t *need[SDG_ATTENTION_SIDES];  /* of each rank of the group; owned */
  sdg_axes_t sum_axes;                   /* of gradients of parameters */
  bool same;    /* keys and values are one tensor, in one place */
  bool moves;   /* some rank needs keys or values of another */
  bool returns; /* some rank has gradients of those of another */
} sdg_attention_maker_t;

/* Fills `side`, cut as these two are, and what is below it, from what is above
 * it. */
sdg_status_t
sdg_attention_maker_init(sdg_attention_maker_t *m, const sdg_placement_t *keys,
                         const sdg_placement_t *values) SDG_MUST_CHECK;
void sdg_attention_maker_fini(sdg_attention_maker_t *m);

/* Reads the lengths. *out_why: why attention cannot be split with them, or
 * NULL. */
sdg_status_t sdg_attention_maker_measure(sdg_attention_maker_t *m,
                                         const char **out_why) SDG_MUST_CHECK;
/* Whether some rank's piece of some sequence has no elements: of its queries,
 * or of the keys that it needs. After sdg_attention_maker_init. */
bool sdg_attention_maker_blanks(const sdg_attention_maker_t *m);
/* A rank whose piece of a sequence has queries, and of whose need of it every
 * key is padding; -1: there is none. After sdg_attention_maker_init. */
int sdg_attention_maker_blind(const sdg_attention_maker_t *m);

/* A rank's queries, as a box of operand `index`. */
sdg_box_t sdg_attention_maker_rows(const sdg_attention_maker_t *m, int index,
                                   int rank);
/* What a rank of the job needs of keys or values; of its own, if it merges. */
sdg_box_t sdg_attention_maker_need(const sdg_attention_maker_t *m, int side,
                                   int rank);

/* Of keys and values in these places; before sdg_attention_maker_init. */
sdg_axes_t sdg_attention_maker_sums(const sdg_attention_maker_t *m,
                                    const sdg_placement_t *keys,
                                    const sdg_placement_t *values);

/* The placement of a tensor whose vectors have `vector` elements, cut like
 * another. The caller's. */
sdg_status_t sdg_attention_like(const sdg_tagging_t *tagging,
                                const sdg_placement_t *like, int64_t vector,
                                sdg_placement_t *out) SDG_MUST_CHECK;

/* What old values of dw are multiplied by: 1 where the call adds to them. */
const void *sdg_attention_old_factor(const sdg_call_t *call);

#endif
