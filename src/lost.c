// SPDX-License-Identifier: Apache-2.0
// Finds the rank whose end made a transfer fail.
#include "src/lost.h"

#include <stdio.h>

#include "src/comm.h"
#include "src/control.h"
#include "src/job.h"

sdg_status_t sdg_lost_check(const char *what, bool has_failed) {
  sdg_control_t *control = sdg_job_control();
  int self = sdg_job_rank();
  // A failure says why a rank left.
  sdg_status_t told = sdg_control_check(control, false);
  if (told != SDG_OK && told != SDG_E_PEER_LOST)
    return sdg_control_check(control, true);
  uint64_t own = sdg_control_count_of(control, 0, self, NULL, 0);
  for (int r = 0; r < sdg_job_size(); r++) {
    char at[96];
    int ended = r == self ? 0 : sdg_control_ended(control, r);
    uint64_t count = sdg_control_count_of(control, 0, r, at, sizeof at);
    if (!ended || (ended == SDG_CONTROL_LEFT && count >= own && !has_failed))
      continue;
    return sdg_fail(SDG_E_PEER_LOST,
                    "rank %d %s at call %llu %s, and %s of "
                    "rank %d needs its part of a transfer",
                    r, ended == SDG_CONTROL_LEFT ? "ended" : "died",
                    (unsigned long long)count, at, what, self);
  }
  return SDG_OK;
}

void sdg_lost_explain(const char *entry) {
  if (!sdg_job_joined() || sdg_job_size() < 2 || sdg_job_failed())
    return;
  char at[96], what[160];
  uint64_t call =
      sdg_control_count_of(sdg_job_control(), 0, sdg_job_rank(), at, sizeof at);
  if (call == 0)
    return; // no transfer yet: the failure is the program's own
  snprintf(what, sizeof what, "%s after call %llu %s", entry,
           (unsigned long long)call, at);
  sdg_status_t status = sdg_lost_check(what, true);
  if (status == SDG_OK)
    return;
  (void)sdg_job_fail(status);
  sdg_comm_abort_all();
}
