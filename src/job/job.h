/* SPDX-License-Identifier: Apache-2.0 */
/* This process as a rank of a job: joined or not, failed or not. */
#ifndef SDG_SRC_JOB_JOB_H
#define SDG_SRC_JOB_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/control/control.h"
#include "src/geometry/mesh.h"

extern atomic_int sdg_job_failure; /* sdg_status_t; SDG_OK while all is well */

/* True if the options ask for a split; constant after the constructor. */
bool sdg_job_asked(void);

/* True once the job is broken: a rank died, diverged or stalled, or a transfer
 * was aborted. From then on every entry returns an error, synchronising CUDA
 * calls included, so that an aborted transfer's buffer is never taken for
 * data. */
static inline bool sdg_job_failed(void) {
  return atomic_load_explicit(&sdg_job_failure, memory_order_acquire) != SDG_OK;
}
/* Breaks the job: remembers the first status, tells the other ranks. Text is
 * that of sdg_last_error(). Returns status. */
sdg_status_t sdg_job_fail(sdg_status_t status);

/* The ranks that agree with this one: those along the axes that some split
 * names. */
typedef struct sdg_group {
  int count;
  int me;                  /* index of this rank */
  int rank[SDG_RANKS_MAX]; /* ascending */
} sdg_group_t;

/* What carries data between the ranks of the job. */
typedef struct sdg_job_carrier {
  /* Called once, when this rank has joined; its failure is the job's. */
  sdg_status_t (*begin)(double timeout_s);
  /* Ends every transfer in flight. Any thread. */
  void (*abort)(void);
} sdg_job_carrier_t;

/* Joins as a rank with this mesh, `axes` being those that some split names;
 * idempotent, the first result stays. Blocks until all ranks are there.
 * `carrier` lives as long as the process. SDG_E_DESCENDANT: the rank's process
 * started this one, which is to pass everything from now on. */
sdg_status_t sdg_job_join(const sdg_mesh_t *mesh, sdg_axes_t axes,
                          const sdg_job_carrier_t *carrier) SDG_MUST_CHECK;
/* Ends every transfer of this rank that is in flight. */
void sdg_job_abort(void);
bool sdg_job_joined(void);
sdg_control_t *sdg_job_control(void);
const sdg_mesh_t *sdg_job_mesh(void);
const sdg_group_t *sdg_job_group(void);
/* The axes along which the group lies. */
sdg_axes_t sdg_job_axes(void);
int sdg_job_rank(void);
int sdg_job_size(void);

/* For messages: the tagged call that the thread with this channel is at, "call
 * 12 cudnn... of thread 'io'". Any thread. */
void sdg_job_call_of(int channel, char *out, size_t out_bytes);
/* The calling thread's. */
void sdg_job_call(char *out, size_t out_bytes);
/* The one that it is about to count. */
void sdg_job_call_next(const char *entry_name, char *out, size_t out_bytes);

/* This process is no rank. No wait, no allocation. */
void sdg_job_disarm(void);
/* The same in a child made by fork. */
void sdg_job_forked(void);
/* In such a child, at an op that may be tagged: SDG_OK where its parent is a
 * rank, said once; SDG_E_FORKED where the parent might have become one, and
 * nobody may take the op for the rank's. SDG_OK in every other process. */
sdg_status_t sdg_job_child(const char *entry_name) SDG_MUST_CHECK;
bool sdg_job_disarmed(void);

/* At exit: leaves the control channel. No CUDA. */
void sdg_job_leave(void);

#endif
