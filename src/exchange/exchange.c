// SPDX-License-Identifier: Apache-2.0
// Gives the job its communicators and its watching thread.
#include "src/exchange/exchange.h"

#include "src/base/vendor.h"
#include "src/comm/comm.h"
#include "src/comm/watch.h"
#include "src/exchange/device.h"
#include "src/exchange/graph.h"
#include "src/exchange/lanes.h"
#include "src/exchange/phases.h"
#include "src/exchange/stretch.h"
#include "src/exchange/tensor_digest.h"
#include "src/job/job.h"
#include "src/observe/report.h"

// Calls of a runtime that is linked into the program are not seen: not its
// copies of tensors in pieces, and not the waits in which it would learn that
// another rank has failed. A program that has not loaded the shared runtime
// does without it.
static sdg_status_t check(void) {
  const char *file = sdg_library_own_cudart();
  if (file)
    return sdg_fail(SDG_E_OWN_CUDART, "%s", file);
  static const sdg_library_row_t row = {SDG_LIBRARY_CUDART, "cudaGetDevice", 0};
  void *found; // tells where the runtime comes from
  SDG_TRY(sdg_library_fill(&row, 1, &found));
  return sdg_library_brought(SDG_LIBRARY_CUDART)
             ? sdg_fail(SDG_E_OWN_CUDART, "nothing has loaded libcudart")
             : SDG_OK;
}

static sdg_status_t begin(double timeout_s) {
  sdg_report_begin();
  return sdg_job_size() > 1 ? sdg_watch_start(timeout_s) : SDG_OK;
}

sdg_status_t sdg_exchange_join(const sdg_mesh_t *mesh, sdg_axes_t axes) {
  static const sdg_job_carrier_t carrier = {
      .check = check, .begin = begin, .abort = sdg_comm_abort_all};
  return sdg_job_join(mesh, axes, &carrier);
}

void sdg_exchange_leave(void) {
  sdg_watch_stop();
  sdg_report_write(sdg_scratch_bytes() + sdg_graph_bytes());
  sdg_job_leave();
}

void sdg_exchange_forget(void) {
  sdg_watch_forget();
  sdg_comm_forget();
  sdg_lanes_forget();
  sdg_graph_forget();
  sdg_stretch_forget();
  sdg_tensor_digest_forget();
  sdg_phases_forget();
  sdg_scratch_forget();
}
