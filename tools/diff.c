// SPDX-License-Identifier: Apache-2.0
// `sundog diff`: compares two array files element by element.
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/array/element.h"
#include "tools/array/npy.h"
#include "tools/command.h"

enum {
  BLOCK_ELEMENTS = 1 << 18,
  KEY_RTOL = 0x100,
  KEY_ATOL,
  KEY_ANY_TYPE,
  KEY_ROUNDING
};

typedef struct diff {
  const char *path[2];
  int paths;
  double rtol, atol;
  bool any_type, quiet, rounding;
  bool measured;       // `largest` is known
  long double largest; // magnitude of the second file's finite elements
} diff_t;

// A difference and where it is.
typedef struct worst {
  bool any;
  long double size;
  int64_t index; // row-major
  element_t a, b;
} worst_t;

typedef struct result {
  int64_t differ;  // elements that are not equal
  int64_t beyond;  // of these, elements that differ by more than the tolerances
  int64_t one_nan; // of these, elements that are NaN in one file only
  worst_t first, absolute, relative;
} result_t;

static error_t tolerance_parse(struct argp_state *state, const char *text,
                               double *out) {
  char *end;
  errno = 0;
  *out = strtod(text, &end);
  if (errno || end == text || *end || !(*out >= 0) || isinf(*out))
    argp_error(state, "'%s' is not a tolerance: write a number from 0 up",
               text);
  return 0;
}

static error_t diff_parse(int key, char *argument, struct argp_state *state) {
  diff_t *diff = state->input;
  switch (key) {
  case KEY_RTOL:
    return tolerance_parse(state, argument, &diff->rtol);
  case KEY_ATOL:
    return tolerance_parse(state, argument, &diff->atol);
  case KEY_ROUNDING:
    diff->rounding = true;
    return 0;
  case KEY_ANY_TYPE:
    diff->any_type = true;
    return 0;
  case 'q':
    diff->quiet = true;
    return 0;
  case ARGP_KEY_ARG:
    if (diff->paths == 2)
      argp_error(state, "two files can be compared, not more");
    diff->path[diff->paths++] = argument;
    return 0;
  case ARGP_KEY_END:
    if (diff->paths < 2)
      argp_error(state, "two files are needed");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option diff_options[] = {
    {"rtol", KEY_RTOL, "R", 0,
     "Allow a difference of R times the second file's element (default 0)", 0},
    {"atol", KEY_ATOL, "A", 0, "Allow a difference of A more (default 0)", 0},
    {"rounding", KEY_ROUNDING, NULL, 0,
     "Allow differences that rounding explains: R of the largest magnitude in "
     "the second file, where R is 1.2e-4 for float32, 2.3e-13 for float64, "
     "0.016 for float16, 0.125 for bfloat16, and 0 for integers",
     0},
    {"any-type", KEY_ANY_TYPE, NULL, 0,
     "Compare the numbers of arrays of different types", 0},
    {"quiet", 'q', NULL, 0, "Print nothing", 0},
    {0},
};
const struct argp diff_argp = {
    .options = diff_options,
    .parser = diff_parse,
    .args_doc = "A.npy B.npy",
    .doc = "Compares two array files: shape, type and every element. Prints "
           "how many elements differ and where they differ most.\vThe exit "
           "status is 0 if no element differs by more than A + R * |b|, 1 if "
           "an element, the shape or the type differs.\n\nA NaN equals a NaN "
           "at the same place and differs from every number; an infinity "
           "equals only itself; 0 equals -0. Complex numbers are compared by "
           "the modulus of their difference; bfloat16 is type V2. Relative "
           "differences are relative to the second file's element.\n\n  sundog "
           "diff --rtol 1e-5 --atol 1e-6 got.npy expected.npy"};

static void shape_print(const sdg_npy_header_t *header) {
  printf("(");
  for (int d = 0; d < header->dims; d++)
    printf("%s%" PRId64, d ? ", " : "", header->extent[d]);
  printf(")");
}

static bool same_number(long double a, long double b) {
  return a == b || (isnan(a) && isnan(b));
}

static bool is_nan(element_t e) {
  return isnan(e.re) || isnan(e.im);
}

static bool is_finite(element_t e) {
  return isfinite(e.re) && isfinite(e.im);
}

static void worst_note(worst_t *worst, long double size, int64_t index,
                       element_t a, element_t b) {
  if (!worst->any || size > worst->size)
    *worst = (worst_t){true, size, index, a, b};
}

// The first pass of --rounding: finds the largest magnitude.
static void element_measure(diff_t *diff, element_t b) {
  long double magnitude = hypotl(b.re, b.im);
  if (is_finite(b) && magnitude > diff->largest)
    diff->largest = magnitude;
}

static void element_compare(const diff_t *diff, int64_t index, element_t a,
                            element_t b, result_t *result) {
  if (same_number(a.re, b.re) && same_number(a.im, b.im))
    return;
  result->differ++;
  if (is_nan(a) != is_nan(b))
    result->one_nan++;
  // Also if infinities or NaNs are in different parts of a complex number.
  long double absolute = INFINITY, magnitude = hypotl(b.re, b.im);
  bool finite = is_finite(a) && is_finite(b);
  if (finite)
    absolute = hypotl(a.re - b.re, a.im - b.im);
  if (!finite || !(absolute <= diff->atol + diff->rtol * magnitude))
    result->beyond++;
  long double relative =
      finite && magnitude > 0 ? absolute / magnitude : INFINITY;
  if (!result->first.any)
    result->first = (worst_t){true, 0, index, a, b};
  worst_note(&result->absolute, absolute, index, a, b);
  worst_note(&result->relative, relative, index, a, b);
}

// Compares `n` elements in memory; the first has the index `lo`.
static void block_compare(diff_t *diff, const element_type_t *type,
                          bool same_type, char *const *block, int64_t lo,
                          int64_t n, result_t *result) {
  size_t bytes[2] = {(size_t)type[0].bytes, (size_t)type[1].bytes};
  for (int64_t k = 0; k < n && !diff->measured; k++)
    element_measure(diff,
                    element_read(&type[1], block[1] + (size_t)k * bytes[1]));
  if (!diff->measured)
    return;
  if (same_type && memcmp(block[0], block[1], (size_t)n * bytes[0]) == 0)
    return;
  for (int64_t k = 0; k < n; k++)
    element_compare(
        diff, lo + k, element_read(&type[0], block[0] + (size_t)k * bytes[0]),
        element_read(&type[1], block[1] + (size_t)k * bytes[1]), result);
}

// Compares blocks of the first dimension. Two arrays in C order with the same
// shape are treated as one long row, so that blocks may be small.
static sdg_status_t arrays_compare(diff_t *diff, const sdg_npy_t *npy,
                                   const element_type_t *type,
                                   result_t *result) {
  sdg_npy_t view[2] = {npy[0], npy[1]};
  sdg_npy_header_t *shape[2] = {&view[0].header, &view[1].header};
  int64_t count = shape[0]->data_bytes / shape[0]->elem_bytes;
  bool same_type = strcmp(shape[0]->dtype, shape[1]->dtype) == 0;
  bool flat = !shape[0]->fortran && !shape[1]->fortran;
  for (int i = 0; i < 2 && flat; i++) {
    shape[i]->dims = 1;
    shape[i]->extent[0] = count;
  }
  if (count == 0)
    return SDG_OK;
  int64_t rows = shape[0]->extent[0], row = count / rows;
  int64_t step = BLOCK_ELEMENTS / row;
  step = step < 1 ? 1 : step > rows ? rows : step;
  char *block[2];
  for (int i = 0; i < 2; i++)
    block[i] = malloc((size_t)(step * row) * (size_t)type[i].bytes);
  sdg_status_t status =
      block[0] && block[1] ? SDG_OK : sdg_fail(SDG_E_NO_MEMORY, "for elements");
  for (int64_t lo = 0; lo < rows && status == SDG_OK; lo += step) {
    sdg_box_t box = sdg_npy_box(&view[0]);
    box.dim[0] = (sdg_range_t){lo, rows - lo < step ? rows : lo + step};
    for (int i = 0; i < 2 && status == SDG_OK; i++)
      status = sdg_npy_read_box(&view[i], &box, block[i]);
    if (status == SDG_OK)
      block_compare(diff, type, same_type, block, lo * row, sdg_box_count(&box),
                    result);
  }
  free(block[0]);
  free(block[1]);
  return status;
}

static void element_print(const element_type_t *type, element_t e) {
  printf("%.*Lg", type->digits, e.re);
  if (type->kind == 'c')
    printf("%+.*Lgi", type->digits, e.im);
}

static void place_print(const worst_t *worst, const sdg_npy_header_t *header,
                        const element_type_t *type) {
  int64_t at[SDG_DIMS_MAX], rest = worst->index;
  for (int d = header->dims - 1; d >= 0; d--) {
    at[d] = rest % header->extent[d];
    rest /= header->extent[d];
  }
  printf(" at (");
  for (int d = 0; d < header->dims; d++)
    printf("%s%" PRId64, d ? ", " : "", at[d]);
  printf("): ");
  element_print(&type[0], worst->a);
  printf(" and ");
  element_print(&type[1], worst->b);
  printf("\n");
}

static void result_print(const diff_t *diff, const sdg_npy_t *npy,
                         const element_type_t *type, const result_t *result) {
  int64_t count = npy[0].header.data_bytes / npy[0].header.elem_bytes;
  printf("%" PRId64 " of %" PRId64 " elements differ", result->differ, count);
  if (result->differ && (diff->rtol > 0 || diff->atol > 0 || diff->rounding))
    printf(", %" PRId64 " by more than %s", result->beyond,
           diff->rounding ? "rounding" : "allowed");
  if (result->one_nan)
    printf("; %" PRId64 " are NaN in one file only", result->one_nan);
  printf("\n");
  if (!result->differ)
    return;
  printf("first difference");
  place_print(&result->first, &npy[0].header, type);
  printf("largest absolute difference %.6Lg", result->absolute.size);
  place_print(&result->absolute, &npy[0].header, type);
  printf("largest relative difference %.6Lg", result->relative.size);
  place_print(&result->relative, &npy[0].header, type);
}

static bool same_shape(const sdg_npy_header_t *a, const sdg_npy_header_t *b) {
  bool same = a->dims == b->dims;
  for (int d = 0; same && d < a->dims; d++)
    same = a->extent[d] == b->extent[d];
  return same;
}

static sdg_status_t files_compare(diff_t *diff, const sdg_npy_t *npy,
                                  bool *out_differ) {
  const sdg_npy_header_t *a = &npy[0].header, *b = &npy[1].header;
  element_type_t type[2];
  for (int i = 0; i < 2; i++)
    if (!element_type_of(npy[i].header.dtype, &type[i]))
      return sdg_fail(SDG_E_NPY_FORMAT,
                      "%s: elements of type %s are not numbers", diff->path[i],
                      npy[i].header.dtype);
  *out_differ = true;
  if (!same_shape(a, b)) {
    if (!diff->quiet) {
      printf("shapes differ: ");
      shape_print(a);
      printf(" and ");
      shape_print(b);
      printf("\n");
    }
    return SDG_OK;
  }
  bool types = !diff->any_type && strcmp(a->dtype, b->dtype) != 0;
  if (types && !diff->quiet)
    printf("types differ: %s and %s\n", a->dtype, b->dtype);
  result_t result = {.differ = 0};
  diff->measured = !diff->rounding;
  if (diff->rounding) {
    SDG_TRY(arrays_compare(diff, npy, type, &result));
    diff->measured = true;
    double less = element_rounding(&type[0]), more = element_rounding(&type[1]);
    // The coarser type of the two decides.
    diff->atol += (double)diff->largest * (less > more ? less : more);
  }
  SDG_TRY(arrays_compare(diff, npy, type, &result));
  if (!diff->quiet)
    result_print(diff, npy, type, &result);
  *out_differ = types || result.beyond;
  return SDG_OK;
}

int command_diff(int argc, char **argv) {
  diff_t diff = {.paths = 0};
  sdg_npy_t npy[2] = {{.path = NULL}, {.path = NULL}};
  argp_parse(&diff_argp, argc, argv, 0, NULL, &diff);
  bool differ = false;
  sdg_status_t status = sdg_npy_open(diff.path[0], &npy[0]);
  if (status == SDG_OK)
    status = sdg_npy_open(diff.path[1], &npy[1]);
  if (status == SDG_OK)
    status = files_compare(&diff, npy, &differ);
  for (int i = 0; i < 2; i++)
    sdg_npy_close(&npy[i]);
  return status == SDG_OK && differ ? COMMAND_DIFFERENT : command_exit(status);
}
