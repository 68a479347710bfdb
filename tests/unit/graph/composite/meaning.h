/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a graph computes what was recognised in it. */
#ifndef SDG_TESTS_UNIT_GRAPH_COMPOSITE_MEANING_H
#define SDG_TESTS_UNIT_GRAPH_COMPOSITE_MEANING_H

#include "rules/graph/composite/composite.h"
#include "tests/unit/graph/attention/compute.h"

/* The memory of a program: arrays of the tensors in the order of their
 * dimensions, and the by-value tensors' numbers as they lie on the host. */
typedef struct program {
  double *value[COMPUTE_TENSORS]; /* owned; NULL for virtual tensors */
  union {
    float f32;
    int32_t i32;
  } number[COMPUTE_TENSORS];
  void *pointer[COMPUTE_TENSORS]; /* to these numbers */
} program_t;

/* Random numbers for what a graph reads, whose meaning is known: they are
 * those that cudnn-frontend passes. */
void program_create(program_t *program, const sdg_graph_t *graph,
                    const sdg_composite_t *composite);
/* Another number of a by-value tensor. */
void program_number(program_t *program, const sdg_graph_tensor_t *tensor,
                    int index, double number);
void program_destroy(program_t *program);

typedef enum meaning {
  MEANING_REFUSED, /* it is not recognised, or its numbers are not */
  MEANING_RIGHT,
  MEANING_WRONG,
} meaning_t;

/* Recognises the graph, computes it on the program's memory, and compares with
 * what it must compute. */
meaning_t meaning_of(const sdg_graph_t *graph, const program_t *program);

#endif
