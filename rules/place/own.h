/* SPDX-License-Identifier: Apache-2.0 */
/* Shard view: checks a call that a rank makes alone, on tensors that a [local]
 * section or a tag names, or that nothing names. Inside rules/ only. */
#ifndef SDG_RULES_PLACE_OWN_H
#define SDG_RULES_PLACE_OWN_H

#include "rules/place/op.h"

/* To be called before the real function gets the program's call. SDG_E_ARGUMENT
 * if the call's parameters are those of a piece. SDG_E_OWN_PIECE if an op with
 * windows reads memory that a plan wrote in pieces; this breaks the job,
 * because the other ranks may not see it. Descriptors do not show it, so the
 * probes of such ops look at every call while any memory is in pieces. */
sdg_status_t sdg_own_check(const sdg_call_t *call,
                           const sdg_op_t *op) SDG_MUST_CHECK;
/* The same for a call of which nothing names the tensors: SDG_E_PIECE_REDUCED
 * if it reduces memory that a plan wrote in pieces, and nothing says that the
 * values of one piece are meant. */
sdg_status_t sdg_own_check_value(const sdg_call_t *call) SDG_MUST_CHECK;
/* For a reduction that is combined over ranks: SDG_E_WHOLE_REDUCED if it reads
 * memory that is the same on every rank, according to what wrote it; this
 * breaks the job, because the other ranks may not see it. */
sdg_status_t sdg_own_check_copies(const sdg_call_t *call) SDG_MUST_CHECK;

#endif
