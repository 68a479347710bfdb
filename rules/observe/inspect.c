// SPDX-License-Identifier: Apache-2.0
// Writes a captured call as text that distinguishes it from other calls.
#include "rules/observe/inspect.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rules/attention/call/call.h"
#include "rules/memory/uploads.h"
#include "rules/observe/arguments.h"
#include "rules/observe/window_shape.h"
#include "rules/vendor/sequence.h"
#include "rules/vendor/vendor.h"
#include "src/observe/inspect_record.h"

enum { TEXT_BYTES = 8192 };

typedef struct text {
  size_t used;
  char bytes[TEXT_BYTES];
} text_t;

static void put(text_t *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void put(text_t *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text->bytes + text->used, sizeof text->bytes - text->used,
                    format, args);
  va_end(args);
  text->used += n < 0 ? 0 : (size_t)n;
  if (text->used >= sizeof text->bytes)
    text->used = sizeof text->bytes - 1;
}

static void list_put(text_t *text, const char *name, int count,
                     const int *values) {
  put(text, "\"%s\":[", name);
  for (int i = 0; i < count; i++)
    put(text, "%s%d", i ? "," : "", values[i]);
  put(text, "]");
}

static void window_put(text_t *text, const sdg_call_t *call) {
  sdg_call_window_t shape;
  if (!sdg_window_shape(call, &shape))
    return;
  put(text, "\"window\":{");
  list_put(text, "kernel", shape.spatial, shape.kernel);
  put(text, ",");
  list_put(text, "stride", shape.spatial, shape.stride);
  put(text, ",");
  list_put(text, "pad", shape.spatial, shape.pad);
  put(text, ",");
  list_put(text, "dilation", shape.spatial, shape.dilation);
  put(text, "},");
}

static const char *truth(bool value) {
  return value ? "true" : "false";
}

static void attention_put(text_t *text, const sdg_call_t *call) {
  sdg_attention_t a;
  sdg_band_t band;
  if (sdg_family_dims(call->family) != SDG_FAMILY_SEQUENCE || call->is_query ||
      !sdg_attention_read(call, &a) || a.current >= 0)
    return;
  put(text, "\"attention\":{\"same\":%s", truth(a.same));
  int64_t keys = call->operand[a.k].extent[SDG_SEQUENCE_TIME];
  if (a.windows.lo && sdg_windows_band(&a.windows, keys, &band))
    put(text, ",\"left\":%" PRId64 ",\"right\":%" PRId64,
        band.left == SDG_BAND_UNBOUND ? -1 : band.left,
        band.right == SDG_BAND_UNBOUND ? -1 : band.right);
  else if (a.windows.lo)
    put(text, ",\"ragged\":true");
  put(text, "},");
}

static void sight_put(text_t *text, const sdg_call_t *call) {
  if (sdg_family_dims(call->family) != SDG_FAMILY_HEADS ||
      !call->sight.is_known)
    return;
  put(text, "\"attention\":{");
  if (call->sight.is_ragged)
    put(text, "\"ragged\":true},");
  else
    put(text, "\"left\":%" PRId64 ",\"right\":%" PRId64 "},", call->sight.left,
        call->sight.right);
}

void sdg_inspect_call(const sdg_call_t *call,
                      bool (*knows)(const sdg_call_t *call)) {
  if (!sdg_inspect_record_wanted())
    return;
  text_t text = {.used = 0};
  put(&text, "{\"entry\":\"%s\",\"family\":\"%s\",\"query\":%s,\"rule\":%s,",
      call->entry_name, sdg_family_name(call->family), truth(call->is_query),
      truth(knows(call)));
  window_put(&text, call);
  attention_put(&text, call);
  sight_put(&text, call);
  put(&text, "\"operands\":[");
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    put(&text,
        "%s{\"role\":\"%s\",\"output\":%s,\"filter\":%s,\"type\":%d,"
        "\"bytes\":%d,%s\"extent\":[",
        i ? "," : "", sdg_role_name(operand->role), truth(operand->is_output),
        truth(operand->kind == SDG_OPERAND_FILTER), operand->type,
        operand->elem_bytes,
        sdg_uploads_managed(operand->data) ? "\"managed\":true," : "");
    for (int d = 0; d < operand->dims; d++)
      put(&text, "%s%" PRId64, d ? "," : "", operand->extent[d]);
    put(&text, "]}");
  }
  put(&text, "]}");
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
