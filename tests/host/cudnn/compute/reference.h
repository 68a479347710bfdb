/* SPDX-License-Identifier: Apache-2.0 */
/* Operation graphs computed by loops over doubles, each tensor whole, with a
 * bound of what roundings may change of each value. */
#ifndef SDG_TESTS_HOST_CUDNN_COMPUTE_REFERENCE_H
#define SDG_TESTS_HOST_CUDNN_COMPUTE_REFERENCE_H

#include "tests/host/cudnn/compute/made.h"

/* Values of one tensor, last dimension innermost. */
typedef struct {
  int64_t count;
  double *value, *error; /* error: 0 where the value must be exact */
} reference_tensor_t;

typedef struct {
  reference_tensor_t tensor[MADE_TENSORS];
} reference_t;

/* Computes all tensors from the memory as it was made. */
void reference_create(reference_t *r, const made_t *m);
void reference_destroy(reference_t *r);

/* Fails the test if an output differs. */
void reference_check(const reference_t *r, const made_t *m, const char *name);
/* All three, and the run. */
void reference_run(made_t *m, const char *name);

/* value and error of the node's outputs; `compute`: the relative rounding of
 * its compute type. */
void reference_pointwise(reference_t *r, const made_t *m,
                         const sdg_graph_node_t *node, double rounding);
void reference_conv(reference_t *r, const made_t *m,
                    const sdg_graph_node_t *node, double rounding);
void reference_reduction(reference_t *r, const made_t *m,
                         const sdg_graph_node_t *node, double rounding);
void reference_statistics(reference_t *r, const made_t *m,
                          const sdg_graph_node_t *node, double rounding);
void reference_matmul(reference_t *r, const made_t *m,
                      const sdg_graph_node_t *node, double rounding);
void reference_resample(reference_t *r, const made_t *m,
                        const sdg_graph_node_t *node, double rounding);
void reference_reshape(reference_t *r, const made_t *m,
                       const sdg_graph_node_t *node);
void reference_concat(reference_t *r, const made_t *m,
                      const sdg_graph_node_t *node);
void reference_finalize(reference_t *r, const made_t *m,
                        const sdg_graph_node_t *node, double rounding);
void reference_norm(reference_t *r, const made_t *m,
                    const sdg_graph_node_t *node, double rounding);
/* Rounds a result to the type of tensor t and stores it. */
void reference_put(reference_t *r, const made_t *m, int t, int64_t i,
                   double value, double error);

#endif
