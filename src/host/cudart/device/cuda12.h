/* SPDX-License-Identifier: Apache-2.0 */
/* Included first when the runtime is built as that of CUDA 12. There the plain
 * names mean older forms of some functions; the forms that CUDA 13 calls by the
 * plain name have a number in theirs. cuda12.c defines the older forms. */
#ifndef SDG_SRC_HOST_CUDART_DEVICE_CUDA12_H
#define SDG_SRC_HOST_CUDART_DEVICE_CUDA12_H

#define HOST_CUDART_VERSION 12080

#define cudaGraphAddDependencies       cudaGraphAddDependencies_v2
#define cudaGraphAddNode               cudaGraphAddNode_v2
#define cudaGraphGetEdges              cudaGraphGetEdges_v2
#define cudaGraphNodeGetDependencies   cudaGraphNodeGetDependencies_v2
#define cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2
#define cudaGraphRemoveDependencies    cudaGraphRemoveDependencies_v2
#define cudaMemAdvise                  cudaMemAdvise_v2
#define cudaMemPrefetchAsync           cudaMemPrefetchAsync_v2
#define cudaMemPrefetchAsync_ptsz      cudaMemPrefetchAsync_v2_ptsz
#define cudaStreamGetCaptureInfo       cudaStreamGetCaptureInfo_v3
#define cudaStreamGetCaptureInfo_ptsz  cudaStreamGetCaptureInfo_v3_ptsz
#define cudaStreamUpdateCaptureDependencies                                    \
  cudaStreamUpdateCaptureDependencies_v2
#define cudaStreamUpdateCaptureDependencies_ptsz                               \
  cudaStreamUpdateCaptureDependencies_v2_ptsz
/* Their structures have other members. */
#define cudaGetDeviceProperties  host_properties_get
#define cudaPointerGetAttributes host_pointer_get

#endif
