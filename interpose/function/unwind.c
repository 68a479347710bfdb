// SPDX-License-Identifier: Apache-2.0
// Cleans up after a call that an exception leaves.
#include "interpose/function/unwind.h"

#include <stdint.h>

#include "interpose/capture.h"

static _Thread_local sdg_unwind_t *innermost
    __attribute__((tls_model("initial-exec")));

int sdg_unwind_frame(int version, int actions, uint64_t class, void *exception,
                     void *context);

// A personality: whoever unwinds the stack calls it for a frame, and goes on.
__attribute__((used)) int sdg_unwind_frame(int version, int actions,
                                           uint64_t class, void *exception,
                                           void *context) {
  enum { CLEANUP_PHASE = 2, CONTINUE_UNWIND = 8 }; // as in <unwind.h>
  const sdg_unwind_t *unwind = innermost;
  (void)version, (void)class, (void)exception, (void)context;
  if (!(actions & CLEANUP_PHASE) || !unwind)
    return CONTINUE_UNWIND;
  innermost = unwind->outer;
  unwind->left(unwind);
  sdg_capture_unwind(unwind->depth);
  return CONTINUE_UNWIND;
}

void sdg_unwind_begin(sdg_unwind_t *io_unwind,
                      void (*left)(const sdg_unwind_t *unwind)) {
  *io_unwind = (sdg_unwind_t){innermost, sdg_capture_depth(), left};
  innermost = io_unwind;
}

void sdg_unwind_end(const sdg_unwind_t *unwind) {
  innermost = unwind->outer;
}
