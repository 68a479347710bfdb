/* SPDX-License-Identifier: Apache-2.0 */
/* What the work-alike of libcudart offers the work-alikes of cuDNN, NCCL and
 * cuBLAS beyond the CUDA API: addresses and ordered work.
 *
 * Exported by libcudart.so.13 of the host device under the version node
 * "sundog_host"; nothing outside src/host uses it. */
#ifndef SDG_SRC_HOST_HOST_H
#define SDG_SRC_HOST_HOST_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#define HOST_API __attribute__((visibility("default")))

/* The address at which the work-alikes may read and write the program's
 * [pointer, pointer + bytes): the second mapping for device memory (own
 * allocations and opened IPC handles), the same address for pinned and managed
 * memory. NULL for anything else: pageable host memory, freed addresses, ranges
 * that leave their allocation. bytes may be 0. Lock-free for readers, callable
 * from any thread. */
HOST_API void *host_memory_resolve(const void *pointer, size_t bytes);

/* Appends work to a stream (0, cudaStreamLegacy and cudaStreamPerThread
 * included). `run(argument)` is called once, in order, possibly on another
 * thread; then `release(argument)` if not NULL, even if the work is skipped
 * because the device is in a sticky error state. A result other than
 * cudaSuccess becomes the device's sticky error, which later synchronising
 * calls return, as after an illegal address on a GPU. Returns the sticky error
 * or cudaErrorInvalidResourceHandle without queueing; then release has been
 * called. Blocks while the stream's queue is very long, as CUDA does. `run` may
 * itself run inside any call that waits, so it must call neither this function
 * nor a CUDA function. */
HOST_API cudaError_t host_stream_submit(cudaStream_t stream,
                                        cudaError_t (*run)(void *argument),
                                        void *argument,
                                        void (*release)(void *argument));

/* The same for work that can be repeated. While the stream is captured, nothing
 * runs. Each launch of the graph calls run(again(argument)) and then release()
 * with that argument; again() returns NULL if memory is short.
 * release(argument) is called when the graph and its copies are destroyed. Work
 * without again() invalidates the capture. */
HOST_API cudaError_t host_stream_submit_again(
    cudaStream_t stream, cudaError_t (*run)(void *argument), void *argument,
    void (*release)(void *argument), void *(*again)(const void *argument));

/* Adds such work to a graph, as a node that waits for no other; with `replaces`
 * it becomes the work of the graph's only node, which was added so.
 * cudaErrorInvalidValue if the graph is another. Takes over the argument, also
 * after an error. */
HOST_API cudaError_t host_graph_add_again(cudaGraph_t graph, bool replaces,
                                          cudaError_t (*run)(void *argument),
                                          void *argument,
                                          void (*release)(void *argument),
                                          void *(*again)(const void *argument));

/* True while the stream is being captured into a graph. */
HOST_API int host_stream_capturing(cudaStream_t stream);

#endif
