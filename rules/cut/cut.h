/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a function or kernel of the rules computes on pieces what it computes
 * as a whole, for `sundog verify --calls`. */
#ifndef SDG_RULES_CUT_CUT_H
#define SDG_RULES_CUT_CUT_H

#include <stdbool.h>

#include "rules/function/call.h"

/* Whether this process tries calls in pieces (SUNDOG_CUTS). */
bool sdg_cut_wanted(void);

typedef struct sdg_cut sdg_cut_t;

/* Before the program's own call with these arguments: plays the ranks of the
 * rules on copies of its tensors, if it is one of the first calls of its
 * function and of SUNDOG_VALUES_CALLS calls of functions. Memory that the
 * section does not describe is the program's own. The first 8 bytes behind an
 * argument that is `pointer`, or `in` without a tensor, become what they were
 * before each trial; a change that another thread makes there meanwhile counts
 * as the trial's, and is lost. Returns what sdg_cut_end
 * compares and frees; NULL: nothing is to be compared. */
sdg_cut_t *sdg_cut_begin(sdg_function_call_t *function);
/* After it: compares, and writes what it finds to <SUNDOG_CUTS>/cuts. Waits for
 * the call. `returned`: what the program's call has returned, as in
 * sdg_function_call_t; NULL: nothing. `cut` may be NULL. */
void sdg_cut_end(sdg_cut_t *cut, const void *returned);

/* Whether this thread is in sdg_cut_begin. */
bool sdg_cut_tries(void);
/* An exception leaves the program's own call, in place of sdg_cut_end; or, if
 * `cut` is NULL, this thread's sdg_cut_begin, in which a function was called:
 * the program's own call is then not made. Writes so and frees. */
void sdg_cut_left(sdg_cut_t *cut);

/* In a forked child: tries nothing. Allocates nothing and does not wait. */
void sdg_cut_drop(void);

#endif
