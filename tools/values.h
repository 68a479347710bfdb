/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the outputs of tagged calls with those of the same calls on one
 * rank, as rules/values.h left them. */
#ifndef SDG_TOOLS_VALUES_H
#define SDG_TOOLS_VALUES_H

#include <stdbool.h>

#include "src/status.h"

/* Reads one/values-0 and many/values-R of all ranks, call by call; prints the
 * first element that differs by more than atol + rtol * |that of one rank|,
 * with its call and its index in the whole tensor, or how many were compared.
 * SDG_E_VERIFY if the files cannot be compared or nothing was. */
sdg_status_t values_compare(const char *one, const char *many, int ranks,
                            double rtol, double atol,
                            bool *out_differs) SDG_MUST_CHECK;

#endif
