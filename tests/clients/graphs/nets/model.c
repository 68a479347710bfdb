// SPDX-License-Identifier: Apache-2.0
// What a rank has, and what becomes of it.
#include "tests/clients/graphs/nets/model.h"

#include <cuda_runtime_api.h>
#include <string.h>

#include "tests/clients/graphs/tag.h"

__extension__ typedef _Float16 half_t;

// ---- the program's words ---------------------------------------------------

const char *model_word(int words, char **word, const char *name) {
  for (int i = 1; i + 1 < words; i++)
    if (strcmp(word[i], name) == 0)
      return word[i + 1];
  return NULL;
}

enum { PIECES_MAX = 8 };

// The pieces of a list; returns how many.
static int pieces_of(const char *list, int64_t out[PIECES_MAX]) {
  int count = 0;
  for (char *end; list && *list; list = *end ? end + 1 : end) {
    CHECK(count == PIECES_MAX);
    out[count++] = strtoll(list, &end, 10);
  }
  return count;
}

static void pieces_take(model_t *m, int words, char **word) {
  static const char *const name[] = {"--n", NULL, "--h", "--w"};
  const char *view = getenv("LAYER_VIEW"), *rank = getenv("SUNDOG_RANK");
  bool all = !view || view[0] != 's' || !rank;
  int left = all ? 0 : atoi(rank);
  for (int d = BUILD_DIMS - 1; d >= 0; d--) {
    int64_t piece[PIECES_MAX] = {d == 0 ? 2 : 16};
    int count =
        name[d] ? pieces_of(model_word(words, word, name[d]), piece) : 0;
    count = count ? count : 1;
    for (int i = 0; i < count; i++) {
      m->first[d] += !all && i < left % count ? piece[i] : 0;
      m->whole[d] += piece[i];
    }
    m->dim[d] = all ? m->whole[d] : piece[left % count];
    left /= count;
  }
}

void model_init(model_t *m, int words, char **word) {
  const char *manner = model_word(words, word, "--manner");
  const char *steps = model_word(words, word, "--steps");
  const char *type = model_word(words, word, "--type");
  *m = (model_t){.steps = steps ? atoi(steps) : 4,
                 .real = type && strcmp(type, "half") == 0 ? CUDNN_DATA_HALF
                                                           : CUDNN_DATA_FLOAT};
  m->net.manner = !manner || manner[0] == 't' ? MANNER_TORCH
                  : manner[0] == 'b'          ? MANNER_BENCHMARK
                                              : MANNER_XLA;
  pieces_take(m, words, word);
  CHECK(cudnnCreate(&m->net.handle));
}

void model_fini(model_t *m) {
  for (int i = 0; i < m->ops; i++)
    op_free(&m->op[i]);
  for (int i = 0; i < m->tensors; i++) {
    tensor_free(m->tensor[i]);
    free(m->tensor[i]);
  }
  CHECK(cudnnDestroy(m->net.handle));
}

// ---- tensors ---------------------------------------------------------------

static tensor_t *keep(model_t *m, tensor_t made) {
  CHECK(m->tensors == MODEL_TENSORS);
  tensor_t *t = m->tensor[m->tensors++] = malloc(sizeof *t);
  CHECK(!t);
  *t = made;
  return t;
}

tensor_t *model_tensor(model_t *m, cudnnDataType_t type, int64_t n, int64_t c,
                       int64_t h, int64_t w) {
  return keep(m, tensor_make(type, n, c, h, w));
}

tensor_t *model_like(model_t *m, const tensor_t *t) {
  return keep(m,
              tensor_make(t->type, t->dim[0], t->dim[1], t->dim[2], t->dim[3]));
}

tensor_t *model_number(model_t *m, float value) {
  return keep(m, tensor_number(value));
}

tensor_t *model_number_like(model_t *m, const void *value) {
  int64_t room;
  memcpy(&room, value, sizeof room);
  return keep(m, tensor_count(room));
}

// Between -1 and 1.
static float value_at(uint64_t place, unsigned seed) {
  uint64_t mixed =
      (place + 1) * 0x9e3779b97f4a7c15u + seed * 0x2545f4914f6cdd1du;
  mixed ^= mixed >> 29;
  mixed *= 0xbf58476d1ce4e5b9u;
  return (float)(mixed >> 40) / (float)(1 << 23) - 1;
}

static size_t bytes_of(const tensor_t *t) {
  return (size_t)tensor_elements(t) *
         (t->type == CUDNN_DATA_HALF ? sizeof(half_t) : sizeof(float));
}

static void write_to(const tensor_t *t, const float *from) {
  half_t *half = NULL;
  if (t->type == CUDNN_DATA_HALF) {
    half = malloc(bytes_of(t));
    CHECK(!half);
    for (int64_t i = 0; i < tensor_elements(t); i++)
      half[i] = (half_t)from[i];
  }
  CHECK(cudaMemcpy(t->at, half ? (const void *)half : from, bytes_of(t),
                   cudaMemcpyHostToDevice));
  free(half);
}

static float *read_from(const tensor_t *t) {
  float *to = malloc((size_t)tensor_elements(t) * sizeof *to);
  half_t *half = malloc(bytes_of(t));
  bool is_half = t->type == CUDNN_DATA_HALF;
  CHECK(!to || !half);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(is_half ? (void *)half : to, t->at, bytes_of(t),
                   cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < tensor_elements(t) && is_half; i++)
    to[i] = (float)half[i];
  free(half);
  return to;
}

static parameter_t *parameter_make(model_t *m, int64_t k, int64_t c, int64_t r,
                                   int64_t s) {
  CHECK(m->parameters == MODEL_PARAMETERS);
  parameter_t *p = &m->parameter[m->parameters++];
  // Engines write sums, of which a number for each channel is one, in float.
  cudnnDataType_t type = k == 1 ? CUDNN_DATA_FLOAT : m->real;
  *p = (parameter_t){model_tensor(m, type, k, c, r, s),
                     model_tensor(m, type, k, c, r, s)};
  return p;
}

parameter_t *model_constants(model_t *m, int64_t channels, float value) {
  parameter_t *p = parameter_make(m, 1, channels, 1, 1);
  float *values = malloc((size_t)channels * sizeof *values);
  CHECK(!values);
  for (int64_t i = 0; i < channels; i++)
    values[i] = value;
  write_to(p->at, values);
  free(values);
  return p;
}

parameter_t *model_parameter(model_t *m, int64_t k, int64_t c, int64_t r,
                             int64_t s) {
  parameter_t *p = parameter_make(m, k, c, r, s);
  int64_t count = tensor_elements(p->at);
  float *value = malloc((size_t)count * sizeof *value);
  CHECK(!value);
  for (int64_t i = 0; i < count; i++)
    value[i] = value_at((uint64_t)i, (unsigned)m->parameters) /
               (float)(k > 1 && r * s > 1 ? 4 : 3);
  write_to(p->at, value);
  free(value);
  return p;
}

void model_fill(const model_t *m, const tensor_t *t, int shrink,
                unsigned seed) {
  float *value = malloc((size_t)tensor_elements(t) * sizeof *value);
  float *to = value;
  const bool ones = shrink == 0;
  CHECK(!value);
  for (int64_t n = 0; n < t->dim[0]; n++)
    for (int64_t h = 0; h < t->dim[2]; h++)
      for (int64_t w = 0; w < t->dim[3]; w++)
        for (int64_t c = 0; c < t->dim[1]; c++) {
          int64_t row = ones ? 0 : m->first[2] / shrink + h;
          int64_t column = ones ? 0 : m->first[3] / shrink + w;
          int64_t at = ((n + m->first[0]) * 64 + row) * 64 + column;
          *to++ = value_at((uint64_t)(at * 64 + c), seed);
        }
  write_to(t, value);
  free(value);
}

void model_tag_local(const tensor_t *t) {
  tag_range(t->at, (size_t)tensor_elements(t) * sizeof(float), "local");
}

// ---- running ---------------------------------------------------------------

void model_end(model_t *m, sketch_t *s) {
  CHECK(m->ops == MODEL_OPS);
  m->op[m->ops++] = op_make(&m->net, s);
}

void model_run(model_t *m) {
  for (int i = 0; i < m->ops; i++)
    op_run(&m->net, &m->op[i]);
}

void model_tell(int step, const tensor_t *sum, double points) {
  float *value = read_from(sum);
  printf("step %d loss %.7g\n", step, (double)value[0] / points);
  fflush(stdout);
  free(value);
}

void model_tell_parameters(const model_t *m) {
  for (int p = 0; p < m->parameters; p++) {
    float *value = read_from(m->parameter[p].at);
    for (int64_t i = 0; i < tensor_elements(m->parameter[p].at); i++)
      printf("parameter %d %lld %.7g\n", p, (long long)i, (double)value[i]);
    free(value);
  }
}
