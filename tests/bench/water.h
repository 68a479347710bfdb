/* SPDX-License-Identifier: Apache-2.0 */
/* Shallow water by functions of a library, on the host. Fields are
 * [rows][columns]. */
#ifndef BENCH_WATER_H
#define BENCH_WATER_H

typedef struct water {
  float *height, *along,
      *across; /* of the surface; momenta along rows, across */
} water_t;

/* One step; the first and last rows and columns are walls. */
void water_step(const float *h, const float *p, const float *q, float *h_new,
                float *p_new, float *q_new, int rows, int columns, float dt);
/* The same prototype and no work, to measure what a call costs. */
void water_untagged(const float *h, const float *p, const float *q,
                    float *h_new, float *p_new, float *q_new, int rows,
                    int columns, float dt);
void water_free(const float *h, const float *p, const float *q, float *h_new,
                float *p_new, float *q_new, int rows, int columns, float dt);
/* Looks at no neighbours: tagged, and no work. */
void water_tagged(const float *h, const float *p, const float *q, float *h_new,
                  float *p_new, float *q_new, int rows, int columns, float dt);

#endif
