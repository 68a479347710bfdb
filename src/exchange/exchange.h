/* SPDX-License-Identifier: Apache-2.0 */
/* Joining and leaving a job as a rank that exchanges data: with a thread that
 * watches the transfers, and a report of them at the end. */
#ifndef SDG_SRC_EXCHANGE_EXCHANGE_H
#define SDG_SRC_EXCHANGE_EXCHANGE_H

#include "src/base/status.h"
#include "src/geometry/mesh.h"

/* sdg_job_join(), with its errors; transfers are watched from then on. */
sdg_status_t sdg_exchange_join(const sdg_mesh_t *mesh,
                               sdg_axes_t axes) SDG_MUST_CHECK;

/* At exit: ends the watching thread, writes the report, leaves the job. No
 * CUDA. */
void sdg_exchange_leave(void);

/* Ends the communicators, and forgets streams, events and memory, which are
 * made anew when they are needed. Nothing is in flight on the device, no other
 * thread makes tagged calls; the next ones of all ranks need every communicator
 * anew. */
void sdg_exchange_forget(void);

#endif
