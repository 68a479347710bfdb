// SPDX-License-Identifier: Apache-2.0
// Reports, once per function, that the program calls a function that the host
// device does not have.
#include "src/host/exports/unsupported.h"

#include <stdatomic.h>
#include <stdio.h>

void host_unsupported(const char *name, _Atomic int *said) {
  if (atomic_exchange(said, 1) == 0)
    fprintf(stderr, "sundog host device: %s is not supported\n", name);
}
