// SPDX-License-Identifier: Apache-2.0
// A file of lines, one per phase, written in large pieces.
#include "src/observe/phase_record.h"

#include "src/base/json_text.h"
#include "src/base/options.h"
#include "src/observe/event_file.h"

static char buffer[1 << 16];
static sdg_event_file_t times = {
    SDG_EVENT_FILE("the record of times", SDG_EVENT_REPLACE, "times-%r"),
    .buffer = buffer, .buffer_bytes = sizeof buffer};

size_t sdg_phase_record_most(void) {
  return (size_t)sdg_options_get()->record_max * 1000000;
}

void sdg_phase_record(int thread, uint64_t call, sdg_phase_t phase,
                      int64_t at_ns, int64_t took_ns) {
  const int64_t number[] = {thread, (int64_t)call, phase, at_ns, took_ns};
  enum { NUMBERS = sizeof number / sizeof *number };
  char line[NUMBERS * (SDG_JSON_NUMBER_BYTES + 1) + 2], *end = line;
  for (int i = 0; i < NUMBERS; i++) {
    *end++ = i ? ',' : '[';
    end = sdg_json_number(end, number[i]);
  }
  *end++ = ']';
  *end++ = '\n';
  (void)sdg_event_append_within(&times, sdg_options_get()->record, line,
                                (size_t)(end - line), sdg_phase_record_most());
}

void sdg_phase_record_flush(void) {
  sdg_event_flush(&times);
}

void sdg_phase_record_drop(void) {
  sdg_event_drop(&times);
}
