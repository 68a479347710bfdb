/* SPDX-License-Identifier: Apache-2.0 */
/* sundog_halo and sundog_tensor_place: tensors that the program describes by
 * numbers. */
#ifndef SDG_RULES_VIEW_HALO_H
#define SDG_RULES_VIEW_HALO_H

#include "src/base/status.h"
#include "src/sundog.h"

/* Carries out sundog_halo, whose errors these are. Collective if the tensor is
 * split. */
sdg_status_t sdg_halo(const void *stream, const sundog_tensor_t *tensor,
                      const void *data, const sundog_widths_t *widths,
                      void *out) SDG_MUST_CHECK;

/* Where this rank's piece lies in the whole, as sundog_tensor_place returns it:
 * the number of dimensions; 0 if no call has used the tensor, or if it is wrong
 * (sdg_last_error says how). */
int sdg_halo_place(const sundog_tensor_t *tensor, int64_t *first,
                   int64_t *whole);

#endif
