/* SPDX-License-Identifier: Apache-2.0 */
/* A fake CUDA runtime and NCCL of host functions, for tests of enqueued work. A
 * stream is a queue; nothing runs until the test drains it, in the worst order
 * that the events allow. */
#ifndef SDG_TESTS_UNIT_FAKE_CUDA_H
#define SDG_TESTS_UNIT_FAKE_CUDA_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "src/base/vendor.h"

enum { FAKE_CUDA_RANKS = 4 };

/* Which streams continue first if several can; the communication stream is
 * created last. */
typedef enum fake_cuda_order {
  FAKE_CUDA_COMM_LATE,
  FAKE_CUDA_COMM_EARLY,
  FAKE_CUDA_RANDOM,
  FAKE_CUDA_ORDERS,
} fake_cuda_order_t;

/* Installs the functions. Call it before ranks are forked. */
void fake_cuda_install(void);
/* The finder that this installs (src/base/vendor.h). */
void *fake_cuda_find(sdg_library_t library, const char *name);

/* Makes another device current in this thread than the one that is current at
 * the start of a rank. */
void fake_cuda_device(int device);

/* Gives all ranks the same GPU; otherwise each has its own. */
void fake_cuda_share_gpu(void);

/* Like job_run() of tests/unit/job.h, with mailboxes between the ranks. */
void fake_cuda_ranks_run(const char *mesh, void (*body)(int rank));

/* Returns a stream of the program, 0 to 2. NCCL refuses them; 1 is
 * cudaStreamLegacy and 2 is cudaStreamPerThread. */
cudaStream_t fake_cuda_stream(int index);
/* Destroys the stream, whose work continues; a new stream gets its handle. */
void fake_cuda_stream_renew(int index);
/* Appends work of the program or of a sub-call. `argument` is borrowed. */
void fake_cuda_enqueue(cudaStream_t stream, void (*run)(void *argument),
                       void *argument);
/* Carries out all work in all streams. */
void fake_cuda_drain(void);
/* From now on, no executable graph can be made. */
void fake_cuda_captures_fail(bool fail);
void fake_cuda_order(fake_cuda_order_t order);

#endif
