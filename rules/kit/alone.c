// SPDX-License-Identifier: Apache-2.0
// Enqueues sub-calls one after the other on the program's stream.
#include "rules/kit/alone.h"

#include <pthread.h>

#include "src/base/vendor.h"
#include "src/exchange/device.h"
#include "src/exchange/exec.h"

// Does not use the table of src/base/vendor.def: a program on one GPU may not
// have NCCL.
typedef struct cuda {
  __typeof__(&cudaFreeAsync) cudaFreeAsync;
  __typeof__(&cudaGetErrorString) cudaGetErrorString;
  __typeof__(&cudaMallocAsync) cudaMallocAsync;
  __typeof__(&cudaStreamIsCapturing) cudaStreamIsCapturing;
} cuda_t;

static sdg_status_t cuda_get(const cuda_t **out) {
  static const sdg_library_row_t rows[] = {
      {SDG_LIBRARY_CUDART, "cudaFreeAsync", offsetof(cuda_t, cudaFreeAsync)},
      {SDG_LIBRARY_CUDART, "cudaGetErrorString",
       offsetof(cuda_t, cudaGetErrorString)},
      {SDG_LIBRARY_CUDART, "cudaMallocAsync",
       offsetof(cuda_t, cudaMallocAsync)},
      {SDG_LIBRARY_CUDART, "cudaStreamIsCapturing",
       offsetof(cuda_t, cudaStreamIsCapturing)},
  };
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static cuda_t table;
  static bool filled;
  sdg_status_t status = SDG_OK;
  pthread_mutex_lock(&lock);
  if (!filled)
    status = sdg_library_fill(rows, sizeof rows / sizeof rows[0], &table);
  filled = status == SDG_OK;
  pthread_mutex_unlock(&lock);
  *out = &table;
  return status;
}

sdg_status_t sdg_alone_run(const sdg_plan_t *plan, const sdg_call_t *call,
                           cudaStream_t stream, int *out_vendor) {
  const cuda_t *cuda;
  sdg_exec_t exec = {.plan = plan, .call = call, .stream = stream};
  enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  void *scratch = NULL;
  *out_vendor = 0;
  SDG_TRY(cuda_get(&cuda));
  if (cuda->cudaStreamIsCapturing(stream, &capturing) != cudaSuccess ||
      capturing != cudaStreamCaptureStatusNone)
    return sdg_fail(SDG_E_CAPTURE, "%s", call->entry_name);
  for (int i = 0; i < plan->steps; i++)
    if (plan->step[i].kind != SDG_STEP_CALL &&
        plan->step[i].kind != SDG_STEP_JOIN)
      return sdg_fail(SDG_E_INTERNAL, "%s alone has a step of kind %d",
                      call->entry_name, (int)plan->step[i].kind);
  if (plan->scratch_bytes > 0) {
    cudaError_t got =
        cuda->cudaMallocAsync(&scratch, plan->scratch_bytes, stream);
    if (got != cudaSuccess)
      return sdg_fail(SDG_E_DEVICE_MEMORY, "%zu bytes for %s: %s",
                      plan->scratch_bytes, call->entry_name,
                      cuda->cudaGetErrorString(got));
  }
  exec.scratch = scratch;
  for (int i = 0; i < plan->steps && !*out_vendor; i++)
    if (plan->step[i].kind == SDG_STEP_CALL)
      *out_vendor = plan->run(plan->state, plan->step[i].slab, call, &exec);
  cudaError_t got =
      scratch ? cuda->cudaFreeAsync(scratch, stream) : cudaSuccess;
  return got == cudaSuccess
             ? SDG_OK
             : sdg_fail(SDG_E_CUDA, "freeing of scratch memory: %s",
                        cuda->cudaGetErrorString(got));
}
