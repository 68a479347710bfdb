// SPDX-License-Identifier: Apache-2.0
// The functions of the dummy cuDNN that no test checks. They only exist.
#define SDG_VENDOR(name)                                                       \
  __attribute__((weak, visibility("default"))) int name(void);                 \
  int name(void) {                                                             \
    return 3000;                                                               \
  }
#include "rules/vendor/vendor.def"
