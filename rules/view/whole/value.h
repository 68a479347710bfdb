/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: values that cuBLAS makes of vectors (norms, sums of absolute
 * values, dot products). Where the vectors are in pieces, each rank makes the
 * value of its elements, and the ranks combine these. Inside rules/ only. */
#ifndef SDG_RULES_VIEW_WHOLE_VALUE_H
#define SDG_RULES_VIEW_WHOLE_VALUE_H

#include "rules/vendor/vector.h"
#include "src/base/status.h"
#include "src/call/memory_access.h"

/* Carries out a call that computes a value. *out_done true: every rank has the
 * value, or the vendor's library refused the call; *out_result is its status.
 * False: nothing was called and the vectors are unchanged, because they are not
 * in pieces, or the value cannot be computed from these pieces
 * (rules/view/whole/vector_share.h, sdg_together_may). `memory`: the memory
 * that the call uses. Collective if out_done; any failure breaks the job. */
sdg_status_t sdg_whole_value(const sdg_memory_access_t *memory,
                             const sdg_vector_t *vector,
                             const sdg_vector_call_t *call, bool *out_done,
                             int *out_result) SDG_MUST_CHECK;

#endif
