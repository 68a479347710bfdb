/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a call writes whose tensors, if it has any, no descriptor
 * tells: interpose/ fills this in by the rows of its tables, as far as the
 * arguments say it. */
#ifndef SDG_RULES_VENDOR_WRITES_H
#define SDG_RULES_VENDOR_WRITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/vendor/gemm.h"

/* The memory of a vector or matrix, from its first byte to its last. */
typedef struct sdg_footprint {
  const void *at;
  size_t bytes;
  bool gaps; /* not all of these bytes belong to it */
} sdg_footprint_t;

typedef struct sdg_write {
  sdg_footprint_t to;
  bool kept;    /* its old elements are among what the new ones are made of */
  bool partial; /* nothing tells which of its elements are written, or on
                   which rank */
  bool made;    /* each element is made of single elements of what is read */
} sdg_write_t;

enum { SDG_WRITES_MAX = 8 };

typedef struct sdg_writes {
  const char *name; /* the entry's */
  bool everything;  /* nothing tells where it writes */
  int writes, reads;
  sdg_write_t write[SDG_WRITES_MAX];
  sdg_footprint_t read[SDG_WRITES_MAX]; /* if some write is `made` */
} sdg_writes_t;

/* `columns` columns of `rows` elements of `each` bytes, which begin `ld`
 * elements apart; a vector has columns of one element each. Empty without an
 * address or without elements; of elements of unknown size (`each` 0) SIZE_MAX
 * bytes, which say that nothing tells where it ends. */
sdg_footprint_t sdg_footprint(const void *at, size_t each, int64_t rows,
                              int64_t columns, int64_t ld);
void sdg_writes_add(sdg_writes_t *writes, sdg_write_t write);
void sdg_writes_read(sdg_writes_t *writes, sdg_footprint_t from);

/* Whether a scaling factor of this cudaDataType_t is known to be 0. A handle of
 * cuBLAS says where it is. */
bool sdg_scalar_is_zero(const void *cublas_handle, const void *scalar,
                        int type);
/* What a product of matrices writes, whether an op can read it or not. */
void sdg_writes_of_product(const sdg_gemm_t *gemm, sdg_writes_t *out);
/* The bytes of an element of this cudaDataType_t; 0: unknown. */
size_t sdg_cublas_type_bytes(int type);
/* Memory that these descriptors tell of: of a tensor, of the data of a
 * recurrent network, of the coordinates for a sampler, of a matrix of cuBLASLt.
 * SIZE_MAX bytes where they cannot be read. */
sdg_footprint_t sdg_footprint_of_tensor(const void *at, const void *descriptor);
sdg_footprint_t sdg_footprint_of_rnn(const void *at, const void *descriptor);
sdg_footprint_t sdg_footprint_of_grid(const void *at, const void *descriptor);
sdg_footprint_t sdg_footprint_of_layout(const void *at, const void *layout);
/* The sequences of a tensor of probabilities; 0: it does not tell. */
int64_t sdg_ctc_sequences(const void *descriptor);

#endif
