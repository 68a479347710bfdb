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

/* sdg_attention_maker_init and sdg_attention_maker_measure fill some members;
 * the caller sets the others before. */
typedef struct sdg_attention_maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  sdg_attention_t a;
  const sdg_section_t *section; /* the section that defines the windows */
  sdg_plan_t *plan;
  const sdg_placement_t *rows; /* of the queries */
  /* Placements of keys and values; owned. */
  sdg_placement_t side[SDG_ATTENTION_SIDES];
  /* Which keys a query sees: those in `windows`, or, if windows.lo is NULL,
   * those in `band`. `local`: each query sees only the keys of its own rank.
   * `everything`: each rank needs all keys of its sequences, even those that no
   * query sees. */
  sdg_windows_t windows;
  sdg_band_t band;
  bool local, everything;
  bool merges;     /* neither queries nor keys move
                    * (rules/attention/strategy/merge.h) */
  sdg_axes_t sums; /* axes along which every rank has all keys, so that dk and
                    * dv are sums over these ranks; 0: gradients of keys are
                    * sent to the owners of the keys */
  sdg_attention_lengths_t queries, keys; /* lengths of all sequences; owned */
  sdg_box_t *need[SDG_ATTENTION_SIDES];  /* need of each rank of the group;
                                          * owned */
  sdg_axes_t sum_axes; /* axes over which gradients of parameters are summed */
  bool same;           /* keys and values are one tensor, at one address */
  bool moves;          /* some rank needs keys or values of another */
  bool returns; /* some rank has gradients of keys or values of another */
} sdg_attention_maker_t;

/* Copies the placements of keys and values into `side`, and fills `need`,
 * `same`, `moves` and `returns` from the other members. The caller calls
 * sdg_attention_maker_fini, also after a failure. SDG_E_NO_MEMORY. */
sdg_status_t
sdg_attention_maker_init(sdg_attention_maker_t *m, const sdg_placement_t *keys,
                         const sdg_placement_t *values) SDG_MUST_CHECK;
void sdg_attention_maker_fini(sdg_attention_maker_t *m);

/* Fills `queries` and `keys` with the lengths of all sequences. *out_why: why
 * attention with these lengths cannot be split, or NULL. SDG_E_ATTENTION if the
 * ranks' lengths contradict each other, SDG_E_NO_MEMORY. */
sdg_status_t sdg_attention_maker_measure(sdg_attention_maker_t *m,
                                         const char **out_why) SDG_MUST_CHECK;
/* Whether some rank's piece of some sequence has no elements, either of its
 * queries or of the keys that it needs. Call it after
 * sdg_attention_maker_init. */
bool sdg_attention_maker_has_empty_piece(const sdg_attention_maker_t *m);
/* The first rank whose piece of some sequence has queries although all keys
 * that it needs of that sequence are padding; -1 if no rank has. Call it after
 * sdg_attention_maker_init. */
int sdg_attention_maker_rank_without_keys(const sdg_attention_maker_t *m);

/* A rank's queries, as a box of operand `index`, which has the same rows; index
 * < 0: of the queries themselves. */
sdg_box_t sdg_attention_maker_rows(const sdg_attention_maker_t *m, int index,
                                   int rank);
/* The box of keys or values (`side`) that rank `rank` of the job needs. If
 * `merges` is true, only the needed part of its own keys or values. */
sdg_box_t sdg_attention_maker_need(const sdg_attention_maker_t *m, int side,
                                   int rank);

/* The value of `sums` for keys and values in these placements. Call it before
 * sdg_attention_maker_init. */
sdg_axes_t sdg_attention_maker_sums(const sdg_attention_maker_t *m,
                                    const sdg_placement_t *keys,
                                    const sdg_placement_t *values);

/* Creates the placement of a tensor whose vectors have `vector` elements and
 * are not cut; time, batch and beam are cut like those of `like`. The caller
 * owns it. SDG_E_NO_MEMORY. */
sdg_status_t sdg_attention_like(const sdg_tagging_t *tagging,
                                const sdg_placement_t *like, int64_t vector,
                                sdg_placement_t *out) SDG_MUST_CHECK;

/* The factor for old values of dw: 1 if the call adds to them, otherwise 0. A
 * static double if the operands are double, otherwise a static float. */
const void *sdg_attention_old_factor(const sdg_call_t *call);

#endif
