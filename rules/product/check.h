/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks' memory says of where the matrices of a product are, and what
 * messages about that have in common. Inside rules/ only. */
#ifndef SDG_RULES_PRODUCT_CHECK_H
#define SDG_RULES_PRODUCT_CHECK_H

#include "rules/place/product_sizes.h"
#include "rules/product/rule.h"
#include "src/call/tag.h"
#include "src/job/job.h"

/* ---- rules/product/room.c ---- */

/* Of each matrix: elements + 1, outer stride, stride of the batch. */
enum { SDG_ROOM_NUMBERS = 3, SDG_ROOMS = SDG_PRODUCT_MATRICES * 3 };

/* A matrix's memory on one rank, by what the ranks agreed on. */
typedef struct sdg_room {
  int64_t elements; /* from its address on; -1: not known */
  int64_t stride[3];
} sdg_room_t;

/* `member`: of sdg_job_group(). */
sdg_room_t sdg_room_of(const sdg_product_parts_t *m, int matrix, int member);
/* Whether the elements lie in the room, and, where `apart`, at different places
 * as far as strides tell. */
bool sdg_room_holds(const sdg_room_t *room, const sdg_matrix_t *matrix,
                    const int64_t *extent, bool apart);

/* ---- rules/product/reading.c ---- */

typedef struct sdg_matcheck {
  const sdg_product_parts_t *m;
  const sdg_group_t *group;
  const sdg_tag_vector_t *vector;   /* what the ranks' calls state */
  bool apart[SDG_PRODUCT_MATRICES]; /* no elements at one place, as stated */
} sdg_product_check_t;

/* What a rank's call states of a dimension of the product. */
int64_t sdg_product_check_stated(const sdg_product_check_t *c, int member,
                                 int dim);

/* How a factor may be cut: as the section says or implies, in one dimension, or
 * in none. */
typedef struct sdg_cut {
  bool implied;
  int dim; /* of the product; -1: all of it is on every rank */
  sdg_axes_t axes;
} sdg_cut_t;

/* What a rank has of a matrix by these cuts of A and B; NULL: as the section
 * says or implies. */
void sdg_product_check_extents(const sdg_product_check_t *c,
                               const sdg_cut_t *cut, int matrix, int member,
                               int64_t *out);
/* SDG_E_PRODUCT_MATRIX where the section does not say where a factor is, and
 * the memory of all ranks has room for it elsewhere. */
sdg_status_t
sdg_product_check_factors(const sdg_product_check_t *c) SDG_MUST_CHECK;

/* ---- words of messages ---- */

typedef struct sdg_says {
  char at[768];
  size_t used;
} sdg_says_t;
void sdg_say(sdg_says_t *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *sdg_say_dim(int dim);                         /* "M" */
void sdg_say_axes(sdg_says_t *text, int dim, sdg_axes_t); /* "M:x+y" */
/* "M 3 x K 5" */
void sdg_say_extents(sdg_says_t *text, const sdg_matrix_t *matrix,
                     const int64_t *extent);

#endif
