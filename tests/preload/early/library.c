// SPDX-License-Identifier: Apache-2.0
// A library that uses cuDNN in its constructor, which runs before that of
// libsundog.so.
#include "tests/preload/descriptor_calls.h"

__attribute__((visibility("default"))) int early_done(void);

static int result = 1;

__attribute__((constructor)) static void early(void) {
  result = descriptor_calls();
}

int early_done(void) {
  return result;
}
