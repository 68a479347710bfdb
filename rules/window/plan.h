/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of ops with a sliding window: literal, repair or extend. The op only
 * says how one piece is computed. Inside rules/ only. */
#ifndef SDG_RULES_WINDOW_PLAN_H
#define SDG_RULES_WINDOW_PLAN_H

#include "rules/window/op.h"
#include "src/plan/plan.h"

/* Where a sub-call finds its tensors. */
typedef struct sdg_window_slabs {
  int x, y, z;  /* slabs of the plan; z -1: there is none */
  bool program; /* the program's own tensors as they are */
} sdg_window_slabs_t;

/* The op's side of a plan. */
typedef struct sdg_window_client {
  int x, y, z; /* operands; z is a second input cut like y, or -1 */
  /* Whether the op reads y before it writes it, or z at all. */
  bool reads_old;
  bool keeps_x; /* messages arrive in nothing that is assembled */
  /* Gives the empty plan its state, state_destroy and run. */
  sdg_status_t (*open)(void *user, sdg_plan_t *plan);
  /* Adds the next sub-call, numbered from 0. *out_refusal: the vendor's status
   * if its library does not take this piece, which is not reported. */
  sdg_status_t (*add)(void *user, sdg_plan_t *plan,
                      const sdg_window_piece_t *piece,
                      const sdg_window_slabs_t *slabs, int *out_refusal);
  /* After the last sub-call: adds the workspace. */
  sdg_status_t (*close)(void *user, sdg_plan_t *plan);
  void *user;
} sdg_window_client_t;

/* SDG_E_VENDOR_CALL if the vendor's library refuses a piece of every strategy
 * that may be tried. */
sdg_status_t sdg_window_plan(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const sdg_window_op_t *op,
                             const sdg_window_client_t *client,
                             sdg_plan_t **out_plan) SDG_MUST_CHECK;

/* The program's own call is right as it is; where others exchange something
 * over `axes`, this rank counts along. */
sdg_status_t sdg_window_plan_literal(sdg_axes_t axes,
                                     sdg_plan_t **out_plan) SDG_MUST_CHECK;

/* The same of an op of sdg_window_op_init_whole: in place, with the strides of
 * the whole tensors ("window"), but for strips around a periodic dimension; or
 * where the vendor's library refuses that, on assembled tensors ("extend"). */
sdg_status_t sdg_window_plan_whole(const sdg_call_t *call,
                                   const sdg_window_op_t *op,
                                   const sdg_window_client_t *client,
                                   sdg_strategy_t strategy,
                                   sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
