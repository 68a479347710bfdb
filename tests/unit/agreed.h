/* SPDX-License-Identifier: Apache-2.0 */
/* Rules, and tensors with extents that the ranks of a job have agreed on, for
 * tests of plans. */
#ifndef SDG_TESTS_UNIT_AGREED_H
#define SDG_TESTS_UNIT_AGREED_H

#include "rules/file/file.h"
#include "src/call/call.h"

enum { AGREED_RANKS = 3 };

/* Loads rules with this text, view shard. */
void agreed_rules(const char *text, sdg_rules_t *out);

/* Adds an operand, a tensor of [2, c[r], h[r], w[r]] on rank r with elements of
 * four bytes. Y is an output. */
void agreed_add(sdg_call_t *call, sdg_role_t role, const int64_t *c,
                const int64_t *h, const int64_t *w);

#endif
