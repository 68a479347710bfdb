/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuzzed reader is given: the interface of libFuzzer, by which tests of
 * random inputs run, too. */
#ifndef SDG_TESTS_FUZZ_FUZZ_H
#define SDG_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Hands one input to the reader. Returns 0; aborts, by itself or by a
 * sanitizer, where the reader is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* What no input may make false. */
#define FUZZ_HOLDS(condition)                                                  \
  do {                                                                         \
    if (!(condition))                                                          \
      abort();                                                                 \
  } while (0)

#endif
