// SPDX-License-Identifier: Apache-2.0
// The trace file: one line per call, written in large pieces.
#include "src/observe/trace.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/options.h"
#include "src/observe/event_file.h"

static char buffer[1 << 16];
static sdg_event_file_t trace = {
    SDG_EVENT_FILE("the trace", SDG_EVENT_APPEND, NULL), .buffer = buffer,
    .buffer_bytes = sizeof buffer};
static _Atomic(uint64_t) lines;

static void operand_write(FILE *file, const sdg_operand_t *operand) {
  fprintf(file, " %s%s=", operand->is_output ? ">" : "",
          sdg_role_name(operand->role));
  for (int i = 0; i < operand->dims; i++)
    fprintf(file, "%s%" PRId64, i ? "x" : "", operand->extent[i]);
}

void sdg_trace_call(const sdg_call_t *call, bool done) {
  const char *path = sdg_options_get()->trace;
  char *line = NULL;
  size_t bytes = 0;
  FILE *file = *path ? open_memstream(&line, &bytes) : NULL;
  if (!file)
    return;
  fprintf(file, "%" PRIu64 " %s ", atomic_fetch_add(&lines, 1) + 1,
          call->entry_name);
  if (done)
    fprintf(file, "done=%d", call->result);
  else
    fprintf(file, "pass");
  for (int i = 0; i < call->operands; i++)
    operand_write(file, &call->operand[i]);
  fprintf(file, "\n");
  if (fclose(file) == 0)
    sdg_event_append(&trace, path, line, bytes);
  free(line);
}

void sdg_trace_flush(void) {
  sdg_event_flush(&trace);
}

void sdg_trace_drop(void) {
  sdg_event_drop(&trace);
}
