// SPDX-License-Identifier: Apache-2.0
// Keeps the last entry that returned a value that may differ between ranks.
#include "src/control/parted.h"

#include <stdatomic.h>
#include <stdio.h>

static _Atomic(const char *) last;

void sdg_parted_note(const char *entry) {
  atomic_store_explicit(&last, entry, memory_order_relaxed);
}

void sdg_parted_format(char *out, size_t out_bytes) {
  const char *entry = atomic_load_explicit(&last, memory_order_relaxed);
  out[0] = 0;
  if (entry)
    snprintf(out, out_bytes,
             "; %s gives each rank the value of its own piece, so one rank may "
             "leave a loop that others continue",
             entry);
}
