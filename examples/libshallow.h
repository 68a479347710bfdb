/* SPDX-License-Identifier: Apache-2.0 */
/* Linear shallow water of depth 1 on a grid of width 1, with gravity 1. */
#ifndef LIBSHALLOW_H
#define LIBSHALLOW_H

/* u and v at the next time, from the slope of h; not in the outermost rows and
 * columns. */
void momentum(const float *h, float *u, float *v, int rows, int columns,
              float dt);
/* h at the next time, from the flow. */
void continuity(const float *h, const float *u, const float *v, float *next,
                int rows, int columns, float dt);
/* No flow through the outermost rows and columns, no slope there. */
void walls(float *h, float *u, float *v, int rows, int columns);
/* The largest speed. */
void fastest(const float *u, const float *v, int rows, int columns,
             float *speed);

#endif
