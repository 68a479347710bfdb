// SPDX-License-Identifier: Apache-2.0
// Contexts: the primary one, further ones, and each thread's stack of them.
//
// All contexts stand for the one device. Memory allocated under one context can
// be used under every other, and outlives it.
#include "src/host/cuda/call.h"

#include <pthread.h>
#include <stdlib.h>

enum { DEPTH_MAX = 64, KNOWN_FLAGS = CU_CTX_FLAGS_MASK };

struct CUctx_st {
  unsigned long long id;
  unsigned flags;
  bool alive;
  struct CUctx_st *next; // the next context made by cuCtxCreate
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st primary = {.id =
                                      1}; // `lock` guards this and what follows
static int primary_holds;
static CUcontext others; // never freed, because handles may be read later
static unsigned long long last_id = 1;

static _Thread_local CUcontext stack[DEPTH_MAX];
static _Thread_local int depth;

// The thread's own context, or the primary one if the runtime has made it
// current.
static CUcontext current(void) {
  if (depth > 0)
    return stack[depth - 1];
  return host_runtime()->used() ? &primary : NULL;
}

static bool known(CUcontext context) {
  bool found = context == &primary;
  pthread_mutex_lock(&lock);
  for (CUcontext c = others; c && !found; c = c->next)
    found = c == context && c->alive;
  pthread_mutex_unlock(&lock);
  return found;
}

CUresult host_cu_ready(void) {
  CUresult result = host_cu_initialized();
  RETURN_IF(result, result);
  CUcontext context = current();
  RETURN_IF(!context, CUDA_ERROR_INVALID_CONTEXT);
  return known(context) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// ---- the primary context ----

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  CUresult result = host_cu_device(device);
  RETURN_IF(result, result);
  RETURN_IF(!context, CUDA_ERROR_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  primary_holds++;
  pthread_mutex_unlock(&lock);
  *context = &primary;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  CUresult result = host_cu_device(device);
  RETURN_IF(result, result);
  pthread_mutex_lock(&lock);
  if (primary_holds == 0)
    result = CUDA_ERROR_INVALID_CONTEXT;
  else
    primary_holds--;
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  CUresult result = host_cu_device(device);
  RETURN_IF(result, result);
  RETURN_IF(flags & ~(unsigned)KNOWN_FLAGS, CUDA_ERROR_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  primary.flags = flags;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags,
                                    int *active) {
  CUresult result = host_cu_device(device);
  RETURN_IF(result, result);
  RETURN_IF(!flags || !active, CUDA_ERROR_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  *flags = primary.flags;
  *active = primary_holds > 0 || host_runtime()->used();
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  CUresult result = host_cu_device(device);
  return result ? result : RT(cudaDeviceReset());
}

// ---- others ----

static CUresult create(CUcontext *out, unsigned flags, CUdevice device) {
  CUresult result = host_cu_device(device);
  RETURN_IF(result, result);
  RETURN_IF(!out || (flags & ~(unsigned)KNOWN_FLAGS), CUDA_ERROR_INVALID_VALUE);
  RETURN_IF(depth == DEPTH_MAX, CUDA_ERROR_OUT_OF_MEMORY);
  CUcontext context = calloc(1, sizeof *context);
  RETURN_IF(!context, CUDA_ERROR_OUT_OF_MEMORY);
  context->flags = flags;
  context->alive = true;
  pthread_mutex_lock(&lock);
  context->id = ++last_id;
  context->next = others;
  others = context;
  pthread_mutex_unlock(&lock);
  stack[depth++] = context;
  *out = context;
  return CUDA_SUCCESS;
}

// Defines cuCtxCreate_v4.
CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *parameters,
                     unsigned flags, CUdevice device) {
  RETURN_IF(parameters &&
                (parameters->numExecAffinityParams || parameters->cigParams),
            CUDA_ERROR_NOT_SUPPORTED);
  return create(context, flags, device);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
  return create(context, flags, device);
}

CUresult cuCtxDestroy(CUcontext context) {
  CUresult result = host_cu_initialized();
  RETURN_IF(result, result);
  RETURN_IF(!context || context == &primary || !known(context),
            CUDA_ERROR_INVALID_CONTEXT);
  result = RT(cudaDeviceSynchronize());
  pthread_mutex_lock(&lock);
  context->alive = false;
  pthread_mutex_unlock(&lock);
  if (depth > 0 && stack[depth - 1] == context)
    depth--;
  return result;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  CUresult result = host_cu_initialized();
  RETURN_IF(result, result);
  RETURN_IF(!context || !known(context), CUDA_ERROR_INVALID_CONTEXT);
  RETURN_IF(depth == DEPTH_MAX, CUDA_ERROR_OUT_OF_MEMORY);
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context) {
  CUresult result = host_cu_initialized();
  RETURN_IF(result, result);
  RETURN_IF(depth == 0, CUDA_ERROR_INVALID_CONTEXT);
  depth--;
  if (context)
    *context = stack[depth];
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  CUresult result = host_cu_initialized();
  RETURN_IF(result, result);
  RETURN_IF(context && !known(context), CUDA_ERROR_INVALID_CONTEXT);
  if (depth > 0)
    depth--;
  if (context)
    stack[depth++] = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  CUresult result = host_cu_initialized();
  RETURN_IF(result, result);
  RETURN_IF(!context, CUDA_ERROR_INVALID_VALUE);
  *context = current();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!device, CUDA_ERROR_INVALID_VALUE);
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags) {
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!flags, CUDA_ERROR_INVALID_VALUE);
  *flags = current()->flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
  CUresult result = context ? host_cu_initialized() : host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!id, CUDA_ERROR_INVALID_VALUE);
  context = context ? context : current();
  RETURN_IF(!known(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
  CUresult result = context ? host_cu_initialized() : host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!version, CUDA_ERROR_INVALID_VALUE);
  RETURN_IF(context && !known(context), CUDA_ERROR_INVALID_CONTEXT);
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaDeviceSynchronize());
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  CUresult result = host_cu_ready();
  return result ? result
                : RT(cudaDeviceGetStreamPriorityRange(least, greatest));
}

// The limits have the runtime's numbers.
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaDeviceSetLimit((enum cudaLimit)limit, value));
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaDeviceGetLimit(value, (enum cudaLimit)limit));
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  CUresult result = host_cu_ready();
  return result ? result
                : RT(cudaDeviceSetCacheConfig((enum cudaFuncCache)config));
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config) {
  enum cudaFuncCache found;
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!config, CUDA_ERROR_INVALID_VALUE);
  result = RT(cudaDeviceGetCacheConfig(&found));
  if (result == CUDA_SUCCESS)
    *config = (CUfunc_cache)found;
  return result;
}
