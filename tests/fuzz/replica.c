// SPDX-License-Identifier: Apache-2.0
// Fuzzes messages of ranks on other machines: an input is a list of messages,
// each with a kind (one byte), a length (two bytes) and a body.
#include <string.h>
#include <unistd.h>

#include "src/control/replica.h"
#include "src/control/state.h"
#include "tests/fuzz/fuzz.h"

enum { RANKS = 3, HEAD_BYTES = 3 };

static void asked(const sdg_shm_view_t *view) {
  sdg_control_t control = {.rank = 0,
                           .size = RANKS,
                           .owner = getpid(),
                           .lock.fd = -1,
                           .view = *view};
  char what[64];
  for (int r = 0; r < RANKS; r++)
    for (int channel = 0; channel < SDG_CHANNELS; channel++) {
      (void)sdg_control_count_of(&control, channel, r, what, sizeof what);
      FUZZ_HOLDS(memchr(what, 0, sizeof what));
    }
  (void)!sdg_shm_failure(view, 0, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  static sdg_shm_view_t view;
  if (!view.shared)
    FUZZ_HOLDS(sdg_shm_replica(RANKS, &view) == SDG_OK);
  size_t first = offsetof(sdg_shm_t, joins);
  memset((char *)view.shared + first, 0, view.bytes - first);
  for (int turn = 0; bytes >= HEAD_BYTES; turn++) {
    size_t length = (size_t)data[1] << 8 | data[2];
    sdg_frame_head_t head = {.kind = data[0]};
    data += HEAD_BYTES;
    bytes -= HEAD_BYTES;
    length = length < bytes ? length : bytes;
    head.bytes = (uint32_t)length;
    // Exactly this length, so that a sanitizer sees a read beyond it.
    void *body = malloc(length ? length : 1);
    FUZZ_HOLDS(body);
    memcpy(body, data, length);
    // To rank 0 from another one, and to another one from rank 0.
    (void)sdg_replica_receive(&view, turn % 2, 1 - turn % 2, &head, body);
    free(body);
    data += length;
    bytes -= length;
  }
  asked(&view);
  return 0;
}
