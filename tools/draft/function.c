// SPDX-License-Identifier: Apache-2.0
// Guesses from integers and addresses what the arguments of a function are.
#include "tools/draft/function.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/call/symbol.h"

enum {
  NAME_BYTES = 40,    // of a section
  SECTION_BYTES = 40, // of a kernel's pattern: the longest that a file may have
                      // is 47 with its kind
  SYMBOL_BYTES = 180, // the longest in a line
  FACTS_DIMS = 3,
  IN_LINE = 6 // arguments
};

typedef enum kind { UNKNOWN, TENSOR, EXTENT } kind_t;

// An extent that the arguments say.
typedef struct axis {
  sdg_dim_t dim;
  int64_t extent;
  int argument; // -1: none has this value
} axis_t;

typedef struct facts {
  int arguments;
  kind_t kind[SEEN_PLACES_MAX];
  bool by_reference[SEEN_PLACES_MAX];
  int axes;
  axis_t axis[SDG_DIMS_MAX];
  const seen_place_t *shape; // the tensor that has the axes
  int element_bytes;         // 0: unknown
} facts_t;

static const char *axis_name(sdg_dim_t dim) {
  return dim == SDG_DIM_H   ? "rows"
         : dim == SDG_DIM_W ? "columns"
         : dim == SDG_DIM_D ? "planes"
         : dim == SDG_DIM_C ? "channels"
                            : "images";
}

// ---- guesses ---------------------------------------------------------------

// An integer among the registers that may be an extent.
static bool integer_of(const seen_function_t *f, int index, int64_t *out,
                       bool *out_behind) {
  const seen_place_t *place = &f->place[index];
  if (2 * place->device >= f->noted)
    return false;
  *out_behind =
      !(place->has_value && place->value > 1 && place->value < INT32_MAX / 2) ||
      (place->has_behind && place->value > 1 << 20);
  *out = *out_behind ? place->behind : place->value;
  return (*out_behind ? place->has_behind : true) && *out > 1;
}

static bool axis_assign(const seen_function_t *f, facts_t *io, axis_t *axis) {
  for (int i = 0; i < f->registers; i++) {
    int64_t value;
    bool behind;
    if (io->kind[i] != UNKNOWN || !integer_of(f, i, &value, &behind) ||
        value != axis->extent)
      continue;
    io->kind[i] = EXTENT;
    io->by_reference[i] = behind;
    axis->argument = i;
    return true;
  }
  return false;
}

// The extents of a tensor that a call of cuDNN had at this address.
static void shape_recorded(const seen_function_t *f, const seen_place_t *place,
                           facts_t *io) {
  static const sdg_dim_t of[2][5] = {
      {SDG_DIM_N, SDG_DIM_C, SDG_DIM_H, SDG_DIM_W, SDG_DIM_W},
      {SDG_DIM_N, SDG_DIM_C, SDG_DIM_D, SDG_DIM_H, SDG_DIM_W}};
  io->shape = place;
  for (int d = 0; d < place->dims; d++)
    if (place->extent[d] > 1)
      io->axis[io->axes++] =
          (axis_t){of[place->dims == 5][d], place->extent[d], -1};
  for (int a = 0; a < io->axes; a++)
    (void)axis_assign(f, io, &io->axis[a]);
}

// Whether integers in this order, from argument `from` on, multiply to the
// number of elements.
static bool product_find(const seen_function_t *f, int64_t elements, int from,
                         int dims, int *out_argument) {
  for (int i = from; i < f->registers; i++) {
    int64_t value;
    bool behind;
    if (!integer_of(f, i, &value, &behind) || elements % value != 0)
      continue;
    *out_argument = i;
    if (dims == 1 ? value == elements
                  : product_find(f, elements / value, i + 1, dims - 1,
                                 out_argument + 1))
      return true;
  }
  return false;
}

// Fortran's arrays have their first extent contiguous. Symbols of C++ may end
// alike.
static bool is_fortrans(const seen_function_t *f) {
  size_t length = strlen(f->name);
  return length > 1 && f->name[length - 1] == '_' &&
         strncmp(f->name, "_Z", 2) != 0;
}

static void shape_take(const seen_function_t *f, const seen_place_t *place,
                       int bytes, const int *argument, int dims, facts_t *io) {
  static const sdg_dim_t dim[FACTS_DIMS] = {SDG_DIM_D, SDG_DIM_H, SDG_DIM_W};
  io->shape = place;
  io->element_bytes = bytes;
  io->axes = dims;
  for (int a = 0; a < dims; a++) {
    int64_t value = 0;
    int from = argument[is_fortrans(f) ? dims - 1 - a : a];
    (void)integer_of(f, from, &value, &io->by_reference[from]);
    io->kind[from] = EXTENT;
    io->axis[a] = (axis_t){dims == 1 ? SDG_DIM_H : dim[FACTS_DIMS - dims + a],
                           value, from};
  }
}

// Integers that multiply to the size of an allocation.
static void shape_of_room(const seen_function_t *f, int end, facts_t *io) {
  static const int order[] = {2, 3, 1}, bytes[] = {4, 8};
  int argument[FACTS_DIMS];
  for (int o = 0; o < FACTS_DIMS; o++)
    for (int i = 0; i < end; i++)
      for (int b = 0; b < 2; b++) {
        const seen_place_t *place = &f->place[i];
        if (io->shape || io->kind[i] != TENSOR || place->room % bytes[b] != 0 ||
            !product_find(f, place->room / bytes[b], 0, order[o], argument))
          continue;
        shape_take(f, place, bytes[b], argument, order[o], io);
      }
}

// Arguments on the stack begin right behind the registers, if those are used;
// what lies further may be the caller's.
static int stack_end(const seen_function_t *f) {
  int end = f->registers;
  for (int i = 0; i < f->registers; i++)
    if (f->place[i].device < f->noted && f->place[i].is_wide &&
        !f->place[i].has_behind)
      return end;
  while (end < f->places && f->place[end].device == f->noted)
    end++;
  return end;
}

static void facts_find(const seen_function_t *f, facts_t *out) {
  int end = stack_end(f);
  *out = (facts_t){.arguments = 0};
  for (int i = 0; i < end; i++)
    if (2 * f->place[i].device >= f->noted)
      out->kind[i] = TENSOR;
  for (int i = 0; i < end && !out->shape; i++)
    if (out->kind[i] == TENSOR && f->place[i].dims > 0)
      shape_recorded(f, &f->place[i], out);
  if (!out->shape)
    shape_of_room(f, end, out);
  for (int i = 0; i < end; i++)
    if (out->kind[i] != UNKNOWN || f->is_kernel)
      out->arguments = i + 1;
}

static const axis_t *axis_of(const facts_t *facts, int argument) {
  for (int a = 0; a < facts->axes; a++)
    if (facts->axis[a].argument == argument)
      return &facts->axis[a];
  return NULL;
}

static bool same_shape(const seen_place_t *a, const seen_place_t *b) {
  return a->dims == b->dims &&
         (a->dims > 0 ? memcmp(a->extent, b->extent, sizeof a->extent) == 0
                      : a->room == b->room);
}

static const char *element_of(const facts_t *facts, const seen_place_t *place) {
  static const char *const names[] = {
      [0] = "float", [1] = "double", [2] = "half", [9] = "bfloat16"};
  if (place->dims == 0)
    return facts->element_bytes == 8   ? "double"
           : facts->element_bytes == 4 ? "float"
                                       : "?";
  return place->type >= 0 &&
                 place->type < (int)(sizeof names / sizeof *names) &&
                 names[place->type]
             ? names[place->type]
             : "?";
}

// ---- the list --------------------------------------------------------------

static void place_print(const facts_t *facts, const seen_place_t *place,
                        int index) {
  const axis_t *axis = axis_of(facts, index);
  if (facts->kind[index] == EXTENT && axis)
    printf("  %d: %s %" PRId64, index + 1, axis_name(axis->dim), axis->extent);
  if (facts->kind[index] != TENSOR)
    return;
  printf("  %d:", index + 1);
  for (int d = 0; d < place->dims; d++)
    printf("%s%" PRId64, d ? "x" : " tensor ", place->extent[d]);
  if (place->dims == 0)
    printf(" device memory, %" PRId64 " bytes", place->room);
}

// The name of a kernel with its namespaces, without arguments of templates; a
// function's symbol.
static const char *readable(const seen_function_t *f, char *out, size_t bytes) {
  sdg_symbol_t symbol;
  return f->is_kernel && sdg_symbol_read(f->name, out, bytes, &symbol)
             ? out
             : f->name;
}

static void list_print(const calls_t *calls, bool kernels, const char *head) {
  bool any = false;
  for (int i = 0; i < calls->functions; i++) {
    const seen_function_t *f = &calls->function[i];
    char name[sizeof f->name];
    facts_t facts;
    if (f->is_kernel != kernels)
      continue;
    if (!any)
      printf("\n%10s  %s\n", "COUNT", head);
    any = true;
    facts_find(f, &facts);
    printf("%10" PRId64 "  %s%s%s", f->calls, readable(f, name, sizeof name),
           kernels ? "" : " of ", f->library);
    for (int a = 0; a < facts.arguments; a++)
      place_print(&facts, &f->place[a], a);
    printf("\n");
  }
}

void functions_print(const calls_t *calls) {
  list_print(calls, false,
             "FUNCTION with addresses in device memory; its arguments, "
             "floating ones not counted");
  list_print(calls, true, "KERNEL that the program launches; its arguments");
}

// ---- sections --------------------------------------------------------------

// A name for a section: the symbol, or of C++ the last name in it.
static void name_make(const seen_function_t *f, int number, char *out) {
  const char *at = f->name, *last = at;
  int length = (int)strlen(at);
  if (strncmp(at, "_Z", 2) == 0) {
    at += strcspn(at, "0123456789");
    while (isdigit((unsigned char)*at)) {
      char *end;
      long count = strtol(at, &end, 10);
      if (count < 1 || count > (long)strlen(end))
        break;
      last = end;
      length = (int)count;
      at = end + count;
    }
  }
  if (length < 1 || length >= NAME_BYTES - 8 || last == f->name + 2)
    snprintf(out, NAME_BYTES, "function-%d", number);
  else
    snprintf(out, NAME_BYTES, "%.*s", length, last);
}

// All arguments of a kernel are known if any is.
static void arguments_write(FILE *file, const seen_function_t *f,
                            const facts_t *facts) {
  bool all = f->is_kernel && facts->arguments > 0;
  for (int i = 0; i < facts->arguments + !all; i++) {
    const axis_t *axis = axis_of(facts, i);
    const char *type = f->is_kernel ? f->type[i] : "int";
    fprintf(file, i % IN_LINE ? ", " : "%sarguments = ", i ? "\n" : "");
    if (i == facts->arguments)
      fprintf(file, "?");
    else if (axis)
      fprintf(file, "%s %s%s", type, facts->by_reference[i] ? "*" : "",
              axis_name(axis->dim));
    else
      fprintf(file, "%s a%d",
              f->is_kernel && isalpha((unsigned char)*type) ? type : "?",
              i + 1);
  }
  fprintf(file, "\n");
}

static void extents_write(FILE *file, const facts_t *facts,
                          const seen_place_t *place) {
  // A tensor with one of the extents.
  for (int a = 0; a < facts->axes && place->dims == 0; a++)
    for (int bytes = 4; bytes <= 8 && !same_shape(facts->shape, place);
         bytes += 4)
      if (facts->axis[a].argument >= 0 &&
          place->room == facts->axis[a].extent * bytes) {
        fprintf(file, "%s [%s=%s]\n", bytes == 8 ? "double" : "float",
                sdg_dim_name(facts->axis[a].dim),
                axis_name(facts->axis[a].dim));
        return;
      }
  if (!facts->shape || !same_shape(facts->shape, place) || facts->axes == 0) {
    fprintf(file, "? [?]\n");
    return;
  }
  fprintf(file, "%s [", element_of(facts, place));
  for (int a = 0; a < facts->axes; a++)
    fprintf(file, "%s%s", a ? " " : "",
            facts->axis[a].argument < 0 ? "?" : axis_name(facts->axis[a].dim));
  fprintf(file, "]\n");
}

// Tensors of the same extents in one line.
static void tensors_write(FILE *file, const seen_function_t *f,
                          const facts_t *facts) {
  bool written[SEEN_PLACES_MAX] = {false};
  for (int i = 0; i < facts->arguments; i++) {
    if (facts->kind[i] != TENSOR || written[i])
      continue;
    fprintf(file, "tensor =");
    for (int k = i; k < facts->arguments; k++)
      if (facts->kind[k] == TENSOR && same_shape(&f->place[i], &f->place[k])) {
        fprintf(file, " a%d", k + 1);
        written[k] = true;
      }
    fprintf(file, ": ");
    extents_write(file, facts, &f->place[i]);
  }
}

static void head_write(FILE *file, const seen_function_t *f, int number) {
  char name[NAME_BYTES];
  name_make(f, number, name);
  fprintf(file, "\n[function %s]\n", name);
  if (strcmp(name, f->name) != 0)
    fprintf(file, "symbol = %s\n", f->name);
  if (strlen(f->library) < 64)
    fprintf(file, "library = %s\n", f->library);
}

// Only its symbol tells an instance of a template.
static void kernel_head_write(FILE *file, const seen_function_t *f) {
  sdg_symbol_t symbol;
  char name[sizeof f->name];
  bool plain = sdg_symbol_read(f->name, name, sizeof name, &symbol) &&
               !symbol.is_template;
  const char *pattern = plain ? name : f->name;
  bool fits = strlen(pattern) <= SECTION_BYTES;
  fprintf(file, "\n[kernel %.*s%s]\n", fits ? SECTION_BYTES : SECTION_BYTES - 1,
          pattern, fits ? "" : "*");
}

static void section_write(FILE *file, const seen_function_t *f, int number) {
  facts_t facts;
  facts_find(f, &facts);
  if (f->is_kernel)
    kernel_head_write(file, f);
  else
    head_write(file, f, number);
  arguments_write(file, f, &facts);
  tensors_write(file, f, &facts);
  if (facts.axes > 0) {
    fprintf(file, "dims =");
    for (int a = 0; a < facts.axes; a++)
      fprintf(file, " %s", sdg_dim_name(facts.axis[a].dim));
    fprintf(file, "\nreach =");
    for (int a = 0; a < facts.axes; a++)
      fprintf(file, " %s:?", sdg_dim_name(facts.axis[a].dim));
    fprintf(file, "\n");
  } else
    fprintf(file, "dims = ?\nreach = ?\n");
  fprintf(file, f->is_kernel ? "grid = ?\n" : "stream = ?\n");
}

void functions_write_sections(FILE *file, const calls_t *calls) {
  if (calls->functions == 0)
    return;
  fprintf(
      file,
      "\n; These functions got addresses in device memory, and these kernels "
      "were launched.\n; Write what each ? is, or delete a section if its "
      "function needs neither rows of\n; other ranks nor its place in the "
      "whole (doc/functions.md). Compare with the\n; declaration: a1 is the "
      "first argument, and extents are named by their values. Of\n; "
      "functions, floating numbers are not seen and not counted, what lies "
      "behind the\n; last argument may look like one, and an int may be a "
      "long.\n");
  for (int i = 0; i < calls->functions; i++) {
    const seen_function_t *f = &calls->function[i];
    if (!f->is_kernel && strlen(f->name) > SYMBOL_BYTES) {
      fprintf(file, "\n; Too long a name for a section: %.100s...\n", f->name);
      continue;
    }
    section_write(file, f, i + 1);
  }
}
