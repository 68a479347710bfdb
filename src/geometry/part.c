// SPDX-License-Identifier: Apache-2.0
// Makes parts from sizes, by a method, or from the words of `parts =`.
#include "src/geometry/part.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/geometry/box.h"

static sdg_status_t part_alloc(int pieces, sdg_part_t *out_part) {
  if (pieces < 1)
    return sdg_fail(SDG_E_PARTS, "%d pieces; a part has at least one", pieces);
  int64_t *offset;
  SDG_TRY(SDG_ALLOCATE(offset, pieces + 1, "a part of %d pieces", pieces));
  *out_part = (sdg_part_t){.pieces = pieces, .offset = offset};
  return SDG_OK;
}

void sdg_part_fini(sdg_part_t *part) {
  free(part->offset);
  *part = (sdg_part_t){.pieces = 0};
}

sdg_status_t sdg_part_copy(const sdg_part_t *part, sdg_part_t *out_part) {
  sdg_part_t copy;
  SDG_TRY(part_alloc(part->pieces, &copy));
  memcpy(copy.offset, part->offset,
         ((size_t)part->pieces + 1) * sizeof *copy.offset);
  *out_part = copy;
  return SDG_OK;
}

sdg_status_t sdg_part_from_sizes(int pieces, const int64_t *sizes,
                                 sdg_part_t *out_part) {
  sdg_part_t part;
  SDG_TRY(part_alloc(pieces, &part));
  for (int i = 0; i < pieces; i++) {
    if (sizes[i] < 0 ||
        __builtin_add_overflow(part.offset[i], sizes[i], &part.offset[i + 1])) {
      sdg_part_fini(&part);
      return sdg_fail(SDG_E_PARTS, "size %d of %d is %" PRId64, i + 1, pieces,
                      sizes[i]);
    }
  }
  *out_part = part;
  return SDG_OK;
}

// Returns the number of units in the first `i` of `pieces` pieces.
static int64_t units_before(int64_t units, int pieces, int i,
                            sdg_part_method_t method) {
  int64_t given;
  if (method == SDG_PART_CHUNK)
    given = i * sdg_ceil_div(units, pieces);
  else
    given = i * (units / pieces) + (i < units % pieces ? i : units % pieces);
  return given < units ? given : units;
}

sdg_status_t sdg_part_divide(int64_t extent, int pieces,
                             sdg_part_method_t method, int64_t align,
                             sdg_part_t *out_part) {
  if (extent < 0 || align < 1)
    return sdg_fail(SDG_E_PARTS,
                    "extent %" PRId64 " in units of %" PRId64
                    "; an extent is 0 or more, a unit 1 or more",
                    extent, align);
  sdg_part_t part;
  SDG_TRY(part_alloc(pieces, &part));
  // Example: 70 over 3 in units of 32: 3 units, the last one of 6 elements:
  // 32+32+6.
  int64_t units = sdg_ceil_div(extent, align);
  for (int i = 1; i <= pieces; i++) {
    int64_t before = units_before(units, pieces, i, method);
    part.offset[i] = before == units ? extent : before * align;
  }
  *out_part = part;
  return SDG_OK;
}

static const char *skip_space(const char *text) {
  while (isspace((unsigned char)*text))
    text++;
  return text;
}

// Reads a number of digits only, at most INT64_MAX, with spaces around it;
// moves *text past them. Returns false if there is no number.
static bool number_parse(const char **text, int64_t *out_number) {
  const char *at = skip_space(*text);
  if (!isdigit((unsigned char)*at))
    return false;
  char *end;
  errno = 0;
  long long number = strtoll(at, &end, 10);
  if (errno)
    return false;
  *text = skip_space(end);
  *out_number = number;
  return true;
}

static sdg_status_t list_parse(const char *text, int64_t extent, int pieces,
                               sdg_part_t *out_part) {
  sdg_part_t part;
  SDG_TRY(part_alloc(pieces, &part));
  sdg_status_t status = SDG_OK;
  const char *at = text;
  int i = 0;
  for (;; at++) {
    int64_t size;
    const char *start = skip_space(at);
    if (!number_parse(&at, &size) || (*at != ',' && *at != '\0')) {
      status = sdg_fail(SDG_E_PARTS,
                        "number %d of \"%s\", \"%.*s\", is not a size "
                        "(nor is the text one of even, even/UNIT, chunk)",
                        i + 1, text, (int)strcspn(start, ","), start);
      goto fail;
    }
    if (i == pieces) {
      status = sdg_fail(SDG_E_PARTS,
                        "\"%s\" has more than %d numbers, one per rank along "
                        "the split axes",
                        text, pieces);
      goto fail;
    }
    if (size > extent - part.offset[i]) {
      status = sdg_fail(SDG_E_PARTS,
                        "number %d of \"%s\" goes beyond the extent, which is "
                        "%" PRId64,
                        i + 1, text, extent);
      goto fail;
    }
    part.offset[i + 1] = part.offset[i] + size;
    i++;
    if (*at == '\0')
      break;
  }
  if (i < pieces)
    status = sdg_fail(SDG_E_PARTS,
                      "\"%s\" has %d numbers; %d are needed, one per rank "
                      "along the split axes",
                      text, i, pieces);
  else if (part.offset[pieces] != extent)
    status = sdg_fail(SDG_E_PARTS,
                      "the numbers of \"%s\" add up to %" PRId64
                      "; the extent is %" PRId64,
                      text, part.offset[pieces], extent);
  if (status != SDG_OK)
    goto fail;
  *out_part = part;
  return SDG_OK;

fail:
  sdg_part_fini(&part);
  return status;
}

// Returns the length of `word` if the text at `at` is that word, followed by
// the end or a slash; 0 otherwise.
static size_t word_length(const char *at, const char *word) {
  size_t n = strlen(word);
  if (strncmp(at, word, n) != 0)
    return 0;
  const char *next = skip_space(at + n);
  return *next == '\0' || *next == '/' ? n : 0;
}

sdg_status_t sdg_part_parse(const char *text, int64_t extent, int pieces,
                            sdg_part_t *out_part) {
  const char *at = skip_space(text);
  sdg_part_method_t method = SDG_PART_EVEN;
  size_t n = word_length(at, "even");
  if (n == 0) {
    method = SDG_PART_CHUNK;
    n = word_length(at, "chunk");
  }
  if (n == 0)
    return list_parse(text, extent, pieces, out_part);
  int64_t align = 1;
  at = skip_space(at + n);
  if (*at == '/') {
    at++;
    if (method != SDG_PART_EVEN || !number_parse(&at, &align) || *at != '\0' ||
        align < 1)
      return sdg_fail(SDG_E_PARTS,
                      "\"%s\": a unit is a number of 1 or more after even/",
                      text);
  }
  return sdg_part_divide(extent, pieces, method, align, out_part);
}

int64_t sdg_part_listed(const char *text) {
  int64_t sum = 0, number;
  const char *at = skip_space(text);
  if (*at < '0' || *at > '9')
    return -1;
  while (number_parse(&at, &number)) {
    if (number > INT64_MAX - sum)
      return INT64_MAX;
    sum += number;
    at = skip_space(at);
    if (*at != ',')
      break;
    at = skip_space(at + 1);
  }
  return sum;
}

void sdg_part_format(const sdg_part_t *part, char *out, int out_bytes) {
  static const char more[] = "...";
  int used = 0;
  if (out_bytes < 1)
    return;
  out[0] = '\0';
  for (int i = 0; i < part->pieces; i++) {
    char number[24];
    int n = snprintf(number, sizeof number, "%s%" PRId64, i ? "+" : "",
                     sdg_part_size(part, i));
    // Keeps room for the dots unless this is the last number.
    int tail = i + 1 < part->pieces ? (int)sizeof more : 1;
    if (used + n + tail > out_bytes) {
      snprintf(out + used, (size_t)(out_bytes - used), "%s", more);
      return;
    }
    memcpy(out + used, number, (size_t)n + 1);
    used += n;
  }
}

int64_t sdg_part_extent(const sdg_part_t *part) {
  return part->offset[part->pieces];
}

int64_t sdg_part_size(const sdg_part_t *part, int piece) {
  return part->offset[piece + 1] - part->offset[piece];
}

bool sdg_part_equal(const sdg_part_t *a, const sdg_part_t *b) {
  return a->pieces == b->pieces &&
         memcmp(a->offset, b->offset,
                ((size_t)a->pieces + 1) * sizeof *a->offset) == 0;
}
