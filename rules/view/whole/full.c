// SPDX-License-Identifier: Apache-2.0
// Encloses the program's own call in two phases: the call, and what it
// computes.
#include "rules/view/whole/full.h"

#include "rules/view/whole/settle.h"
#include "src/base/options.h"
#include "src/exchange/phases.h"

enum { PHASES = 2 };
static const sdg_phase_t kinds[PHASES] = {SDG_PHASE_CALL, SDG_PHASE_REAL};

static _Thread_local struct {
  bool begun;
  int phase[PHASES];
  cudaStream_t stream;
} full;

void sdg_full_begin(const sdg_call_t *call, sdg_report_row_t *row) {
  bool capturing;
  // A function of the program that threw an exception.
  if (full.begun)
    sdg_full_end();
  if (!*sdg_options_get()->record || !call->memory ||
      sdg_whole_stream(call->memory, &full.stream, &capturing) != SDG_OK ||
      capturing)
    return;
  for (int i = 0; i < PHASES; i++) {
    full.phase[i] = -1;
    (void)!sdg_phase_begin(row, kinds[i], full.stream, &full.phase[i]);
  }
  full.begun = true;
}

bool sdg_full_timed(void) {
  return full.begun;
}

void sdg_full_end(void) {
  if (!full.begun)
    return;
  full.begun = false;
  for (int i = PHASES - 1; i >= 0; i--)
    (void)!sdg_phase_end(full.phase[i], full.stream);
}
