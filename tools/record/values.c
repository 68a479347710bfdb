// SPDX-License-Identifier: Apache-2.0
// Compares the recorded outputs of a run on one rank with those of a run on
// several.
#include "tools/record/values.h"

#include <cudnn.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/observe/values.h"
#include "src/geometry/mesh.h"
#include "tools/array/element.h"

// A file of outputs, and its current output.
typedef struct reader {
  FILE *file; // NULL: at the end
  bool loaded;
  sdg_values_head_t head;
  char *data; // owned
} reader_t;

typedef struct compare {
  int ranks;
  const values_allowed_t *allowed;
  long double bound; // bound for rounding in the current output
  reader_t one, many[SDG_RANKS_MAX];
  int64_t calls, outputs, elements; // compared
  int64_t seen, seen_many;          // outputs in the files
  long double largest;              // largest difference
  char where[256];                  // place of the largest difference
} compare_t;

static bool head_sound(const sdg_values_head_t *head) {
  uint64_t bytes = (uint64_t)head->elem_bytes;
  if (head->magic != SDG_VALUES_MAGIC || head->dims < 1 ||
      head->dims > SDG_DIMS_MAX || head->elem_bytes < 1 ||
      head->elem_bytes > 64 || head->role < 0 || head->role >= SDG_ROLE_COUNT ||
      !memchr(head->entry, 0, sizeof head->entry))
    return false;
  for (int d = 0; d < head->dims; d++) {
    if (head->lo[d] < 0 || head->hi[d] <= head->lo[d] ||
        head->hi[d] > INT32_MAX || bytes > (uint64_t)1 << 40)
      return false;
    bytes *= (uint64_t)(head->hi[d] - head->lo[d]);
  }
  return head->bytes == bytes;
}

static void reader_open(reader_t *reader, const char *folder, int rank) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/values-%d", folder, rank);
  *reader = (reader_t){.file = fopen(path, "re")};
}

static void reader_close(reader_t *reader) {
  if (reader->file)
    fclose(reader->file);
  free(reader->data);
  *reader = (reader_t){.file = NULL};
}

// Loads the next output. Returns false at the end. If a signal ended the
// process, the last output may be incomplete.
static bool reader_next(reader_t *reader) {
  reader->loaded = false;
  free(reader->data);
  reader->data = NULL;
  if (!reader->file ||
      fread(&reader->head, sizeof reader->head, 1, reader->file) != 1 ||
      !head_sound(&reader->head))
    return false;
  reader->data = malloc(reader->head.bytes);
  reader->loaded = reader->data && fread(reader->data, reader->head.bytes, 1,
                                         reader->file) == 1;
  return reader->loaded;
}

// Advances to the same output of the same call as `of`. Returns false if it
// does not exist.
static bool reader_find(reader_t *reader, const sdg_values_head_t *of) {
  while (!reader->loaded || reader->head.ordinal < of->ordinal)
    if (!reader_next(reader))
      return false;
  while (reader->head.ordinal == of->ordinal &&
         reader->head.operand < of->operand)
    if (!reader_next(reader))
      return false;
  return reader->head.ordinal == of->ordinal &&
         reader->head.operand == of->operand;
}

static bool type_find(const sdg_values_head_t *head, element_type_t *out) {
  static const char *const dtypes[] = {
      [CUDNN_DATA_FLOAT] = "<f4",   [CUDNN_DATA_DOUBLE] = "<f8",
      [CUDNN_DATA_HALF] = "<f2",    [CUDNN_DATA_INT8] = "|i1",
      [CUDNN_DATA_INT32] = "<i4",   [CUDNN_DATA_UINT8] = "|u1",
      [CUDNN_DATA_INT64] = "<i8",   [CUDNN_DATA_BOOLEAN] = "|b1",
      [CUDNN_DATA_BFLOAT16] = "|V2"};
  return head->type >= 0 &&
         head->type < (int)(sizeof dtypes / sizeof *dtypes) &&
         dtypes[head->type] && element_type_of(dtypes[head->type], out) &&
         out->bytes == head->elem_bytes;
}

static bool close_enough(const compare_t *compare, long double a,
                         long double b) {
  const values_allowed_t *allowed = compare->allowed;
  if (a == b || (isnan(a) && isnan(b)))
    return true;
  return fabsl(a - b) <=
         allowed->atol + allowed->rtol * fabsl(b) + compare->bound;
}

// Rounding errors are proportional to the largest element.
static long double bound_of(const compare_t *compare,
                            const element_type_t *type) {
  const sdg_values_head_t *whole = &compare->one.head;
  long double largest = 0;
  if (!compare->allowed->rounding)
    return 0;
  for (size_t at = 0; at < whole->bytes; at += (size_t)whole->elem_bytes) {
    long double value = fabsl(element_read(type, compare->one.data + at).re);
    if (isfinite(value) && value > largest)
      largest = value;
  }
  return largest * element_rounding(type);
}

static void place_print(const reader_t *many, int rank,
                        const compare_t *compare, const int64_t *index) {
  const sdg_values_head_t *head = &many->head;
  printf("first difference: call %" PRId64 " %s, %s at (", head->call,
         head->entry, sdg_role_name((sdg_role_t)head->role));
  for (int d = 0; d < head->dims; d++)
    printf("%s%" PRId64, d ? ", " : "", index[d]);
  printf(") of the whole: rank %d of %d has ", rank, compare->ranks);
}

static void difference_note(compare_t *compare, const reader_t *many,
                            const int64_t *index, long double size) {
  const sdg_values_head_t *head = &many->head;
  if (!(size > compare->largest))
    return;
  compare->largest = size;
  int used = snprintf(compare->where, sizeof compare->where,
                      "call %" PRId64 " %s, %s at (", head->call, head->entry,
                      sdg_role_name((sdg_role_t)head->role));
  for (int d = 0; d < head->dims && used < (int)sizeof compare->where; d++)
    used += snprintf(compare->where + used,
                     sizeof compare->where - (size_t)used, "%s%" PRId64 "%s",
                     d ? ", " : "", index[d], d + 1 < head->dims ? "" : ")");
}

static void largest_print(const compare_t *compare) {
  if (compare->largest > 0)
    printf("largest difference %.6Lg: %s\n", compare->largest, compare->where);
}

// Returns true if the rank's piece equals its part of the whole.
static bool piece_compare(compare_t *compare, int rank,
                          const element_type_t *type) {
  const reader_t *one = &compare->one, *many = &compare->many[rank];
  const sdg_values_head_t *whole = &one->head, *piece = &many->head;
  int64_t index[SDG_DIMS_MAX];
  memcpy(index, piece->lo, sizeof index);
  for (size_t at = 0; at < piece->bytes; at += (size_t)piece->elem_bytes) {
    int64_t from = 0;
    for (int d = 0; d < piece->dims; d++)
      from = from * whole->hi[d] + index[d];
    long double a = element_read(type, many->data + at).re;
    long double b = element_read(type, one->data + from * whole->elem_bytes).re;
    difference_note(compare, many, index, fabsl(a - b));
    if (!close_enough(compare, a, b)) {
      place_print(many, rank, compare, index);
      printf("%.*Lg, one rank %.*Lg\n", type->digits, a, type->digits, b);
      return false;
    }
    compare->elements++;
    for (int d = piece->dims - 1; d >= 0 && ++index[d] == piece->hi[d]; d--)
      index[d] = piece->lo[d];
  }
  return true;
}

// Returns whether a piece fits into the whole output.
static bool piece_fits(const sdg_values_head_t *whole,
                       const sdg_values_head_t *piece, int rank) {
  bool fits = strcmp(whole->entry, piece->entry) == 0;
  if (!fits)
    printf("the runs differ: call %" PRId64
           " of rank %d is %s, that of one rank %s\n",
           piece->call, rank, piece->entry, whole->entry);
  else
    fits = whole->dims == piece->dims && whole->type == piece->type &&
           whole->elem_bytes == piece->elem_bytes;
  for (int d = 0; fits && d < whole->dims; d++)
    fits = piece->hi[d] <= whole->hi[d];
  if (!fits && strcmp(whole->entry, piece->entry) == 0)
    printf("first difference: call %" PRId64
           " %s, %s of rank %d has another type than on one rank, or reaches "
           "beyond its extents\n",
           piece->call, piece->entry, sdg_role_name((sdg_role_t)piece->role),
           rank);
  return fits;
}

// Compares all outputs of the run on one rank. Returns false at the first
// difference.
static bool outputs_compare(compare_t *compare) {
  int64_t last = 0;
  while (reader_next(&compare->one)) {
    const sdg_values_head_t *whole = &compare->one.head;
    element_type_t type;
    bool any = false;
    compare->seen++;
    compare->bound = type_find(whole, &type) ? bound_of(compare, &type) : 0;
    for (int r = 0; r < compare->ranks; r++) {
      if (!reader_find(&compare->many[r], whole))
        continue;
      compare->seen_many++;
      if (!piece_fits(whole, &compare->many[r].head, r))
        return false;
      if (!type_find(whole, &type))
        continue;
      if (!piece_compare(compare, r, &type))
        return false;
      any = true;
    }
    compare->outputs += any;
    compare->calls += any && whole->ordinal != last;
    last = whole->ordinal;
  }
  return true;
}

// Reports why nothing was compared.
static sdg_status_t nothing_fail(const compare_t *compare, int calls) {
  if (compare->seen == 0)
    return sdg_fail(SDG_E_VERIFY,
                    "the first %d calls of the run on one rank have no output "
                    "that can be compared",
                    calls);
  if (compare->seen_many > 0)
    return sdg_fail(SDG_E_VERIFY,
                    "no output of the tagged calls among the first %d is of a "
                    "type that can be compared",
                    calls);
  return sdg_fail(
      SDG_E_VERIFY,
      "none of the first %d calls is tagged and has an output that the run on "
      "one rank has, too; if tagged calls come later, raise --calls",
      calls);
}

sdg_status_t values_compare(const char *one, const char *many, int ranks,
                            int calls, const values_allowed_t *allowed,
                            bool *out_differs) {
  static compare_t compare; // too large for a stack
  compare = (compare_t){.ranks = ranks, .allowed = allowed};
  reader_open(&compare.one, one, 0);
  for (int r = 0; r < ranks; r++)
    reader_open(&compare.many[r], many, r);
  *out_differs = !outputs_compare(&compare);
  reader_close(&compare.one);
  for (int r = 0; r < ranks; r++)
    reader_close(&compare.many[r]);
  if (*out_differs) {
    largest_print(&compare);
    return SDG_OK;
  }
  if (compare.calls == 0 && allowed->nothing)
    return SDG_OK;
  if (compare.calls == 0)
    return nothing_fail(&compare, calls);
  printf("%" PRId64 " tagged calls with %" PRId64 " outputs, %" PRId64
         " elements: none differs%s\n",
         compare.calls, compare.outputs, compare.elements,
         compare.largest == 0 ? ""
         : allowed->rounding  ? " by more than rounding"
                              : " by more than allowed");
  largest_print(&compare);
  return SDG_OK;
}
