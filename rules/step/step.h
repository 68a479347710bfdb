/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a tagged call that are the same in both views: check, number,
 * agree, connect, run. Inside rules/ only. */
#ifndef SDG_RULES_STEP_STEP_H
#define SDG_RULES_STEP_STEP_H

#include <cuda_runtime_api.h>

#include "rules/place/op.h"
#include "rules/step/plan_cache.h"
#include "src/exchange/exec.h"

/* SDG_E_DESCRIPTOR if sundog has not seen a descriptor of the call being set:
 * all that it knows belongs to a generation. */
sdg_status_t sdg_step_check(const sdg_call_t *call) SDG_MUST_CHECK;

/* Gives the call its number, which is the same on all ranks. From now on
 * messages of failures name it. */
void sdg_step_number(const sdg_call_t *call);
/* Before it is known whether the call gets a number: messages of failures name
 * the number that it would get. */
void sdg_step_foresee(const sdg_call_t *call);

/* Agrees with the other ranks on the call's descriptors and on its parameters
 * as `op` describes them (NULL: it has none). Collective over the agreement's
 * group. *out_wait_ns: time spent waiting for other ranks. */
sdg_status_t sdg_step_agree(const sdg_call_t *call, const sdg_op_t *op,
                            int64_t *out_wait_ns) SDG_MUST_CHECK;

/* Makes the communicators of a new plan. Collective: all ranks make the plan at
 * the same call, but when it runs, some may have nothing to exchange. Also
 * counts the bytes that the plan moves along each axis. */
sdg_status_t sdg_step_connect(sdg_plan_t *plan) SDG_MUST_CHECK;

/* Carries out a plan. If the vendor's library refuses the call on every rank
 * before anything is changed, as it may on one device, returns SDG_OK, and
 * call->result is the vendor's status, the same on every rank; otherwise it is
 * 0. If it refuses on some ranks only, or after a part of the call:
 * SDG_E_VENDOR_CALL, or SDG_E_DIVERGED if other ranks are at another call. */
sdg_status_t sdg_step_run(sdg_call_t *call, const sdg_plan_entry_t *entry,
                          cudaStream_t stream) SDG_MUST_CHECK;
/* The same, with the options of `how` (src/exchange/exec.h). */
sdg_status_t sdg_step_run_how(sdg_call_t *call, const sdg_plan_entry_t *entry,
                              cudaStream_t stream,
                              const sdg_exec_how_t *how) SDG_MUST_CHECK;

/* Whether a failure is a verdict, which every rank reaches alike (bad
 * parameters, an unsupported op). Other failures are accidents (no memory, a
 * library's refusal), which may happen on one rank only. */
bool sdg_step_is_verdict(sdg_status_t status);

/* Returns success and verdicts unchanged. An accident ends the job, because
 * other ranks may wait for messages that will not come; the status that ended
 * the job is returned. */
sdg_status_t sdg_step_accident(sdg_status_t status) SDG_MUST_CHECK;

/* ---- calls in which a scaling factor or a tensor's memory is NULL although
 * the vendor's library needs it and refuses the call ---- */

/* True if a scaling factor is NULL, or the memory of a tensor that the op
 * needs; families whose plans check memory themselves are without
 * SDG_FAMILY_NULL_OPERANDS. Always false for queries. `op` may be NULL:
 * false. */
bool sdg_step_null_operand(const sdg_call_t *call, const sdg_op_t *op);
/* Shard view: makes a plan for such a call. It passes the program's call to the
 * vendor's library, whose refusal becomes the call's result; if the library
 * accepts it, the result is CUDNN_STATUS_BAD_PARAM. A product gets cuBLAS'
 * status without being passed on. The caller owns *out_plan.
 * SDG_E_NO_MEMORY. */
sdg_status_t sdg_step_null_operand_plan(const sdg_call_t *call,
                                        sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
