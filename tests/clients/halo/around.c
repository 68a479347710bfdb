/* SPDX-License-Identifier: Apache-2.0 */
/* Draws tensors, splits, widths and borders, and compares every element that
 * sundog_halo() writes, and those that it must not write, with what they are by
 * their indices. The same for sundog_combine().
 *
 * usage: around RANK Y X SEED CASES VIEW
 *
 * The mesh is y=Y,x=X. VIEW: shard, whole, or alone (one rank, no split). */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sundog.h"
#include "tests/calls.h"

enum { DIMS = 5, NAMES = 5, EXTENT = 7, OLD = 0x5a };

static const char names[NAMES] = "NCDHW";
static int rank, mesh[2], me[2]; /* y, x */
static bool shard;
static __typeof__(&sundog_halo) halo;
static __typeof__(&sundog_combine) combine;
static __typeof__(&sundog_tensor_place) tensor_place;
static __typeof__(&sundog_error) error_text;

static uint64_t state;
static int draw(int below) {
  state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)below);
}

/* One drawn case; the same on every rank but for what `first` and `extent` say
 * of its piece. */
typedef struct drawn {
  int dims, bytes;
  char text[2 * DIMS + 1], split[64];
  int64_t whole[DIMS], first[DIMS];
  sundog_tensor_t tensor;
  sundog_widths_t widths;
  int64_t stride[2][DIMS], length[2]; /* of the piece and of `out` */
  int64_t extent[2][DIMS];
  bool inside; /* the piece lies in `out` */
  int salt;
} drawn_t;

/* Cuts `whole` into `pieces` parts of any size. */
static void part_draw(int64_t whole, int pieces, int index, int64_t *out_first,
                      int64_t *out_extent) {
  int64_t cut[9] = {0};
  for (int p = 1; p < pieces; p++) {
    int64_t at = draw((int)whole + 1);
    int k = p;
    for (; k > 1 && cut[k - 1] > at; k--)
      cut[k] = cut[k - 1];
    cut[k] = at;
  }
  cut[pieces] = whole;
  *out_first = cut[index];
  *out_extent = cut[index + 1] - cut[index];
}

static void names_draw(drawn_t *io) {
  int chosen[NAMES] = {0, 1, 2, 3, 4};
  io->dims = 1 + draw(4);
  for (int i = 0; i < io->dims; i++) {
    int k = i + draw(NAMES - i), name = chosen[k];
    chosen[k] = chosen[i];
    chosen[i] = name;
    io->text[2 * i] = names[name];
    io->text[2 * i + 1] = i + 1 < io->dims ? ' ' : '\0';
  }
}

/* Which axes split which dimension: none, y, x, or both one dimension. */
static void split_draw(drawn_t *io) {
  int by[2] = {draw(io->dims + 1) - 1, draw(io->dims + 1) - 1};
  if (by[0] < 0 && by[1] < 0)
    by[0] = draw(io->dims);
  for (int d = 0; d < io->dims; d++) {
    int pieces = 1, index = 0;
    char axes[8] = "";
    for (int a = 0; a < 2; a++)
      if (by[a] == d) {
        pieces *= mesh[a];
        index = index * mesh[a] + me[a];
        snprintf(axes + strlen(axes), sizeof axes - strlen(axes), "%s%c",
                 *axes ? "+" : "", "yx"[a]);
      }
    io->whole[d] = 1 + draw(EXTENT);
    io->first[d] = 0;
    io->extent[0][d] = io->whole[d];
    if (!*axes)
      continue;
    if (shard)
      part_draw(io->whole[d], pieces, index, &io->first[d], &io->extent[0][d]);
    snprintf(io->split + strlen(io->split),
             sizeof io->split - strlen(io->split), "%s%c:%s",
             *io->split ? "," : "", io->text[2 * d], axes);
  }
}

/* Strides of tensor `which` in a drawn order of dimensions, with gaps, or none
 * said: packed. */
static void strides_draw(drawn_t *io, int which, int64_t *out_said) {
  int order[DIMS], said = draw(3);
  int64_t next = 1;
  for (int d = 0; d < io->dims; d++)
    order[d] = d;
  for (int d = 0; d < io->dims && said; d++) {
    int k = d + draw(io->dims - d), was = order[k];
    order[k] = order[d];
    order[d] = was;
  }
  for (int i = io->dims - 1; i >= 0; i--) {
    int d = order[i], gap = draw(3);
    io->stride[which][d] = next;
    if (said)
      out_said[d] = next;
    next *= io->extent[which][d] > 0 ? io->extent[which][d] : 1;
    if (said)
      next += gap;
  }
  io->length[which] = next;
}

static void case_draw(int number, drawn_t *out) {
  static const struct {
    sundog_type_t type;
    int bytes;
  } types[] = {{SUNDOG_FLOAT, 4}, {SUNDOG_DOUBLE, 8}, {SUNDOG_HALF, 2},
               {SUNDOG_INT8, 1},  {SUNDOG_INT32, 4},  {SUNDOG_INT64, 8}};
  memset(out, 0, sizeof *out);
  int type = draw(sizeof types / sizeof *types);
  names_draw(out);
  split_draw(out);
  bool empty = false;
  for (int d = 0; d < out->dims; d++)
    empty |= out->extent[0][d] == 0;
  for (int d = 0; d < out->dims; d++) {
    int most = draw(3) ? 2 : 2 * EXTENT;
    out->widths.before[d] = draw(most + 1);
    out->widths.after[d] = draw(most + 1);
    out->widths.border[d] = (sundog_border_t)draw(3);
    out->tensor.extent[d] = out->extent[0][d];
    out->extent[1][d] =
        out->extent[0][d] +
        (empty ? 0 : out->widths.before[d] + out->widths.after[d]);
  }
  out->bytes = types[type].bytes;
  out->salt = number;
  out->inside = draw(3) == 0;
  strides_draw(out, 1, out->widths.stride);
  strides_draw(out, 0, out->tensor.stride);
  if (out->inside) {
    memcpy(out->stride[0], out->stride[1], sizeof out->stride[0]);
    memcpy(out->tensor.stride, out->stride[1], sizeof out->tensor.stride);
  }
  out->tensor.type = types[type].type;
  out->tensor.dims = out->text;
  out->tensor.split = shard ? out->split : NULL;
  out->tensor.version = number;
  if (empty)
    out->length[0] = out->length[1] = 0;
}

/* The element of the whole at these indices. */
static uint64_t value_at(const drawn_t *c, const int64_t *at) {
  uint64_t hash = (uint64_t)c->salt * 1000003u + 77;
  for (int d = 0; d < c->dims; d++)
    hash = (hash ^ (uint64_t)at[d]) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

/* Steps through a box of `extent`; false at its end. */
static bool next_index(const drawn_t *c, const int64_t *extent, int64_t *at) {
  for (int d = c->dims - 1; d >= 0; d--) {
    if (++at[d] < extent[d])
      return true;
    at[d] = 0;
  }
  return false;
}

static int64_t place_of(const drawn_t *c, int which, const int64_t *at) {
  int64_t offset = 0;
  for (int d = 0; d < c->dims; d++)
    offset += at[d] * c->stride[which][d];
  return offset * c->bytes;
}

static void piece_fill(const drawn_t *c, char *memory, int which,
                       const int64_t *shift) {
  int64_t at[DIMS] = {0};
  do {
    int64_t global[DIMS], local[DIMS];
    for (int d = 0; d < c->dims; d++) {
      global[d] = c->first[d] + at[d];
      local[d] = at[d] + shift[d];
    }
    uint64_t value = value_at(c, global);
    memcpy(memory + place_of(c, which, local), &value, (size_t)c->bytes);
  } while (next_index(c, c->extent[0], at));
}

/* What `out` must be: `memory` has what it was. */
static void out_expect(const drawn_t *c, char *memory) {
  int64_t at[DIMS] = {0};
  do {
    int64_t global[DIMS];
    bool leaves = false, zero = false;
    for (int d = 0; d < c->dims; d++) {
      int64_t g = c->first[d] - c->widths.before[d] + at[d], n = c->whole[d];
      bool beyond = g < 0 || g >= n;
      leaves |= beyond && c->widths.border[d] == SUNDOG_LEAVE;
      zero |= beyond && c->widths.border[d] == SUNDOG_ZERO;
      global[d] = (g % n + n) % n;
    }
    uint64_t value = zero ? 0 : value_at(c, global);
    if (!leaves)
      memcpy(memory + place_of(c, 1, at), &value, (size_t)c->bytes);
  } while (next_index(c, c->extent[1], at));
}

static void fail(const drawn_t *c, const char *what, int64_t at) {
  printf("rank %d, case %d, dims '%s', split '%s', at %lld: %s\n", rank,
         c->salt, c->text, c->split, (long long)at, what);
  for (int d = 0; d < c->dims; d++)
    printf("  %lld of %lld from %lld, %lld before, %lld after, border %d\n",
           (long long)c->extent[0][d], (long long)c->whole[d],
           (long long)c->first[d], (long long)c->widths.before[d],
           (long long)c->widths.after[d], (int)c->widths.border[d]);
  exit(EXIT_FAILURE);
}

static void halo_try(drawn_t *c) {
  size_t bytes[2];
  char *image[2], *device[2] = {NULL, NULL}, *got;
  static const int64_t none[DIMS];
  for (int w = 0; w < 2; w++) {
    bytes[w] = (size_t)c->length[w] * (size_t)c->bytes;
    image[w] = malloc(bytes[w] + 1);
    memset(image[w], OLD, bytes[w] + 1);
    if (bytes[w])
      CHECK(cudaMalloc((void **)&device[w], bytes[w]));
  }
  got = malloc(bytes[1] + 1);
  const char *data = device[0];
  if (c->length[1] && c->inside) {
    piece_fill(c, image[1], 1, c->widths.before);
    data = device[1] + place_of(c, 1, c->widths.before);
  } else if (c->length[0]) {
    piece_fill(c, image[0], 0, none);
  }
  for (int w = 0; w < 2; w++)
    if (bytes[w])
      CHECK(cudaMemcpy(device[w], image[w], bytes[w], cudaMemcpyHostToDevice));
  if (c->length[1])
    out_expect(c, image[1]);
  for (int round = 0; round < 2; round++) {
    CHECK(halo(NULL, &c->tensor, data, &c->widths, device[1]));
    if (bytes[1])
      CHECK(cudaMemcpy(got, device[1], bytes[1], cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes[1]; i++)
      if (got[i] != image[1][i])
        fail(c, round ? "differs at the second call" : "differs",
             (int64_t)i / c->bytes);
  }
  int64_t first[DIMS], whole[DIMS];
  int dims = tensor_place(&c->tensor, first, whole);
  if (shard && c->length[1] &&
      (dims != c->dims ||
       memcmp(first, c->first, sizeof *first * (size_t)dims) ||
       memcmp(whole, c->whole, sizeof *whole * (size_t)dims)))
    fail(c, "the place is wrong", dims);
  for (int w = 0; w < 2; w++) {
    CHECK(cudaFree(device[w]));
    free(image[w]);
  }
  free(got);
}

/* The number of rank (y, x) at `i`. */
static int number_of(int salt, int y, int x, int i) {
  return (salt * 7919 + (y * 8 + x) * 104729 + i * 31) % 1000 - 500;
}

static void combine_try(int salt) {
  static const char *const axes[] = {"y", "x", "y+x", NULL};
  static const sundog_type_t types[] = {SUNDOG_DOUBLE, SUNDOG_INT32,
                                        SUNDOG_INT64};
  int count = 1 + draw(40), over = draw(4);
  sundog_op_t op = (sundog_op_t)draw(3);
  sundog_type_t type = types[draw(3)];
  size_t bytes = type == SUNDOG_INT32 ? 4 : 8;
  char host[8 * 41];
  void *device;
  for (int i = 0; i < count; i++) {
    int value = number_of(salt, me[0], me[1], i);
    double real = value;
    int64_t wide = value;
    memcpy(host + (size_t)i * bytes,
           type == SUNDOG_DOUBLE  ? (void *)&real
           : type == SUNDOG_INT64 ? (void *)&wide
                                  : (void *)&value,
           bytes);
  }
  CHECK(cudaMalloc(&device, sizeof host));
  CHECK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(combine(NULL, device, (size_t)count, type, op, axes[over]));
  CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; i++) {
    int64_t right = 0, got = 0;
    bool any = false;
    for (int y = 0; y < mesh[0]; y++)
      for (int x = 0; x < mesh[1]; x++) {
        int64_t value = number_of(salt, y, x, i);
        if ((y != me[0] && over == 1) || (x != me[1] && over == 0))
          continue;
        right = !any                                    ? value
                : op == SUNDOG_SUM                      ? right + value
                : (op == SUNDOG_MAX) == (value > right) ? value
                                                        : right;
        any = true;
      }
    if (type == SUNDOG_DOUBLE) {
      double real;
      memcpy(&real, host + (size_t)i * bytes, bytes);
      got = (int64_t)real;
    } else if (type == SUNDOG_INT64) {
      memcpy(&got, host + (size_t)i * bytes, bytes);
    } else {
      int32_t narrow;
      memcpy(&narrow, host + (size_t)i * bytes, bytes);
      got = narrow;
    }
    if (got != right) {
      printf("rank %d: number %d, op %d over %s, is %lld, not %lld\n", rank, i,
             (int)op, axes[over] ? axes[over] : "all", (long long)got,
             (long long)right);
      exit(EXIT_FAILURE);
    }
  }
  CHECK(cudaFree(device));
}

int main(int argc, char **argv) {
  if (argc != 7)
    return EXIT_FAILURE;
  rank = atoi(argv[1]);
  mesh[0] = atoi(argv[2]);
  mesh[1] = atoi(argv[3]);
  me[0] = rank / mesh[1];
  me[1] = rank % mesh[1];
  state = strtoull(argv[4], NULL, 10);
  int cases = atoi(argv[5]);
  shard = strcmp(argv[6], "shard") == 0;
  halo = (__typeof__(halo))dlsym(RTLD_DEFAULT, "sundog_halo");
  combine = (__typeof__(combine))dlsym(RTLD_DEFAULT, "sundog_combine");
  tensor_place =
      (__typeof__(tensor_place))dlsym(RTLD_DEFAULT, "sundog_tensor_place");
  error_text = (__typeof__(error_text))dlsym(RTLD_DEFAULT, "sundog_error");
  for (int i = 1; i <= cases; i++) {
    drawn_t c;
    case_draw(i, &c);
    halo_try(&c);
    if (strcmp(argv[6], "whole") != 0)
      combine_try(i);
  }
  printf("rank %d: %d cases\n", rank, cases);
  return EXIT_SUCCESS;
}
