/* SPDX-License-Identifier: Apache-2.0 */
/* Checks at every call that all ranks carry out the same one, also when no
 * agreement is needed. Otherwise ranks that leave out a call or change the
 * order would exchange halos of different calls. Each calling thread is checked
 * by itself. */
#ifndef SDG_RULES_STEP_DIVERGENCE_H
#define SDG_RULES_STEP_DIVERGENCE_H

#include "rules/place/op.h"

/* A hash of what must be equal on all ranks in this call: entry, roles, types,
 * global extents, parameters, and whether memory is NULL; in the whole view
 * also strides. `op` may be NULL. */
uint32_t sdg_divergence_hash(const sdg_call_t *call, const sdg_op_t *op,
                             const sdg_tagging_t *tagging);

/* Publishes that the next op of this rank has `hash` and the call's scalars.
 * `captured`: it goes into a CUDA graph; SDG_E_CAPTURE_DIFFERS then in place of
 * SDG_E_DIVERGED, which breaks the job, if a neighbouring rank's op of the same
 * number differs. Costs a few stores and loads of shared memory. */
sdg_status_t sdg_divergence_check(const sdg_call_t *call, const sdg_op_t *op,
                                  uint32_t hash, bool captured) SDG_MUST_CHECK;
/* The same for an op that was refused, as it should be on every rank. */
sdg_status_t sdg_divergence_refused(const sdg_call_t *call) SDG_MUST_CHECK;
/* Whole view: the same for an exchange that brings memory up to date before
 * `entry_name` uses it. `what`: a hash of that memory. */
sdg_status_t sdg_divergence_update(const char *entry_name,
                                   uint64_t what) SDG_MUST_CHECK;

/* A number for a tensor, from 0 to 15, of this thread's last op: the same on
 * every rank if they make the same calls; never 0. */
uint64_t sdg_divergence_tensor(int index);
/* Compares `count` hashes of which tensors the last op reads (the contents of
 * memory, src/geometry/hint.h); 0: this rank does not know, which equals any.
 * All ranks do this after the same ops, with the same count. SDG_E_DIVERGED,
 * which breaks the job. */
sdg_status_t sdg_divergence_contents(const char *entry_name,
                                     const uint64_t *contents,
                                     int count) SDG_MUST_CHECK;
/* 32 bits of all bits of a hash. */
uint32_t sdg_divergence_fold(uint64_t hash);

/* Whole view: the same for values that the program copied from the host and
 * that this call reads. `digest` is that of the values, `role` the name of the
 * first operand that has them. SDG_E_INPUTS_DIFFER, which breaks the job. */
sdg_status_t sdg_divergence_values(const char *entry_name, const char *role,
                                   uint64_t digest) SDG_MUST_CHECK;

/* At the end of the process: compares the number and a hash of all ops with
 * those of the other ranks, which finds calls that no other rank waits for.
 * Reports and counts a failure. */
void sdg_divergence_finish(void);

/* From now on messages of divergence name the likely cause: a second thread
 * uses shared tensors. */
void sdg_divergence_say_second(void);

#endif
