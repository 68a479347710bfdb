// SPDX-License-Identifier: Apache-2.0
// A plugin that is linked to cuDNN.
#include "tests/preload/descriptor_calls.h"

__attribute__((visibility("default"))) int plugin_main(void);
int plugin_main(void) {
  return descriptor_calls();
}
