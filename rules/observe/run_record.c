// SPDX-License-Identifier: Apache-2.0
// A file per rank: a line for each distinct plan, a line for each call.
#include "rules/observe/run_record.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules/observe/window_shape.h"
#include "rules/place/tagging.h"
#include "rules/vendor/product.h"
#include "src/base/hash.h"
#include "src/base/json_text.h"
#include "src/base/options.h"
#include "src/base/stopwatch.h"
#include "src/job/cost.h"
#include "src/job/job.h"
#include "src/observe/event_file.h"
#include "src/observe/phase_record.h"
#include "src/observe/report.h"
#include "src/observe/run_facts.h"

// Programs that set their descriptors again make equal plans repeatedly.
enum { REMEMBERED = 4096 };

static struct {
  pthread_mutex_t lock;
  int plans;
  uint64_t hash[REMEMBERED]; // hashes of the first plans' lines
} history = {.lock = PTHREAD_MUTEX_INITIALIZER};

// A rank that is killed leaves what it did until HELD_NS before its last call:
// a write for each call would take as long as all else that recording does.
enum { HELD_NS = 50000000 };
static char buffer[1 << 16];
static sdg_event_file_t record = {
    SDG_EVENT_FILE("the record of calls", SDG_EVENT_REPLACE, "rank-%r"),
    .buffer = buffer, .buffer_bytes = sizeof buffer};
static _Atomic(uint64_t) written_ns; // when the buffer was written last

static atomic_bool is_full; // SUNDOG_RECORD_MAX is reached

static _Thread_local int used;
static _Thread_local bool captured;
static _Thread_local int last;  // what the call before used
static _Thread_local int cause; // the plan whose call causes transfers
static _Thread_local sdg_run_mark_t begun; // this thread's call

static bool is_wanted(void) {
  return sdg_options_get()->record[0] != '\0';
}

// A folder may have the record of an earlier run, whose other files are of its
// calls.
static void stale_remove(void) {
  const char *folder = sdg_options_get()->record;
  char path[4096];
  snprintf(path, sizeof path, "%s/times-%d", folder, sdg_job_rank());
  (void)unlink(path);
  snprintf(path, sizeof path, "%s/totals-%d.json", folder, sdg_job_rank());
  (void)unlink(path);
}

static void facts_write(void) {
  stale_remove();
  char *text = NULL;
  size_t bytes = 0;
  FILE *memory = open_memstream(&text, &bytes);
  if (!memory)
    return;
  fprintf(memory, "{\"run\":");
  sdg_run_facts_write(memory);
  fprintf(memory, "}\n");
  // However little may be written, no report can do without them.
  size_t most = sdg_phase_record_most();
  if (fclose(memory) == 0)
    (void)sdg_event_append_within(&record, sdg_options_get()->record, text,
                                  bytes, most > bytes ? most : bytes);
  free(text);
}

// The first line of the file says what the process is. The buffer is written if
// `now_ns` is late, or 0.
static void line_append(const char *text, size_t bytes, uint64_t now_ns) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, facts_write);
  static const char full[] = "{\"full\":true}\n";
  const char *folder = sdg_options_get()->record;
  if (atomic_load_explicit(&is_full, memory_order_relaxed))
    return;
  if (!sdg_event_append_within(&record, folder, text, bytes,
                               sdg_phase_record_most()) &&
      !atomic_exchange(&is_full, true)) {
    sdg_event_append(&record, folder, full, sizeof full - 1);
    now_ns = 0;
  }
  if (now_ns && now_ns - atomic_load(&written_ns) < HELD_NS)
    return;
  atomic_store(&written_ns, now_ns);
  sdg_event_flush(&record);
}

// Writes and frees `text`; NULL if memory was short.
static void line_write(char *text, size_t bytes) {
  if (text)
    line_append(text, bytes, 0);
  free(text);
}

// What `auto` compared, if the plan has the strategy that is cheaper. An
// example: "auto: beside the call itself extend costs the slowest rank 31 us,
// repair 52.8 us (SUNDOG_COST=1.3e+12,5,42,64)".
static bool price_write(const sdg_plan_t *plan, char *out, size_t out_bytes) {
  const sdg_price_t *price = &plan->price;
  bool extend = price->extend_us < price->repair_us;
  const sdg_cost_t cost = sdg_cost_agreed();
  if (price->extend_us == price->repair_us ||
      strcmp(plan->strategy, extend ? "extend" : "repair") != 0)
    return false;
  snprintf(out, out_bytes,
           "auto: beside the call itself %s costs the slowest rank %.3g us, %s "
           "%.3g us (SUNDOG_COST=%g,%g,%g,%g)",
           extend ? "extend" : "repair",
           extend ? price->extend_us : price->repair_us,
           extend ? "repair" : "extend",
           extend ? price->repair_us : price->extend_us, cost.copy_bytes_s,
           cost.launch_us, cost.strip_us, cost.run_bytes);
  return true;
}

// Whole view: why every rank carries a call out in full, if the op says that.
static bool in_full_write(const sdg_tagging_t *tagging, const sdg_plan_t *plan,
                          char *out, size_t out_bytes) {
  bool in_full = plan->literal && plan->why && !plan->share &&
                 tagging->section->view == SDG_VIEW_WHOLE;
  if (in_full)
    snprintf(out, out_bytes,
             "whole view: every rank carries this call out in full, because of "
             "%s",
             plan->why);
  return in_full;
}

static const char *reason(const sdg_tagging_t *tagging,
                          const sdg_plan_t *plan) {
  bool window = plan->steps > 0;
  if (plan->why)
    return plan->why;
  if (plan->share)
    return "whole view: each rank computes its own part; what it reads of the "
           "others' parts is fetched first";
  if (tagging->section->view == SDG_VIEW_WHOLE)
    return "whole view: no op shares this call, so every rank carries it out "
           "in full";
  if (plan->literal && sdg_placement_axes(&tagging->placement[0]) &&
      tagging->ranks > 1)
    return "the program's own call is right: this rank needs no data of the "
           "others";
  if (plan->literal)
    return "the program's own call is right: all data is on this rank";
  if (tagging->section->strategy != SDG_STRATEGY_AUTO)
    return "asked for by 'strategy =' or --strategy";
  if (window && strcmp(plan->strategy, "repair") == 0)
    return "auto: the rank's piece has rows that need no neighbour; they are "
           "computed while halos travel";
  return "auto: every row of the rank's piece needs a neighbour, or the "
         "vendor's library refuses the strips of repair";
}

static void numbers_write(FILE *file, const char *name, int count,
                          const int64_t *number) {
  fprintf(file, "\"%s\":[", name);
  for (int i = 0; i < count; i++)
    fprintf(file, "%s%" PRId64, i ? "," : "", number[i]);
  fprintf(file, "]");
}

// Where an operand is; in the whole view, where an output will be.
static const sdg_placement_t *placement_of(const sdg_tagging_t *tagging,
                                           const sdg_plan_t *plan, int index) {
  const sdg_placement_t *written =
      plan && plan->share ? sdg_share_placement(plan->share, index) : NULL;
  return written && sdg_placement_axes(written) ? written
                                                : &tagging->placement[index];
}

static void operand_write(FILE *file, const sdg_call_t *call,
                          const sdg_tagging_t *tagging, const sdg_plan_t *plan,
                          int index) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_placement_t *placement = placement_of(tagging, plan, index);
  const char *names[SDG_DIMS_MAX];
  char text[512];
  fprintf(file, "%s{\"role\":", index ? "," : "");
  sdg_json_text(file, sdg_role_name(operand->role));
  fprintf(file, ",\"output\":%s,\"updated\":%s,\"bytes\":%d,",
          operand->is_output ? "true" : "false",
          operand->is_updated ? "true" : "false", operand->elem_bytes);
  numbers_write(file, "extent", operand->dims, operand->extent);
  if (placement->dims > 0) {
    sdg_box_t box = sdg_tagging_own(tagging, placement);
    int64_t whole[SDG_DIMS_MAX], first[SDG_DIMS_MAX], own[SDG_DIMS_MAX];
    for (int d = 0; d < placement->dims; d++) {
      whole[d] = sdg_placement_extent(placement, d);
      first[d] = box.dim[d].lo;
      own[d] = box.dim[d].hi - box.dim[d].lo;
    }
    fprintf(file, ",");
    numbers_write(file, "whole", placement->dims, whole);
    fprintf(file, ",");
    numbers_write(file, "first", placement->dims, first);
    fprintf(file, ",");
    numbers_write(file, "own", placement->dims, own);
    if (sdg_family_is(call->family, SDG_FAMILY_STATED) &&
        sdg_role_is_matrix(operand->role))
      sdg_product_names(call, index, names);
    else if (sdg_role_is_matrix(operand->role))
      sdg_product_tensor_names(operand->role, operand->dims, names);
    else
      sdg_tagging_names(call->family, placement->dims, names);
    sdg_placement_format(placement, tagging->mesh, names, text, sizeof text);
    fprintf(file, ",\"split\":");
    sdg_json_text(file, text);
    fprintf(file, ",\"names\":[");
    for (int d = 0; d < placement->dims; d++) {
      fputs(d ? "," : "", file);
      sdg_json_text(file, names[d] ? names[d] : "");
    }
    fprintf(file, "]");
  }
  fprintf(file, "}");
}

static void messages_write(FILE *file, const sdg_tagging_t *tagging,
                           const sdg_plan_t *plan) {
  const char *between = "";
  for (int i = 0; i < plan->steps; i++) {
    const sdg_step_t *step = &plan->step[i];
    int peer[SDG_RANKS_MAX];
    sdg_mesh_group(tagging->mesh, tagging->rank, step->axes, peer);
    for (int k = 0; k < step->parcels; k++, between = ",") {
      const sdg_parcel_t *parcel = &plan->parcel[step->parcel + k];
      fprintf(file, "%s{\"send\":%s,\"rank\":%d,\"bytes\":%zu}", between,
              parcel->is_send ? "true" : "false", peer[parcel->peer],
              parcel->bytes);
    }
  }
}

// Bytes of the results of sums over ranks, and of other values that these
// combine.
static int64_t reduced_bytes(const sdg_plan_t *plan) {
  int64_t bytes = 0;
  for (int i = 0; i < plan->steps; i++)
    if (plan->step[i].kind == SDG_STEP_REDUCE)
      bytes += sdg_box_count(&plan->step[i].box) *
               plan->slab[plan->step[i].slab].elem_bytes;
  return bytes;
}

static void plan_write(FILE *file, const sdg_tagging_t *tagging,
                       const sdg_plan_t *plan) {
  int subcalls = plan->literal;
  for (int i = 0; i < plan->steps; i++)
    subcalls += plan->step[i].kind == SDG_STEP_CALL;
  char text[192];
  fprintf(file, ",\"strategy\":\"%s\",\"why\":", plan->strategy);
  bool written = price_write(plan, text, sizeof text) ||
                 in_full_write(tagging, plan, text, sizeof text);
  sdg_json_text(file, written ? text : reason(tagging, plan));
  fprintf(file,
          ",\"subcalls\":%d,\"scratch_bytes\":%zu,\"halo_bytes\":%" PRId64
          ",\"reduced_bytes\":%" PRId64 ",\"copies\":{",
          subcalls, plan->scratch_bytes, plan->received_bytes,
          reduced_bytes(plan));
  for (int i = 0; i < SDG_COPY_COUNT; i++)
    fprintf(file, "%s\"%s\":%" PRId64, i ? "," : "",
            sdg_copy_kind_name((sdg_copy_kind_t)i), plan->copied_bytes[i]);
  fprintf(file, "},\"messages\":[");
  messages_write(file, tagging, plan);
  fprintf(file, "]");
}

static void ints_write(FILE *file, const char *name, int count,
                       const int *number) {
  fprintf(file, "\"%s\":[", name);
  for (int i = 0; i < count; i++)
    fprintf(file, "%s%d", i ? "," : "", number[i]);
  fprintf(file, "],");
}

static void window_write(FILE *file, const sdg_call_t *call,
                         const sdg_tagging_t *tagging) {
  sdg_call_window_t window;
  if (!sdg_window_shape(call, &window))
    return;
  fprintf(file, "\"window\":{");
  ints_write(file, "kernel", window.spatial, window.kernel);
  ints_write(file, "stride", window.spatial, window.stride);
  ints_write(file, "pad", window.spatial, window.pad);
  ints_write(file, "dilation", window.spatial, window.dilation);
  fprintf(file, "\"wrap\":%s},", tagging->section->wrap ? "true" : "false");
}

static void description_write(FILE *file, const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              const sdg_plan_t *plan) {
  const char *source = sdg_options_get()->rules;
  fprintf(file, "\"entry\":");
  sdg_json_text(file, call->entry_name);
  fprintf(file, ",\"section\":");
  sdg_json_text(file, tagging->section->name);
  fprintf(file, ",\"source\":");
  sdg_json_text(file, *source ? source : "SUNDOG_SPLIT");
  fprintf(file, ",\"line\":%d,\"family\":\"%s\",", tagging->section->line,
          sdg_family_word(call->family));
  window_write(file, call, tagging);
  fprintf(file, "\"operands\":[");
  for (int i = 0; i < call->operands; i++)
    operand_write(file, call, tagging, plan, i);
  fprintf(file, "]");
  if (plan)
    plan_write(file, tagging, plan);
}

int sdg_run_record_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                        const sdg_plan_t *plan) {
  if (!is_wanted())
    return 0;
  char *text = NULL, *line = NULL;
  size_t bytes;
  FILE *memory = open_memstream(&text, &bytes);
  if (!memory)
    return 0;
  description_write(memory, call, tagging, plan);
  if (fclose(memory) != 0)
    return 0;
  uint64_t hash = sdg_hash_text(SDG_HASH_SEED, text);
  pthread_mutex_lock(&history.lock);
  int number = 0;
  while (number < history.plans && number < REMEMBERED &&
         history.hash[number] != hash)
    number++;
  if (number == history.plans || number == REMEMBERED) {
    number = history.plans++;
    if (number < REMEMBERED)
      history.hash[number] = hash;
    int n = asprintf(&line, "{\"plan\":%d,%s}\n", number + 1, text);
    line_write(n < 0 ? NULL : line, n < 0 ? 0 : (size_t)n);
  }
  pthread_mutex_unlock(&history.lock);
  free(text);
  return number + 1;
}

sdg_run_mark_t sdg_run_record_mark(void) {
  return (sdg_run_mark_t){sdg_monotonic_ns(), sdg_report_tally_get()};
}

void sdg_run_record_begin(void) {
  if (!is_wanted())
    return;
  used = 0;
  begun = sdg_run_record_mark();
}

void sdg_run_record_use(int plan) {
  used = plan;
}

void sdg_run_record_captured(void) {
  captured = true;
}

// Puts "NAME":NUMBER after a comma.
static char *member_put(char *out, const char *name, int64_t number) {
  out = sdg_json_put(out, ",\"");
  out = sdg_json_put(out, name);
  out = sdg_json_put(out, "\":");
  return sdg_json_number(out, number);
}

enum { SPENT_BYTES = 6 * (16 + SDG_JSON_NUMBER_BYTES) };

static char *spent_put(char *out, const sdg_run_mark_t *since,
                       const sdg_run_mark_t *now) {
  const sdg_report_tally_t *from = &since->tally, *to = &now->tally;
  out = member_put(out, "at", (int64_t)since->at_ns);
  out = member_put(out, "took", (int64_t)(now->at_ns - since->at_ns));
  out = member_put(out, "agreed", to->wait_ns - from->wait_ns);
  out = member_put(out, "received", to->received_bytes - from->received_bytes);
  out = member_put(out, "summed", to->sum_bytes - from->sum_bytes);
  return member_put(out, "copied", to->copied_bytes - from->copied_bytes);
}

void sdg_run_record_update(const char *why, const sdg_run_mark_t *since) {
  const sdg_run_mark_t now = sdg_run_record_mark();
  char spent[SPENT_BYTES], *text = NULL;
  size_t bytes = 0;
  FILE *memory = is_wanted() ? open_memstream(&text, &bytes) : NULL;
  if (!memory)
    return;
  fprintf(memory, "{\"update\":");
  sdg_json_text(memory, why);
  if (cause || used)
    fprintf(memory, ",\"by\":%d", cause ? cause : used);
  fprintf(memory, "%.*s}\n", (int)(spent_put(spent, since, &now) - spent),
          spent);
  if (fclose(memory) == 0 && text)
    line_append(text, bytes, now.at_ns);
  free(text);
}

static void failure_write(const char *head, int head_bytes) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *memory = open_memstream(&text, &bytes);
  if (!memory)
    return;
  fprintf(memory, "%.*s,\"failed\":", head_bytes, head);
  sdg_json_text(memory, sdg_last_error());
  fprintf(memory, "}\n");
  if (fclose(memory) == 0)
    line_write(text, bytes);
}

void sdg_run_record_cause_begin(void) {
  cause = last;
}

void sdg_run_record_cause_end(void) {
  cause = 0;
}

// The address of the call's first operand of its kind; 0: it has none.
static int64_t address_of(const sdg_call_t *call, bool output) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].is_output == output)
      return (int64_t)(uintptr_t)call->operand[i].data;
  return 0;
}

void sdg_run_record_call(const sdg_call_t *call, bool failed) {
  enum { ENTRY_BYTES = 512 };
  const char *entry = call->entry_name;
  int plan = used;
  bool moves_later = captured;
  used = 0;
  captured = false;
  last = failed ? 0 : plan;
  if (!is_wanted())
    return;
  const sdg_run_mark_t now = sdg_run_record_mark();
  int channel = sdg_channel_get();
  uint64_t number =
      sdg_control_count_of(sdg_job_control(), channel, sdg_job_rank(), NULL, 0);
  char line[ENTRY_BYTES + SPENT_BYTES + 240], *end = line;
  end = sdg_json_put(end, "{\"call\":");
  end = sdg_json_number(end, (int64_t)number);
  end = member_put(end, "thread", channel);
  end = sdg_json_put(end, ",\"entry\":\"");
  if (strlen(entry) < ENTRY_BYTES)
    end = sdg_json_put(end, entry);
  *end++ = '"';
  end = spent_put(end, &begun, &now);
  if (call->family == SDG_FAMILY_CONV)
    end = member_put(end, "x", address_of(call, false));
  end = member_put(end, "y", address_of(call, true));
  if (plan)
    end = member_put(end, "by", plan);
  if (moves_later)
    end = sdg_json_put(end, ",\"captured\":true");
  if (failed) {
    failure_write(line, (int)(end - line));
    return;
  }
  end = sdg_json_put(end, "}\n");
  line_append(line, (size_t)(end - line), now.at_ns);
}

void sdg_run_record_finish(void) {
  sdg_event_flush(&record);
  sdg_phase_record_flush();
}

void sdg_run_record_drop(void) {
  sdg_phase_record_drop();
  // Another thread of the parent may have held the lock.
  pthread_mutex_init(&history.lock, NULL);
  sdg_event_drop(&record);
}
