/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of ops with a sliding window: literal, repair or extend. The op
 * supplies only the computation of one piece. Inside rules/ only. */
#ifndef SDG_RULES_WINDOW_PLAN_H
#define SDG_RULES_WINDOW_PLAN_H

#include "rules/window/stack.h"

/* What the op supplies for a plan. */
typedef struct sdg_window_client {
  int x, y, z; /* operands; z is a second input cut like y, or -1 */
  /* True: the op reads y before it writes it, or it reads z. */
  bool reads_old;
  bool refuses_own; /* the engine rejects the program's own call, unchanged */
  bool keeps_x; /* received messages are kept for a later call, so they arrive
                 * in slabs of their own, not in assembled tensors */
  /* Sets state, state_destroy and run of the empty plan. */
  sdg_status_t (*open)(void *user, sdg_plan_t *plan);
  /* Adds the next sub-call; they are numbered from 0. *out_refusal: the
   * vendor's status if its library rejects this piece; that is not reported. */
  sdg_status_t (*add)(void *user, sdg_plan_t *plan,
                      const sdg_window_piece_t *piece,
                      const sdg_window_slabs_t *slabs, int *out_refusal);
  /* After the last sub-call: adds the workspace. */
  sdg_status_t (*close)(void *user, sdg_plan_t *plan);
  void *user;
} sdg_window_client_t;

/* SDG_E_VENDOR_CALL if the vendor's library rejects a piece in every strategy
 * that may be tried. */
sdg_status_t sdg_window_plan(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const sdg_window_op_t *op,
                             const sdg_window_client_t *client,
                             sdg_plan_t **out_plan) SDG_MUST_CHECK;

/* SDG_E_VENDOR_CALL: the library accepts no algorithm for a piece, with the
 * vendor's status. */
sdg_status_t sdg_window_plan_refused(const sdg_call_t *call,
                                     int refusal) SDG_MUST_CHECK;

/* A plan that makes the program's own call unchanged. If other ranks exchange
 * messages over `axes`, this rank counts that exchange, too. */
sdg_status_t sdg_window_plan_literal(sdg_axes_t axes,
                                     sdg_plan_t **out_plan) SDG_MUST_CHECK;

/* The plan of an op from sdg_window_op_init_whole: in place, with the strides
 * of the full tensors, plus strips around the ends of periodic dimensions
 * ("window"); or on assembled tensors, if the vendor's library rejects that
 * ("extend"). */
sdg_status_t sdg_window_plan_whole(const sdg_call_t *call,
                                   const sdg_window_op_t *op,
                                   const sdg_window_client_t *client,
                                   sdg_strategy_t strategy,
                                   sdg_plan_t **out_plan) SDG_MUST_CHECK;

/* ---- assembled tensors: in scratch, of a rank's own rows and of messages   */

/* Assembles what this rank has itself. Rows of slab `to` outside `domain` (in
 * the domain's coordinates) become zero. Rows that the transfer finds on this
 * rank are copied from slab `from`, including their wrapped images. */
sdg_status_t sdg_window_assemble_own(sdg_plan_t *plan,
                                     const sdg_transfer_t *transfer,
                                     const sdg_box_t *domain, int from, int to,
                                     sdg_copy_kind_t kind) SDG_MUST_CHECK;
/* Assembles what was received. message[i] is the slab of transfer->recv[i], or
 * -1 if that message arrived in place (sdg_plan_messages). */
sdg_status_t sdg_window_assemble_received(sdg_plan_t *plan,
                                          const sdg_transfer_t *transfer,
                                          const int *message,
                                          int to) SDG_MUST_CHECK;

#endif
