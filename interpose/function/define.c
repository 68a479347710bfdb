// SPDX-License-Identifier: Apache-2.0
// Functions that the program describes as it runs.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/function/bind.h"
#include "interpose/function/closure.h"
#include "interpose/function/function.h"
#include "interpose/function/real.h"
#include "interpose/load.h"
#include "rules/file/setup.h"
#include "src/job/job.h"
#include "src/observe/declared.h"
#include "src/observe/report.h"

// Never freed: its closure may be called.
typedef struct defined {
  struct defined *next;
  sdg_function_t function;
  void *real, *code;
  const atomic_bool *called;
  char *text;
} defined_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of writers
static _Atomic(defined_t *) list;
atomic_bool sdg_function_defined;

static defined_t *first(void) {
  return atomic_load_explicit(&list, memory_order_acquire);
}

void *sdg_function_redefined(const char *name, void *address) {
  for (defined_t *d = first(); d && address; d = d->next)
    if (d->real == address && strcmp(d->function.symbol, name) == 0)
      return d->code;
  return NULL;
}

// One description of each function, and one function of each name.
static sdg_status_t again_check(const char *name, const char *text,
                                bool *out_same) {
  *out_same = false;
  for (defined_t *d = first(); d; d = d->next) {
    if (strcmp(d->function.name, name) != 0)
      continue;
    *out_same = strcmp(d->text, text) == 0;
    if (!*out_same)
      return sdg_fail(SDG_E_RULES_TWICE,
                      "sundog_define %s: it has another text already", name);
  }
  return SDG_OK;
}

static sdg_status_t symbol_check(const sdg_function_t *function) {
  for (defined_t *d = first(); d; d = d->next)
    if (strcmp(d->function.symbol, function->symbol) == 0)
      return sdg_fail(SDG_E_RULES_TWICE,
                      "sundog_define %s: symbol '%s' is already that of '%s'",
                      function->name, function->symbol, d->function.name);
  return SDG_OK;
}

static sdg_status_t defined_fill(const sdg_rules_t *rules, const char *name,
                                 const char *text, defined_t *io) {
  SDG_TRY(sdg_rules_define(rules, name, text, &io->function));
  SDG_TRY(symbol_check(&io->function));
  io->text = strdup(text);
  if (!io->text)
    return sdg_fail(SDG_E_NO_MEMORY, "a function");
  io->real = sdg_function_real(io->function.symbol, io->function.library);
  if (!io->real)
    return SDG_E_FUNCTION_UNSEEN;
  return sdg_function_closure(&io->function, io->real, &io->code, &io->called);
}

static sdg_status_t define(const char *name, const char *text) {
  const sdg_rules_t *rules;
  defined_t *defined;
  bool same;
  SDG_TRY(sdg_setup_rules(&rules));
  SDG_TRY(again_check(name, text, &same));
  if (same)
    return SDG_OK;
  SDG_TRY(SDG_ALLOCATE(defined, 1, "a function"));
  sdg_status_t status = defined_fill(rules, name, text, defined);
  if (status != SDG_OK) {
    free(defined->text);
    free(defined);
    return status;
  }
  status =
      sdg_function_bind(defined->function.symbol, defined->real, defined->code);
  if (status != SDG_OK) // some calls may be captured already
    return sdg_job_fail(status);
  defined->next = first();
  atomic_store_explicit(&list, defined, memory_order_release);
  atomic_store_explicit(&sdg_function_defined, true, memory_order_release);
  return SDG_OK;
}

sdg_status_t sdg_function_define(const char *name, const char *text) {
  if (!name || !text)
    return sdg_fail(SDG_E_RULES_SYNTAX, "sundog_define: %s is NULL",
                    name ? "the text" : "the name");
  if (!sdg_job_asked() || sdg_job_disarmed())
    return SDG_OK;
  sdg_load_watch_fork();
  pthread_mutex_lock(&lock);
  sdg_status_t status = define(name, text);
  pthread_mutex_unlock(&lock);
  if (status != SDG_OK)
    sdg_report_fail();
  return status;
}

void sdg_function_defined_finish(void) {
  for (defined_t *d = first(); d; d = d->next)
    sdg_declared_write(d->function.name, atomic_load(d->called)
                                             ? SDG_DECLARED_CALLED
                                             : SDG_DECLARED_UNUSED);
}
