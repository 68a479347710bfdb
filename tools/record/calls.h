/* SPDX-License-Identifier: Apache-2.0 */
/* The distinct calls of a program, as rules/observe/inspect.h recorded them. */
#ifndef SDG_TOOLS_RECORD_CALLS_H
#define SDG_TOOLS_RECORD_CALLS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "rules/window/window.h"
#include "src/call/call.h"
#include "tools/record/functions.h"

enum { CALLS_NAME_BYTES = 96, CALLS_LIBRARIES_MAX = 16 };

typedef struct seen_operand {
  char role[8]; /* "x", "dy" ... */
  bool is_output, is_filter, is_activation;
  bool is_managed; /* in memory of cudaMallocManaged */
  int type;        /* cudnnDataType_t */
  int bytes;
  int dims;
  int64_t extent[SDG_DIMS_MAX];
} seen_operand_t;

typedef struct seen_call {
  uint64_t hash; /* of the fields that distinguish calls */
  char entry[CALLS_NAME_BYTES];
  sdg_family_t family;
  bool is_query;
  bool has_rule;  /* some op of this version can split it */
  bool is_opaque; /* its tensors are unknown: no operands */
  /* Adds elements of the rank's tensors outside of cuDNN: no operands. */
  bool is_reduction;
  int64_t count; /* number of equal calls; 1 if a signal ended the process */
  int spatial;   /* dimensions of the window; 0: none */
  sdg_window_t window[SDG_DIMS_MAX];
  /* Attention only: the numbers of keys that a query sees before and after its
   * own position; -1: no bound. is_ragged: the windows do not have fixed
   * numbers. */
  bool has_windows, is_ragged;
  bool one_tensor; /* keys and values are one tensor */
  int64_t left, right;
  int operands;
  seen_operand_t operand[SDG_OPERANDS_MAX];
} seen_call_t;

typedef struct calls {
  int count;
  seen_call_t *call; /* in the order of first appearance; owned */
  int processes;     /* processes that called cuDNN */
  bool complete;     /* no signal ended them, so counts are right */
  bool dropped;      /* a process made more distinct calls than it records */
  int functions;     /* that got addresses in device memory */
  seen_function_t *function; /* owned */
  int libraries;
  char library[CALLS_LIBRARIES_MAX][PATH_MAX];
} calls_t;

/* Reads the records in a folder. Merges equal calls of several processes. */
sdg_status_t calls_read(const char *folder, calls_t *out_calls) SDG_MUST_CHECK;
void calls_fini(calls_t *calls);

/* Returns the operand with this role; NULL if the call has none. */
const seen_operand_t *call_operand(const seen_call_t *call, const char *role);
/* Returns a name such as "float"; "?" for an unknown type. */
const char *type_name(int type);
/* Estimates how often the program repeats its calls: the largest count of a
 * windowed call that divides the counts of four in five windowed calls (of all
 * calls if none is windowed). The others are taken for setup. 1 if nothing
 * repeats. */
int64_t calls_steps(const calls_t *calls);

#endif
