/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes: one table (errors.def), one type, two check macros. */
#ifndef SDG_SRC_BASE_STATUS_H
#define SDG_SRC_BASE_STATUS_H

#include <stdlib.h>

/* What the vendor's entry returns when a call fails with this code. */
typedef enum sdg_vendor_class {
  SDG_VENDOR_NONE,        /* never returned from an entry */
  SDG_VENDOR_BAD_PARAM,   /* CUDNN_STATUS_BAD_PARAM, cudaErrorInvalidValue */
  SDG_VENDOR_UNSUPPORTED, /* CUDNN_STATUS_NOT_SUPPORTED, cudaErrorNotSupported
                           */
  SDG_VENDOR_NO_NODES,    /* CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API */
  SDG_VENDOR_FAILED,      /* CUDNN_STATUS_EXECUTION_FAILED,
                             cudaErrorLaunchFailure */
  SDG_VENDOR_NOT_READY,   /* CUDNN_STATUS_NOT_INITIALIZED,
                             cudaErrorInitializationError */
} sdg_vendor_class_t;

/* SDG_OK is 0; every other value is the number n of its stable code SDG-n. */
typedef enum sdg_status {
  SDG_OK = 0,
#define SDG_ERROR(number, name, vendor, summary, remedy) SDG_E_##name = number,
#include "src/base/errors.def"
#undef SDG_ERROR
} sdg_status_t;

#define SDG_MUST_CHECK __attribute__((warn_unused_result))

/* One row of errors.def; NULL for SDG_OK and for numbers not in the table. */
typedef struct sdg_error_info {
  sdg_status_t status;
  sdg_vendor_class_t vendor;
  const char *name;    /* "PEER_LOST" */
  const char *summary; /* one line, no full stop */
  const char *remedy;  /* cause and remedy, a paragraph */
} sdg_error_info_t;
const sdg_error_info_t *sdg_error_find(sdg_status_t status);
/* Rows in table order, for `sundog explain`; NULL past the last. */
const sdg_error_info_t *sdg_error_at(unsigned index);

/* Reports a failure where it is detected, and returns `status`. Writes one
 * line "sundog: SDG-nnn [rank r] summary: details" to stderr, once per
 * distinct text, and keeps it for sdg_last_error(). A caller of a failed
 * function passes the status on and reports nothing. Thread-safe. */
sdg_status_t sdg_fail(sdg_status_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Between begin and end, a failure of the calling thread only answers whether
 * something would fit: sdg_fail() returns its status, writes nothing and
 * leaves sdg_last_error() unchanged. Running out of memory is reported as
 * usual. They nest. */
void sdg_probe_begin(void);
void sdg_probe_end(void);

/* Returns the text of the calling thread's last sdg_fail, "" if none. Borrowed
 * until the thread's next failure. */
const char *sdg_last_error(void);

/* Returns the status of a failed expression to the caller. */
#define SDG_TRY(expression)                                                    \
  do {                                                                         \
    sdg_status_t sdg_try_ = (expression);                                      \
    if (__builtin_expect(sdg_try_ != SDG_OK, 0))                               \
      return sdg_try_;                                                         \
  } while (0)

/* The same in a function that has to clean up: jumps down to `label`; needs a
 * variable `status`. */
#define SDG_TRY_GOTO(expression, label)                                        \
  do {                                                                         \
    status = (expression);                                                     \
    if (__builtin_expect(status != SDG_OK, 0))                                 \
      goto label;                                                              \
  } while (0)

/* Sets `pointer` to `count` elements, all zero, which the caller frees. Is
 * SDG_OK or SDG_E_NO_MEMORY; the further arguments are the failure's text:
 * SDG_TRY(SDG_ALLOCATE(need, ranks, "boxes of %d ranks", ranks)); */
#define SDG_ALLOCATE(pointer, count, ...)                                      \
  (((pointer) = calloc((size_t)(count), sizeof *(pointer)))                    \
       ? SDG_OK                                                                \
       : sdg_fail(SDG_E_NO_MEMORY, __VA_ARGS__))

#endif
