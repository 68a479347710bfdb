// SPDX-License-Identifier: Apache-2.0
// Shallow water by the scheme of Lax and Friedrichs, in a library of its own.
#include "tests/bench/water.h"

#include <stdbool.h>
#include <stddef.h>

static const float gravity = 9.81f;

// Fluxes of the three conserved quantities along one direction; m: momentum in
// that direction, o: in the other one.
static inline void flux(float h, float m, float o, float *out) {
  out[0] = m;
  out[1] = m * m / h + 0.5f * gravity * h * h;
  out[2] = m * o / h;
}

static inline void cell(const float *h, const float *p, const float *q,
                        float *h_new, float *p_new, float *q_new, ptrdiff_t at,
                        ptrdiff_t row, float half) {
  float up[3], down[3], left[3], right[3];
  flux(h[at - row], p[at - row], q[at - row], up);
  flux(h[at + row], p[at + row], q[at + row], down);
  flux(h[at - 1], q[at - 1], p[at - 1], left);
  flux(h[at + 1], q[at + 1], p[at + 1], right);
#define AROUND(x) (0.25f * (x[at - row] + x[at + row] + x[at - 1] + x[at + 1]))
  h_new[at] = AROUND(h) - half * (down[0] - up[0] + right[0] - left[0]);
  p_new[at] = AROUND(p) - half * (down[1] - up[1] + right[2] - left[2]);
  q_new[at] = AROUND(q) - half * (down[2] - up[2] + right[1] - left[1]);
}

static void wall(const float *h, float *h_new, float *p_new, float *q_new,
                 size_t at) {
  h_new[at] = h[at];
  p_new[at] = q_new[at] = 0;
}

void water_step(const float *restrict h, const float *restrict p,
                const float *restrict q, float *restrict h_new,
                float *restrict p_new, float *restrict q_new, int rows,
                int columns, float dt) {
  size_t width = (size_t)columns;
  for (int i = 0; i < rows; i++) {
    size_t row = (size_t)i * width;
    bool ends = i == 0 || i == rows - 1;
    for (int j = 1; j < columns - 1 && !ends; j++)
      cell(h, p, q, h_new, p_new, q_new, (ptrdiff_t)(row + (size_t)j),
           (ptrdiff_t)width, 0.5f * dt);
    for (size_t j = 0; j < width; j += ends ? 1 : width - 1)
      wall(h, h_new, p_new, q_new, row + j);
  }
}

#define NOTHING(name)                                                          \
  void name(const float *h, const float *p, const float *q, float *h_new,      \
            float *p_new, float *q_new, int rows, int columns, float dt) {     \
    (void)h, (void)p, (void)q, (void)h_new, (void)p_new, (void)q_new;          \
    (void)rows, (void)columns, (void)dt;                                       \
  }
NOTHING(water_untagged)
NOTHING(water_free)
NOTHING(water_tagged)
