/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas for ops with a sliding window (convolution, pooling): sizes,
 * ownership, needs, and what a rank can compute on its own buffers. Pure
 * functions.
 *
 * All formulas are for one dimension, in global coordinates: x is the op's
 * input, y its output. Output o sees the inputs o*s - p + j*d for j = 0 .. k-1.
 * Divisions round down or up as stated (src/geometry/box.h). */
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

/* Number of inputs from the first to the last that one output sees: d(k-1) + 1.
 * k=3, d=2: 5. */
int64_t sdg_window_span(const sdg_window_t *window);

/* Number of outputs for `x_extent` inputs with padding p at both sides:
 * floor((N + 2p - span) / s) + 1, 0 if the window does not fit.
 * N=10, k=3, s=2, p=1: floor(9/2) + 1 = 5. */
int64_t sdg_window_outputs(const sdg_window_t *window, int64_t x_extent);

/* The default ownership of outputs: the owner of the input under the window's
 * centre, o*s - p + c with c = floor(d(k-1)/2). Inner boundaries b of x become
 * clamp(ceil((b + p - c) / s), 0, y_extent).
 * N=10, x 5+5, k=3, s=2, p=1: ceil((5+1-1)/2) = 3, y 3+2. */
sdg_status_t sdg_window_part(const sdg_window_t *window, const sdg_part_t *x,
                             int64_t y_extent,
                             sdg_part_t *out_y) SDG_MUST_CHECK;
/* The default ownership of x for ops that compute x from y (a data gradient
 * used as a forward op): inner boundaries b of y become clamp(b*s - p + c, 0,
 * x_extent).
 * y 3+2, k=3, s=2, p=1, N=10: 3*2 - 1 + 1 = 6, x 6+4. */
sdg_status_t sdg_window_part_adjoint(const sdg_window_t *window,
                                     const sdg_part_t *y, int64_t x_extent,
                                     sdg_part_t *out_x) SDG_MUST_CHECK;

/* The inputs that outputs [o0, o1) see: [o0*s - p, (o1-1)*s - p + span). Not
 * cut at the domain: rows outside [0, x_extent) are the op's padding, or
 * wrapped rows of a periodic dimension. {0,0} for no outputs.
 * k=3, s=2, p=1, outputs [0,3): [-1, 6). */
sdg_range_t sdg_window_need(const sdg_window_t *window, sdg_range_t y);
/* The outputs that see any of the inputs [i0, i1):
 * [ceil((i0 + p - d(k-1)) / s), floor((i1-1 + p) / s) + 1). Not cut: the caller
 * cuts it at [0, y_extent). {0,0} for no inputs; may be empty (s > span).
 * k=3, s=2, p=1, inputs [5,10): [2, 6), cut at 5: [2, 5). */
sdg_range_t sdg_window_need_adjoint(const sdg_window_t *window, sdg_range_t x);
/* Outputs that see inputs through the same taps of their windows. */
typedef struct sdg_window_run {
  sdg_range_t y, taps; /* not empty; taps are in 0 .. k-1 */
} sdg_window_run_t;
/* Lists how outputs `y` see inputs `x`, every pair of an output and a tap once:
 * runs in ascending order of outputs, at most 2k + 1. Returns their number;
 * `out` may be NULL.
 * k=3, s=1, p=1, outputs [0,5), inputs [0,4): output 0 through taps [1,3),
 * outputs [1,3) through [0,3), output 3 through [0,2), output 4 through
 * [0,1). */
int sdg_window_runs(const sdg_window_t *window, sdg_range_t y, sdg_range_t x,
                    sdg_window_run_t *out);
/* The range from the first to the last input of a run:
 * k=3, s=1, p=1, output 0 through [1,3): [0,2). */
sdg_range_t sdg_window_run_inputs(const sdg_window_t *window,
                                  const sdg_window_run_t *run);

/* In a periodic dimension an output may see an input through several images
 * i + m*N. The images m in [lo, hi) for which [m*N, (m+1)*N) overlaps the
 * inputs that all outputs together see. The adjoint need of [i0, i1) is the
 * union over m of the needs of [i0 + m*N, i1 + m*N). N=10, k=3, s=1, p=1, 10
 * outputs see [-1, 11): m in [-1, 2). {0,0} if there are no outputs. */
sdg_range_t sdg_window_images(const sdg_window_t *window, int64_t x_extent,
                              int64_t y_extent);

/* `range` cut at [0, extent); {0,0} if nothing remains. */
sdg_range_t sdg_range_cut(sdg_range_t range, int64_t extent);

/* One dimension of an op on one rank. In a dimension that is not split, x and y
 * are the full extents. */
typedef struct sdg_window_dim {
  sdg_window_t window;
  int64_t x_extent, y_extent; /* global */
  sdg_range_t x, y;           /* owned by this rank; may be empty */
  bool wrap;                  /* periodic: padding is wrapped rows */
} sdg_window_dim_t;

/* The part of the rank's own buffers on which the real op can run. It pads
 * view.x with p at both sides and computes sdg_window_outputs(view.x) outputs,
 * exactly view.y. Outputs in `right` equal those of the whole op; the others
 * saw padding in place of a neighbour's rows. */
typedef struct sdg_window_view {
  sdg_range_t x, y;  /* inside the owned ranges; {0,0} if there is no view */
  sdg_range_t right; /* inside y; {0,0} if none */
} sdg_window_view_t;

/* For owned x [x0,x1), y [o0,o1), the largest view in phase with the op:
 *   oa = max(o0, ceil(x0/s))                      first row in phase
 *   xa = oa*s                                     so local row 0 is output oa
 *   ob = min(o1, oa + outputs of x1-xa inputs)
 *   xb = min(x1, xa + (ob-oa)*s + d(k-1) - 2p)    no more than ob-oa outputs
 * `right` contains those of the outputs [oa,ob) whose need, cut at the domain,
 * is inside [xa,xb); with wrap the need is not cut.
 * N=10, y 5, k=3, s=2, p=1, x [5,10), y [3,5): oa = 3, xa = 6, ob = 5, xb = 10;
 * row 3 needs [5,8), so right = [4,5). */
sdg_window_view_t sdg_window_view(const sdg_window_dim_t *dim);

/* The owned outputs that see no rows across the end of a periodic dimension; in
 * other dimensions all owned outputs. {0,0} if no output qualifies.
 * N=10, k=3, s=1, p=1, wrap, y [0,5): output 0 sees -1, so [1,5). */
sdg_range_t sdg_window_inner(const sdg_window_dim_t *dim);

/* The owned outputs whose windows lie in the owned rows of x; may be empty.
 * N=10, y 5, k=3, s=2, p=1, x [5,10), y [3,5): output 3 sees [5,8), output 4
 * [7,10), so both. */
sdg_range_t sdg_window_within(const sdg_window_dim_t *dim);

/* The view without padding: the inner outputs and the inputs that they see.
 * False if the padded view has a right output that this one lacks, or if fewer
 * than one in SDG_WINDOW_WRONG_ONE_IN of its outputs are wrong: then the padded
 * view is kept, because engines may run faster on it. N=30, k=3, s=1, p=1, x
 * and y [10,20): padded, outputs 10 and 19 of the ten are wrong; bare are x
 * [10,20), y [11,19), all right. */
enum { SDG_WINDOW_WRONG_ONE_IN = 32 };
bool sdg_window_bare(const sdg_window_dim_t *dim, const sdg_window_view_t *view,
                     sdg_window_view_t *out);

/* The part of full tensors, or of a copy of some of their rows, on which the
 * real op runs. The op pads `x` with `pad` at both sides and computes exactly
 * `y`, which contains the wanted outputs. The wanted outputs equal those of the
 * whole op if the inputs that they need are right. Other rows of `y` may be
 * wrong. */
typedef struct sdg_window_cut {
  sdg_range_t x, y;
  int64_t pad; /* at most the op's */
} sdg_window_cut_t;

/* For the non-empty range of wanted outputs dim->y [o0,o1) with the need
 * [n0,n1):
 *   n0 >= 0, n1 <= N    x [n0,n1), no padding, y [o0,o1)
 *   n0 < 0, n1 <= N     x [0,n1), padding -n0, y from o0
 *   n0 >= 0, n1 > N     padding n1 - N; as it comes before x, too, k =
 *                       ceil(pad/s) more rows before o0, which see it
 * If none of these is in phase inside the domain, x begins at 0 with a padding
 * of up to p.
 * N=10, k=3, s=1, p=1, y [5,10): need [4,11), pad 1, k = 1: x [4,10), y [4,10),
 * whose row 4 is wrong. */
sdg_window_cut_t sdg_window_cut(const sdg_window_dim_t *dim);
/* Like sdg_window_cut, but out->x also contains `rows`, which are inside the
 * domain or empty. A gradient needs this if strides are longer than windows,
 * because the rank then owns inputs that no output sees.
 * N=10, k=1, s=3, p=0, y [1,2), rows [4,6): x [3,6), y [1,2). */
sdg_window_cut_t sdg_window_cut_around(const sdg_window_dim_t *dim,
                                       sdg_range_t rows);

/* A piece of the owned outputs that is computed separately from the view, and
 * the inputs that it needs. These are not cut at the domain, so the op on an
 * assembled x with padding 0 computes y. */
typedef struct sdg_window_strip {
  sdg_box_t y, x;
} sdg_window_strip_t;

/* What to recompute, for `dims` dimensions: the owned outputs minus the box of
 * outputs that are right in every dimension, as disjoint strips. `out` has room
 * for 2*dims (in each dimension one below and one above); returns their number.
 * A view of all {0,0} asks for everything: one strip, which is the strategy
 * "extend". */
int sdg_window_strips(int dims, const sdg_window_dim_t *dim,
                      const sdg_window_view_t *view, sdg_window_strip_t *out);

/* The inputs that a rank needs to compute the outputs `y`, for transfers.
 * Wrapped dimensions are not cut at the domain, the others are. Empty if y
 * is. */
sdg_box_t sdg_window_need_box(int dims, const sdg_window_dim_t *dim,
                              const sdg_box_t *y);

#endif
