/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose reach is tried: rows of other types, in place, and such as
 * cannot be tried. */
#ifndef TESTS_TOOL_DRAFT_TRIED_H
#define TESTS_TOOL_DRAFT_TRIED_H

#include <cuda_runtime_api.h>

/* w = u of the plane before, and of two rows after. */
void tried_deep(const double *u, double *w, int planes, int rows, int columns);
/* w = u of the row before, as bits of 16-bit numbers. */
void tried_half(const unsigned short *u, unsigned short *w, int rows,
                int columns);
/* Each element times 2. */
void tried_double(float *u, int rows, int columns);
/* Adds the row before, which it has changed already. */
void tried_sum(float *u, int rows, int columns);
/* w = u plus the number of calls: it is not pure. */
void tried_count(const float *u, float *w, int rows, int columns);
/* w = u where the row three away is positive, else 0. */
void tried_branch(const float *u, float *w, int rows, int columns);
/* w = u of the row before, on a stream, in device memory. */
void tried_stream(const float *u, float *w, int rows, int columns,
                  cudaStream_t stream);
/* w = u of the next row where mask of it is not 0. */
void tried_mask(const float *u, const int *mask, float *w, int rows,
                int columns);
/* w = the sum of u in front and behind; u has a row of others on each side. */
void tried_padded(const float *u, float *w, int rows, int columns);

#endif
