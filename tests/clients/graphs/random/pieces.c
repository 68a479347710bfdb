// SPDX-License-Identifier: Apache-2.0
// Pieces of tensors in device memory.
#include "tests/clients/graphs/random/graph.h"

__extension__ typedef _Float16 half_t;

static int64_t number_of(const char *name, int64_t missing) {
  const char *text = getenv(name);
  return text ? strtoll(text, NULL, 10) : missing;
}

// A boundary in units, with pieces of different sizes; at least one each.
static int64_t boundary(int64_t units, int64_t rank, int64_t ranks) {
  int64_t more = rank > 0 && rank < ranks && units >= 3 * ranks ? rank % 2 : 0;
  return units * rank / ranks + more;
}

static void dimension_cut(graph_t *g, int s, int64_t rank, int64_t ranks) {
  int64_t step = s >= 2 ? g->step[s] : 1;
  int64_t of_x = g->tensor[g->conv[X]].whole[s];
  int64_t of_y = g->tensor[g->conv[Y]].whole[s];
  int64_t units = of_x / step;
  for (int t = 0; t < g->tensors; t++) {
    tensor_t *tensor = &g->tensor[t];
    if (t == g->conv[W] || tensor->whole[s] == 1)
      continue;
    bool like_x = tensor->whole[s] == of_x;
    int64_t lo = boundary(units, rank, ranks) * (like_x ? step : 1);
    int64_t hi = rank == ranks - 1
                     ? (like_x ? of_x : of_y)
                     : boundary(units, rank + 1, ranks) * (like_x ? step : 1);
    tensor->first[s] = lo;
    tensor->dim[s] = hi - lo;
  }
}

// Each rank has its rows, columns, terms or members of the batch.
static void product_cut(graph_t *g, char letter, int64_t rank, int64_t ranks) {
  int of = letter == 'K' ? X : Y;
  int64_t all = g->tensor[g->conv[of]].whole[product_dimension(g, of, letter)];
  for (int t = 0; t < g->tensors; t++) {
    tensor_t *tensor = &g->tensor[t];
    int s = product_dimension(g, tensor->like, letter);
    if (s < 0 || tensor->whole[s] == 1)
      continue;
    tensor->first[s] = boundary(all, rank, ranks);
    tensor->dim[s] = boundary(all, rank + 1, ranks) - tensor->first[s];
  }
}

static void cut(graph_t *g, char letter, int64_t rank, int64_t ranks) {
  if (g->main == MAIN_PRODUCT)
    product_cut(g, letter, rank, ranks);
  else
    dimension_cut(g, dimension_of(g, letter), rank, ranks);
}

static void pieces_cut(graph_t *g) {
  const char *view = getenv("LAYER_VIEW");
  bool cuts = view && strcmp(view, "shard") == 0;
  int64_t ranks = cuts ? number_of("SUNDOG_SIZE", 1) : 1;
  int64_t rank = cuts ? number_of("SUNDOG_RANK", 0) : 0;
  int64_t pair = asked.second && ranks > 1 ? 2 : 1;
  for (int t = 0; t < g->tensors; t++)
    memcpy(g->tensor[t].dim, g->tensor[t].whole, sizeof g->tensor[t].dim);
  cut(g, asked.split, rank / pair, ranks / pair);
  if (asked.second)
    cut(g, asked.second, rank % pair, pair);
}

// ---- values ----------------------------------------------------------------

static size_t bytes_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT  ? sizeof(float)
         : type == CUDNN_DATA_HALF ? sizeof(half_t)
                                   : sizeof(int8_t);
}

static void value_put(void *piece, cudnnDataType_t type, int64_t place,
                      double value) {
  if (type == CUDNN_DATA_FLOAT)
    ((float *)piece)[place] = (float)value;
  else if (type == CUDNN_DATA_HALF)
    ((half_t *)piece)[place] = (half_t)value;
  else
    ((int8_t *)piece)[place] = (int8_t)value;
}

static double value_get(const void *piece, cudnnDataType_t type,
                        int64_t place) {
  if (type == CUDNN_DATA_FLOAT)
    return (double)((const float *)piece)[place];
  if (type == CUDNN_DATA_HALF)
    return (double)((const half_t *)piece)[place];
  return (double)((const int8_t *)piece)[place];
}

// Element `i` of the piece: where it is in memory, and its value in the whole.
static int64_t element_of(const graph_t *g, const tensor_t *t,
                          const double *whole, int64_t i, double *out_value) {
  int64_t at[DIMS], place = 0;
  place_of(g, t->dim, i, at);
  for (int d = 0; d < g->dims; d++) {
    place += at[d] * t->stride[d];
    at[d] += t->first[d];
  }
  *out_value = whole[index_of(g, t->whole, at)];
  return place;
}

static void tensor_put(const graph_t *g, tensor_t *t) {
  int64_t packed = 1;
  for (int i = g->dims; i-- > 0;) {
    int d = g->main == MAIN_PRODUCT
                ? t->is_by_cols && i >= g->dims - 2 ? 2 * g->dims - 3 - i : i
            : g->inner         ? (i + 1) % g->dims
            : !g->last         ? i
            : i == 0           ? 0
            : i == g->dims - 1 ? 1
                               : i + 1;
    t->stride[d] = packed;
    packed *= t->dim[d];
  }
  t->places = packed;
  size_t bytes = (size_t)packed * bytes_of(t->type);
  void *piece = calloc(1, bytes);
  CHECK(!piece);
  CHECK(cudaMalloc(&t->device, bytes));
  for (int64_t i = 0; i < packed; i++) {
    double value;
    int64_t place = element_of(g, t, t->old ? t->old : t->value, i, &value);
    if (t->is_result && !t->old)
      value = t->type == CUDNN_DATA_INT8 ? -1 : (double)NAN;
    value_put(piece, t->type, place, value);
  }
  CHECK(cudaMemcpy(t->device, piece, bytes, cudaMemcpyHostToDevice));
  free(piece);
}

// The last op's result may be where its second input is.
static void result_share(graph_t *g) {
  if (!asked.data || g->ops == 0 || g->ops == g->before)
    return;
  const op_t *op = &g->op[g->ops - 1];
  if (op->b < 0)
    return;
  tensor_t *b = &g->tensor[op->b], *y = &g->tensor[op->y];
  if (b->is_virtual || b->is_result ||
      memcmp(b->dim, y->dim, sizeof b->dim) != 0)
    return;
  CHECK(cudaFree(y->device));
  y->device = b->device;
  b->device = NULL;
  b->lies_in = op->y;
}

void pieces_put(graph_t *g) {
  pieces_cut(g);
  for (int t = 0; t < g->tensors; t++)
    tensor_put(g, &g->tensor[t]);
  result_share(g);
}

double tensor_off(const graph_t *g, const tensor_t *t) {
  size_t bytes = (size_t)t->places * bytes_of(t->type);
  void *piece = malloc(bytes);
  double most = 0, size = 1;
  CHECK(!piece);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(piece, t->device, bytes, cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < t->places; i++) {
    double right;
    int64_t place = element_of(g, t, t->value, i, &right);
    double off = fabs(value_get(piece, t->type, place) - right);
    most = off <= most ? most : off; // also if it is NaN
    size = fabs(right) > size ? fabs(right) : size;
  }
  free(piece);
  return most / size;
}
