/* SPDX-License-Identifier: Apache-2.0 */
/* What XLA does with plans: engine and knobs of one are read back, as an
 * autotuning cache keeps them; and a plan goes through text. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_READBACK_H
#define SDG_TESTS_CLIENTS_GRAPHS_READBACK_H

#include "tests/clients/graphs/build.h"

/* A configuration of its own with the same engine and knobs. */
build_t build_config_again(build_t graph, build_t config);

/* The plan, written as text and read again. */
build_t build_through_text(cudnnHandle_t handle, build_t plan);

enum { BUILD_WARM_TENSORS = 24 };
/* As cudnn-frontend warms up what it has read: an execution in a capture that
 * is thrown away, with one pointer for all tensors, whose status does not
 * matter. */
void build_warm_up(cudnnHandle_t handle, build_t plan, const int64_t *uids,
                   int64_t count);

#endif
