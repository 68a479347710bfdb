// SPDX-License-Identifier: Apache-2.0
// Gives the job its communicators and its watching thread.
#include "src/exchange/exchange.h"

#include "src/comm/comm.h"
#include "src/exchange/exec.h"
#include "src/exchange/scratch.h"
#include "src/exchange/tensor_digest.h"
#include "src/exchange/waits.h"
#include "src/comm/watch.h"
#include "src/job/job.h"
#include "src/observe/report.h"

static sdg_status_t begin(double timeout_s) {
  sdg_report_begin();
  return sdg_job_size() > 1 ? sdg_watch_start(timeout_s) : SDG_OK;
}

sdg_status_t sdg_exchange_join(const sdg_mesh_t *mesh, sdg_axes_t axes) {
  static const sdg_job_carrier_t tcp = {.begin = begin,
                                        .abort = sdg_comm_abort_all};
  return sdg_job_join(mesh, axes, &tcp);
}

void sdg_exchange_leave(void) {
  sdg_watch_stop();
  sdg_report_write(sdg_scratch_bytes());
  sdg_job_leave();
}

void sdg_exchange_forget(void) {
  sdg_watch_forget();
  sdg_comm_forget();
  sdg_exec_forget();
  sdg_tensor_digest_forget();
  sdg_waits_forget();
  sdg_scratch_forget();
}
