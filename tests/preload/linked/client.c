// SPDX-License-Identifier: Apache-2.0
// A program that is linked to cuDNN; how is up to the build.
#include "tests/preload/descriptor_calls.h"

int main(void) {
  return descriptor_calls();
}
