/* SPDX-License-Identifier: Apache-2.0 */
/* Records that ranks exchange in tests of the control channel. */
#ifndef SDG_TESTS_UNIT_RECORD_EXCHANGE_H
#define SDG_TESTS_UNIT_RECORD_EXCHANGE_H

#include "tests/unit/ranks.h"

typedef struct buffers {
  char all[RANKS_MAX][SDG_CHANNEL_RECORD_BYTES];
  size_t bytes[RANKS_MAX];
} buffers_t;

static const int everybody[RANKS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};

static inline size_t size_of(int rank, int turn) {
  unsigned mixed = (unsigned)rank * 2654435761u + (unsigned)turn * 40503u;
  return turn % 7 == 0 ? SDG_CHANNEL_RECORD_BYTES
                       : mixed % (SDG_CHANNEL_RECORD_BYTES + 1);
}

static inline void record_fill(char *record, int rank, int turn, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    record[i] = (char)(rank * 31 + turn * 7 + (int)(i % 251));
}

/* Exchanges `turns` records, different ones for each rank and turn, and checks
 * every byte that arrives. */
static inline sdg_status_t talk(sdg_control_t *control, int channel,
                                const int *group, int count, int turns) {
  static _Thread_local buffers_t in;
  static _Thread_local char mine[SDG_CHANNEL_RECORD_BYTES],
      expected[SDG_CHANNEL_RECORD_BYTES];
  int rank = sdg_control_rank(control);
  for (int turn = 0; turn < turns; turn++) {
    size_t bytes = size_of(rank + channel, turn);
    record_fill(mine, rank + channel, turn, bytes);
    SDG_TRY(sdg_control_exchange(control, channel, group, count, mine, bytes,
                                 in.all, in.bytes, "a test"));
    for (int i = 0; i < count; i++) {
      bytes = size_of(group[i] + channel, turn);
      record_fill(expected, group[i] + channel, turn, bytes);
      if (in.bytes[i] != bytes || memcmp(in.all[i], expected, bytes) != 0)
        return sdg_fail(SDG_E_INTERNAL, "turn %d: wrong record of rank %d",
                        turn, group[i]);
    }
  }
  return SDG_OK;
}

static inline sdg_status_t exchange_once(sdg_control_t *control,
                                         const char *what) {
  buffers_t in;
  char mine = (char)sdg_control_rank(control);
  return sdg_control_exchange(control, 0, everybody, sdg_control_size(control),
                              &mine, 1, in.all, in.bytes, what);
}

#endif
