/* SPDX-License-Identifier: Apache-2.0 */
/* A float convolution by oneDNN alone, from and to plain layouts. */
#ifndef SDG_TESTS_BENCH_RIVAL_H
#define SDG_TESTS_BENCH_RIVAL_H

#include <stdbool.h>

enum { BENCH_SPATIAL = 3 };

/* If there are fewer dimensions, leading extents of `in` are 1. */
typedef struct {
  const char *name;
  int dims; /* spatial ones, 2 or 3: the last of each array below */
  int n, c, k, groups;
  int in[BENCH_SPATIAL], window[BENCH_SPATIAL];
  int stride, pad, dilation; /* of every spatial dimension */
} bench_shape_t;

/* Extent of the output in dimension d of BENCH_SPATIAL. */
static inline int bench_out(const bench_shape_t *s, int d) {
  if (d < BENCH_SPATIAL - s->dims)
    return 1;
  int reach = s->dilation * (s->window[d] - 1) + 1;
  return (s->in[d] + 2 * s->pad - reach) / s->stride + 1;
}

typedef enum {
  BENCH_FORWARD,
  BENCH_DATA,
  BENCH_WEIGHTS,
  BENCH_KINDS
} bench_kind_t;

/* The layouts that are tried: oneDNN's choice, channels last, and the
 * program's. */
typedef enum {
  BENCH_ANY,
  BENCH_LAST,
  BENCH_PLAIN,
  BENCH_LAYOUTS
} bench_layout_t;

typedef struct rival rival_t;

/* x, w, y are dense: N C (D) H W and (G) K C (D) H W. The one that `kind`
 * computes is written. Returns NULL if oneDNN has only its reference code. */
rival_t *rival_create(const bench_shape_t *shape, bench_kind_t kind,
                      bench_layout_t layout, float *x, float *w, float *y);
void rival_destroy(rival_t *rival);

/* Converts, computes, converts back; false if oneDNN fails. */
bool rival_run(rival_t *rival);

#endif
