/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a function on copies of its tensors, with some elements of the
 * inputs changed. Inside this folder only. */
#ifndef SDG_RULES_OBSERVE_TRIAL_H
#define SDG_RULES_OBSERVE_TRIAL_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/function/call.h"

/* The copies of one operand. Operands at the same address share them. */
typedef struct sdg_trial_memory {
  int twin;     /* the operand that has the copies: itself, or an earlier one */
  size_t bytes; /* from its first element to behind its last one */
  void *copy;   /* what the function gets; as readable as the program's is */
  bool on_host; /* copy: of malloc */
  char *before; /* the program's elements */
  char *given;  /* what the copy holds when the function is called */
  char *after;  /* what it holds then */
  char *first;  /* the same after the call without any change */
  double lo, hi; /* of its finite elements */
} sdg_trial_memory_t;

typedef struct sdg_trial {
  const sdg_call_t *call;
  const sdg_function_call_t *function;
  cudaStream_t stream;
  int64_t calls; /* made so far */
  /* Those of the call, with their ghosts. Indices begin behind these. */
  sdg_operand_t operand[SDG_OPERANDS_MAX];
  struct {
    int64_t before, behind;
  } ghost[SDG_OPERANDS_MAX][SDG_DIMS_MAX];
  sdg_trial_memory_t memory[SDG_OPERANDS_MAX];
  char why[160]; /* the reason of a failure, for people */
} sdg_trial_t;

/* Copies the tensors, and makes the call twice without any change. False, with
 * `why`: that cannot be done, or the results differ. The caller must call
 * sdg_trial_fini() in any case. */
bool sdg_trial_init(const sdg_call_t *call, sdg_trial_t *out_trial);
void sdg_trial_fini(sdg_trial_t *trial);

/* Which elements are changed: in dimension `d` of the inputs, at `from` or more
 * from index `row`, but for the next ones in front of it and behind it, with
 * itself. */
typedef struct sdg_trial_change {
  int d;
  int64_t row, from;
  int64_t before, behind; /* so many of these; -1: none */
  bool wraps;             /* the dimension's ends are neighbours */
  int input;              /* the only operand to change; -1: every input */
  int way; /* 0: towards the largest of the values, 1: the smallest */
} sdg_trial_change_t;

enum { SDG_TRIAL_WAYS = 2 };

/* Calls the function with these elements changed. *out_output: an operand that
 * differs at index `row`, -1: none does. False, with `why`, if it cannot be
 * called. */
bool sdg_trial_run(sdg_trial_t *trial, const sdg_trial_change_t *change,
                   int *out_output);

/* Whether the operand is an input whose elements can be changed, with as many
 * of them along dimension `d` as the first operand has. */
bool sdg_trial_changes(const sdg_trial_t *trial, int operand, int d);

/* The extent of an operand without its ghosts. */
int64_t sdg_trial_extent(const sdg_trial_t *trial, int operand, int d);

/* Whether some result at index `row` is a finite number. */
bool sdg_trial_finite(const sdg_trial_t *trial, int d, int64_t row);

#endif
