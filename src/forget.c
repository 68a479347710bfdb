// SPDX-License-Identifier: Apache-2.0
// Everything of the device is kept where it is used; here they are told.
#include "src/forget.h"

#include "src/comm.h"
#include "src/exec.h"
#include "src/fetch.h"
#include "src/scratch.h"
#include "src/waits.h"
#include "src/watch.h"

void sdg_forget_device(void) {
  sdg_watch_forget();
  sdg_comm_forget();
  sdg_exec_forget();
  sdg_fetch_forget();
  sdg_waits_forget();
  sdg_scratch_forget();
}
