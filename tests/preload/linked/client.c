// SPDX-License-Identifier: Apache-2.0
// A program that is linked to cuDNN; the build decides how.
#include "tests/preload/descriptor_calls.h"

int main(void) {
  return descriptor_calls();
}
