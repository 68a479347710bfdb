/* SPDX-License-Identifier: Apache-2.0 */
/* Compares call by call what the ranks carry out, where nothing is agreed
 * because all descriptors are: ranks that leave out a call or change the order
 * would exchange halos of different calls. Each calling thread by itself. */
#ifndef SDG_RULES_STEP_DIVERGENCE_H
#define SDG_RULES_STEP_DIVERGENCE_H

#include "rules/place/op.h"

/* What every rank has alike in this call: entry, types, global extents,
 * parameters, whether it lacks memory; in the whole view strides.
 * `op` may be NULL. */
uint32_t sdg_divergence_hash(const sdg_call_t *call, const sdg_op_t *op,
                             const sdg_tagging_t *tagging);

/* The next op of this rank is one with `hash` and the call's scalars.
 * SDG_E_DIVERGED if a neighbouring rank's op of this number is another; the job
 * is broken then. Some stores and loads of shared memory. */
sdg_status_t sdg_divergence_check(const sdg_call_t *call, const sdg_op_t *op,
                                  uint32_t hash) SDG_MUST_CHECK;
/* The next op of this rank was refused, as it should be on every rank. */
sdg_status_t sdg_divergence_refused(const sdg_call_t *call) SDG_MUST_CHECK;
/* Whole view: this rank is about to exchange what `entry_name` touches;
 * `what` tells of what. */
sdg_status_t sdg_divergence_update(const char *entry_name,
                                   uint64_t what) SDG_MUST_CHECK;

/* Whole view: this call reads values that the program copied from the host,
 * into `role` first, of which `digest` is made. SDG_E_INPUTS_DIFFER, which
 * breaks the job. */
sdg_status_t sdg_divergence_values(const char *entry_name, const char *role,
                                   uint64_t digest) SDG_MUST_CHECK;

/* At the end of the process: the same for all ops together, for calls that no
 * other rank waits for. Reports and counts a failure. */
void sdg_divergence_finish(void);

/* From now on messages of divergence say that a second thread touches shared
 * tensors, the likely cause. */
void sdg_divergence_say_second(void);

#endif
