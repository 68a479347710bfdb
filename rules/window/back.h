/* SPDX-License-Identifier: Apache-2.0 */
/* Windows run backwards: ops that compute x from y, as a data gradient does.
 * Pure functions.
 *
 * Names are those of rules/window/window.h. Row i of x is the sum over all
 * outputs o that see it: o*s - p + j*d = i for some tap j. The real function
 * takes rows [a,b) of y and a padding q. It computes rows of x starting at
 * a*s - p + q: (b-a-1)*s + span - 2q of them, and up to s - 1 more. The op's
 * own padding has no influence on this. */
#ifndef SDG_RULES_WINDOW_BACK_H
#define SDG_RULES_WINDOW_BACK_H

#include "rules/window/window.h"

/* The rows of view->x for which the real function computes the same as the
 * whole op: view->y contains all outputs inside the domain that see them, and
 * with wrap no output sees another image of them. {0,0} if no row is right.
 * N=10, y 5, k=3, s=2, p=1, view x [6,10), y [3,5): output 2 sees [3,6), so all
 * of [6,10). */
sdg_range_t sdg_window_back_right(const sdg_window_dim_t *dim,
                                  const sdg_window_view_t *view);

/* Finds a range of rows that contains the non-empty `x` and few other rows, and
 * that the real function can compute exactly from an assembled y, for each of
 * the images [images.lo, images.hi) of a domain of `period` rows
 * (sdg_window_images; {0,1} without wrap). False if no range suits all images.
 * A range exists always for one image, and for all images if s <= span.
 * k=3, s=1, p=1: x itself. k=3, s=2, p=1, x [4,8): output 2 begins at 3, so
 * that padding is 1, at both ends: [4,9). */
bool sdg_window_back_rows(const sdg_window_t *window, sdg_range_t x,
                          int64_t period, sdg_range_t images,
                          sdg_range_t *out_rows);
/* How to compute such rows, given in the coordinates of their image: out->x is
 * `rows`, computed from out->y with padding out->pad, which is less than the
 * window's span. out->y is not cut at the domain; its rows outside
 * [0, y_extent) are zeros.
 * k=3, s=1, p=1, rows [5,6): y [4,7), pad 2. */
sdg_window_cut_t sdg_window_back_strip(const sdg_window_t *window,
                                       sdg_range_t rows);

/* How to compute, from outputs inside the domain only, those of `rows` that any
 * output sees. out->x contains these rows; it may be larger or smaller than
 * `rows`. False if no output sees any of them.
 * N=10, k=3, s=1, p=1, rows [10,12), image 1 of [0,2): output 9 sees row 10, so
 * y [9,10), pad 2, x [10,11). */
bool sdg_window_back_seen(const sdg_window_dim_t *dim, sdg_range_t rows,
                          sdg_window_cut_t *out);

/* Like sdg_window_back_seen, but from the outputs `y` only, which may be any
 * range. *out_seen is the range from the first to the last of `rows` that these
 * outputs see; out->x contains it.
 * k=3, s=1, p=1, y [5,10), rows [0,5): output 5 sees row 4, so y [5,6), pad 0,
 * x [4,7), seen [4,5). */
bool sdg_window_back_of(const sdg_window_t *window, sdg_range_t y,
                        sdg_range_t rows, sdg_range_t *out_seen,
                        sdg_window_cut_t *out);
/* How to compute what all owned rows of y contribute to all owned rows of x,
 * and to no other rows. False if no padding allows that.
 * k=3, s=1, p=1, x and y [5,10): x [5,10), y [5,10), pad 1. */
bool sdg_window_back_exact(const sdg_window_dim_t *dim, sdg_window_cut_t *out);

/* Like sdg_window_bare: how to compute the rows `right` of view->x in place
 * from owned rows of y, with a padding that skips more of the wrong rows. Rows
 * of out->x outside `right` may be wrong. False if that is impossible or saves
 * too little.
 * N=30, k=3, s=1, p=1, x and y [10,20): right are [11,19), of y [10,20) with
 * pad 2. */
bool sdg_window_back_bare(const sdg_window_dim_t *dim,
                          const sdg_window_view_t *view, sdg_range_t right,
                          sdg_window_cut_t *out);

/* The owned rows that no output sees across the end of a periodic dimension; in
 * other dimensions all owned rows. {0,0} if every owned row is seen that way.
 * N=10, k=3, s=1, p=1, wrap, x [0,5): output 9 sees row 10, which is 0, so
 * [1,5). */
sdg_range_t sdg_window_back_inner(const sdg_window_dim_t *dim);

/* Whole view: how to compute the non-empty owned rows dim->x in place from full
 * tensors. out->x and out->y lie inside their domains, and are all of them if
 * nothing smaller is possible. Rows of out->x that are not owned may be wrong.
 * N=20, k=3, s=1, p=1, x [5,10): y [4,11), pad 2, x [5,10). */
sdg_window_cut_t sdg_window_back_cut(const sdg_window_dim_t *dim);

/* The box of y that a rank needs to compute its owned rows of x as image
 * `image[d]` in dimension d of x (sdg_window_images). Cut at the domain; empty
 * if no output sees them. */
sdg_box_t sdg_window_back_need(int dims, const sdg_window_dim_t *dim,
                               const sdg_box_t *x, const int64_t *image);

#endif
