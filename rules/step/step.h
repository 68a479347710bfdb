/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a tagged call that are the same in both views. Inside rules/
 * only. */
#ifndef SDG_RULES_STEP_STEP_H
#define SDG_RULES_STEP_STEP_H

#include <cuda_runtime_api.h>

#include "rules/place/op.h"
#include "rules/step/plan_cache.h"
#include "src/exchange/exec.h"

/* What is known of a descriptor is known of a generation of it: every one has
 * to have been seen set. SDG_E_DESCRIPTOR. */
sdg_status_t sdg_step_check(const sdg_call_t *call) SDG_MUST_CHECK;

/* Numbers the call, which the other ranks make too, and has its failures name
 * the number. */
void sdg_step_number(const sdg_call_t *call);
/* It is not known yet: failures name the one that this call would get. */
void sdg_step_foresee(const sdg_call_t *call);

/* Agrees with the other ranks on the call's descriptors and what `op`, which
 * may be NULL, says of its parameters. Collective; *out_wait_ns is the time
 * spent waiting. */
sdg_status_t sdg_step_agree(const sdg_call_t *call, const sdg_op_t *op,
                            int64_t *out_wait_ns) SDG_MUST_CHECK;

/* Makes the communicators of a new plan, here where all ranks are: at a run of
 * it some may have nothing to exchange. Counts what it brings along each axis.
 */
sdg_status_t sdg_step_connect(sdg_plan_t *plan) SDG_MUST_CHECK;

/* Carries out a plan. call->result is not 0 where the vendor's library refused
 * the call on every rank before anything was changed, as it may on one device:
 * then it is the same on every rank. Refused on some ranks only, or half way:
 * SDG_E_VENDOR_CALL, or SDG_E_DIVERGED where the others have gone on. */
sdg_status_t sdg_step_run(sdg_call_t *call, const sdg_plan_entry_t *entry,
                          cudaStream_t stream) SDG_MUST_CHECK;
/* The same, but for what `how` says (src/exchange/exec.h). */
sdg_status_t sdg_step_run_how(sdg_call_t *call, const sdg_plan_entry_t *entry,
                              cudaStream_t stream,
                              const sdg_exec_how_t *how) SDG_MUST_CHECK;

/* A verdict (bad parameters, an unsupported op) falls alike on every rank; an
 * accident (no memory, a library's refusal) need not. */
bool sdg_step_is_verdict(sdg_status_t status);

/* A call's status, unless it is that of an accident. Those may be this rank's
 * alone: the others count on messages that will not come, so the job is over;
 * what ended it is returned. */
sdg_status_t sdg_step_accident(sdg_status_t status) SDG_MUST_CHECK;

/* ---- calls without the memory of one of their tensors, which the vendor's
 * library refuses ---- */

/* True if the program gives no memory for a tensor that the op cannot do
 * without. Of ops whose plans do not look for that themselves. `op` may be
 * NULL. */
bool sdg_step_null_operand(const sdg_call_t *call, const sdg_op_t *op);
/* Shard view, where the program's call is not right as it is: gives it to the
 * vendor's library all the same, and compares with the other ranks what that
 * says. */
sdg_status_t sdg_step_null_operand_plan(sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
