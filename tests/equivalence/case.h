/* SPDX-License-Identifier: Apache-2.0 */
/* One convolution to try: its parameters, how it is cut into pieces, and its
 * input values, which depend on nothing but the seed and the global index. */
#ifndef EQUIVALENCE_CASE_H
#define EQUIVALENCE_CASE_H

#include <stdint.h>

/* N, C and three spatial dimensions; with two of them, D is 1. */
enum { CASE_DIMS = 5, CASE_AXES = 4, CASE_PIECES = 64 };

typedef enum { CASE_CONV, CASE_BIAS_RELU, CASE_BIAS_NONE } case_op_t;

typedef enum { CASE_X, CASE_W, CASE_BIAS, CASE_Z, CASE_Y } case_tensor_t;

typedef struct {
  int rank; /* 4 or 5 dimensions in the descriptors */
  int size[CASE_DIMS];
  int outputs, groups; /* channels of y; groups of channels */
  int kernel[3], stride[3], dilation[3], pad[3];
  int nhwc, flipped, z_is_y, gap, repeat, own_sizes;
  /* Tensors are doubled on the device before the call: 1: x, 2: z and old y,
   * too. In the whole view each rank then has right what it doubled, and half
   * of everything else. */
  int spread;
  case_op_t op;
  float alpha, beta;
  uint64_t seed;
  /* The mesh; and for each dimension its axes, slowest first, and the first
   * index of each piece of x plus the end. */
  int mesh_count, mesh[CASE_AXES];
  int axis_count[CASE_DIMS], axis[CASE_DIMS][CASE_AXES];
  int pieces[CASE_DIMS], first[CASE_DIMS][CASE_PIECES + 1];
} case_t;

/* A piece of a tensor: first index and extent in each dimension. */
typedef struct {
  int first[CASE_DIMS];
  int extent[CASE_DIMS];
} case_box_t;

/* Reads "key=value" words. Returns NULL, or the word that is wrong. */
const char *case_read(char *line, case_t *out);

/* The number of ranks of the mesh. */
int case_ranks(const case_t *c);

/* What rank `rank` holds of x or of y; all of it where rank is negative. */
case_box_t case_x(const case_t *c, int rank);
case_box_t case_y(const case_t *c, int rank);

int64_t case_count(case_box_t box);

/* Number of elements between neighbours of each dimension, for a piece with
 * `extent`, in the case's layout; `gap` more elements follow each line.
 * Returns the number of elements from first to last, gaps included. */
int64_t case_strides(const case_t *c, const int extent[CASE_DIMS], int gap,
                     int64_t stride[CASE_DIMS]);

/* The value of a tensor at a global index, in (-1, 1). */
float case_value(const case_t *c, case_tensor_t tensor, const int at[CASE_DIMS],
                 const int size[CASE_DIMS]);

#endif
