// SPDX-License-Identifier: Apache-2.0
// Gives the job what carries its data: communicators and the watching thread.
#include "src/exchange.h"

#include "src/comm.h"
#include "src/job.h"
#include "src/report.h"
#include "src/scratch.h"
#include "src/watch.h"

static sdg_status_t begin(double timeout_s) {
  sdg_report_begin();
  return sdg_job_size() > 1 ? sdg_watch_start(timeout_s) : SDG_OK;
}

sdg_status_t sdg_exchange_join(const sdg_mesh_t *mesh, sdg_axes_t axes) {
  static const sdg_job_carrier_t carrier = {.begin = begin,
                                            .abort = sdg_comm_abort_all};
  return sdg_job_join(mesh, axes, &carrier);
}

void sdg_exchange_leave(void) {
  sdg_watch_stop();
  sdg_report_write(sdg_scratch_bytes());
  sdg_job_leave();
}
