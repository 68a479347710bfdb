/* SPDX-License-Identifier: Apache-2.0 */
/* One drawn pooling, its tensors' elements, and what it gives in double
 * precision. Five dimensions always: N, C, D, H, W; without D its extent is 1.
 */
#ifndef TESTS_EQUIVALENCE_POOLCASE_H
#define TESTS_EQUIVALENCE_POOLCASE_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

enum { DIMS = 5, PIECES_MAX = 8 };

typedef struct {
  int first[DIMS], extent[DIMS];
} box_t;

typedef struct {
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
  cudnnDataType_t type;
  bool wrap;   /* H is periodic */
  bool global; /* windows are all of the dimensions that are split */
  int window[3], stride[3], pad[3];
  int x[DIMS], y[DIMS]; /* extents of the whole */
  /* Where the pieces of a split dimension begin; one piece: not split. */
  int pieces[DIMS], x_cut[DIMS][PIECES_MAX + 1], y_cut[DIMS][PIECES_MAX + 1];
  bool own_sizes; /* the program says y's sizes itself */
  int layout;     /* 0: NCHW, 1: NHWC, 2: NCHW with gaps */
  double alpha, beta;
  uint32_t seed;
} pool_t;

/* Advances *state; in [lo, hi]. */
int draw_in(uint64_t *state, int lo, int hi);
/* False where this draw has no output somewhere. `pieces` of each dimension;
 * `spatial` 2 or 3; `whole`: pieces may be empty; `special` "wrap", "global" or
 * "". */
bool pool_draw(uint64_t *state, const int *pieces, int spatial, bool whole,
               const char *special, pool_t *out);
/* Whether all ranks have the one output of this dimension. */
bool pool_merges(const pool_t *p, int d);

/* Element of a tensor ('x', 'y', 'd' for dy, 'o' for the old values of what is
 * written) at global coordinates, a number that every type holds. */
double pool_value(const pool_t *p, char tensor, const int *at);
/* y in double precision: the maximum or mean; for means what it may err by. */
double pool_forward(const pool_t *p, const int *at);
/* dx, alpha and beta left out. `y` and `dy` as pool_value gives them, but y of
 * a maximum, which is the forward one's. */
double pool_backward(const pool_t *p, const int *at);

/* An element of this type in memory. */
int type_bytes(cudnnDataType_t type);
double type_get(cudnnDataType_t type, const void *from);
void type_put(cudnnDataType_t type, double value, void *to);
/* Half the distance of 1 to the next number. */
double type_epsilon(cudnnDataType_t type);

#endif
