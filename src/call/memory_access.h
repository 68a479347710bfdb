/* SPDX-License-Identifier: Apache-2.0 */
/* The device memory that a call reads and writes, independent of its entry. */
#ifndef SDG_SRC_CALL_MEMORY_ACCESS_H
#define SDG_SRC_CALL_MEMORY_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SDG_ACCESSES_MAX = 32 };

/* An access may have a host address: no device memory has that address. */
typedef struct sdg_access {
  uintptr_t at;
  bool reads, writes;
  /* `height` rows of `width` bytes, `pitch` bytes apart; width 0: unknown,
   * anything in the allocation. */
  size_t width, pitch, height;
} sdg_access_t;

/* Where the call's stream is. */
typedef enum sdg_stream_kind {
  SDG_STREAM_GIVEN,  /* in `stream` */
  SDG_STREAM_CUDNN,  /* in the cuDNN handle */
  SDG_STREAM_CUBLAS, /* in the cuBLAS handle */
} sdg_stream_kind_t;

/* What an elementwise call on vectors does. */
typedef enum sdg_elements {
  SDG_ELEMENTS_UPDATE, /* writes f(old value, other vector if any) */
  SDG_ELEMENTS_COPY,   /* copies the vector read to the vector written */
  SDG_ELEMENTS_BYTES,  /* the same, of bytes whose type is not known */
  SDG_ELEMENTS_SWAP,   /* exchanges two vectors; both are written */
  SDG_ELEMENTS_ROTATE, /* writes two vectors, each of both old values */
} sdg_elements_t;

typedef struct sdg_memory_access {
  const char *name; /* the entry's name */
  sdg_stream_kind_t stream_kind;
  const void *stream; /* cudaStream_t, or the handle */
  bool everything;    /* may access any device memory */
  bool copies; /* copies from the access that reads to the one that writes */
  /* Bytes of an element if the call is elementwise: element i of the vector it
   * writes depends only on elements i of that vector and of the other vector,
   * if any. Those vectors are the accesses with a width. 0: the call is not
   * elementwise. */
  size_t elementwise;
  sdg_elements_t elements; /* if elementwise */
  bool gaps;               /* the vectors have gaps between elements */
  uint64_t sizes;          /* a hash of their lengths, increments and types */
  /* By what they are multiplied: in host or device memory, as the handle's
   * pointer mode says. Bytes 0: the call has no such scalar. */
  const void *scalar[2];
  size_t scalar_bytes[2];
  int accesses;
  sdg_access_t access[SDG_ACCESSES_MAX];
} sdg_memory_access_t;

#endif
