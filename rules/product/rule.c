// SPDX-License-Identifier: Apache-2.0
// Products of matrices as an op: what a call is.
#include "rules/product/rule.h"

#include <stdio.h>

#include "rules/product/check.h"
#include "rules/product/kept.h"
#include "rules/vendor/intern.h"
#include "src/call/tag.h"

static bool matmul_knows(const sdg_call_t *call) {
  return call->operands > 1 && call->operand[0].role == SDG_ROLE_PRODUCT;
}

static sdg_status_t matmul_describe(const sdg_call_t *call, char *out,
                                    size_t out_bytes) {
  sdg_product_t p;
  sdg_product_make(call->args, &p);
  int used = snprintf(
      out, out_bytes, "ops %d %d compute %d scale %d epilogue %d%s%s", p.op[0],
      p.op[1], p.compute, p.scale, p.epilogue, p.keeps ? " beta" : "",
      p.device_scalars ? " scalars on the device" : "");
  for (int i = 0; i < SDG_PRODUCT_MATRICES && used < (int)out_bytes; i++)
    if (p.matrix[i].there)
      used += snprintf(out + used, out_bytes - (size_t)used, " %s%s",
                       sdg_role_name(p.matrix[i].role),
                       p.matrix[i].by_rows ? " by rows" : "");
  return SDG_OK;
}

// One number for the first `dims` numbers of all ranks. Interns the numbers of
// RANKS ranks at a time, with the result for the ranks before.
static uint64_t vector_number(const sdg_tag_vector_t *vector, int dims) {
  enum { RANKS = 32 };
  uint64_t number = 0;
  for (int first = 0; first < vector->ranks; first += RANKS) {
    int64_t word[1 + RANKS * SDG_ROOMS] = {(int64_t)number};
    int words = 1;
    for (int r = first; r < first + RANKS && r < vector->ranks; r++)
      for (int d = 0; d < dims; d++)
        word[words++] = vector->extent[r * vector->dims + d];
    number = sdg_intern(word, (size_t)words * sizeof word[0]);
  }
  return number;
}

// The key is an interned id of the product's shape and, in the shard view, of
// all ranks' agreed extents.
static int matmul_key(const sdg_call_t *call, uint64_t *out) {
  const sdg_operand_t *product = &call->operand[0];
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(product->descriptor, product->generation);
  if (!vector)
    return 0;
  const sdg_tag_vector_t *rooms =
      sdg_tag_vector(call->op_descriptor, call->op_generation);
  out[0] = vector_number(vector, vector->dims);
  out[1] = rooms && rooms->dims > 0 ? vector_number(rooms, SDG_ROOMS) : 0;
  sdg_product_kept_found(call, out + 2);
  return 2 + SDG_PRODUCT_KEPTS;
}

static int matmul_scalars(const sdg_call_t *call, double *out) {
  const sdg_gemm_t *gemm = call->args;
  sdg_product_t p;
  sdg_product_make(gemm, &p);
  if (p.device_scalars)
    return 0;
  out[0] = sdg_product_scalar(gemm->alpha, p.scale);
  out[1] = sdg_product_scalar(gemm->beta, p.scale);
  return 2;
}

// Ranks have equal copies of a factor or addend along the axes that cut the
// product, but not that matrix. Results and old values are not compared. The
// extents come from the placement, because a call may state only the sizes of
// its part of the product.
static sdg_common_t matmul_common(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging, int index) {
  sdg_product_parts_t m;
  sdg_common_t common = {.axes = 0};
  if (sdg_product_open(call, tagging, &m) != SDG_OK)
    return common;
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++) {
    if (i == SDG_RESULT || i == SDG_SOURCE || !m.product.matrix[i].there ||
        m.product.matrix[i].operand != index)
      continue;
    common.axes = tagging->axes & ~sdg_placement_axes(&m.matrix[i]);
    sdg_box_t box = sdg_tagging_own(tagging, &m.matrix[i]);
    for (int d = 0; d < box.dims; d++)
      common.extent[d] = box.dim[d].hi - box.dim[d].lo;
    for (int d = 0; d < box.dims; d++)
      common.whole[d] = sdg_placement_extent(&m.matrix[i], d);
  }
  sdg_product_fini(&m);
  return common;
}

static sdg_status_t matmul_answer(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  int *out_vendor) {
  (void)tagging;
  (void)out_vendor;
  return sdg_fail(SDG_E_INTERNAL, "%s is not a query", call->entry_name);
}

static const sdg_op_numbers_t numbers = {
    .sizes = sdg_product_rooms,
    .scalars = matmul_scalars,
};

static const sdg_op_shard_t shard = {
    .place = sdg_product_place,
    .common = matmul_common,
};

const sdg_op_t sdg_op_product = {
    .family = SDG_FAMILY_MATMUL,
    .knows = matmul_knows,
    .describe = matmul_describe,
    .key = matmul_key,
    .plan = sdg_product_plan,
    .share = sdg_product_share,
    .answer = matmul_answer,
    .numbers = &numbers,
    .shard = &shard,
};
