/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the outputs of tagged calls with those of the same calls on one
 * rank, as rules/observe/values.h left them. */
#ifndef SDG_TOOLS_RECORD_VALUES_H
#define SDG_TOOLS_RECORD_VALUES_H

#include <stdbool.h>

#include "src/base/status.h"

/* What elements may differ by: atol + rtol * |that of one rank|, or, with
 * `rounding`, what element_rounding() says for the largest of the output. */
typedef struct values_allowed {
  double rtol, atol;
  bool rounding;
} values_allowed_t;

/* Reads one/values-0 and many/values-R of all ranks, call by call; prints the
 * first element that differs by more than is allowed, with its call and its
 * index in the whole tensor, or how many were compared; and the largest
 * difference. SDG_E_VERIFY if the files cannot be compared or nothing was;
 * `calls` is how many of the runs' first ones were kept. */
sdg_status_t values_compare(const char *one, const char *many, int ranks,
                            int calls, const values_allowed_t *allowed,
                            bool *out_differs) SDG_MUST_CHECK;

#endif
