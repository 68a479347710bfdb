/* SPDX-License-Identifier: Apache-2.0 */
/* Options: one table (options.def), read once from the environment. */
#ifndef SDG_SRC_BASE_OPTIONS_H
#define SDG_SRC_BASE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"

typedef enum sdg_option {
#define SDG_OPTION(name, field, type, words, fallback, owner, paragraph)       \
  SDG_OPTION_##name,
#include "src/base/options.def"
#undef SDG_OPTION
  SDG_OPTION_COUNT,
} sdg_option_t;

/* Values of the CHOICE options; the order is that of their words. */
typedef enum sdg_view {
  SDG_VIEW_UNSAID,
  SDG_VIEW_SHARD,
  SDG_VIEW_WHOLE,
} sdg_view_t;

typedef enum sdg_strategy {
  SDG_STRATEGY_AUTO,
  SDG_STRATEGY_REPAIR,
  SDG_STRATEGY_EXTEND,
  SDG_STRATEGY_ADJOINT, /* data gradients of convolutions */
  SDG_STRATEGY_HALO,    /* attention */
  SDG_STRATEGY_HEADS,
  SDG_STRATEGY_GATHER,
  SDG_STRATEGY_RING,
} sdg_strategy_t;

/* What a value means that cuBLAS computes from pieces. */
typedef enum sdg_piece_values {
  SDG_PIECE_VALUES_ERROR,
  SDG_PIECE_VALUES_LOCAL,
  SDG_PIECE_VALUES_GLOBAL,
} sdg_piece_values_t;

typedef enum sdg_threads {
  SDG_THREADS_NAMED,
  SDG_THREADS_ORDERED,
} sdg_threads_t;

typedef enum sdg_replay {
  SDG_REPLAY_AUTO,
  SDG_REPLAY_OFF,
} sdg_replay_t;

typedef enum sdg_on_error {
  SDG_ON_ERROR_FAIL,
  SDG_ON_ERROR_IGNORE,
} sdg_on_error_t;

typedef enum sdg_comparing {
  SDG_COMPARING_OFF,
  SDG_COMPARING_FIRST,
  SDG_COMPARING_ALWAYS,
} sdg_comparing_t;

typedef enum sdg_parameters {
  SDG_PARAMETERS_OWN,
  SDG_PARAMETERS_RANK0,
} sdg_parameters_t;

typedef enum sdg_origin {
  SDG_ORIGIN_DEFAULT,
  SDG_ORIGIN_ENVIRONMENT,
  SDG_ORIGIN_ARGUMENT, /* of `sundog run` or `sundog exec` */
  SDG_ORIGIN_COMMAND,  /* set by such a command by itself */
  SDG_ORIGIN_COUNT,
} sdg_origin_t;

/* What work costs a device (src/job/cost.h). All 0: not known. */
typedef struct sdg_cost {
  double copy_bytes_s; /* bytes that a copy moves in a second, > 0 */
  double launch_us;    /* one more copy, or a cheap op as pooling is */
  double strip_us;     /* one more convolution, of a strip */
  double run_bytes;    /* copies of shorter runs take a kernel; 0: none does */
} sdg_cost_t;

/* Parsed values, one member per row: `options->rules`, `options->timeout_s`.
 * Texts are never NULL. */
typedef struct sdg_options {
#define SDG_OPTION_C_TEXT    const char *
#define SDG_OPTION_C_SECRET  const char *
#define SDG_OPTION_C_PATH    const char *
#define SDG_OPTION_C_COUNT   int
#define SDG_OPTION_C_SECONDS double
#define SDG_OPTION_C_BOOL    bool
#define SDG_OPTION_C_CHOICE  int
#define SDG_OPTION_C_COST    sdg_cost_t
#define SDG_OPTION(name, field, type, words, fallback, owner, paragraph)       \
  SDG_OPTION_C_##type field;
#include "src/base/options.def"
#undef SDG_OPTION
  sdg_origin_t origin[SDG_OPTION_COUNT];
  bool asked;     /* sdg_options_asked() */
  bool observing; /* a record of every call is wanted: trace, record, values or
                     inspect is set */
} sdg_options_t;

/* Reads SUNDOG_* from `environment` (NULL-terminated "NAME=value", may be
 * NULL). Copies the strings. It runs in a library constructor, before main and
 * before any thread, so it does not allocate, print or make any other system
 * call. Keeps the first fault for sdg_options_fault() and returns its status;
 * all options without a fault have their values. Tests may call it again. */
sdg_status_t sdg_options_load(char *const *environment);

/* Returns the values of the last load; defaults before the first. Immutable
 * after the load, so any thread may read them. */
const sdg_options_t *sdg_options_get(void);

/* Returns SDG_OK, or reports (sdg_fail) the first fault of the last load and
 * returns its status. Call at the first call on tensors: a program that uses
 * no tensors stays silent. */
sdg_status_t sdg_options_fault(void) SDG_MUST_CHECK;
/* Returns the same fault without reporting it: the text after the code, "" if
 * none. */
const char *sdg_options_fault_text(void);

/* Returns true if a split was asked for: SUNDOG_RULES or SUNDOG_SPLIT is set
 * (but not to "replicated"), or an option that is useful only with them, or a
 * SUNDOG_* variable that is not in the table, because it may be a misspelling
 * of one of them. If false, sundog has nothing to do. If true and
 * sdg_options_fault() is not SDG_OK, calls on tensors fail. */
bool sdg_options_asked(const sdg_options_t *options);

/* Returns true if SUNDOG_SPLIT=replicated says that nothing is to be split. */
bool sdg_options_replicated(const sdg_options_t *options);

/* One row of the table. */
typedef struct sdg_option_info {
  const char *variable; /* "SUNDOG_RULES" */
  const char *type;     /* "TEXT", "PATH", "COUNT", ... */
  const char *words;    /* for a CHOICE: "auto|repair|extend" */
  const char *fallback; /* the default as text */
  const char *owner;    /* "LIBRARY", "COMMAND", "HOST" */
  const char *paragraph;
} sdg_option_info_t;
/* Returns NULL past the last row. */
const sdg_option_info_t *sdg_option_at(unsigned index);

/* How SUNDOG_ORIGINS tells the origin of an option: words such as
 * "SPLIT=09ab12cd", an argument, or "RANK+09ab12cd", with this number of the
 * value. A word whose number is not that of the value does not count: another
 * program has set the option since. */
uint32_t sdg_option_mark(const char *value);
/* Returns "default", "environment", "argument" or "command". */
const char *sdg_origin_name(sdg_origin_t origin);

/* Returns the value of SUNDOG_COMPARE; ALWAYS if SUNDOG_CHECK is set. */
sdg_comparing_t sdg_options_comparing(void);

#endif
