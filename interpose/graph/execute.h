/* SPDX-License-Identifier: Apache-2.0 */
/* The probes of cuDNN's backend API call these; `caller` is the return address
 * of the entry. */
#ifndef SDG_INTERPOSE_GRAPH_EXECUTE_H
#define SDG_INTERPOSE_GRAPH_EXECUTE_H

#include <cudnn.h>
#include <stdbool.h>

/* The vendor's function has succeeded, or is about to destroy a descriptor; the
 * arguments are its own. */
void sdg_capture_cudnnBackendCreateDescriptor(
    cudnnBackendDescriptorType_t kind,
    const cudnnBackendDescriptor_t *descriptor, const void *caller);
void sdg_capture_cudnnBackendDestroyDescriptor(
    cudnnBackendDescriptor_t descriptor, const void *caller);
void sdg_capture_cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor,
                                      const void *caller);
void sdg_capture_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                          cudnnBackendAttributeName_t name,
                                          cudnnBackendAttributeType_t type,
                                          int64_t count, const void *element,
                                          const void *caller);
void sdg_capture_cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                          cudnnBackendAttributeName_t name,
                                          cudnnBackendAttributeType_t type,
                                          int64_t asked, const int64_t *count,
                                          const void *element,
                                          const void *caller);
/* Before the real function: answers what an engine's notes are where a split is
 * asked for in the shard view, in which no engine has the note that it makes
 * nodes of CUDA graphs. The status for the program, or -1: give the call to the
 * real function. */
int sdg_answer_cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                        cudnnBackendAttributeName_t name,
                                        cudnnBackendAttributeType_t type,
                                        int64_t asked, int64_t *out_count,
                                        void *out, const void *caller);

/* Captures one execution of a graph, or a call that makes it nodes of a CUDA
 * graph, and decides what becomes of it. The status for the program, or -1:
 * give the call to the real function. */
int sdg_capture_execute(int entry, cudnnHandle_t handle,
                        cudnnBackendDescriptor_t plan,
                        cudnnBackendDescriptor_t pack, const void *caller);

/* Shard view: an entry of the runtime has measured a time, with this status.
 * While the program compares plans of a graph, every rank gets the first rank's
 * (rules/graph/chain/clock.h). True: the job is broken. */
bool sdg_capture_timed(int entry, int status, float *io_ms, const void *caller);

#endif
