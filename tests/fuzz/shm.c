// SPDX-License-Identifier: Apache-2.0
// Fuzzes the memory that ranks share: an input is a list of places (three
// bytes) and values (eight bytes) to write.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/control/state.h"
#include "tests/fuzz/fuzz.h"

enum { RANKS = 3, STEP_BYTES = 11 };

static const int all[RANKS] = {0, 1, 2};

static void asked(sdg_control_t *control, uint64_t number) {
  char what[64] = "";
  for (int r = -1; r <= RANKS; r++)
    for (int channel = -1; channel <= SDG_CHANNELS; channel++) {
      (void)sdg_control_count_of(control, channel, r, what, sizeof what);
      FUZZ_HOLDS(channel < 0 || memchr(what, 0, sizeof what));
    }
  for (int r = 0; r < RANKS; r++) {
    (void)sdg_control_ended(control, r);
    (void)sdg_control_stopped(control, r);
  }
  (void)!sdg_control_check(control, 1);
  uint32_t theirs;
  int other = sdg_control_step(control, 0, (uint32_t)number, 7, all, RANKS);
  FUZZ_HOLDS(other >= -1 && other < RANKS);
  other = sdg_control_steps_end(control, 0, 3, 7, all, RANKS, &theirs);
  FUZZ_HOLDS(other >= -1 && other < RANKS);
}

// Copies what rank 0 publishes to other ranks, so that it need not wait.
static void published(sdg_shm_t *shared) {
  for (int r = 1; r < RANKS; r++)
    memcpy(&shared->rank[r].channel[0], &shared->rank[0].channel[0],
           sizeof shared->rank[0].channel[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  static sdg_shm_view_t view;
  static char(*records)[SDG_CHANNEL_RECORD_BYTES];
  size_t sizes[RANKS];
  if (!records) {
    records = malloc(RANKS * sizeof *records);
    FUZZ_HOLDS(records && sdg_shm_create(RANKS, &view) == SDG_OK);
  }
  // Changes all but the header, which is checked when the memory is mapped.
  sdg_shm_t *shared = view.shared;
  size_t first = offsetof(sdg_shm_t, joins);
  memset((char *)shared + first, 0, view.bytes - first);
  for (int r = 0; r < RANKS; r++) {
    shared->rank[r].state = SDG_SHM_JOINED;
    shared->rank[r].pid = (int)getpid();
  }
  sdg_control_t control = {.rank = 0,
                           .size = RANKS,
                           .timeout_s = 0.001,
                           .owner = getpid(),
                           .lock.fd = -1,
                           .view = view};
  sdg_control_count(&control, 0, 1, "cudnnConvolutionForward");
  const int self[1] = {0};
  FUZZ_HOLDS(sdg_control_exchange(&control, 0, self, 1, "record", 6, records,
                                  sizes, "call 1 x") == SDG_OK);
  published(shared);
  uint64_t number = 1;
  for (size_t i = 0; i + STEP_BYTES <= bytes; i += STEP_BYTES) {
    size_t place =
        (size_t)data[i] << 16 | (size_t)data[i + 1] << 8 | data[i + 2];
    memcpy(&number, data + i + 3, sizeof number);
    place = first + place % (view.bytes - first - sizeof number);
    memcpy((char *)shared + place, &number, sizeof number);
  }
  asked(&control, number);
  // An exchange of one rank waits for no other.
  (void)!sdg_control_exchange(&control, 0, self, 1, "again", 5, records, sizes,
                              "call 2 x");
  return 0;
}
