/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that cuDNN has compiled kernels for, which take what its fusing
 * engines do not. */
#ifndef SDG_SRC_HOST_CUDNN_PLAN_PATTERNS_H
#define SDG_SRC_HOST_CUDNN_PLAN_PATTERNS_H

#include "src/host/cudnn/plan/facts.h"

/* A convolution alone, with tensors of one type. */
bool host_pattern_is_alone(const host_facts_t *facts);
/* Forward convolution [-> ADD a tensor] -> ADD a bias [-> RELU, TANH, SIGMOID
 * or ELU], in any layout; the tensor has the strides of the result. */
bool host_pattern_is_bias(const host_facts_t *facts);
/* MUL, ADD, RELU with scales and biases of the channels -> forward convolution
 * of halves -> statistics, with arithmetic in float between them. */
bool host_pattern_is_statistics(const host_facts_t *facts);
/* The same three operations -> filter gradient of halves. */
bool host_pattern_is_filter(const host_facts_t *facts);

#endif
