/* SPDX-License-Identifier: Apache-2.0 */
/* The process's own cuDNN, as a table of typed pointers. */
#ifndef SDG_RULES_VENDOR_H
#define SDG_RULES_VENDOR_H

#include <cublas_v2.h>
#include <cudnn.h>

/* cudnn->cudnnConvolutionForward(...): the real functions, below sundog. */
typedef struct sdg_cudnn {
#define SDG_VENDOR(name) __typeof__(&name) name;
#include "rules/vendor.def"
#undef SDG_VENDOR
} sdg_cudnn_t;

/* As sdg_vendor_get() of src/vendor.h: loaded at the first call, NULL after
 * SDG_E_LIBRARY_MISSING was reported. Callable from any thread. */
const sdg_cudnn_t *sdg_cudnn_get(void);

/* The same of cuBLAS; of programs that do not use it NULL, and an error. */
typedef struct sdg_cublas {
  __typeof__(&cublasGetStream_v2) cublasGetStream_v2;
} sdg_cublas_t;
const sdg_cublas_t *sdg_cublas_get(void);

#endif
