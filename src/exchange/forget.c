// SPDX-License-Identifier: Apache-2.0
// Everything of the device is kept where it is used; here they are told.
#include "src/exchange/forget.h"

#include "src/exchange/comm.h"
#include "src/exchange/exec.h"
#include "src/exchange/fetch.h"
#include "src/exchange/scratch.h"
#include "src/exchange/waits.h"
#include "src/exchange/watch.h"

void sdg_forget_device(void) {
  sdg_watch_forget();
  sdg_comm_forget();
  sdg_exec_forget();
  sdg_fetch_forget();
  sdg_waits_forget();
  sdg_scratch_forget();
}
