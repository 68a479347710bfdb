// SPDX-License-Identifier: Apache-2.0
// Tries calls of the rules' functions in pieces, and records what is found.
#include "rules/cut/cut.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rules/cut/attempt.h"
#include "rules/file/setup.h"
#include "rules/function/function.h"
#include "rules/place/tagging.h"
#include "rules/vendor/vendor.h"
#include "src/base/options.h"
#include "src/base/vendor.h"
#include "src/call/tag.h"
#include "src/observe/event_file.h"

// A trial is slow, and later calls of a function are often like its first.
enum { CALLS_OF_EACH = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of what follows
static int64_t tried;
static struct {
  const sdg_function_t *function;
  int calls;
} each[SDG_SECTIONS_MAX];

// What this thread is trying. A function that is being called in pieces may
// call another one.
static _Thread_local sdg_cut_t *trying
    __attribute__((tls_model("initial-exec")));

static sdg_event_file_t findings = {
    SDG_EVENT_FILE("calls in pieces", SDG_EVENT_APPEND, "cuts")};

bool sdg_cut_wanted(void) {
  return *sdg_options_get()->cuts != '\0';
}

bool sdg_cut_fails(sdg_cut_t *cut, const char *format, ...) {
  va_list rest;
  va_start(rest, format);
  vsnprintf(cut->why, sizeof cut->why, format, rest);
  va_end(rest);
  return false;
}

const char *sdg_cut_name(const sdg_cut_t *cut, int operand) {
  const sdg_function_t *function = cut->function;
  int tensor = sdg_function_tensor_of(function, operand);
  return function->argument[function->tensor[tensor].argument].name;
}

int sdg_cut_ranks(const sdg_cut_t *cut) {
  return sdg_mesh_ranks(cut->mesh);
}

bool sdg_cut_is_result(const sdg_cut_t *cut, int operand) {
  return cut->call.operand[operand].role == SDG_ROLE_RESULT;
}

// ---- the record ------------------------------------------------------------

// One line: {"function":"f","KEY":"TEXT"}
static void line_write(const sdg_function_t *function, const char *key,
                       const char *text) {
  char line[2 * SDG_CUT_TEXT_BYTES], plain[SDG_CUT_TEXT_BYTES];
  snprintf(plain, sizeof plain, "%s", text);
  for (char *c = plain; *c; c++) // what JSON would read otherwise
    if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
      *c = '\'';
  snprintf(line, sizeof line, "{\"function\":\"%s\",\"%s\":\"%s\"}\n",
           function->name, key, plain);
  sdg_event_append(&findings, sdg_options_get()->cuts, line, strlen(line));
}

// ---- plans -----------------------------------------------------------------

static bool rank_plan(sdg_cut_t *cut, sdg_cut_attempt_t *attempt, int number) {
  sdg_cut_rank_t *rank = &attempt->rank[number];
  sdg_tagging_t *tagging = &rank->tagging;
  tagging->section = &attempt->section;
  tagging->mesh = cut->mesh;
  tagging->rank = number;
  sdg_tagging_span(tagging, sdg_section_axes(cut->section));
  memcpy(tagging->placement, cut->placement, sizeof tagging->placement);
  for (int i = 0; i < cut->call.operands; i++)
    memcpy(rank->call.operand[i].nesting, cut->call.operand[i].nesting,
           sizeof rank->call.operand[i].nesting);
  sdg_status_t status = (cut->whole ? sdg_function_share : sdg_function_plan)(
      &rank->call, tagging, &rank->plan);
  if (status != SDG_OK)
    return sdg_cut_fails(cut, "%s", sdg_last_error());
  cut->in_full = cut->whole && (!rank->plan || rank->plan->literal);
  return !cut->in_full ||
         sdg_cut_fails(cut, "%s",
                       rank->plan ? rank->plan->why
                                  : "nothing that it has is split");
}

static bool calls_wait(sdg_cut_t *cut) {
  return sdg_vendor_check(sdg_vendor_get()->cudaStreamSynchronize(cut->stream),
                          "a call on copies") == SDG_OK ||
         sdg_cut_fails(cut, "%s", sdg_last_error());
}

static void rank_call(sdg_cut_rank_t *rank) {
  rank->function.invoke(&rank->function, rank->function.value, true);
}

static bool play(sdg_cut_t *cut, sdg_cut_attempt_t *attempt) {
  enum { MARGIN = 4096 };
  int ranks = sdg_cut_ranks(cut);
  sdg_rehearsed_t *rank = calloc((size_t)ranks, sizeof *rank);
  sdg_rehearsal_t rehearsal = {
      .mesh = cut->mesh, .rank = rank, .stream = cut->stream};
  if (!rank)
    return sdg_cut_fails(cut, "no memory for the ranks");
  for (int r = 0; r < ranks; r++)
    rank[r] = (sdg_rehearsed_t){.plan = attempt->rank[r].plan,
                                .call = &attempt->rank[r].call,
                                .scratch = attempt->rank[r].scratch + MARGIN};
  sdg_status_t status = sdg_rehearse(&rehearsal);
  free(rank);
  memcpy(attempt->terms, rehearsal.terms, sizeof attempt->terms);
  if (status == SDG_OK && rehearsal.vendor)
    return sdg_cut_fails(cut, "%s",
                         sdg_vendor_text(SDG_STREAM_GIVEN, rehearsal.vendor));
  return status == SDG_OK || sdg_cut_fails(cut, "%s", sdg_last_error());
}

// ---- what is no tensor -----------------------------------------------------

// Reads or writes the program's memory, which may not be there.
static bool memory_move(sdg_cut_t *cut, void *at, void *io, size_t bytes,
                        bool write) {
  struct cudaPointerAttributes is = {.type = cudaMemoryTypeUnregistered};
  struct iovec own = {io, bytes}, other = {at, bytes};
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (cuda->cudaPointerGetAttributes(&is, at) != cudaSuccess)
    (void)cuda->cudaGetLastError(); // the error is not the program's
  if (is.type != cudaMemoryTypeUnregistered)
    return write ? sdg_cut_copy(cut, at, io, bytes)
                 : sdg_cut_copy(cut, io, at, bytes);
  ssize_t moved = write ? process_vm_writev(getpid(), &own, 1, &other, 1, 0)
                        : process_vm_readv(getpid(), &own, 1, &other, 1, 0);
  return moved == (ssize_t)bytes;
}

static bool word_read(sdg_cut_t *cut, void *at, uint64_t *out) {
  return memory_move(cut, at, out, sizeof *out, false);
}

static void told_open(sdg_cut_t *cut) {
  for (int a = 0; a < cut->function->arguments; a++) {
    const sdg_argument_t *argument = &cut->function->argument[a];
    bool address = argument->use == SDG_ARGUMENT_POINTER ||
                   (argument->use == SDG_ARGUMENT_IN && argument->tensor < 0);
    if (!address)
      continue;
    memcpy(&cut->told_at[a], cut->own->value[a], sizeof cut->told_at[a]);
    if (cut->told_at[a] && !word_read(cut, cut->told_at[a], &cut->told[a]))
      cut->told_at[a] = NULL;
  }
}

static void told_read(sdg_cut_t *cut, uint64_t *out) {
  for (int a = 0; a < cut->function->arguments; a++)
    if (cut->told_at[a] && !word_read(cut, cut->told_at[a], &out[a]))
      out[a] = cut->told[a];
}

// Puts back what the trial has changed and nobody else since, and no byte
// beside it: those may be a thread's.
static void word_restore(sdg_cut_t *cut, char *at, const uint64_t *before,
                         const uint64_t *after) {
  const char *was = (const char *)before, *became = (const char *)after;
  size_t first = 0, end = sizeof *before;
  uint64_t now;
  while (was[first] == became[first])
    first++;
  while (was[end - 1] == became[end - 1])
    end--;
  if (word_read(cut, at, &now) &&
      memcmp((const char *)&now + first, became + first, end - first) == 0)
    (void)memory_move(cut, at + first, (char *)(uintptr_t)was + first,
                      end - first, true);
}

// The program's call finds what it would have found.
static void told_restore(sdg_cut_t *cut, const uint64_t *now) {
  for (int a = 0; a < cut->function->arguments; a++)
    if (cut->told_at[a] && now[a] != cut->told[a])
      word_restore(cut, cut->told_at[a], &cut->told[a], &now[a]);
}

// ---- attempts --------------------------------------------------------------

static bool ranks_open(sdg_cut_t *cut, sdg_cut_attempt_t *attempt) {
  for (int r = 0; r < sdg_cut_ranks(cut); r++)
    if (!sdg_cut_pieces(cut, r, &attempt->rank[r]) ||
        !rank_plan(cut, attempt, r) || !sdg_cut_fill(cut, r, &attempt->rank[r]))
      return false;
  return true;
}

// If no element sees those of others, each program's own call is right.
static bool ranks_call(sdg_cut_t *cut, sdg_cut_attempt_t *attempt) {
  line_write(cut->function, "begins", attempt->rank->plan->strategy);
  if (!attempt->rank->plan->literal)
    return play(cut, attempt);
  for (int r = 0; r < sdg_cut_ranks(cut); r++)
    rank_call(&attempt->rank[r]);
  return calls_wait(cut);
}

static bool ranks_take(sdg_cut_t *cut, sdg_cut_attempt_t *attempt) {
  for (int r = 0; r < sdg_cut_ranks(cut); r++)
    if (!sdg_cut_take(cut, &attempt->rank[r]))
      return false;
  return true;
}

static bool attempt_make(sdg_cut_t *cut, sdg_strategy_t strategy) {
  sdg_cut_attempt_t *attempt = &cut->attempt[cut->attempts++];
  attempt->section = *cut->section;
  attempt->section.strategy = strategy;
  attempt->rank = calloc((size_t)sdg_cut_ranks(cut), sizeof *attempt->rank);
  if (!attempt->rank)
    return sdg_cut_fails(cut, "no memory for the ranks");
  bool good = ranks_open(cut, attempt);
  if (good) {
    good = ranks_call(cut, attempt);
    told_read(cut, attempt->told);
    told_restore(cut, attempt->told);
    good = good && ranks_take(cut, attempt);
  }
  for (int r = 0; r < sdg_cut_ranks(cut); r++)
    sdg_cut_memory_free(cut, &attempt->rank[r]);
  return good;
}

// The whole call, on copies.
static bool alone_make(sdg_cut_t *cut, sdg_cut_rank_t *rank) {
  bool good = sdg_cut_pieces(cut, SDG_CUT_ALONE, rank) &&
              sdg_cut_fill(cut, SDG_CUT_ALONE, rank);
  if (good) {
    line_write(cut->function, "begins", "whole");
    rank_call(rank);
    good = calls_wait(cut);
    told_read(cut, cut->told_alone);
    told_restore(cut, cut->told_alone);
    good = good && sdg_cut_take(cut, rank);
  }
  sdg_cut_memory_free(cut, rank);
  return good;
}

// Whether auto may choose between two ways.
static bool has_two(const sdg_cut_t *cut) {
  return !cut->whole && cut->function->pure &&
         cut->section->strategy == SDG_STRATEGY_AUTO;
}

static bool call_open(sdg_cut_t *cut, sdg_function_call_t *function) {
  const sdg_rules_t *rules;
  bool capturing = false;
  if (sdg_function_call_init(function, &cut->call) != SDG_OK ||
      sdg_setup_rules(&rules) != SDG_OK)
    return sdg_cut_fails(cut, "%s", sdg_last_error());
  if (!sdg_vendor_get() ||
      sdg_stream_state(&cut->call, &cut->stream, &capturing) != SDG_OK)
    return sdg_cut_fails(cut, "the CUDA runtime is not there");
  if (capturing)
    return sdg_cut_fails(cut, "its stream is being captured");
  sdg_tag_nest(&cut->call);
  if (!sdg_cut_place(cut, rules) || !sdg_cut_arrays(cut))
    return false;
  told_open(cut);
  return true;
}

static bool call_try(sdg_cut_t *cut, sdg_function_call_t *function) {
  if (!call_open(cut, function) || !alone_make(cut, &cut->alone[0]) ||
      !attempt_make(cut, has_two(cut) ? SDG_STRATEGY_REPAIR
                                      : cut->section->strategy))
    return false;
  if (has_two(cut) &&
      strcmp(cut->attempt[0].rank->plan->strategy, "repair") == 0 &&
      !attempt_make(cut, SDG_STRATEGY_EXTEND))
    return false;
  return alone_make(cut, &cut->alone[1]) &&
         (sdg_cut_repeats(cut) ||
          sdg_cut_fails(cut, "two equal calls have different results"));
}

// *out_nothing: of either sign in turn, since one may be the larger of two, or
// the smaller, by chance.
static bool again_wanted(const sdg_function_t *function, int *out_nothing) {
  enum { POSITIVE = 0x5a, NEGATIVE = 0xda };
  int i = 0;
  while (i < SDG_SECTIONS_MAX && each[i].function &&
         each[i].function != function)
    i++;
  if (i == SDG_SECTIONS_MAX || each[i].calls == CALLS_OF_EACH ||
      tried >= sdg_options_get()->values_calls)
    return false;
  each[i].function = function;
  *out_nothing = each[i].calls % 2 ? NEGATIVE : POSITIVE;
  each[i].calls++;
  tried++;
  return true;
}

static void cut_free(sdg_cut_t *cut) {
  for (int k = 0; k < cut->attempts; k++) {
    sdg_cut_attempt_t *attempt = &cut->attempt[k];
    for (int r = 0; attempt->rank && r < sdg_cut_ranks(cut); r++)
      sdg_cut_copies_free(cut, &attempt->rank[r]);
    free(attempt->rank);
  }
  for (int k = 0; k < 2; k++)
    sdg_cut_copies_free(cut, &cut->alone[k]);
  for (int i = 0; i < cut->call.operands; i++) {
    free(cut->array[i].old);
    sdg_placement_fini(&cut->placement[i]);
  }
  free(cut);
}

sdg_cut_t *sdg_cut_begin(sdg_function_call_t *function) {
  sdg_cut_t *cut;
  // A call of another thread meanwhile is not tried.
  if (trying || pthread_mutex_trylock(&lock) != 0)
    return NULL;
  int nothing;
  cut = again_wanted(function->function, &nothing) ? calloc(1, sizeof *cut)
                                                   : NULL;
  if (cut) {
    trying = cut;
    cut->nothing = nothing;
    cut->function = function->function;
    cut->own = function;
    if (!call_try(cut, function)) {
      line_write(cut->function, cut->in_full ? "full" : "why", cut->why);
      cut_free(cut);
      cut = NULL;
    }
    trying = NULL;
  }
  if (!cut)
    pthread_mutex_unlock(&lock); // otherwise sdg_cut_end does
  return cut;
}

// ---- the end ---------------------------------------------------------------

static bool arrays_read(sdg_cut_t *cut, char **now) {
  for (int i = 0; i < cut->call.operands; i++) {
    now[i] = malloc(cut->array[i].bytes);
    if (!now[i])
      return sdg_cut_fails(cut, "no memory for copies of its tensors");
    if (!sdg_cut_copy(cut, now[i], cut->array[i].operand.data,
                      cut->array[i].bytes))
      return false;
  }
  return true;
}

static void findings_write(sdg_cut_t *cut, char *const *now,
                           const void *returned) {
  char text[SDG_CUT_TEXT_BYTES], names[64] = "";
  for (int k = 0; k < cut->attempts; k++) {
    const char *strategy = cut->attempt[k].rank->plan->strategy;
    if (!sdg_cut_compare(cut, &cut->attempt[k], now, returned, text,
                         sizeof text)) {
      line_write(cut->function, "differs", text);
      return;
    }
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
             k ? ", " : "", strategy);
  }
  line_write(cut->function, "same", names);
}

void sdg_cut_end(sdg_cut_t *cut, const void *returned) {
  char *now[SDG_OPERANDS_MAX] = {NULL};
  if (!cut)
    return;
  if (arrays_read(cut, now))
    findings_write(cut, now, returned);
  else
    line_write(cut->function, "why", cut->why);
  for (int i = 0; i < cut->call.operands; i++)
    free(now[i]);
  cut_free(cut);
  pthread_mutex_unlock(&lock);
}

bool sdg_cut_tries(void) {
  return trying != NULL;
}

static void trial_left(sdg_cut_t *cut) {
  uint64_t now[SDG_ARGUMENTS_MAX];
  told_read(cut, now);
  told_restore(cut, now);
  for (int k = 0; k < cut->attempts; k++)
    for (int r = 0; cut->attempt[k].rank && r < sdg_cut_ranks(cut); r++)
      sdg_cut_memory_free(cut, &cut->attempt[k].rank[r]);
  for (int k = 0; k < 2; k++)
    sdg_cut_memory_free(cut, &cut->alone[k]);
}

void sdg_cut_left(sdg_cut_t *cut) {
  sdg_cut_t *left = cut ? cut : trying;
  if (!left)
    return;
  bool pieces = !cut && left->attempts > 0;
  line_write(left->function, pieces ? "differs" : "why",
             pieces ? "an exception left a call on a piece"
                    : "an exception left it");
  if (!cut)
    trial_left(left);
  cut_free(left);
  trying = NULL;
  pthread_mutex_unlock(&lock);
}

void sdg_cut_drop(void) {
  // Another thread of the parent may have held the lock.
  pthread_mutex_init(&lock, NULL);
  tried = INT64_MAX;
  sdg_event_drop(&findings);
}
