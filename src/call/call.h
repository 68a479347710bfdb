/* SPDX-License-Identifier: Apache-2.0 */
/* One captured invocation: which entry, which operands, in terms that do not
 * depend on the vendor's descriptors. */
#ifndef SDG_SRC_CALL_CALL_H
#define SDG_SRC_CALL_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "src/call/memory_access.h"
#include "src/geometry/box.h"
#include "src/geometry/hint.h"
#include "src/geometry/layout.h"

enum { SDG_OPERANDS_MAX = 12 };

/* Families of ops. One bit each in the tag table. */
typedef enum sdg_family {
#define SDG_FAMILY(name, op, word, dims, flags)        SDG_FAMILY_##name,
#define SDG_FAMILY_WITHOUT_OP(name, word, dims, flags) SDG_FAMILY_##name,
#include "src/call/families.def"
#undef SDG_FAMILY
#undef SDG_FAMILY_WITHOUT_OP
  SDG_FAMILY_COUNT,
} sdg_family_t;

/* How the dimensions of a family's tensors are named. */
typedef enum sdg_family_dims {
  SDG_FAMILY_IMAGE,    /* N C D H W */
  SDG_FAMILY_SEQUENCE, /* SEQ BATCH (beam) HEAD */
  SDG_FAMILY_PRODUCT,  /* M N K BATCH */
} sdg_family_dims_t;

/* What is particular to a family; families.def says what it means. */
enum {
  SDG_FAMILY_REPEATS_ONES = 1,
  SDG_FAMILY_MIXES_PLACES = 2,
  SDG_FAMILY_NULL_OPERANDS = 4,
};
const char *sdg_family_name(sdg_family_t family);
sdg_family_dims_t sdg_family_dims(sdg_family_t family);
bool sdg_family_is(sdg_family_t family, unsigned flag);

/* What an operand is to its op. Activations are what a [shard] section can
 * match; parameters (weights, biases, scales, statistics) never are. */
typedef enum sdg_role {
  SDG_ROLE_X,
  SDG_ROLE_Y,
  SDG_ROLE_Z, /* a second activation that is added */
  SDG_ROLE_DX,
  SDG_ROLE_DY,
  SDG_ROLE_Q, /* of attention: queries, keys, values, the output; gradients */
  SDG_ROLE_K,
  SDG_ROLE_V,
  SDG_ROLE_O,
  SDG_ROLE_DO,
  SDG_ROLE_DQ,
  SDG_ROLE_DK,
  SDG_ROLE_DV,
  SDG_ROLE_W,
  SDG_ROLE_DW,
  SDG_ROLE_BIAS,
  SDG_ROLE_DBIAS,
  SDG_ROLE_SCALE,   /* scales and statistics; biases that go with them */
  SDG_ROLE_PRODUCT, /* no tensor: M, N, K and BATCH of a product of matrices,
                       which is what a section can match there */
  SDG_ROLE_A,       /* the product's matrices, and the vector that is added */
  SDG_ROLE_B,
  SDG_ROLE_C,
  SDG_ROLE_D,
  SDG_ROLE_ADDEND,
  SDG_ROLE_COUNT,
} sdg_role_t;
bool sdg_role_is_activation(sdg_role_t role);
/* True of a matrix of a product: it has no descriptor, and is cut as the
 * product is. */
bool sdg_role_is_matrix(sdg_role_t role);
const char *sdg_role_name(sdg_role_t role);

/* What an operand's descriptor is. */
typedef enum sdg_operand_kind {
  SDG_OPERAND_TENSOR,
  SDG_OPERAND_FILTER,
  SDG_OPERAND_SEQUENCE,   /* of vectors: time, batch, beam, vector */
  SDG_OPERAND_LIMITS,     /* attention's: the largest sequences of keys */
  SDG_OPERAND_PARAMETERS, /* attention's: of all of its weights and biases */
} sdg_operand_kind_t;

/* Element types, by cuDNN's numbering of cudnnDataType_t. */
typedef int sdg_type_t;
enum { SDG_TYPE_DOUBLE = 1 };

/* An offset of what is not there. */
enum { SDG_NOWHERE = 0xffff };

/* One tensor of a call, with local extents, in elements. */
typedef struct sdg_operand {
  sdg_role_t role;
  bool is_output;
  sdg_operand_kind_t kind;
  const void *descriptor;            /* the program's; key of the tag table */
  uint64_t generation;               /* of the descriptor's last set */
  const struct sdg_tag_label *label; /* that the program gave it, or NULL */
  void *data;                        /* device pointer; NULL in queries */
  /* Where call->args has descriptor and data: offsets; SDG_NOWHERE. */
  uint16_t descriptor_at, data_at;
  sdg_type_t type;
  int elem_bytes; /* 0: packed or vectorised type that no op handles */
  int dims;
  int64_t extent[SDG_DIMS_MAX]; /* in the order N C spatial... (K C spatial...
                                   for filters), whatever the layout */
  int64_t stride[SDG_DIMS_MAX]; /* elements */
  /* Shard view, while a plan is made: how the dimensions nest in memory on
   * every rank (src/call/tag.h), which strides do not tell where an extent
   * is 1. */
  int64_t nesting[SDG_DIMS_MAX];
  bool stands_in; /* for the program's, which is elsewhere
                     (rules/place/colocate.h) */
  /* Shard view: that what is known of its memory is looked at, and what that is
   * (rules/place/ones.h). */
  bool told;
  sdg_hint_t hint;
} sdg_operand_t;

/* A captured invocation. Lives on the caller's stack for its duration. */
typedef struct sdg_call {
  int entry; /* sdg_entry_t of interpose/entries */
  const char *entry_name;
  sdg_family_t family;
  const void *handle; /* the library handle, NULL if the entry has none */
  sdg_stream_kind_t stream_kind; /* whose handle that is; GIVEN: cuBLASLt's */
  const void *stream;            /* GIVEN: the stream */
  const void *args;              /* struct sdg_args_<entry>; of a product of
                                    matrices sdg_gemm_t of rules/vendor/gemm.h */
  const void *op_descriptor; /* convolution, pooling, activation ..., or NULL */
  uint64_t op_generation;
  bool is_query; /* an output-size, workspace or algorithm query */
  int operands;
  sdg_operand_t operand[SDG_OPERANDS_MAX];
  const sdg_memory_access_t
      *memory;  /* what it does to memory; whole view only */
  int result;   /* the library's status for the program, once carried out or
                   refused */
  bool refused; /* by sundog: sdg_last_error() says why */
} sdg_call_t;

/* A scalar of the call in host memory, 0 for NULL: double where its operands
 * are, else float. */
double sdg_call_scalar(const sdg_call_t *call, const void *scalar);

/* The whole of an operand in memory. */
sdg_layout_t sdg_operand_layout(const sdg_operand_t *operand);
sdg_access_t sdg_operand_access(const sdg_operand_t *operand, bool reads,
                                bool writes);

#endif
