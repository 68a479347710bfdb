// SPDX-License-Identifier: Apache-2.0
// Writes a captured call as text that distinguishes it from other calls.
#include "rules/observe/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rules/attention/call/call.h"
#include "rules/memory/uploads.h"
#include "rules/observe/arguments.h"
#include "rules/observe/window_shape.h"
#include "rules/vendor/sequence.h"
#include "rules/vendor/vendor.h"
#include "src/observe/inspect_record.h"

static void list_put(sdg_inspect_text_t *text, const char *name, int count,
                     const int *values) {
  sdg_inspect_put(text, "\"%s\":[", name);
  for (int i = 0; i < count; i++)
    sdg_inspect_put(text, "%s%d", i ? "," : "", values[i]);
  sdg_inspect_put(text, "]");
}

static void window_put(sdg_inspect_text_t *text, const sdg_call_t *call) {
  sdg_call_window_t shape;
  if (!sdg_window_shape(call, &shape))
    return;
  sdg_inspect_put(text, "\"window\":{");
  list_put(text, "kernel", shape.spatial, shape.kernel);
  sdg_inspect_put(text, ",");
  list_put(text, "stride", shape.spatial, shape.stride);
  sdg_inspect_put(text, ",");
  list_put(text, "pad", shape.spatial, shape.pad);
  sdg_inspect_put(text, ",");
  list_put(text, "dilation", shape.spatial, shape.dilation);
  sdg_inspect_put(text, "},");
}

static const char *truth(bool value) {
  return value ? "true" : "false";
}

static void attention_put(sdg_inspect_text_t *text, const sdg_call_t *call) {
  sdg_attention_t a;
  sdg_band_t band;
  if (sdg_family_dims(call->family) != SDG_FAMILY_SEQUENCE || call->is_query ||
      !sdg_attention_read(call, &a) || a.current >= 0)
    return;
  sdg_inspect_put(text, "\"attention\":{\"same\":%s", truth(a.same));
  int64_t keys = call->operand[a.k].extent[SDG_SEQUENCE_TIME];
  if (a.windows.lo && sdg_windows_band(&a.windows, keys, &band))
    sdg_inspect_put(text, ",\"left\":%" PRId64 ",\"right\":%" PRId64,
                    band.left == SDG_BAND_UNBOUND ? -1 : band.left,
                    band.right == SDG_BAND_UNBOUND ? -1 : band.right);
  else if (a.windows.lo)
    sdg_inspect_put(text, ",\"ragged\":true");
  sdg_inspect_put(text, "},");
}

static void sight_put(sdg_inspect_text_t *text, const sdg_call_t *call) {
  if (sdg_family_dims(call->family) != SDG_FAMILY_HEADS ||
      !call->sight.is_known)
    return;
  sdg_inspect_put(text, "\"attention\":{");
  if (call->sight.is_ragged)
    sdg_inspect_put(text, "\"ragged\":true},");
  else
    sdg_inspect_put(text, "\"left\":%" PRId64 ",\"right\":%" PRId64 "},",
                    call->sight.left, call->sight.right);
}

void sdg_inspect_call(const sdg_call_t *call,
                      bool (*knows)(const sdg_call_t *call)) {
  if (!sdg_inspect_record_wanted())
    return;
  sdg_inspect_text_t text = {.used = 0};
  sdg_inspect_put(
      &text, "{\"entry\":\"%s\",\"family\":\"%s\",\"query\":%s,\"rule\":%s,",
      call->entry_name, sdg_family_name(call->family), truth(call->is_query),
      truth(knows(call)));
  window_put(&text, call);
  attention_put(&text, call);
  sight_put(&text, call);
  sdg_inspect_put(&text, "\"operands\":[");
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    sdg_inspect_put(
        &text,
        "%s{\"role\":\"%s\",\"output\":%s,\"filter\":%s,\"type\":%d,"
        "\"bytes\":%d,%s\"extent\":[",
        i ? "," : "", sdg_role_name(operand->role), truth(operand->is_output),
        truth(operand->kind == SDG_OPERAND_FILTER), operand->type,
        operand->elem_bytes,
        sdg_uploads_managed(operand->data) ? "\"managed\":true," : "");
    for (int d = 0; d < operand->dims; d++)
      sdg_inspect_put(&text, "%s%" PRId64, d ? "," : "", operand->extent[d]);
    sdg_inspect_put(&text, "]}");
  }
  sdg_inspect_put(&text, "]}");
  sdg_inspect_record_count(text.bytes);
  for (int i = 0; i < call->operands; i++)
    sdg_arguments_tensor(&call->operand[i]);
}

bool sdg_inspect_reduces(const char *entry_name) {
  static const char *const parts[] = {"nrm2", "dot",  "asum", "amax",
                                      "amin", "gemm", "gemv", "matmul"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strcasestr(entry_name, parts[i]))
      return true;
  return false;
}

void sdg_inspect_reduction(const char *entry_name) {
  if (!sdg_inspect_record_wanted() || !sdg_inspect_reduces(entry_name))
    return;
  char text[256];
  snprintf(text, sizeof text, "{\"entry\":\"%s\",\"reduction\":true}",
           entry_name);
  sdg_inspect_record_count(text);
}

void sdg_inspect_opaque(const char *entry_name) {
  if (!sdg_inspect_record_wanted())
    return;
  char text[256];
  snprintf(text, sizeof text, "{\"entry\":\"%s\",\"opaque\":true}", entry_name);
  sdg_inspect_record_count(text);
}
