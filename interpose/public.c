// SPDX-License-Identifier: Apache-2.0
// The functions of sundog.h, as libsundog.so exports them.
#include "src/sundog.h"

#include "interpose/load.h"
#include "src/status.h"
#include "src/thread.h"

const char *sundog_version(void) {
  return SUNDOG_VERSION;
}

const char *sundog_error(void) {
  return sdg_last_error();
}

int sundog_thread(const char *name) {
  sdg_load_options();
  return (int)sdg_thread_set_name(name);
}
