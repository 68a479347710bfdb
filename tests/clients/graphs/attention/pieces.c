// SPDX-License-Identifier: Apache-2.0
// Pieces of arrays in device memory.
#include "tests/clients/graphs/attention/attention.h"
#include "tests/clients/graphs/tag.h"

__extension__ typedef _Float16 half_t;

// ---- types -----------------------------------------------------------------

static size_t bytes_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2 : 4;
}

// To the nearest, ties to even.
static uint16_t to_bfloat16(double value) {
  float single = (float)value;
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  if (isnan(single))
    return 0x7fc0;
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static double from_bfloat16(uint16_t value) {
  uint32_t bits = (uint32_t)value << 16;
  float single;
  memcpy(&single, &bits, sizeof single);
  return (double)single;
}

static void value_put(void *to, cudnnDataType_t type, int64_t place,
                      double value) {
  if (type == CUDNN_DATA_FLOAT)
    ((float *)to)[place] = (float)value;
  else if (type == CUDNN_DATA_HALF)
    ((half_t *)to)[place] = (half_t)value;
  else if (type == CUDNN_DATA_BFLOAT16)
    ((uint16_t *)to)[place] = to_bfloat16(value);
  else
    ((int32_t *)to)[place] = (int32_t)value;
}

static double value_get(const void *from, cudnnDataType_t type, int64_t place) {
  return type == CUDNN_DATA_FLOAT  ? (double)((const float *)from)[place]
         : type == CUDNN_DATA_HALF ? (double)((const half_t *)from)[place]
         : type == CUDNN_DATA_BFLOAT16
             ? from_bfloat16(((const uint16_t *)from)[place])
             : (double)((const int32_t *)from)[place];
}

double rounded(cudnnDataType_t type, double value) {
  float room;
  value_put(&room, type, 0, value);
  return value_get(&room, type, 0);
}

// ---- pieces ----------------------------------------------------------------

static int64_t number_of(const char *name, int64_t missing) {
  const char *text = getenv(name);
  return text ? strtoll(text, NULL, 10) : missing;
}

static int64_t ranks_of(void) {
  const char *view = getenv("LAYER_VIEW");
  return view && strcmp(view, "shard") == 0 ? number_of("SUNDOG_SIZE", 1) : 1;
}

bool is_in_pieces(void) {
  return ranks_of() > 1;
}

// A boundary of pieces of different sizes; at least one each.
static int64_t boundary(int64_t all, int64_t rank, int64_t ranks) {
  int64_t more = rank > 0 && rank < ranks && all >= 3 * ranks ? rank % 2 : 0;
  return all * rank / ranks + more;
}

// `part` of the array's elements along a dimension belong together.
static void array_cut(array_t *a, int d, int64_t part, int64_t rank,
                      int64_t ranks) {
  if (!a->exists || a->whole[d] == 1)
    return;
  a->first[d] = part * boundary(a->whole[d] / part, rank, ranks);
  a->dim[d] =
      part * boundary(a->whole[d] / part, rank + 1, ranks) - a->first[d];
}

static bool is_of_keys(int a) {
  return a == K || a == V || a == D_K || a == D_V;
}

// Whether an array has the whole sequence on every rank, by what was asked for.
static bool is_same(int a) {
  return is_of_keys(a) ? asked.same_keys : asked.same_queries;
}

// Whether the rank has all of an array along this dimension.
static bool is_whole(const case_t *c, int a, int d) {
  bool of_columns = c->bias_form == BIAS_COLUMNS && d == ROWS;
  return (a == BIAS && (c->bias_form == BIAS_ALL || of_columns)) ||
         (d == ROWS && is_same(a));
}

// Heads are cut between those of different keys; one head of keys is
// everyone's.
static void cut(case_t *c, char letter, int64_t rank, int64_t ranks) {
  int d = letter == 'B' ? BATCH : letter == 'H' ? HEADS : ROWS;
  for (int a = 0; a < ARRAYS; a++) {
    int64_t part = d == HEADS && !is_of_keys(a) && c->g > 1 ? c->h / c->g : 1;
    if (!is_whole(c, a, d))
      array_cut(&c->array[a], d, part, rank, ranks);
  }
  if (letter == 'S' && c->bias_form >= BIAS_COLUMNS && !asked.same_keys)
    array_cut(&c->array[BIAS], DEPTH, 1, rank, ranks);
}

static void pieces_cut(case_t *c) {
  int64_t ranks = ranks_of(),
          rank = ranks > 1 ? number_of("SUNDOG_RANK", 0) : 0;
  int64_t pair = asked.cut[1] && ranks > 1 ? 2 : 1;
  for (int a = 0; a < ARRAYS; a++)
    memcpy(c->array[a].dim, c->array[a].whole, sizeof c->array[a].dim);
  if (asked.cut[0])
    cut(c, asked.cut[0], rank / pair, ranks / pair);
  if (asked.cut[1])
    cut(c, asked.cut[1], rank % pair, pair);
}

// ---- memory ----------------------------------------------------------------

enum { GUARD = 256, POISON = 0x5a }; // bytes behind an array

// From the outermost dimension to the innermost one.
static void array_lay(const case_t *c, int a) {
  static const int orders[][DIMS] = {[BSHD] = {BATCH, ROWS, HEADS, DEPTH},
                                     [BHSD] = {BATCH, HEADS, ROWS, DEPTH},
                                     [SBHD] = {ROWS, BATCH, HEADS, DEPTH},
                                     [PACKED] = {BATCH, ROWS, HEADS, DEPTH}};
  bool is_plain = a == STATS || a == MOST || a == SUM || a == BIAS ||
                  a == D_BIAS || a == DELTA || a == GATHERED;
  array_t *to = (array_t *)&c->array[a];
  const int *order = orders[is_plain ? BHSD : c->layout];
  int64_t packed = 1;
  for (int i = DIMS; i-- > 0; packed *= to->dim[order[i]])
    to->stride[order[i]] = packed;
  to->places = packed;
}

static void memory_make(array_t *a) {
  size_t bytes = (size_t)a->places * bytes_of(a->type) + GUARD;
  CHECK(cudaMalloc(&a->memory, bytes));
  CHECK(cudaMemset(a->memory, POISON, bytes));
  a->device = a->memory;
}

// Three arrays side by side in the memory of the first one.
static void pack(array_t *a, array_t *b, array_t *c) {
  array_t *each[] = {a, b, c};
  int64_t heads = a->dim[HEADS] + b->dim[HEADS] + c->dim[HEADS], before = 0;
  a->places = a->dim[BATCH] * a->dim[ROWS] * heads * a->dim[DEPTH];
  memory_make(a);
  for (int i = 0; i < 3; i++) {
    each[i]->stride[ROWS] = heads * a->dim[DEPTH];
    each[i]->stride[BATCH] = a->dim[ROWS] * each[i]->stride[ROWS];
    each[i]->device = (char *)a->memory +
                      (size_t)(before * a->dim[DEPTH]) * bytes_of(a->type);
    before += each[i]->dim[HEADS];
  }
}

static bool is_packed(const case_t *c, int a) {
  return c->layout == PACKED &&
         (a == Q || a == K || a == V || a == D_Q || a == D_K || a == D_V);
}

// ---- values ----------------------------------------------------------------

// Of element `i` of the piece: its place, and its index in the whole.
static int64_t place_of(const array_t *a, int64_t i, int64_t *out_index) {
  int64_t at[DIMS], place = 0;
  for (int d = DIMS; d-- > 0; i /= a->dim[d]) {
    at[d] = i % a->dim[d];
    place += at[d] * a->stride[d];
    at[d] += a->first[d];
  }
  *out_index = index_of(a, at[BATCH], at[HEADS], at[ROWS], at[DEPTH]);
  return place;
}

// Bytes from the first element to the last one.
static size_t span_of(const array_t *a) {
  int64_t last = 0;
  for (int d = 0; d < DIMS; d++)
    last += (a->dim[d] - 1) * a->stride[d];
  return (size_t)(last + 1) * bytes_of(a->type);
}

// What this rank has of a length along its piece of rows.
static double clamped(double length, const array_t *rows) {
  double within = length - (double)rows->first[ROWS],
         most = (double)rows->dim[ROWS];
  if (asked.long_lengths)
    return length;
  return within < 0 ? 0 : within > most ? most : within;
}

static double input(const case_t *c, int a, int64_t index) {
  const array_t *from = &c->array[a];
  double value = from->value[index];
  return a == DELTA || from->is_result ? (double)NAN
         : a == LENGTHS_Q              ? clamped(value, &c->array[Q])
         : a == LENGTHS_KV             ? clamped(value, &c->array[K])
                                       : value;
}

// The array by a call that sundog may split.
static void array_transform(const array_t *to, const void *piece) {
  const float one = 1, none = 0;
  const int64_t *dim = to->dim, *stride = to->stride;
  cudnnTensorDescriptor_t like;
  cudnnHandle_t handle;
  void *from;
  CHECK(cudaMalloc(&from, span_of(to)));
  CHECK(cudaMemcpy(from, piece, span_of(to), cudaMemcpyHostToDevice));
  CHECK(cudnnCreate(&handle));
  CHECK(cudnnCreateTensorDescriptor(&like));
  CHECK(cudnnSetTensor4dDescriptorEx(
      like, to->type, (int)dim[BATCH], (int)dim[HEADS], (int)dim[ROWS],
      (int)dim[DEPTH], (int)stride[BATCH], (int)stride[HEADS],
      (int)stride[ROWS], (int)stride[DEPTH]));
  CHECK(
      cudnnTransformTensor(handle, &one, like, from, &none, like, to->device));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudnnDestroyTensorDescriptor(like));
  CHECK(cudnnDestroy(handle));
  CHECK(cudaFree(from));
}

static bool is_made(const array_t *a) {
  return asked.made && !a->is_result && a->type != CUDNN_DATA_INT32;
}

static void array_put(const case_t *c, int a) {
  const array_t *to = &c->array[a];
  size_t bytes = span_of(to);
  void *piece = malloc(bytes);
  CHECK(!piece);
  CHECK(cudaMemcpy(piece, to->device, bytes, cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < count_of(to->dim); i++) {
    int64_t index, place = place_of(to, i, &index);
    value_put(piece, to->type, place, input(c, a, index));
  }
  if (is_made(to))
    array_transform(to, piece);
  else
    CHECK(cudaMemcpy(to->device, piece, bytes, cudaMemcpyHostToDevice));
  free(piece);
}

static bool is_tagged(int a) {
  bool of_queries = a == Q || a == O || a == D_O || a == D_Q;
  return is_of_keys(a) ? asked.shared || asked.same_keys
                       : of_queries && asked.same_queries;
}

// NULL: takes tags away.
static void whole_tag(const case_t *c, const char *text) {
  for (int i = 0; i < ARRAYS; i++) {
    const array_t *a = &c->array[i];
    if (a->exists && is_tagged(i))
      tag_range(a->device, (size_t)a->places * bytes_of(a->type), text);
  }
}

void pieces_put(case_t *c) {
  pieces_cut(c);
  for (int a = 0; a < ARRAYS; a++)
    if (c->array[a].exists) {
      array_lay(c, a);
      if (!is_packed(c, a))
        memory_make(&c->array[a]);
    }
  if (c->layout == PACKED) {
    pack(&c->array[Q], &c->array[K], &c->array[V]);
    if (c->kind == BACKWARD)
      pack(&c->array[D_Q], &c->array[D_K], &c->array[D_V]);
  }
  for (int a = 0; a < ARRAYS; a++)
    if (c->array[a].exists)
      array_put(c, a);
  whole_tag(c, "local");
}

static bool is_guarded(const array_t *a) {
  unsigned char guard[GUARD];
  if (!a->memory)
    return true;
  CHECK(cudaMemcpy(guard,
                   (char *)a->memory + (size_t)a->places * bytes_of(a->type),
                   GUARD, cudaMemcpyDeviceToHost));
  for (int i = 0; i < GUARD; i++)
    if (guard[i] != POISON)
      return false;
  return true;
}

double array_off(const array_t *a) {
  size_t bytes = span_of(a);
  void *piece = malloc(bytes);
  double most = 0;
  CHECK(!piece);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(piece, a->device, bytes, cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < count_of(a->dim); i++) {
    int64_t index, place = place_of(a, i, &index);
    if (isinf(a->bound[index])) // anything
      continue;
    double is = fabs(value_get(piece, a->type, place) - a->value[index]);
    double off = is == 0 ? 0 : is / a->bound[index];
    most = off <= most ? most : off; // also if it is NaN
  }
  free(piece);
  return is_guarded(a) ? most : (double)INFINITY;
}

void pieces_free(case_t *c) {
  whole_tag(c, NULL);
  for (int a = 0; a < ARRAYS; a++) {
    free(c->array[a].value);
    free(c->array[a].bound);
    CHECK(cudaFree(c->array[a].memory));
  }
}
