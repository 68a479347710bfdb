/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and kernels of the program's own, as the [function] and [kernel]
 * sections of a rules file describe them: what their arguments are, over which
 * tensors they work, and how far an element of a result sees.
 *
 * A function is an op with a window of 2 reach + 1 elements and stride 1. A
 * kernel is a function whose launch has a grid. */
#ifndef SDG_RULES_FILE_FUNCTION_FUNCTION_H
#define SDG_RULES_FILE_FUNCTION_FUNCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/file/file.h"
#include "rules/file/function/expression.h"

enum {
  SDG_FUNCTION_NAME_BYTES = 128,
  SDG_FUNCTION_SYMBOL_BYTES = 512, /* of C++: with all types */
  SDG_ARGUMENT_NAME_BYTES = 48,
  SDG_ARGUMENTS_MAX = 24,
  SDG_MEMBERS_MAX = 8,
  SDG_OFFSETS_MAX = 3,
  SDG_RESULTS_MAX = 4,
  SDG_FUNCTION_DIMS = 5, /* N C D H W */
};

/* The type of a number in C. */
typedef struct sdg_number {
  char kind; /* 'i' signed, 'u' unsigned, 'f' floating */
  int bytes;
} sdg_number_t;

typedef enum sdg_argument_use {
  SDG_ARGUMENT_NUMBER,  /* a number, or a struct of numbers */
  SDG_ARGUMENT_IN,      /* the address of a tensor, or of what is no tensor */
  SDG_ARGUMENT_OUT,     /* the address of a tensor that the function writes */
  SDG_ARGUMENT_INOUT,   /* the same, and reads */
  SDG_ARGUMENT_STREAM,  /* cudaStream_t */
  SDG_ARGUMENT_POINTER, /* an address that sundog gives on as it is */
} sdg_argument_use_t;

typedef struct sdg_argument {
  char name[SDG_ARGUMENT_NAME_BYTES];
  sdg_argument_use_t use;
  bool by_reference; /* the address of a number on the host */
  int members;       /* of a struct; 0: a number */
  sdg_number_t number[SDG_MEMBERS_MAX]; /* the number, or the members */
  int tensor;   /* index of the tensor that is at this address; -1: none */
  bool is_size; /* an extent or a stride depends on it, so that it may differ
                   from rank to rank */
} sdg_argument_t;

static inline bool sdg_argument_is_address(const sdg_argument_t *argument) {
  return argument->use != SDG_ARGUMENT_NUMBER || argument->by_reference;
}

/* Where a member of a struct lies, in bytes, as C lays it out; of member
 * `members`: the size of all, with what is unused behind the last. A number is
 * a struct of one. Example: struct {int double char}: 0, 8, 16; 24. */
static inline size_t sdg_argument_offset(const sdg_argument_t *argument,
                                         int member) {
  int members = argument->members ? argument->members : 1;
  size_t at = 0, widest = 1;
  for (int m = 0; m < members; m++) {
    size_t bytes = (size_t)argument->number[m].bytes;
    at = (at + bytes - 1) / bytes * bytes;
    if (m == member)
      return at;
    at += bytes;
    widest = bytes > widest ? bytes : widest;
  }
  return (at + widest - 1) / widest * widest;
}

/* A tensor with named dimensions, in the order in which the section has them:
 * the last is contiguous unless strides are said. */
typedef struct sdg_function_tensor {
  int argument;
  sdg_number_t element;
  int64_t count; /* without dimensions: the number of elements */
  int dims;
  sdg_dim_t dim[SDG_FUNCTION_DIMS];
  sdg_expression_t extent[SDG_FUNCTION_DIMS];
  bool strided;
  sdg_expression_t stride[SDG_FUNCTION_DIMS]; /* elements */
  /* Elements in front of the piece and behind it that are others': ghosts. They
   * count in `extent`. */
  struct {
    int64_t before, behind;
  } ghost[SDG_FUNCTION_DIMS];
  bool ghosts_said;
  bool has_ghosts; /* more than 0 in some dimension */
} sdg_function_tensor_t;

/* How far an element of a result sees along a dimension, in elements. */
enum { SDG_REACH_UNSAID = -1, SDG_REACH_ALL = -2 };

/* What the function itself takes for elements beyond an end of a dimension. */
typedef enum sdg_border {
  SDG_BORDER_OWN,  /* it treats its first and last elements in its own way */
  SDG_BORDER_WRAP, /* those at the other end */
  SDG_BORDER_ZERO, /* zeros */
} sdg_border_t;

/* How the ranks' values of a result become one. */
typedef enum sdg_function_combine {
  SDG_FUNCTION_SUM,
  SDG_FUNCTION_MAX,
  SDG_FUNCTION_MIN,
  SDG_FUNCTION_MEAN, /* by the number of elements that each rank has */
} sdg_function_combine_t;

/* What of a kernel's launch follows the extents. Dimensions are x, y, z. */
enum { SDG_GRID_DIMS = 3 };
typedef struct sdg_grid {
  bool said[SDG_GRID_DIMS];
  sdg_expression_t blocks[SDG_GRID_DIMS]; /* quotients are rounded up, or down
                                             where the program's are */
  unsigned looped; /* bits of arguments whose extents the kernel covers with
                      every grid */
} sdg_grid_t;

typedef struct sdg_function {
  bool is_kernel; /* `symbol` is then a pattern of names, and it has no
                     `library` */
  char name[SDG_FUNCTION_NAME_BYTES];     /* of the section */
  char symbol[SDG_FUNCTION_SYMBOL_BYTES]; /* in the library */
  char library[SDG_FUNCTION_NAME_BYTES];  /* a pattern of file names; "": any */
  int line;
  uint64_t text; /* hash of a text that the program gave; 0: a rules file's */
  int arguments;
  sdg_argument_t argument[SDG_ARGUMENTS_MAX];
  int tensors;
  sdg_function_tensor_t tensor[SDG_OPERANDS_MAX];
  int64_t reach[SDG_DIM_COUNT]; /* or SDG_REACH_...; the larger of both sides */
  struct {
    int64_t before, behind; /* if reach is a number */
  } sees[SDG_DIM_COUNT];
  sdg_border_t border[SDG_DIM_COUNT];
  int offsets; /* arguments that say where the first element is in the whole */
  struct {
    int argument;
    sdg_dim_t dim;
  } offset[SDG_OFFSETS_MAX];
  int results; /* tensors that are combined over all elements */
  struct {
    int tensor;
    sdg_function_combine_t combine;
  } result[SDG_RESULTS_MAX];
  struct {
    sdg_number_t number; /* bytes 0: nothing is known of what it returns */
    sdg_function_combine_t combine;
  } returned;   /* a value that is combined over all elements */
  bool copies;  /* it gets a copy of what it reads and writes */
  bool pure;    /* it may be called several times in place of once */
  int stream;   /* the argument; -1: none */
  bool on_host; /* no stream: it has computed when it returns */
  sdg_grid_t grid;
} sdg_function_t;

/* The keys of a [function] or [kernel] section. */
typedef enum sdg_function_key {
#define SDG_RULES_FUNCTION_KEY(name, key, value, otherwise, view, example,     \
                               meaning)                                        \
  SDG_FUNCTION_##name,
#include "rules/file/keys.def"
  SDG_FUNCTION_KEY_COUNT,
} sdg_function_key_t;
extern const char *const sdg_function_key_name[SDG_FUNCTION_KEY_COUNT];

/* A section as text. A key of several lines has them joined by commas
 * (arguments) or semicolons (tensor). */
typedef struct sdg_function_draft {
  bool is_kernel;
  char name[SDG_FUNCTION_NAME_BYTES];
  const char *source;
  int head;                            /* the line of [function] */
  char *value[SDG_FUNCTION_KEY_COUNT]; /* owned; NULL: not given */
  int line[SDG_FUNCTION_KEY_COUNT];
} sdg_function_draft_t;

/* Adds a line of the section. */
sdg_status_t sdg_function_draft_add(const sdg_location_t *location,
                                    sdg_function_draft_t *draft, int key,
                                    const char *value) SDG_MUST_CHECK;
void sdg_function_draft_fini(sdg_function_draft_t *draft);

/* Reads the section's values. Reports the first fault with its location. */
sdg_status_t sdg_function_parse(const sdg_function_draft_t *draft,
                                sdg_function_t *out) SDG_MUST_CHECK;

/* Reads a section that the program gives as text (sundog_define), with the
 * checks of a rules file: its sections, and its functions' names and symbols.
 * Reports as a file's faults are, with "sundog_define NAME" in place of it. */
sdg_status_t sdg_rules_define(const sdg_rules_t *rules, const char *name,
                              const char *text,
                              sdg_function_t *out) SDG_MUST_CHECK;

/* Whether the function can be split along a dimension, by a section and its
 * view: its reach there is said, and fits its results, what it updates in
 * place, and in the shard view its ghosts. */
sdg_status_t sdg_function_check_split(const sdg_location_t *location,
                                      const sdg_function_t *function,
                                      const char *section, sdg_view_t view,
                                      sdg_dim_t dim) SDG_MUST_CHECK;

/* ---- parts of sdg_function_parse ----------------------------------------- */

/* "in u, out w, int rows, double dt, stream s" */
sdg_status_t sdg_arguments_parse(const sdg_location_t *location,
                                 const char *text,
                                 sdg_function_t *io) SDG_MUST_CHECK;
/* "u v: float [rows columns] strides [ld 1];
 *  f: double [H=rows + 2] ghosts [1]".
 * `dims` are the names of a tensor's dimensions where it gives none. */
sdg_status_t sdg_tensors_parse(const sdg_location_t *location, const char *text,
                               const sdg_dim_t *dim, int dims,
                               sdg_function_t *io) SDG_MUST_CHECK;
/* "sum total, max largest, mean return double" */
sdg_status_t sdg_results_parse(const sdg_location_t *location, const char *text,
                               sdg_function_t *io) SDG_MUST_CHECK;
/* The most ghosts on one side that a tensor has in a dimension. */
int64_t sdg_function_ghosts(const sdg_function_t *function, sdg_dim_t dim);
/* "y: rows / 8, x: columns / 32, loop: planes" */
sdg_status_t sdg_grid_parse(const sdg_location_t *location, const char *text,
                            sdg_function_t *io) SDG_MUST_CHECK;
/* Whether the launch is said to follow the value of an argument. */
bool sdg_grid_follows(const sdg_grid_t *grid, int argument);
/* Whether the section says how the launch follows an extent in `dim`, which
 * differs on the pieces of section `section`. */
sdg_status_t sdg_grid_check_split(const sdg_location_t *location,
                                  const sdg_function_t *function,
                                  const char *section,
                                  sdg_dim_t dim) SDG_MUST_CHECK;
/* The first argument that an extent in `dim` depends on and of which `grid`
 * says nothing; -1: the launch follows the extents in `dim`. */
int sdg_grid_unsaid(const sdg_function_t *function, sdg_dim_t dim);
/* For sdg_expression_parse: the index of an argument that is an integer, -1 for
 * another. `user` is the function. */
int sdg_argument_find_integer(const void *user, sdg_word_t name);
/* The argument with this name, -1 if there is none. */
int sdg_function_argument(const sdg_function_t *function, sdg_word_t name);
/* The type that a word of C names: "unsigned", "size_t", "double". False for
 * another word. */
bool sdg_number_named(sdg_word_t word, sdg_number_t *out);

#endif
