// SPDX-License-Identifier: Apache-2.0
// The functions that programs built for a default stream per thread call:
// stream 0 means the calling thread's stream.
#include "src/host/cudart/internal.h"

#define OWN            cudaStreamPerThread
#define STREAM(stream) ((stream) ? (stream) : OWN)

// Defines an exported function that no header declares.
#define DEFINE(name, parameters, value)                                        \
  cudaError_t name parameters;                                                 \
  cudaError_t name parameters {                                                \
    return value;                                                              \
  }

// A blocking call is the asynchronous one and a wait.
static cudaError_t finish(cudaError_t error) {
  return error ? error : cudaStreamSynchronize(OWN);
}

// ---- copies ----

DEFINE(cudaMemcpy_ptds,
       (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),
       finish(cudaMemcpyAsync(to, from, bytes, kind, OWN)))
DEFINE(cudaMemcpy2D_ptds,
       (void *to, size_t to_pitch, const void *from, size_t from_pitch,
        size_t width, size_t height, enum cudaMemcpyKind kind),
       finish(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height,
                                kind, OWN)))
DEFINE(cudaMemcpy3D_ptds, (const struct cudaMemcpy3DParms *p),
       finish(cudaMemcpy3DAsync(p, OWN)))
DEFINE(cudaMemcpy3DPeer_ptds, (const struct cudaMemcpy3DPeerParms *p),
       finish(cudaMemcpy3DPeerAsync(p, OWN)))
DEFINE(cudaMemcpyAsync_ptsz,
       (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
        cudaStream_t stream),
       cudaMemcpyAsync(to, from, bytes, kind, STREAM(stream)))
DEFINE(cudaMemcpy2DAsync_ptsz,
       (void *to, size_t to_pitch, const void *from, size_t from_pitch,
        size_t width, size_t height, enum cudaMemcpyKind kind,
        cudaStream_t stream),
       cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind,
                         STREAM(stream)))
DEFINE(cudaMemcpy3DAsync_ptsz,
       (const struct cudaMemcpy3DParms *p, cudaStream_t stream),
       cudaMemcpy3DAsync(p, STREAM(stream)))
DEFINE(cudaMemcpy3DPeerAsync_ptsz,
       (const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream),
       cudaMemcpy3DPeerAsync(p, STREAM(stream)))

// ---- memset ----

DEFINE(cudaMemset_ptds, (void *to, int value, size_t bytes),
       cudaMemsetAsync(to, value, bytes, OWN))
DEFINE(cudaMemset2D_ptds,
       (void *to, size_t pitch, int value, size_t width, size_t height),
       cudaMemset2DAsync(to, pitch, value, width, height, OWN))
DEFINE(cudaMemset3D_ptds,
       (struct cudaPitchedPtr to, int value, struct cudaExtent extent),
       cudaMemset3DAsync(to, value, extent, OWN))
DEFINE(cudaMemsetAsync_ptsz,
       (void *to, int value, size_t bytes, cudaStream_t stream),
       cudaMemsetAsync(to, value, bytes, STREAM(stream)))
DEFINE(cudaMemset2DAsync_ptsz,
       (void *to, size_t pitch, int value, size_t width, size_t height,
        cudaStream_t stream),
       cudaMemset2DAsync(to, pitch, value, width, height, STREAM(stream)))
DEFINE(cudaMemset3DAsync_ptsz,
       (struct cudaPitchedPtr to, int value, struct cudaExtent extent,
        cudaStream_t stream),
       cudaMemset3DAsync(to, value, extent, STREAM(stream)))

// ---- memory ----

DEFINE(cudaMallocAsync_ptsz, (void **out, size_t bytes, cudaStream_t stream),
       cudaMallocAsync(out, bytes, STREAM(stream)))
DEFINE(cudaMallocFromPoolAsync_ptsz,
       (void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
       cudaMallocFromPoolAsync(out, bytes, pool, STREAM(stream)))
DEFINE(cudaStreamAttachMemAsync_ptsz,
       (cudaStream_t stream, void *pointer, size_t bytes, unsigned flags),
       cudaStreamAttachMemAsync(STREAM(stream), pointer, bytes, flags))
DEFINE(cudaFreeAsync_ptsz, (void *pointer, cudaStream_t stream),
       cudaFreeAsync(pointer, STREAM(stream)))
DEFINE(cudaMemPrefetchAsync_ptsz,
       (const void *pointer, size_t bytes, struct cudaMemLocation location,
        unsigned flags, cudaStream_t stream),
       cudaMemPrefetchAsync(pointer, bytes, location, flags, STREAM(stream)))

// ---- streams and events ----

DEFINE(cudaStreamSynchronize_ptsz, (cudaStream_t stream),
       cudaStreamSynchronize(STREAM(stream)))
DEFINE(cudaStreamQuery_ptsz, (cudaStream_t stream),
       cudaStreamQuery(STREAM(stream)))
DEFINE(cudaStreamGetFlags_ptsz, (cudaStream_t stream, unsigned *flags),
       cudaStreamGetFlags(STREAM(stream), flags))
DEFINE(cudaStreamGetPriority_ptsz, (cudaStream_t stream, int *priority),
       cudaStreamGetPriority(STREAM(stream), priority))
DEFINE(cudaStreamGetId_ptsz, (cudaStream_t stream, unsigned long long *id),
       cudaStreamGetId(STREAM(stream), id))
DEFINE(cudaStreamGetDevice_ptsz, (cudaStream_t stream, int *device),
       cudaStreamGetDevice(STREAM(stream), device))
DEFINE(cudaStreamIsCapturing_ptsz,
       (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
       cudaStreamIsCapturing(STREAM(stream), status))
DEFINE(cudaStreamGetCaptureInfo_ptsz,
       (cudaStream_t stream, enum cudaStreamCaptureStatus *status,
        unsigned long long *id, cudaGraph_t *graph,
        const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
        size_t *count),
       cudaStreamGetCaptureInfo(STREAM(stream), status, id, graph, nodes, edges,
                                count))
DEFINE(cudaStreamWaitEvent_ptsz,
       (cudaStream_t stream, cudaEvent_t event, unsigned flags),
       cudaStreamWaitEvent(STREAM(stream), event, flags))
DEFINE(cudaStreamAddCallback_ptsz,
       (cudaStream_t stream, cudaStreamCallback_t callback, void *data,
        unsigned flags),
       cudaStreamAddCallback(STREAM(stream), callback, data, flags))
DEFINE(cudaLaunchHostFunc_ptsz,
       (cudaStream_t stream, cudaHostFn_t function, void *data),
       cudaLaunchHostFunc(STREAM(stream), function, data))
DEFINE(cudaEventRecord_ptsz, (cudaEvent_t event, cudaStream_t stream),
       cudaEventRecord(event, STREAM(stream)))
DEFINE(cudaEventRecordWithFlags_ptsz,
       (cudaEvent_t event, cudaStream_t stream, unsigned flags),
       cudaEventRecordWithFlags(event, STREAM(stream), flags))

// ---- captures and graphs ----

DEFINE(cudaStreamBeginCapture_ptsz,
       (cudaStream_t stream, enum cudaStreamCaptureMode mode),
       cudaStreamBeginCapture(STREAM(stream), mode))
DEFINE(cudaStreamBeginCaptureToGraph_ptsz,
       (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *needs,
        const cudaGraphEdgeData *edges, size_t count,
        enum cudaStreamCaptureMode mode),
       cudaStreamBeginCaptureToGraph(STREAM(stream), graph, needs, edges, count,
                                     mode))
DEFINE(cudaStreamEndCapture_ptsz, (cudaStream_t stream, cudaGraph_t *graph),
       cudaStreamEndCapture(STREAM(stream), graph))
DEFINE(cudaStreamUpdateCaptureDependencies_ptsz,
       (cudaStream_t stream, cudaGraphNode_t *needs,
        const cudaGraphEdgeData *edges, size_t count, unsigned flags),
       cudaStreamUpdateCaptureDependencies(STREAM(stream), needs, edges, count,
                                           flags))
DEFINE(cudaGraphLaunch_ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
       cudaGraphLaunch(exec, STREAM(stream)))
DEFINE(cudaGraphUpload_ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
       cudaGraphUpload(exec, STREAM(stream)))
DEFINE(cudaGraphInstantiateWithParams_ptsz,
       (cudaGraphExec_t * exec, cudaGraph_t graph,
        cudaGraphInstantiateParams *params),
       cudaGraphInstantiateWithParams(exec, graph, params))

// ---- the driver ----

DEFINE(cudaGetDriverEntryPoint_ptsz,
       (const char *symbol, void **function, unsigned long long flags,
        enum cudaDriverEntryPointQueryResult *status),
       cudaGetDriverEntryPoint(symbol, function, flags, status))
DEFINE(cudaGetDriverEntryPointByVersion_ptsz,
       (const char *symbol, void **function, unsigned version,
        unsigned long long flags, enum cudaDriverEntryPointQueryResult *status),
       cudaGetDriverEntryPointByVersion(symbol, function, version, flags,
                                        status))
