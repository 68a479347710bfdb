/* SPDX-License-Identifier: Apache-2.0 */
/* The computation of one graph, shared by the files of this folder.
 *
 * Tensors are computed region by region. For a region of the results, the needs
 * of all tensors are found from the last node to the first; then nodes compute
 * what is needed, from the first to the last, in dense arrays of doubles.
 * Virtual tensors therefore exist as regions only. A value that a node computes
 * is rounded to the type of its tensor at once, and depends on the element's
 * own index alone: computing it again for another region gives the same. */
#ifndef SDG_SRC_HOST_CUDNN_COMPUTE_RUN_H
#define SDG_SRC_HOST_CUDNN_COMPUTE_RUN_H

#include "src/host/cudnn/compute/compute.h"
#include "src/host/cudnn/compute/region.h"

typedef struct {
  int maker;          /* the node that writes it, or -1 */
  const char *source; /* where its elements are; NULL: not in memory (yet) */
  void *copy;         /* `source` if results overwrite the tensor, or NULL */
  host_region_t need; /* in the current step */
  double *value;      /* elements of `need`, dense */
  int64_t room;       /* elements of `value` */
  double *sums;       /* the whole of a reduction's result, dense, or NULL */
} host_run_tensor_t;

typedef struct {
  const sdg_graph_t *graph;
  void *const *data;
  host_run_tensor_t *tensor; /* as many as the graph has */
  bool *done;                /* by node: a reduction is complete */
  bool *by_rows; /* by node: a reduction of rows that other nodes read, which is
                    computed region by region */
  float *floats; /* operands of an engine, reused */
  int64_t room;  /* elements of `floats` */
  int64_t part;  /* elements of a result computed at once */
  bool adapts;   /* or more or less, by what they need */
} host_run_t;

/* host_graph_compute in parts of this many elements. Only what is summed over a
 * whole tensor depends on their number, in its last bits. */
bool host_run_parts(const sdg_graph_t *graph, void *const *data,
                    int64_t elements);

static inline const sdg_graph_tensor_t *host_run_of(const host_run_t *run,
                                                    int tensor) {
  return &run->graph->tensor[tensor];
}

/* Enlarges the need of a tensor. */
void host_run_need(host_run_t *run, int tensor, const host_region_t *region);

/* Reads elements of the tensor, whose first element lies at `from`. */
void host_run_read(const sdg_graph_tensor_t *tensor, const void *from,
                   const host_region_t *region, double *to);
/* Writes elements of the tensor's need, which contains the region, to memory.
 */
void host_run_store(const host_run_t *run, int tensor,
                    const host_region_t *region);

/* The indices of a region row by row; a row lies along the last dimension. */
typedef struct {
  const host_region_t *region;
  int64_t at[CUDNN_DIM_MAX];
  int64_t width;
  bool more;
} host_rows_of_t;
host_rows_of_t host_rows_begin(const host_region_t *region);
void host_rows_next(host_rows_of_t *rows);
/* Where the row's first element lies in the dense array of `in`, which has
 * index 0 only where its extent is 1; *out_step: to the next element. */
int64_t host_rows_offset(const host_rows_of_t *rows,
                         const sdg_graph_tensor_t *tensor,
                         const host_region_t *in, int64_t *out_step);

/* ---- nodes --------------------------------------------------------------- */

/* What a kind of node does. */
typedef struct {
  cudnnBackendDescriptorType_t kind;
  /* The sentence for host_graph_lacks, or NULL. */
  const char *(*lacks)(const sdg_graph_t *graph, const sdg_graph_node_t *node);
  /* Adds the needs of the operands that the node reads. For nodes that compute
   * a region: from the need of the result. For sums: for `part` of the tensor
   * that they read. */
  void (*need)(host_run_t *run, const sdg_graph_node_t *node,
               const host_region_t *part);
  /* Computes the need of the result. These return false when memory is short.
   */
  bool (*compute)(host_run_t *run, const sdg_graph_node_t *node);
  /* Sums only: the tensor that is read part by part; begins; adds a part; and
   * writes the results. */
  int (*over)(const sdg_graph_node_t *node);
  bool (*begin)(host_run_t *run, const sdg_graph_node_t *node);
  bool (*add)(host_run_t *run, const sdg_graph_node_t *node,
              const host_region_t *part);
  bool (*end)(host_run_t *run, const sdg_graph_node_t *node);
} host_node_kind_t;

extern const host_node_kind_t host_node_pointwise, host_node_conv_forward,
    host_node_conv_data, host_node_conv_filter, host_node_reduction,
    host_node_statistics, host_node_matmul, host_node_resample_forward,
    host_node_resample_backward, host_node_batchnorm, host_node_reshape,
    host_node_concat;

/* NULL if there is none. */
const host_node_kind_t *host_node_kind(cudnnBackendDescriptorType_t kind);

/* Finishes a sum's result: rounds it, and stores it if it has memory. */
void host_run_finish(host_run_t *run, int tensor);

/* A convolution whose operands are all in memory is computed there at once.
 * *out_done is false if the node is something else. */
bool host_conv_in_memory(host_run_t *run, const sdg_graph_node_t *node,
                         bool *out_done);

#endif
