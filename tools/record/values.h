/* SPDX-License-Identifier: Apache-2.0 */
/* Compares outputs of tagged calls with outputs of the same calls on one rank.
 * rules/observe/values.h writes both. */
#ifndef SDG_TOOLS_RECORD_VALUES_H
#define SDG_TOOLS_RECORD_VALUES_H

#include <stdbool.h>

#include "src/base/status.h"

/* The allowed difference of two elements: atol + rtol * |element of one rank|
 * or, with `rounding`, the bound of element_rounding() for the largest element
 * of the output. */
typedef struct values_allowed {
  double rtol, atol;
  bool rounding;
  bool nothing; /* it is no fault that nothing was compared */
} values_allowed_t;

/* Compares one/values-0 with many/values-R of all ranks, call by call. Prints
 * the first element that differs by more than `allowed`, with its call and its
 * index in the whole tensor, or the number of compared elements; and the
 * largest difference. `calls`: the runs recorded their first so many calls.
 * SDG_E_VERIFY if the files cannot be compared, or nothing was compared. */
sdg_status_t values_compare(const char *one, const char *many, int ranks,
                            int calls, const values_allowed_t *allowed,
                            bool *out_differs) SDG_MUST_CHECK;

#endif
