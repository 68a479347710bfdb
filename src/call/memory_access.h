/* SPDX-License-Identifier: Apache-2.0 */
/* What a call does to device memory, in terms that do not depend on the
 * entry. */
#ifndef SDG_SRC_CALL_MEMORY_ACCESS_H
#define SDG_SRC_CALL_MEMORY_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SDG_ACCESSES_MAX = 32 };

/* Host addresses may be among them: no device memory lies there. */
typedef struct sdg_access {
  uintptr_t at;
  bool reads, writes;
  /* `height` rows of `width` bytes, `pitch` bytes apart; width 0: not known,
   * anything in the allocation. */
  size_t width, pitch, height;
} sdg_access_t;

/* Whose stream the call is on. */
typedef enum sdg_stream_kind {
  SDG_STREAM_GIVEN,  /* `stream` */
  SDG_STREAM_CUDNN,  /* of the handle */
  SDG_STREAM_CUBLAS, /* of the handle */
} sdg_stream_kind_t;

/* What calls on vectors do that compute element by element. */
typedef enum sdg_elements {
  SDG_ELEMENTS_UPDATE, /* of what is there, and of a vector that is read */
  SDG_ELEMENTS_COPY,   /* the vector that is read, to the one that is written */
  SDG_ELEMENTS_SWAP,   /* both are written */
} sdg_elements_t;

typedef struct sdg_memory_access {
  const char *name; /* of the entry */
  sdg_stream_kind_t stream_kind;
  const void *stream; /* cudaStream_t, or the handle */
  bool everything;    /* may touch any device memory */
  bool copies;        /* from `access` that reads to that which writes */
  /* Bytes of an element, where the call computes each element of the vector
   * that it writes of those at its place there and in the other vector, if any;
   * these are the accesses that have a width. 0: it is none such. */
  size_t elementwise;
  sdg_elements_t elements; /* how */
  bool gaps;               /* between the elements of its vectors */
  int accesses;
  sdg_access_t access[SDG_ACCESSES_MAX];
} sdg_memory_access_t;

#endif
