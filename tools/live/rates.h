/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks did in the last seconds, from their totals at several
 * times. */
#ifndef SDG_TOOLS_LIVE_RATES_H
#define SDG_TOOLS_LIVE_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "tools/live/totals.h"

enum { RATES_WINDOW = 3 }; /* samples back to which rates reach */

typedef enum presence {
  PRESENCE_ABSENT, /* no tagged call yet */
  PRESENCE_COMING, /* it has come, and waits for the other ranks to join */
  PRESENCE_HERE,
  PRESENCE_ENDED,
} presence_t;

/* What is known of a rank. Rates are those of the last seconds. */
typedef struct rank_rates {
  presence_t presence;
  double calls_s;    /* tagged calls per second */
  double waits_part; /* 0 to 1: the part of the time that it waited */
  bool waits, stopped;
  uint64_t number;
  char name[SDG_LIVE_NAME_BYTES];
} rank_rates_t;

typedef struct rates {
  int size;
  bool known;     /* there was a sample since ranks have joined or left */
  double bytes_s; /* that all ranks received per second, without sums */
  double still_s; /* how long no rank has reached a call or received bytes */
  rank_rates_t *rank;
} rates_t;

/* Totals of the last samples; rates_create makes one. */
typedef struct samples samples_t;

/* For `size` ranks. `folder` has a file ended-N for each rank that has ended.
 * SDG_E_NO_MEMORY. */
sdg_status_t rates_create(int size, const char *folder,
                          samples_t **out) SDG_MUST_CHECK;
/* Takes a sample. The result belongs to `samples` and lasts until the next. */
const rates_t *rates_take(samples_t *samples, const sdg_live_t *live,
                          int64_t now_ns);

/* The part of `ns` that a rank waited. The threads of a rank, and the host and
 * the stream of a thread, can wait at the same time: the longest counts. */
double rates_waits(const rank_now_t *before, const rank_now_t *after,
                   int64_t ns);

#endif
