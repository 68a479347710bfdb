/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks' memory shows about where the matrices of a product are, and
 * helpers for messages about it. Inside rules/ only. */
#ifndef SDG_RULES_PRODUCT_CHECK_H
#define SDG_RULES_PRODUCT_CHECK_H

#include "rules/place/product_sizes.h"
#include "rules/product/rule.h"
#include "src/call/tag.h"
#include "src/job/job.h"

/* ---- rules/product/room.c ---- */

/* Numbers per matrix: elements that fit + 1 (0: unknown), stride of the outer
 * dimension, stride of the batch. */
enum { SDG_ROOM_NUMBERS = 3, SDG_ROOMS = SDG_PRODUCT_MATRICES * 3 };

/* A matrix's memory on one rank, from the numbers that the ranks agreed on. */
typedef struct sdg_product_room {
  int64_t elements; /* elements that fit from its address on; -1: unknown */
  int64_t stride[3];
} sdg_product_room_t;

/* `member`: index in sdg_job_group(). */
sdg_product_room_t sdg_product_room_of(const sdg_product_parts_t *m, int matrix,
                                       int member);
/* Whether the memory has room for a matrix with these extents. If `apart`, its
 * elements must also have different addresses, as far as strides show. True if
 * the size of the memory is unknown. */
bool sdg_product_room_holds(const sdg_product_room_t *room,
                            const sdg_matrix_t *matrix, const int64_t *extent,
                            bool apart);

/* ---- rules/product/reading.c ---- */

typedef struct sdg_product_check {
  const sdg_product_parts_t *m;
  const sdg_group_t *group;
  const sdg_tag_vector_t *vector;   /* extents that the ranks' calls state */
  bool apart[SDG_PRODUCT_MATRICES]; /* no two elements share an address,
                                     * according to the call */
} sdg_product_check_t;

/* The extent that a rank's call states for a dimension of the product. */
int64_t sdg_product_check_stated(const sdg_product_check_t *c, int member,
                                 int dim);

/* How a factor may be cut: as the section states or implies, in one dimension,
 * or in none. */
typedef struct sdg_product_cut {
  bool implied;
  int dim; /* of the product; -1: every rank has all of it */
  sdg_axes_t axes;
} sdg_product_cut_t;

/* Writes the extents that a matrix has on a rank if A is cut by cut[0] and B by
 * cut[1]. cut is NULL: as the section states or implies. */
void sdg_product_check_extents(const sdg_product_check_t *c,
                               const sdg_product_cut_t *cut, int matrix,
                               int member, int64_t *out);
/* SDG_E_PRODUCT_MATRIX if the section does not say how a factor is cut, and the
 * memory of all ranks has room for more than one way to cut it. */
sdg_status_t
sdg_product_check_factors(const sdg_product_check_t *c) SDG_MUST_CHECK;

/* ---- words of messages ---- */

typedef struct sdg_product_text {
  char at[768];
  size_t used;
} sdg_product_text_t;
void sdg_product_text_add(sdg_product_text_t *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *sdg_product_text_dim(int dim); /* "M" */
/* "M 3 x K 5" */
void sdg_product_text_extents(sdg_product_text_t *text,
                              const sdg_matrix_t *matrix,
                              const int64_t *extent);

#endif
