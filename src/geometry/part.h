/* SPDX-License-Identifier: Apache-2.0 */
/* A part: the split of one extent into P pieces, as P+1 ascending offsets.
 * Pure. */
#ifndef SDG_SRC_GEOMETRY_PART_H
#define SDG_SRC_GEOMETRY_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"

typedef struct sdg_part {
  int pieces;      /* P >= 1 */
  int64_t *offset; /* P+1 ascending numbers, offset[0] == 0; owned */
} sdg_part_t;

/* One method per word of `parts =`. */
typedef enum sdg_part_method {
  SDG_PART_EVEN,  /* first N mod P pieces get one more: 10 over 4 = 3,3,2,2 */
  SDG_PART_CHUNK, /* ceil(N/P) each until N is used up: 10 over 4 = 3,3,3,1 */
} sdg_part_method_t;

void sdg_part_fini(sdg_part_t *part);
sdg_status_t sdg_part_copy(const sdg_part_t *part,
                           sdg_part_t *out_part) SDG_MUST_CHECK;
/* Makes a part from the pieces' sizes, which may be 0 but not negative. */
sdg_status_t sdg_part_from_sizes(int pieces, const int64_t *sizes,
                                 sdg_part_t *out_part) SDG_MUST_CHECK;
/* Splits in units of `align` elements (>= 1); the last unit may be shorter, so
 * every inner boundary is a multiple of align. */
sdg_status_t sdg_part_divide(int64_t extent, int pieces,
                             sdg_part_method_t method, int64_t align,
                             sdg_part_t *out_part) SDG_MUST_CHECK;
/* Parses the words of `parts =` other than "agree": "even", "even/32",
 * "chunk", "300,300,212,212" (`pieces` numbers whose sum is extent).
 * SDG_E_PARTS says which number is wrong. */
sdg_status_t sdg_part_parse(const char *text, int64_t extent, int pieces,
                            sdg_part_t *out_part) SDG_MUST_CHECK;
/* Returns the sum of the numbers listed in such a text, at most INT64_MAX; -1
 * if it lists none. */
int64_t sdg_part_listed(const char *text);
/* Writes "300+300+212+212" for messages; cut with "..." to fit. */
void sdg_part_format(const sdg_part_t *part, char *out, int out_bytes);

int64_t sdg_part_extent(const sdg_part_t *part);
int64_t sdg_part_size(const sdg_part_t *part, int piece);
bool sdg_part_equal(const sdg_part_t *a, const sdg_part_t *b);

#endif
