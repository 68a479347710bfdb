// SPDX-License-Identifier: Apache-2.0
// Puts the parts of the report together.
#include "tools/report/document.h"

#include "tools/report/advice/advice.h"
#include "tools/report/facts.h"
#include "tools/report/kinds.h"
#include "tools/report/pieces.h"
#include "tools/report/ranks.h"
#include "tools/report/timeline.h"

enum { SCHEMA = 1 };

// Writes and frees `part`.
static sdg_status_t part_write(FILE *to, const char *name, json_t *part) {
  if (!part)
    return sdg_fail(SDG_E_NO_MEMORY, "the report's %s", name);
  fprintf(to, ",\n\"%s\":", name);
  (void)json_dumpf(part, to, JSON_COMPACT | JSON_ENCODE_ANY);
  json_decref(part);
  return SDG_OK;
}

sdg_status_t document_write(const recorded_t *run, int64_t events, FILE *to) {
  fprintf(to, "{\"schema\":%d", SCHEMA);
  SDG_TRY(part_write(to, "facts", facts_make(run)));
  SDG_TRY(part_write(to, "ranks", ranks_make(run)));
  SDG_TRY(part_write(to, "slowest", ranks_slowest(run)));
  SDG_TRY(part_write(to, "kinds", kinds_make(run)));
  SDG_TRY(part_write(to, "received", kinds_causes(run)));
  SDG_TRY(part_write(to, "tensors", pieces_make(run)));
  SDG_TRY(part_write(to, "advice", advice_make(run)));
  SDG_TRY(timeline_write(run, events, to));
  fprintf(to, "}\n");
  return SDG_OK;
}
