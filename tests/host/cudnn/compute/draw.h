/* SPDX-License-Identifier: Apache-2.0 */
/* Random operation graphs of at most one convolution. */
#ifndef SDG_TESTS_HOST_CUDNN_COMPUTE_DRAW_H
#define SDG_TESTS_HOST_CUDNN_COMPUTE_DRAW_H

#include "tests/host/cudnn/compute/made.h"

/* Uses case_range(). The caller destroys it. */
void draw_graph(made_t *m);

#endif
