/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of libFuzzer, which the driver for random inputs uses, too. */
#ifndef SDG_TESTS_FUZZ_FUZZ_H
#define SDG_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Gives one input to the reader. Returns 0. If the reader is wrong, it or a
 * sanitizer aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Aborts if the condition is false, which no input may cause. */
#define FUZZ_HOLDS(condition)                                                  \
  do {                                                                         \
    if (!(condition))                                                          \
      abort();                                                                 \
  } while (0)

#endif
