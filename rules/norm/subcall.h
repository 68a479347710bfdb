/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's normalisations as sub-calls of a plan. Inside rules/ only. */
#ifndef SDG_RULES_NORM_SUBCALL_H
#define SDG_RULES_NORM_SUBCALL_H

#include "rules/kit/subcall.h"
#include "rules/norm/call.h"

struct sdg_norm_maker;

/* Scales, biases and statistics of one sub-call; all have the same layout. */
typedef struct sdg_norm_params {
  sdg_subcall_tensor_t scale, bias, mean, variance;
} sdg_norm_params_t;

/* The source of a sub-call's scalar. */
typedef enum sdg_norm_from {
  SDG_NORM_ZERO,
  SDG_NORM_ONE,
  SDG_NORM_PROGRAM, /* alpha, beta, epsilon of the program's call */
} sdg_norm_from_t;

/* With m->per_sample the next three make one sub-call for each sample of x. */

/* y = alpha (scale (x - mean) / sqrt(variance + epsilon) + bias) + beta y;
 * y may be x. */
sdg_status_t
sdg_norm_subcall_inference(struct sdg_norm_maker *m, cudnnBatchNormMode_t mode,
                           sdg_norm_from_t alpha, const sdg_subcall_tensor_t *x,
                           const sdg_norm_params_t *params,
                           sdg_norm_from_t epsilon, sdg_norm_from_t beta,
                           const sdg_subcall_tensor_t *y) SDG_MUST_CHECK;

/* params->mean = mean of x, params->variance = unbiased variance of x. Both
 * must contain finite numbers before. The sub-call also reads params->bias and
 * params->scale, and overwrites `y` with numbers that nobody uses. */
sdg_status_t
sdg_norm_subcall_statistics(struct sdg_norm_maker *m, cudnnBatchNormMode_t mode,
                            const sdg_subcall_tensor_t *x,
                            const sdg_norm_params_t *params,
                            const sdg_subcall_tensor_t *y) SDG_MUST_CHECK;

/* dscale = sum of dy (x - mean) inverse and dbias = sum of dy, over these
 * elements only. dx = alpha * (the gradient from these sums) + beta * dx. */
typedef struct sdg_norm_gradient {
  sdg_subcall_tensor_t x, dy, dx, scale, dscale, dbias, mean, inverse;
} sdg_norm_gradient_t;
sdg_status_t sdg_norm_subcall_gradient(struct sdg_norm_maker *m,
                                       cudnnBatchNormMode_t mode,
                                       sdg_norm_from_t alpha,
                                       const sdg_norm_gradient_t *g,
                                       sdg_norm_from_t beta) SDG_MUST_CHECK;

/* running = (1 - factor) running + factor * multiple * found, with the factor
 * of the program's call. */
sdg_status_t
sdg_norm_subcall_running(struct sdg_norm_maker *m, double multiple,
                         const sdg_subcall_tensor_t *found,
                         const sdg_subcall_tensor_t *running) SDG_MUST_CHECK;
/* sum = alpha_param * found + beta_param * sum, with the factors of the
 * program's call. */
sdg_status_t
sdg_norm_subcall_param(struct sdg_norm_maker *m,
                       const sdg_subcall_tensor_t *found,
                       const sdg_subcall_tensor_t *sum) SDG_MUST_CHECK;

/* narrow = alpha * wide + beta * narrow, rounded once to the type of narrow,
 * with the factors of the program's call. */
sdg_status_t
sdg_norm_subcall_narrow(struct sdg_norm_maker *m,
                        const sdg_subcall_tensor_t *wide,
                        const sdg_subcall_tensor_t *narrow) SDG_MUST_CHECK;

/* _activate: y = activation(x). _deactivate: dx = the activation's gradient,
 * from dy and the activation's result y. The activation is the program's. */
sdg_status_t
sdg_norm_subcall_activate(sdg_plan_t *plan, const sdg_subcall_tensor_t *x,
                          const sdg_subcall_tensor_t *y) SDG_MUST_CHECK;
sdg_status_t
sdg_norm_subcall_deactivate(sdg_plan_t *plan, const sdg_subcall_tensor_t *y,
                            const sdg_subcall_tensor_t *dy,
                            const sdg_subcall_tensor_t *dx) SDG_MUST_CHECK;

#endif
