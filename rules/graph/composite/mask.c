// SPDX-License-Identifier: Apache-2.0
// Masks: comparisons of the indices of rows and columns, with numbers added.
#include "rules/graph/composite/reader.h"

enum { ROW = 2, COLUMN = 3, TERMS_MAX = 3 };

typedef struct term {
  int tensor;
  bool minus;
} term_t;

// An index plus numbers, innermost first; axis 0: one number alone.
typedef struct sum {
  int axis, terms;
  term_t term[TERMS_MAX];
} sum_t;

#define NO_BAND "a mask that is no band"

// ---- sums ------------------------------------------------------------------

static bool index_read(sdg_reader_t *r, int t, sum_t *out) {
  const sdg_graph_node_t *node =
      sdg_reader_pointwise(r, t, CUDNN_POINTWISE_GEN_INDEX, SDG_READER_INDEX);
  int64_t axis =
      node ? sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_AXIS, -1) : -1;
  if ((axis != ROW && axis != COLUMN) || !sdg_reader_is_score(r, t) ||
      !sdg_reader_is_score(r, SDG_OPERAND(node, POINTWISE_XDESC)))
    return sdg_reader_lacks(r, NO_BAND);
  out->axis = (int)axis;
  return true;
}

static bool is_constant(const sdg_reader_t *r, int t) {
  return sdg_reader_is_number(r, t) || sdg_reader_is_input(r, t);
}

// Takes the outermost term; returns the tensor that it is added to, or -1.
static int term_take(sdg_reader_t *r, int t, term_t *out) {
  const sdg_graph_node_t *node =
      sdg_reader_pointwise(r, t, CUDNN_POINTWISE_ADD, SDG_READER_INDEX);
  bool minus = !node;
  if (!node)
    node = sdg_reader_pointwise(r, t, CUDNN_POINTWISE_SUB, SDG_READER_INDEX);
  int x = SDG_OPERAND(node, POINTWISE_XDESC);
  int b = SDG_OPERAND(node, POINTWISE_BDESC);
  if (!minus && is_constant(r, x)) {
    int swap = x;
    x = b;
    b = swap;
  }
  *out = (term_t){b, minus};
  return node && is_constant(r, b) && !is_constant(r, x) ? x : -1;
}

static bool sum_read(sdg_reader_t *r, int t, sum_t *out) {
  term_t outer[TERMS_MAX];
  *out = (sum_t){.axis = 0};
  if (is_constant(r, t)) {
    out->term[out->terms++] = (term_t){t, false};
    return true;
  }
  int terms = 0;
  while (t >= 0 && r->writer[t] >= 0 &&
         !sdg_reader_has_mode(&r->graph->node[r->writer[t]],
                              CUDNN_POINTWISE_GEN_INDEX)) {
    if (terms == TERMS_MAX)
      return sdg_reader_lacks(r, NO_BAND);
    if (!sdg_reader_is_score(r, t))
      return sdg_reader_lacks(r, NO_BAND);
    t = term_take(r, t, &outer[terms++]);
  }
  if (t < 0 || !index_read(r, t, out))
    return sdg_reader_lacks(r, NO_BAND);
  while (terms > 0)
    out->term[out->terms++] = outer[--terms];
  return true;
}

// ---- bands -----------------------------------------------------------------

static bool pair_set(sdg_reader_t *r, int kv, int q,
                     sdg_reader_alignment_t *out) {
  if (*out != SDG_READER_TOP_LEFT)
    return sdg_reader_lacks(r, NO_BAND);
  if (sdg_reader_is_number(r, kv)) {
    sdg_composite_t *to = r->out;
    int counts[2] = {to->sizes, to->sizes};
    *out = SDG_READER_BY_SIZES;
    if (!sdg_reader_number(r, kv, &counts[0], to->size_kv) ||
        !sdg_reader_number(r, q, &counts[1], to->size_q))
      return false;
    to->size_kv[to->sizes] = kv; // even if the number is there already
    to->size_q[to->sizes++] = q;
    return true;
  }
  *out = SDG_READER_BY_LENGTHS;
  return sdg_reader_role(r, SDG_COMPOSITE_LENGTH_KV, kv, false) &&
         sdg_reader_role(r, SDG_COMPOSITE_LENGTH_Q, q, false);
}

// The numbers beside an index, in the orders of cudnn-frontend: row + keys -
// queries + bound, and column + bound - keys + queries. The bound is on either
// side: `minus` is its sign on this one.
static bool terms_read(sdg_reader_t *r, const sum_t *sum, bool minus,
                       sdg_reader_alignment_t *alignment, int *bound) {
  bool row = sum->axis == ROW;
  const term_t *pair =
      sum->terms < 2 ? NULL : &sum->term[row ? 0 : sum->terms - 2];
  if (pair) {
    if (pair[0].minus != !row || pair[1].minus != row)
      return sdg_reader_lacks(r, NO_BAND);
    if (!pair_set(r, pair[0].tensor, pair[1].tensor, alignment))
      return false;
  }
  if (sum->terms % 2 == 0)
    return true;
  const term_t *alone = pair && row ? &sum->term[2] : &sum->term[0];
  if (alone->minus != minus || *bound >= 0)
    return sdg_reader_lacks(r, NO_BAND);
  int count = 0;
  return sdg_reader_number(r, alone->tensor, &count, bound);
}

// more >= less, or more > less if `strict`.
static bool band_read(sdg_reader_t *r, const sum_t *more, const sum_t *less,
                      bool strict) {
  bool right = more->axis == ROW;
  int bound = -1;
  sdg_reader_alignment_t alignment = SDG_READER_TOP_LEFT;
  if (right == strict || less->axis != (right ? COLUMN : ROW))
    return sdg_reader_lacks(r, NO_BAND);
  if (right ? r->out->right : r->out->left)
    return sdg_reader_lacks(r, "two masks on one side of the diagonal");
  if (!terms_read(r, more, false, &alignment, &bound) ||
      !terms_read(r, less, true, &alignment, &bound))
    return false;
  if (right) {
    r->out->right = true;
    r->out->right_bound = bound;
    r->right_alignment = alignment;
  } else {
    r->out->left = true;
    r->out->left_bound = bound;
    r->left_alignment = alignment;
  }
  return true;
}

// length > index
static bool length_read(sdg_reader_t *r, const sum_t *length,
                        const sum_t *index, bool strict) {
  int t = length->term[0].tensor;
  if (!strict || index->terms || index->axis == 0)
    return sdg_reader_lacks(r, NO_BAND);
  return sdg_reader_role(
      r, index->axis == ROW ? SDG_COMPOSITE_LENGTH_Q : SDG_COMPOSITE_LENGTH_KV,
      t, false);
}

static bool comparison_read(sdg_reader_t *r, int mask) {
  static const struct {
    cudnnPointwiseMode_t mode;
    bool strict, swapped;
  } comparisons[] = {{CUDNN_POINTWISE_CMP_GE, false, false},
                     {CUDNN_POINTWISE_CMP_GT, true, false},
                     {CUDNN_POINTWISE_CMP_LE, false, true},
                     {CUDNN_POINTWISE_CMP_LT, true, true}};
  for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
    const sdg_graph_node_t *node =
        sdg_reader_pointwise(r, mask, comparisons[i].mode, SDG_READER_TRUTH);
    if (!node)
      continue;
    int x = SDG_OPERAND(node, POINTWISE_XDESC);
    int b = SDG_OPERAND(node, POINTWISE_BDESC);
    bool swapped = comparisons[i].swapped, strict = comparisons[i].strict;
    sum_t more, less;
    if (!sum_read(r, swapped ? b : x, &more) ||
        !sum_read(r, swapped ? x : b, &less))
      return false;
    return more.axis == 0 ? length_read(r, &more, &less, strict)
                          : band_read(r, &more, &less, strict);
  }
  return sdg_reader_lacks(r, NO_BAND);
}

bool sdg_reader_mask(sdg_reader_t *r, int mask) {
  if (!sdg_reader_is_score(r, mask))
    return sdg_reader_lacks(r, NO_BAND);
  const sdg_graph_node_t *both = sdg_reader_pointwise(
      r, mask, CUDNN_POINTWISE_LOGICAL_AND, SDG_READER_TRUTH);
  if (!both)
    return comparison_read(r, mask);
  return sdg_reader_mask(r, SDG_OPERAND(both, POINTWISE_XDESC)) &&
         sdg_reader_mask(r, SDG_OPERAND(both, POINTWISE_BDESC));
}

bool sdg_reader_masks_close(sdg_reader_t *r) {
  sdg_composite_t *out = r->out;
  sdg_reader_alignment_t right = r->right_alignment, left = r->left_alignment;
  sdg_reader_alignment_t whole = out->right ? right : left;
  out->left_folded = out->right && out->left && right == SDG_READER_BY_SIZES &&
                     left == SDG_READER_TOP_LEFT;
  if (out->right && out->left && right != left && !out->left_folded)
    return sdg_reader_lacks(r, "a band with two alignments");
  out->bottom_right = whole != SDG_READER_TOP_LEFT;
  out->by_lengths = whole == SDG_READER_BY_LENGTHS;
  return (out->tensor[SDG_COMPOSITE_LENGTH_Q] < 0) ==
             (out->tensor[SDG_COMPOSITE_LENGTH_KV] < 0) ||
         sdg_reader_lacks(r, "lengths of queries or of keys alone");
}
