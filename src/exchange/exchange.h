/* SPDX-License-Identifier: Apache-2.0 */
/* Joins and leaves a job as a rank that exchanges data: starts the thread that
 * watches transfers, and writes a report at the end. */
#ifndef SDG_SRC_EXCHANGE_EXCHANGE_H
#define SDG_SRC_EXCHANGE_EXCHANGE_H

#include "src/base/status.h"
#include "src/geometry/mesh.h"

/* Calls sdg_job_join(), with its errors, and watches transfers from then on. */
sdg_status_t sdg_exchange_join(const sdg_mesh_t *mesh,
                               sdg_axes_t axes) SDG_MUST_CHECK;

/* At exit: stops the watching thread, writes the report, leaves the job. Makes
 * no CUDA call. */
void sdg_exchange_leave(void);

/* Destroys the communicators and drops streams, events and memory; all are
 * created again when needed. Nothing may be in flight on the device, and no
 * other thread may make tagged calls. Every communicator has to be created
 * again by the next tagged calls of all ranks. */
void sdg_exchange_forget(void);

#endif
