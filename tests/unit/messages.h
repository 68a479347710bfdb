/* SPDX-License-Identifier: Apache-2.0 */
/* Checks how many messages a plan has for each other rank. */
#ifndef SDG_TESTS_UNIT_MESSAGES_H
#define SDG_TESTS_UNIT_MESSAGES_H

#include "src/plan/plan.h"
#include "tests/unit/harness.h"

/* Checks that a call has one exchange, with at most `most` messages to and from
 * each rank. */
static inline void messages_check(const sdg_plan_t *plan, int most) {
  int count[2][SDG_RANKS_MAX] = {{0}}, exchanges = 0;
  for (int i = 0; i < plan->steps; i++)
    exchanges += plan->step[i].kind == SDG_STEP_EXCHANGE;
  REQUIRE(exchanges <= 1);
  for (int i = 0; i < plan->parcels; i++) {
    const sdg_parcel_t *parcel = &plan->parcel[i];
    REQUIRE(++count[parcel->is_send][parcel->peer] <= most);
  }
}

#endif
