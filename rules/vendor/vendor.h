/* SPDX-License-Identifier: Apache-2.0 */
/* The process's own cuDNN, as a table of typed pointers. */
#ifndef SDG_RULES_VENDOR_VENDOR_H
#define SDG_RULES_VENDOR_VENDOR_H

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>

#include "src/base/status.h"
#include "src/call/call.h"

/* cudnn->cudnnConvolutionForward(...): the real functions, below sundog. */
typedef struct sdg_cudnn {
#define SDG_VENDOR(name) __typeof__(&name) name;
#include "rules/vendor/vendor.def"
#undef SDG_VENDOR
} sdg_cudnn_t;

/* As sdg_vendor_get() of src/base/vendor.h: loaded at the first call, NULL
 * after SDG_E_LIBRARY_MISSING was reported. Callable from any thread. */
const sdg_cudnn_t *sdg_cudnn_get(void);

/* The same for cuBLAS and cuBLASLt. NULL, with SDG_E_LIBRARY_MISSING reported,
 * if the program has not loaded the library. */
typedef struct sdg_cublas {
#define SDG_CUBLAS(name) __typeof__(&name) name;
#include "rules/vendor/cublas.def"
} sdg_cublas_t;
const sdg_cublas_t *sdg_cublas_get(void);

typedef struct sdg_cublaslt {
#define SDG_CUBLASLT(name) __typeof__(&name) name;
#include "rules/vendor/cublas.def"
} sdg_cublaslt_t;
const sdg_cublaslt_t *sdg_cublaslt_get(void);

/* The cublasStatus_t for a failure of this class. */
int sdg_cublas_status(sdg_vendor_class_t kind);
/* The library's text for a status, whichever of its functions returned it. The
 * text lives as long as the process. */
const char *sdg_vendor_text(sdg_stream_kind_t library, int status);

/* The stream of the call's handle, and whether it is being captured.
 * SDG_E_LIBRARY_MISSING, SDG_E_VENDOR_CALL. */
sdg_status_t sdg_stream_state(const sdg_call_t *call, cudaStream_t *out_stream,
                              bool *out_capturing) SDG_MUST_CHECK;
/* The same; SDG_E_CAPTURE if the stream is being captured. */
sdg_status_t sdg_stream_of(const sdg_call_t *call,
                           cudaStream_t *out_stream) SDG_MUST_CHECK;

#endif
