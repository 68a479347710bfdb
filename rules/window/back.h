/* SPDX-License-Identifier: Apache-2.0 */
/* Windows run backwards: ops that make x of y, as a data gradient does. Pure.
 *
 * In the terms of rules/window/window.h row i of x is the sum over all outputs
 * o that see it, o*s - p + j*d = i. The real function takes `y` rows [a,b) and
 * a padding q and makes rows from a*s - p + q on, (b-a-1)*s + span - 2q of them
 * and up to s - 1 more, whatever the op's own padding is. */
#ifndef SDG_RULES_WINDOW_BACK_H
#define SDG_RULES_WINDOW_BACK_H

#include "rules/window/window.h"

/* The rows of view->x that the real function makes as the whole op does: all
 * outputs that see them, cut at the domain, are in view->y, and with wrap no
 * other image of them is seen. {0,0} if there are none.
 * N=10, y 5, k=3, s=2, p=1, view x [6,10), y [3,5): output 2 sees [3,6), so
 * all of [6,10). */
sdg_range_t sdg_window_back_right(const sdg_window_dim_t *dim,
                                  const sdg_window_view_t *view);

/* Rows that contain `x`, not empty, and little else, and that the real function
 * can make of an assembled y exactly, as each of the images [images.lo,
 * images.hi) of a domain of `period` rows (sdg_window_images; {0,1} without
 * wrap). False if no rows suit them all: there are always some for one image,
 * and always for all where s <= span.
 * k=3, s=1, p=1: x itself. k=3, s=2, p=1, x [4,8): output 2 begins at 3, so
 * that padding is 1, at both ends: [4,9). */
bool sdg_window_back_rows(const sdg_window_t *window, sdg_range_t x,
                          int64_t period, sdg_range_t images,
                          sdg_range_t *out_rows);
/* How such rows, in the coordinates of their image, are made: out->x is `rows`,
 * of out->y, not cut (rows outside [0, y_extent) are zeros), with padding
 * out->pad, less than the window's span.
 * k=3, s=1, p=1, rows [5,6): y [4,7), pad 2. */
sdg_window_cut_t sdg_window_back_strip(const sdg_window_t *window,
                                       sdg_range_t rows);

/* How those of such rows that any output sees are made of outputs of the domain
 * alone: out->x contains them, and may be more or less than `rows`. False if no
 * output sees any.
 * N=10, k=3, s=1, p=1, rows [10,12), image 1 of [0,2): output 9 sees row 10,
 * so y [9,10), pad 2, x [10,11). */
bool sdg_window_back_seen(const sdg_window_dim_t *dim, sdg_range_t rows,
                          sdg_window_cut_t *out);

/* The same of outputs `y` alone, which may be any: what those of them that see
 * `rows` make of these. *out_seen: the first to the last of `rows` that they
 * see, which out->x contains.
 * k=3, s=1, p=1, y [5,10), rows [0,5): output 5 sees row 4, so y [5,6), pad 0,
 * x [4,7), seen [4,5). */
bool sdg_window_back_of(const sdg_window_t *window, sdg_range_t y,
                        sdg_range_t rows, sdg_range_t *out_seen,
                        sdg_window_cut_t *out);
/* How all owned rows of x, and no others, are made of all owned rows of y:
 * what these add to them. False if no padding does that.
 * k=3, s=1, p=1, x and y [5,10): x [5,10), y [5,10), pad 1. */
bool sdg_window_back_exact(const sdg_window_dim_t *dim, sdg_window_cut_t *out);

/* As sdg_window_bare: how the rows `right` of view->x can be made in place, of
 * owned rows of y, with padding that leaves out more of those that come out
 * wrong. Rows of out->x besides `right` may be wrong. False where that is not
 * possible, or not worth it.
 * N=30, k=3, s=1, p=1, x and y [10,20): right are [11,19), of y [10,20) with
 * pad 2. */
bool sdg_window_back_bare(const sdg_window_dim_t *dim,
                          const sdg_window_view_t *view, sdg_range_t right,
                          sdg_window_cut_t *out);

/* The owned rows that no output sees around the end of a periodic dimension;
 * all of them where it is none. {0,0} if there are none.
 * N=10, k=3, s=1, p=1, wrap, x [0,5): output 9 sees row 10, which is 0, so
 * [1,5). */
sdg_range_t sdg_window_back_inner(const sdg_window_dim_t *dim);

/* Whole view: how the owned rows dim->x, not empty, are made in place of
 * tensors that are there in full: inside both domains, and everything where
 * that is not possible otherwise. Rows of out->x that are not owned may come
 * out wrong. N=20, k=3, s=1, p=1, x [5,10): y [4,11), pad 2, x [5,10). */
sdg_window_cut_t sdg_window_back_cut(const sdg_window_dim_t *dim);

/* What a rank must see of y to make its owned rows of x, as image
 * `image[d]` in dimension d of x (sdg_window_images); cut at the domain, empty
 * if no output sees them. */
sdg_box_t sdg_window_back_need(int dims, const sdg_window_dim_t *dim,
                               const sdg_box_t *x, const int64_t *image);

#endif
