// SPDX-License-Identifier: Apache-2.0
// Waits for the device, and captures, one or the other.
#include "src/comm/device_wait.h"

#include <sched.h>
#include <stdatomic.h>

// Each side announces itself before it looks at the other one.
static atomic_int waits, captures;

void sdg_device_wait_begin(void) {
  atomic_fetch_add(&waits, 1);
  while (atomic_load(&captures) > 0)
    (void)sched_yield();
}

void sdg_device_wait_end(void) {
  atomic_fetch_sub(&waits, 1);
}

bool sdg_device_capture_begin(void) {
  atomic_fetch_add(&captures, 1);
  if (atomic_load(&waits) == 0)
    return true;
  atomic_fetch_sub(&captures, 1);
  return false;
}

void sdg_device_capture_end(void) {
  atomic_fetch_sub(&captures, 1);
}
