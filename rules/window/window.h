/* SPDX-License-Identifier: Apache-2.0 */
/* What ops with a sliding window (convolution, pooling) share: sizes,
 * ownership, needs, and what a rank can compute on its own buffers. Pure.
 *
 * All formulas are of one dimension, in global coordinates: x is the op's
 * input, y its output. Output o sees the inputs o*s - p + j*d for
 * j = 0 .. k-1. Divisions are floors and ceilings (src/geometry/box.h). */
#ifndef SDG_RULES_WINDOW_WINDOW_H
#define SDG_RULES_WINDOW_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/geometry/box.h"
#include "src/geometry/part.h"

typedef struct sdg_window {
  int64_t kernel, stride, dilation; /* k, s, d >= 1 */
  int64_t pad;                      /* p >= 0, at the low side */
} sdg_window_t;

/* Inputs from the first to the last that one output sees: d(k-1) + 1.
 * k=3, d=2: 5. */
int64_t sdg_window_span(const sdg_window_t *window);

/* Outputs of `x_extent` inputs with p at both sides:
 * floor((N + 2p - span) / s) + 1, 0 if the window does not fit.
 * N=10, k=3, s=2, p=1: floor(9/2) + 1 = 5. */
int64_t sdg_window_outputs(const sdg_window_t *window, int64_t x_extent);

/* Who owns which outputs where nobody says otherwise: the owner of the input
 * under the window's centre, o*s - p + c with c = floor(d(k-1)/2). Inner
 * boundaries b of x become clamp(ceil((b + p - c) / s), 0, y_extent).
 * N=10, x 5+5, k=3, s=2, p=1: ceil((5+1-1)/2) = 3, y 3+2. */
sdg_status_t sdg_window_part(const sdg_window_t *window, const sdg_part_t *x,
                             int64_t y_extent,
                             sdg_part_t *out_y) SDG_MUST_CHECK;
/* The same for ops that run from y to x (a data gradient used as a forward
 * op): clamp(b*s - p + c, 0, x_extent).
 * y 3+2, k=3, s=2, p=1, N=10: 3*2 - 1 + 1 = 6, x 6+4. */
sdg_status_t sdg_window_part_adjoint(const sdg_window_t *window,
                                     const sdg_part_t *y, int64_t x_extent,
                                     sdg_part_t *out_x) SDG_MUST_CHECK;

/* The inputs that outputs [o0, o1) see: [o0*s - p, (o1-1)*s - p + span), not
 * cut: rows outside [0, x_extent) are the op's padding, or wrapped rows of a
 * periodic dimension. {0,0} for no outputs.
 * k=3, s=2, p=1, outputs [0,3): [-1, 6). */
sdg_range_t sdg_window_need(const sdg_window_t *window, sdg_range_t y);
/* The outputs that see any of the inputs [i0, i1):
 * [ceil((i0 + p - d(k-1)) / s), floor((i1-1 + p) / s) + 1), not cut; cut it
 * at [0, y_extent). {0,0} for no inputs; may be empty (s > span).
 * k=3, s=2, p=1, inputs [5,10): [2, 6), cut at 5: [2, 5). */
sdg_range_t sdg_window_need_adjoint(const sdg_window_t *window, sdg_range_t x);
/* Outputs that see inputs through the same places of their windows. */
typedef struct sdg_window_run {
  sdg_range_t y, taps; /* neither is empty; taps of 0 .. k-1 */
} sdg_window_run_t;
/* Where outputs `y` see inputs `x`, each output with each of its taps there
 * once: runs in ascending order of outputs, at most 2k + 1 of them. out NULL:
 * their number alone.
 * k=3, s=1, p=1, outputs [0,5), inputs [0,4): output 0 through taps [1,3),
 * outputs [1,3) through [0,3), output 3 through [0,2), output 4 through [0,1).
 */
int sdg_window_runs(const sdg_window_t *window, sdg_range_t y, sdg_range_t x,
                    sdg_window_run_t *out);
/* The inputs of a run, and those between them:
 * k=3, s=1, p=1, output 0 through [1,3): [0,2). */
sdg_range_t sdg_window_run_inputs(const sdg_window_t *window,
                                  const sdg_window_run_t *run);

/* In a periodic dimension an output may see an input through several images
 * i + m*N. The images m in [lo, hi) for which [m*N, (m+1)*N) meets what all
 * outputs together see; the adjoint need of [i0, i1) is the union over m of
 * the need of [i0 + m*N, i1 + m*N). N=10, k=3, s=1, p=1, 10 outputs see
 * [-1, 11): m in [-1, 2). {0,0} where there are no outputs. */
sdg_range_t sdg_window_images(const sdg_window_t *window, int64_t x_extent,
                              int64_t y_extent);

/* `range` without what lies outside [0, extent); {0,0} if nothing is left. */
sdg_range_t sdg_range_cut(sdg_range_t range, int64_t extent);

/* One dimension of an op as one rank has it. A dimension that is not split is
 * one whose x and y are all of the extents. */
typedef struct sdg_window_dim {
  sdg_window_t window;
  int64_t x_extent, y_extent; /* global */
  sdg_range_t x, y;           /* owned by this rank; may be empty */
  bool wrap;                  /* periodic: padding is wrapped rows */
} sdg_window_dim_t;

/* What the real op can be given of the rank's own buffers. It pads the view
 * with p at both sides and makes sdg_window_outputs(view.x) outputs, exactly
 * view.y; those in `right` are what the whole op makes, the others saw
 * padding where there are neighbours. */
typedef struct sdg_window_view {
  sdg_range_t x, y;  /* inside the owned ranges; {0,0} if there is no view */
  sdg_range_t right; /* inside y; {0,0} if none */
} sdg_window_view_t;

/* For owned x [x0,x1), y [o0,o1), the largest view in phase with the op:
 *   oa = max(o0, ceil(x0/s))                      first row in phase
 *   xa = oa*s                                     so local row 0 is output oa
 *   ob = min(o1, oa + outputs of x1-xa inputs)
 *   xb = min(x1, xa + (ob-oa)*s + d(k-1) - 2p)    no more than ob-oa outputs
 * and of its rows [oa,ob) those whose need, cut at the domain, is inside
 * [xa,xb); with wrap the need is not cut.
 * N=10, y 5, k=3, s=2, p=1, x [5,10), y [3,5): oa = 3, xa = 6, ob = 5,
 * xb = 10; row 3 needs [5,8), so right = [4,5). */
sdg_window_view_t sdg_window_view(const sdg_window_dim_t *dim);

/* The owned outputs that see nothing around the end of a periodic dimension;
 * all of them where it is none. {0,0} if there are none.
 * N=10, k=3, s=1, p=1, wrap, y [0,5): output 0 sees -1, so [1,5). */
sdg_range_t sdg_window_inner(const sdg_window_dim_t *dim);

/* The owned outputs whose windows lie in the owned rows of x; may be empty.
 * N=10, y 5, k=3, s=2, p=1, x [5,10), y [3,5): output 3 sees [5,8), output 4
 * [7,10), so both. */
sdg_range_t sdg_window_within(const sdg_window_dim_t *dim);

/* What the real op can be given without padding: the inner outputs and what
 * they see. False if the padded view makes some right that this does not, or
 * where it computes so little in vain, less than one output in
 * SDG_WINDOW_VAIN, that engines may have it as they take it best.
 * N=30, k=3, s=1, p=1, x and y [10,20): padded, outputs 10 and 19 of the ten
 * are wrong; bare are x [10,20), y [11,19), all right. */
enum { SDG_WINDOW_VAIN = 32 };
bool sdg_window_bare(const sdg_window_dim_t *dim, const sdg_window_view_t *view,
                     sdg_window_view_t *out);

/* What the real op is given of tensors that are there in full, or of a copy of
 * some of their rows, where padding is the op's own. It pads `x` with `pad` at
 * both sides and makes exactly `y`, which contains the wanted outputs, and
 * those are what the whole op makes if the inputs they need are right. Other
 * rows of `y` may come out wrong. */
typedef struct sdg_window_cut {
  sdg_range_t x, y;
  int64_t pad; /* at most the op's */
} sdg_window_cut_t;

/* For wanted outputs dim->y [o0,o1), not empty, with the need [n0,n1):
 *   n0 >= 0, n1 <= N    x [n0,n1), no padding, y [o0,o1)
 *   n0 < 0, n1 <= N     x [0,n1), padding -n0, y from o0
 *   n0 >= 0, n1 > N     padding n1 - N; as it comes before x, too, k =
 *                       ceil(pad/s) more rows before o0, which see it
 * and x from 0 with up to p, where none of these is in phase inside the domain.
 * N=10, k=3, s=1, p=1, y [5,10): need [4,11), pad 1, k = 1: x [4,10),
 * y [4,10), whose row 4 is wrong. */
sdg_window_cut_t sdg_window_cut(const sdg_window_dim_t *dim);
/* The same with an x that contains `rows`, inside the domain or empty, too: a
 * gradient's own inputs are more than those that its outputs see where strides
 * are longer than windows.
 * N=10, k=1, s=3, p=0, y [1,2), rows [4,6): x [3,6), y [1,2). */
sdg_window_cut_t sdg_window_cut_around(const sdg_window_dim_t *dim,
                                       sdg_range_t rows);

/* A piece of the owned outputs that is computed apart from the view, and the
 * inputs it needs: not cut, so that the op on an assembled x with padding 0
 * makes y. */
typedef struct sdg_window_strip {
  sdg_box_t y, x;
} sdg_window_strip_t;

/* What has to be redone, for `dims` dimensions: the owned outputs minus the
 * box of rows that are right in every dimension, as disjoint strips. out has
 * room for 2*dims (2 ranges in one dimension: below and above); returns their
 * number. In a view's place, all {0,0} asks for everything: one strip, which
 * is the strategy "extend". */
int sdg_window_strips(int dims, const sdg_window_dim_t *dim,
                      const sdg_window_view_t *view, sdg_window_strip_t *out);

/* What a rank must see to compute the outputs `y`: for transfers. Wrapped
 * dimensions are not cut, the others are cut at the domain; empty if y is. */
sdg_box_t sdg_window_need_box(int dims, const sdg_window_dim_t *dim,
                              const sdg_box_t *y);

#endif
