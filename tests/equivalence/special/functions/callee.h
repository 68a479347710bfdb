/* SPDX-License-Identifier: Apache-2.0 */
/* A function of any signature: each element of what it writes is a hash of the
 * elements in reach and of all numbers, so that any wrong argument shows. */
#ifndef SDG_TESTS_EQUIVALENCE_CALLEE_H
#define SDG_TESTS_EQUIVALENCE_CALLEE_H

#include <stdint.h>

enum { DIMS = 5, TENSORS = 12, REACH_ALL = -2 };
#define NO_OFFSET INT64_MIN
enum use { USE_IN, USE_OUT, USE_INOUT, USE_RESULT };

struct tensor {
  enum use use;
  char kind; /* i, u, f; b: a bool; of no meaning but for results */
  int bytes;
  int count;    /* of a result: its numbers */
  char combine; /* of a result: s, x, n, m: sum, max, min, mean */
  int dims;
  int dim[DIMS];
  int before[DIMS], behind[DIMS]; /* ghosts */
};

struct prototype {
  const char *name;
  int tensors;
  struct tensor tensor[TENSORS];
  int reach[DIMS]; /* or in front and behind */
  int before[DIMS], behind[DIMS];
  char border[DIMS + 1]; /* o, w, z */
  int has_ghosts[DIMS];  /* others see elements at their own place only */
  int lead;              /* the tensor over which results go */
};

/* One call, as the callee finds it. */
struct run {
  void *data[TENSORS];
  int64_t extent[DIMS];          /* without ghosts */
  int64_t stride[TENSORS][DIMS]; /* of tensor t: in the order of its dims */
  int64_t offset[DIMS];          /* or NO_OFFSET */
  uint64_t hash;                 /* of the numbers */
};

uint64_t mix(uint64_t a, uint64_t b);
uint64_t hash_bytes(uint64_t hash, const void *at, int bytes);
/* What a function returns as a result over all elements of the lead. */
void callee_result(const struct prototype *p, const struct run *run,
                   char combine, char kind, int bytes, void *out);
void callee_compute(const struct prototype *p, const struct run *run);

/* Steps through all places of `extent`; returns 0 at the end. */
int place_next(int dims, const int64_t *extent, int64_t *place);

#endif
