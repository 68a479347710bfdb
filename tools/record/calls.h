/* SPDX-License-Identifier: Apache-2.0 */
/* The distinct calls of a program, as rules/observe/inspect.h recorded them. */
#ifndef SDG_TOOLS_RECORD_CALLS_H
#define SDG_TOOLS_RECORD_CALLS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "rules/window/window.h"
#include "src/call/call.h"

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
  uint64_t hash; /* of what tells it apart */
  char entry[CALLS_NAME_BYTES];
  sdg_family_t family;
  bool is_query;
  bool has_rule;  /* this version can split it */
  bool is_opaque; /* hides its tensors: no operands */
  /* Makes sums of what the rank has, outside of cuDNN: no operands. */
  bool is_reduction;
  int64_t count; /* 1 if the process did not end by itself */
  int spatial;   /* dimensions of the window; 0: none */
  sdg_window_t window[SDG_DIMS_MAX];
  /* Of attention: how many keys before and after itself a query sees, -1: no
   * bound; ragged: that is not all that there is to say. */
  bool has_windows, is_ragged;
  bool one_tensor; /* keys are values */
  int64_t left, right;
  int operands;
  seen_operand_t operand[SDG_OPERANDS_MAX];
} seen_call_t;

typedef struct calls {
  int count;
  seen_call_t *call; /* in the order of first appearance; owned */
  int processes;     /* that called cuDNN */
  bool complete;     /* all of them ended by themselves: counts are right */
  bool dropped;      /* there were more calls than a process records */
  int libraries;
  char library[CALLS_LIBRARIES_MAX][PATH_MAX];
} calls_t;

/* Reads the records in a folder; equal calls of several processes are one. */
sdg_status_t calls_read(const char *folder, calls_t *out_calls) SDG_MUST_CHECK;
void calls_fini(calls_t *calls);

/* The operand of this role, NULL if there is none. */
const seen_operand_t *call_operand(const seen_call_t *call, const char *role);
/* "float"; "?" for a type this version does not know. */
const char *type_name(int type);
/* A guess at how often the program repeats itself: the largest count of a
 * windowed call (of any, if there are none) of which the counts of four in
 * five such calls are multiples; setup calls are the rest. 1 if nothing
 * repeats. */
int64_t calls_steps(const calls_t *calls);

#endif
