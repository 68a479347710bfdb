/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of cuDNN, cuBLAS, NCCL and the CUDA runtime that must succeed. Each of
 * these libraries returns 0 on success. */
#ifndef SDG_TESTS_CALLS_H
#define SDG_TESTS_CALLS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* In a program of its own: says which call failed and ends the program. */
#define CHECK(call)                                                            \
  do {                                                                         \
    int status_ = (int)(call);                                                 \
    if (status_ != 0) {                                                        \
      fprintf(stderr, "%s: %s: status %d\n", program_invocation_short_name,    \
              #call, status_);                                                 \
      exit(EXIT_FAILURE);                                                      \
    }                                                                          \
  } while (0)

/* In a test of Check, which includes <check.h>: fails the test. */
#define OK(call) ck_assert_int_eq((int)(call), 0)

#endif
