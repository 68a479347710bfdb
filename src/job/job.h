/* SPDX-License-Identifier: Apache-2.0 */
/* This process as a rank of a job: joined or not, failed or not. */
#ifndef SDG_SRC_JOB_JOB_H
#define SDG_SRC_JOB_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/base/status.h"
#include "src/control/control.h"
#include "src/geometry/mesh.h"

extern atomic_int sdg_job_failure; /* sdg_status_t; SDG_OK while all is well */

/* Returns true if the options ask for a split; constant after the
 * constructor. */
bool sdg_job_asked(void);

/* Returns true once the job is broken: a rank died, diverged or stalled, or a
 * transfer was aborted. From then on every entry returns an error, including
 * synchronising CUDA calls, so that the program never takes the buffer of an
 * aborted transfer for data. */
static inline bool sdg_job_failed(void) {
  return atomic_load_explicit(&sdg_job_failure, memory_order_acquire) != SDG_OK;
}
/* Breaks the job: stores the first status and tells the other ranks, with the
 * text of sdg_last_error(). Returns `status`. */
sdg_status_t sdg_job_fail(sdg_status_t status);

/* The ranks that take part in this rank's agreements: those along the axes
 * that some split names. */
typedef struct sdg_group {
  int count;
  int me;                  /* this rank's index in rank[] */
  int rank[SDG_RANKS_MAX]; /* ascending */
} sdg_group_t;

/* The component that carries data between the ranks of the job. */
typedef struct sdg_job_carrier {
  /* Each is called once, and if it fails, the join fails. check: before the
   * ranks meet, if they are several; begin: after this rank has joined. */
  sdg_status_t (*check)(void);
  sdg_status_t (*begin)(double timeout_s);
  /* Aborts every transfer in flight. Any thread. */
  void (*abort)(void);
} sdg_job_carrier_t;

/* Joins as a rank of this mesh; `axes` are the axes that some split names.
 * Idempotent: later calls return the first result. Blocks until all ranks have
 * joined. `carrier` lives as long as the process. SDG_E_DESCENDANT: the
 * process of this rank started this process, which must pass every call on
 * from now on. */
sdg_status_t sdg_job_join(const sdg_mesh_t *mesh, sdg_axes_t axes,
                          const sdg_job_carrier_t *carrier) SDG_MUST_CHECK;
/* Aborts every transfer of this rank that is in flight. */
void sdg_job_abort(void);
bool sdg_job_joined(void);
sdg_control_t *sdg_job_control(void);
const sdg_mesh_t *sdg_job_mesh(void);
const sdg_group_t *sdg_job_group(void);
/* Gathers a record of each rank of the group (sdg_control_gather). */
sdg_status_t sdg_job_gather(int channel, const void *mine, size_t bytes,
                            const char *what,
                            sdg_records_t *out) SDG_MUST_CHECK;
/* Returns the axes that the group spans. */
sdg_axes_t sdg_job_axes(void);
int sdg_job_rank(void);
int sdg_job_size(void);

/* For messages: writes the tagged call that the thread with this channel is
 * at, "call 12 cudnn... of thread 'io'". Any thread. */
void sdg_job_call_of(int channel, char *out, size_t out_bytes);
/* Writes the calling thread's current call. */
void sdg_job_call(char *out, size_t out_bytes);
/* Writes the call that the calling thread is about to count. */
void sdg_job_call_next(const char *entry_name, char *out, size_t out_bytes);

/* Makes this process no rank. Does not wait or allocate. */
void sdg_job_disarm(void);
/* The same in a child made by fork. */
void sdg_job_forked(void);
/* Called in a forked child, at an op that may be tagged. SDG_OK if the parent
 * is a rank (logged once). SDG_E_FORKED if the parent had not joined:
 * otherwise the child's results could pass for the rank's. SDG_OK in every
 * other process. */
sdg_status_t sdg_job_child(const char *entry_name) SDG_MUST_CHECK;
bool sdg_job_disarmed(void);

/* At exit: leaves the control channel. Makes no CUDA call. */
void sdg_job_leave(void);

#endif
