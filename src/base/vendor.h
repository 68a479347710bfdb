/* SPDX-License-Identifier: Apache-2.0 */
/* The process's own CUDA runtime and NCCL, as a table of typed pointers.
 *
 * sundog is not linked against NVIDIA's libraries. The component that uses the
 * dynamic linker installs a finder; src/ and rules/ ask for tables. */
#ifndef SDG_SRC_BASE_VENDOR_H
#define SDG_SRC_BASE_VENDOR_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/base/status.h"

typedef enum sdg_library {
  SDG_LIBRARY_CUDART,
  SDG_LIBRARY_CUDNN,
  SDG_LIBRARY_NCCL,
  SDG_LIBRARY_CUBLAS,
  SDG_LIBRARY_CUBLASLT,
  SDG_LIBRARY_COUNT,
} sdg_library_t;
/* "libcudart" */
const char *sdg_library_name(sdg_library_t library);

/* Returns the address of a function of the vendor's library, never the one
 * that sundog exports under the same name; NULL if library or name is missing.
 * Callable from any thread. */
typedef void *sdg_library_finder_t(sdg_library_t library, const char *name);
/* Installs the finder; call once, before any table is asked for. */
void sdg_library_set_finder(sdg_library_finder_t *finder);

/* To be called by the finder when it loads a library that nothing in the
 * process has loaded: the program does without it, or has it linked in. */
void sdg_library_set_brought(sdg_library_t library);
bool sdg_library_brought(sdg_library_t library);

/* To be called when a file of the program, the main program or a library, is
 * found to have a CUDA runtime linked in and to use it. Any thread; the first
 * file is kept. */
void sdg_library_note_own_cudart(const char *file);
/* The name of that file; NULL if none was found. */
const char *sdg_library_own_cudart(void);

/* One row of a table: the offset in its struct at which to store the address
 * of `name`. */
typedef struct sdg_library_row {
  sdg_library_t library;
  const char *name;
  size_t offset_bytes;
} sdg_library_row_t;
/* Fills `table` row by row; SDG_E_LIBRARY_MISSING names the first function
 * that is not found. */
sdg_status_t sdg_library_fill(const sdg_library_row_t *rows, int count,
                              void *table) SDG_MUST_CHECK;

/* Usage: vendor->cudaMemcpyAsync(...), vendor->ncclSend(...). NCCL's functions
 * are looked up by their pnccl aliases, which tools that intercept NCCL do not
 * replace. */
typedef struct sdg_vendor {
#define SDG_VENDOR(library, name) __typeof__(&name) name;
#include "src/base/vendor.def"
#undef SDG_VENDOR
} sdg_vendor_t;

/* Returns the table, loaded at the first call; later calls return the same
 * pointer. Returns NULL after reporting SDG_E_LIBRARY_MISSING; a later call
 * tries again. Callable from any thread. */
const sdg_vendor_t *sdg_vendor_get(void);

/* Turns a failed CUDA call into SDG_E_CUDA; `what` names the attempted
 * action. */
sdg_status_t sdg_vendor_check(cudaError_t result,
                              const char *what) SDG_MUST_CHECK;

#endif
