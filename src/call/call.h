/* SPDX-License-Identifier: Apache-2.0 */
/* One captured call: its entry and its operands, independent of the vendor's
 * descriptors. */
#ifndef SDG_SRC_CALL_CALL_H
#define SDG_SRC_CALL_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "src/call/memory_access.h"
#include "src/geometry/box.h"
#include "src/geometry/hint.h"
#include "src/geometry/layout.h"

enum { SDG_OPERANDS_MAX = 12 };

/* Families of ops; each has one bit in the tag table. */
typedef enum sdg_family {
#define SDG_FAMILY(name, op, word, dims, flags)        SDG_FAMILY_##name,
#define SDG_FAMILY_WITHOUT_OP(name, word, dims, flags) SDG_FAMILY_##name,
#include "src/call/families.def"
  SDG_FAMILY_COUNT,
} sdg_family_t;

/* The names of the dimensions of a family's tensors. */
typedef enum sdg_family_dims {
  SDG_FAMILY_IMAGE,    /* N C D H W */
  SDG_FAMILY_SEQUENCE, /* SEQ BATCH (beam) HEAD */
  SDG_FAMILY_PRODUCT,  /* M N K BATCH */
  SDG_FAMILY_HEADS,    /* BATCH HEADS SEQ HEAD */
} sdg_family_dims_t;

/* Flags of families; families.def explains them. */
enum {
  SDG_FAMILY_REPEATS_ONES = 1,
  SDG_FAMILY_MIXES_PLACES = 2,
  SDG_FAMILY_NULL_OPERANDS = 4,
  SDG_FAMILY_WINDOWED = 8,
  SDG_FAMILY_ELEMENTWISE = 16,
  SDG_FAMILY_REDUCES = 32,
  SDG_FAMILY_HINTS = 64,
  SDG_FAMILY_HINTS_OF_X = 128,
  SDG_FAMILY_MOVES = 256,
  SDG_FAMILY_KEEPS_PIECES = 512,
  SDG_FAMILY_FILTERS = 1024,
  SDG_FAMILY_POOLS = 2048,
  SDG_FAMILY_REPLAYS = 4096,
  SDG_FAMILY_STATED = 8192,
  SDG_FAMILY_NAMED = 16384,
};
const char *sdg_family_name(sdg_family_t family);
/* Its name, or that of the family that it is the graphs of: "conv" for
 * "conv_graph". */
const char *sdg_family_word(sdg_family_t family);
sdg_family_dims_t sdg_family_dims(sdg_family_t family);
bool sdg_family_is(sdg_family_t family, unsigned flag);
/* Returns true if its calls are products of matrices. */
bool sdg_family_is_product(sdg_family_t family);

/* The role of an operand in its op. A [shard] section can match activations
 * only, never parameters (weights, biases, scales, statistics). */
typedef enum sdg_role {
#define SDG_ROLE(name, word, flags) SDG_ROLE_##name,
#include "src/call/families.def"
  SDG_ROLE_COUNT,
} sdg_role_t;

/* Flags of roles; families.def explains them. */
enum {
  SDG_ROLE_IS_ACTIVATION = 1,
  SDG_ROLE_IS_MATRIX = 2,
  SDG_ROLE_FOLLOWS = 4,
  SDG_ROLE_IS_WRITTEN = 8,
  SDG_ROLE_IS_COORDINATES = 16 | SDG_ROLE_FOLLOWS,
  SDG_ROLE_IS_SCALE = 32 | SDG_ROLE_FOLLOWS,
};
bool sdg_role_is_activation(sdg_role_t role);
bool sdg_role_is_scale(sdg_role_t role);
bool sdg_role_is_matrix(sdg_role_t role);
/* Returns true if its extents may differ from rank to rank though no section
 * matches it. */
bool sdg_role_follows(sdg_role_t role);
const char *sdg_role_name(sdg_role_t role);

/* The kind of an operand's descriptor. */
typedef enum sdg_operand_kind {
  SDG_OPERAND_TENSOR,
  SDG_OPERAND_FILTER,
  SDG_OPERAND_SEQUENCE,   /* a sequence: time, batch, beam, vector */
  SDG_OPERAND_LIMITS,     /* attention: the longest sequences of keys */
  SDG_OPERAND_PARAMETERS, /* attention: all its weights and biases */
  /* No descriptor: a dense tensor of N, spatial dimensions, coordinates, with
   * the extents N, number of coordinates, spatial. */
  SDG_OPERAND_COORDINATES,
} sdg_operand_kind_t;

/* Element types, numbered as cudnnDataType_t. */
typedef int sdg_type_t;
enum { SDG_TYPE_DOUBLE = 1 };

/* The offset of a member that does not exist. */
enum { SDG_NOWHERE = 0xffff };

/* One tensor of a call; extents are local and in elements. */
typedef struct sdg_operand {
  sdg_role_t role;
  bool is_output;
  bool is_updated; /* an output that is read too, whatever beta is */
  sdg_operand_kind_t kind;
  const void *descriptor; /* the program's descriptor; key of the tag table */
  uint64_t generation;    /* generation of the descriptor's last set */
  /* Label that the program gave it, or NULL. */
  const struct sdg_tag_label *label;
  void *data; /* device pointer; NULL in queries */
  int beside; /* COORDINATES: the operand whose elements they belong to */
  /* Offsets of the descriptor and of the data pointer in call->args;
   * SDG_NOWHERE if absent. */
  uint16_t descriptor_at, data_at;
  sdg_type_t type;
  int elem_bytes; /* 0: packed or vectorised type that no op handles */
  int dims;
  /* In the order N C spatial... (filters: K C spatial...), whatever the
   * layout. */
  int64_t extent[SDG_DIMS_MAX];
  int64_t stride[SDG_DIMS_MAX]; /* elements */
  unsigned absent; /* bit d: of a function, without dimension d: extent 1 */
  /* How the dimensions nest in memory on every rank, as strides without ties
   * (src/geometry/layout.h); one rank's strides do not show this if an extent
   * is 1. Set by sdg_tag_nest. */
  int64_t nesting[SDG_DIMS_MAX];
  /* Its data was fetched to where the call needs it, and replaces the
   * program's operand (rules/place/colocate.h). */
  bool is_colocated;
  /* Shard view: what this rank knows of the operand's memory
   * (rules/place/ones.h); valid if it was looked up. */
  bool looked_up;
  sdg_hint_t hint;
} sdg_operand_t;

/* A window that slides over spatial dimensions. */
typedef struct sdg_call_window {
  int spatial;
  int kernel[SDG_DIMS_MAX], pad[SDG_DIMS_MAX], stride[SDG_DIMS_MAX],
      dilation[SDG_DIMS_MAX]; /* pad: before x */
} sdg_call_window_t;

/* Of attention in a graph: how many keys a query sees before and after its own
 * position; -1: all. */
typedef struct sdg_call_sight {
  bool is_known, is_ragged; /* ragged: lengths in device memory tell */
  int64_t left, right;
} sdg_call_sight_t;

/* A captured call. Lives on the caller's stack while the call lasts. */
typedef struct sdg_call {
  int entry; /* sdg_entry_t of interpose/entries */
  const char *entry_name;
  sdg_family_t family;
  const void *handle; /* the library handle, NULL if the entry has none */
  /* The kind of the handle; GIVEN for cuBLASLt. */
  sdg_stream_kind_t stream_kind;
  const void *stream; /* GIVEN: the stream; else unused */
  /* Points to struct sdg_args_<entry>; for a matrix product to sdg_gemm_t of
   * rules/vendor/gemm.h. */
  const void *args;
  /* Descriptor of the convolution, pooling, activation ..., or NULL. */
  const void *op_descriptor;
  uint64_t op_generation;
  /* For reports, of a call whose window is in no descriptor; else NULL. */
  const sdg_call_window_t *window;
  sdg_call_sight_t sight; /* for records, of attention in a graph */
  bool is_query;          /* an output-size, workspace or algorithm query */
  int operands;
  sdg_operand_t operand[SDG_OPERANDS_MAX];
  const sdg_memory_access_t *memory; /* its memory accesses; whole view only */
  /* The library's status for the program, after the call was carried out or
   * refused. */
  int result;
  bool refused; /* sundog refused the call: sdg_last_error() says why */
} sdg_call_t;

/* Returns the index of the first operand of this role, -1 if the call has
 * none: an operand whose descriptor is NULL is left out. */
int sdg_call_operand(const sdg_call_t *call, sdg_role_t role);

/* Returns true for a tensor or filter with the dimensions N, C, spatial ...
 * (filters: K, C, spatial ...), which the vendor's library wants in NCHW or
 * NHWC. */
bool sdg_operand_is_image(const sdg_operand_t *operand);

/* Returns the strides that memory for another box of the operand is to nest
 * like. */
const int64_t *sdg_operand_nesting(const sdg_operand_t *operand);

/* Returns the box of all elements of an operand. */
sdg_box_t sdg_operand_box(const sdg_operand_t *operand);

/* Returns the layout of an operand; the second function returns all of it as a
 * memory access. */
sdg_layout_t sdg_operand_layout(const sdg_operand_t *operand);
sdg_access_t sdg_operand_access(const sdg_operand_t *operand, bool reads,
                                bool writes);

#endif
