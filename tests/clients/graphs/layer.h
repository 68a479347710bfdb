/* SPDX-License-Identifier: Apache-2.0 */
/* One convolution in memory, channels last, in float, and what it should give
 * by plain loops in double precision. With LAYER_VIEW=shard in the environment
 * each rank (SUNDOG_RANK of SUNDOG_SIZE) has its rows of x, y and z in device
 * memory, uneven ones, and checks these. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_LAYER_H
#define SDG_TESTS_CLIENTS_GRAPHS_LAYER_H

#include <stdint.h>

enum { LAYER_X, LAYER_W, LAYER_Y, LAYER_BIAS, LAYER_Z, LAYER_TENSORS };

typedef enum {
  LAYER_FORWARD, /* y = conv(x, w) */
  LAYER_DATA,    /* x = gradient from y and w */
  LAYER_FILTER,  /* w = gradient from x and y */
  LAYER_FUSED,   /* y = relu(conv(x, w) + z + bias) */
} layer_what_t;

typedef struct {
  int64_t stride, padding;
  int64_t whole[LAYER_TENSORS][4]; /* N C H W */
  int64_t dim[LAYER_TENSORS][4];   /* this rank's */
  int64_t first[LAYER_TENSORS];    /* its first row */
  float *host[LAYER_TENSORS];      /* the whole tensors */
  void *device[LAYER_TENSORS];     /* this rank's pieces */
} layer_t;

/* Fills all tensors with numbers that depend on their positions alone. */
void layer_init(layer_t *layer, int64_t images, int64_t channels,
                int64_t outputs, int64_t rows, int64_t columns, int64_t kernel,
                int64_t stride, int64_t padding);
void layer_fini(layer_t *layer);

/* Clears the result in memory, so that what an earlier plan wrote cannot be
 * taken for this one's. */
void layer_clear(const layer_t *layer, layer_what_t what);

/* Compares the result in memory with loops; ends the program if they differ by
 * more than rounding. Prints "NAME: VALUES values, off by at most ERROR". */
void layer_check(const layer_t *layer, layer_what_t what, const char *name);

#endif
