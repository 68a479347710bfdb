// SPDX-License-Identifier: Apache-2.0
// Pools drawn tensors, in pieces and on one device, and compares: with double
// precision, and, where the program can ask for one device, bit by bit.
//
// usage: poolcase [RANK RANKS] VIEW PIECES SPATIAL SEED CASES OUT [wrap|global]
//        VIEW shard, whole or alone; PIECES of N,C,D,H,W, ranks row-major over
//        them, further ranks repeat; OUT gets all outputs that are there in
//        full: of "alone" and "whole" the same bytes; wrap: H is periodic;
//        global: each rank's window is its piece
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "poolcase.h"
#include "src/sundog.h"

#define CHECK(call)                                                            \
  do {                                                                         \
    int status_ = (int)(call);                                                 \
    if (status_ != 0) {                                                        \
      fprintf(stderr, "poolcase: case %d: %s: %d\n", g.number, #call,          \
              status_);                                                        \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)
#define DEMAND(condition) CHECK(!(condition))

static struct {
  cudnnHandle_t cudnn;
  cudnnPoolingDescriptor_t pool;
  int rank, ranks, number, spatial;
  bool shard;
  const char *special;
  FILE *out;
  __typeof__(&sundog_tag) tag;
} g;

// A tensor's piece in device memory, and what was put there.
typedef struct {
  box_t box;
  cudnnTensorDescriptor_t desc;
  cudnnDataType_t type;
  size_t stride[DIMS], bytes;
  char *host, *device;
} tensor_t;

#define EACH(box, at)                                                          \
  for (int at[DIMS] = {0}, more_ = 1; more_; more_ = box_next(&(box), at))

static int box_next(const box_t *box, int *at) {
  for (int d = DIMS - 1; d >= 0; d--) {
    if (++at[d] < box->extent[d])
      return 1;
    at[d] = 0;
  }
  return 0;
}

static char *element(const tensor_t *t, char *base, const int *at) {
  size_t offset = 0;
  for (int d = 0; d < DIMS; d++)
    offset += (size_t)at[d] * t->stride[d];
  return base + offset * (size_t)type_bytes(t->type);
}

static void global_of(const box_t *box, const int *at, int *out) {
  for (int d = 0; d < DIMS; d++)
    out[d] = box->first[d] + at[d];
}

static void strides_set(const pool_t *p, tensor_t *t) {
  static const int orders[2][DIMS] = {{0, 1, 2, 3, 4}, {0, 2, 3, 4, 1}};
  const int *order = orders[p->layout == 1];
  size_t stride = 1;
  for (int i = DIMS - 1; i >= 0; i--) {
    t->stride[order[i]] = stride;
    stride *= (size_t)t->box.extent[order[i]];
    if (p->layout == 2 && i >= 3)
      stride += (size_t)(5 - i);
  }
  t->bytes = stride * (size_t)type_bytes(t->type);
}

static void describe(const tensor_t *t, bool local) {
  int dims[DIMS], strides[DIMS], count = 0;
  for (int d = 0; d < DIMS; d++)
    if (d != 2 || g.spatial == 3) {
      dims[count] = t->box.extent[d];
      strides[count++] = (int)t->stride[d];
    }
  CHECK(cudnnSetTensorNdDescriptor(t->desc, t->type, count, dims, strides));
  if (local && g.tag)
    CHECK(g.tag(t->desc, "local"));
}

// `like` a drawn tensor, or 0: filled later.
static void make(const pool_t *p, const box_t *box, char like, bool local,
                 tensor_t *t) {
  *t = (tensor_t){.box = *box, .type = p->type};
  CHECK(cudnnCreateTensorDescriptor(&t->desc));
  strides_set(p, t);
  describe(t, local);
  t->host = malloc(t->bytes);
  DEMAND(t->host);
  memset(t->host, 0x55, t->bytes);
  CHECK(cudaMalloc((void **)&t->device, t->bytes));
  EACH(t->box, at) {
    int from[DIMS];
    global_of(box, at, from);
    type_put(t->type, pool_value(p, like, from), element(t, t->host, at));
  }
  CHECK(cudaMemcpy(t->device, t->host, t->bytes, cudaMemcpyHostToDevice));
  // In the whole view only this rank's box is right from now on.
  const double one_d = 1;
  const float one_f = 1;
  CHECK(cudnnScaleTensor(g.cudnn, t->desc, t->device,
                         t->type == CUDNN_DATA_DOUBLE ? (const void *)&one_d
                                                      : &one_f));
}

static void done(tensor_t *t) {
  free(t->host);
  CHECK(cudaFree(t->device));
  CHECK(cudnnDestroyTensorDescriptor(t->desc));
}

// What is written: gaps must not be.
static void fetch(tensor_t *t) {
  char *now = malloc(t->bytes);
  DEMAND(now);
  CHECK(cudaMemcpy(now, t->device, t->bytes, cudaMemcpyDeviceToHost));
  EACH(t->box, at)
  memcpy(element(t, t->host, at), element(t, now, at),
         (size_t)type_bytes(t->type));
  DEMAND(memcmp(now, t->host, t->bytes) == 0);
  free(now);
}

static void judge(const pool_t *p, tensor_t *t, char what,
                  const tensor_t *single) {
  double eps = type_epsilon(p->type);
  EACH(t->box, at) {
    int from[DIMS];
    global_of(&t->box, at, from);
    double got = type_get(t->type, element(t, t->host, at));
    double want = p->alpha * (what == 'y' ? pool_forward(p, from)
                                          : pool_backward(p, from));
    if (p->beta != 0)
      want += p->beta * pool_value(p, 'o', from);
    double terms = 8;
    for (int i = 0; i < 3 && what == 'x'; i++)
      terms *= p->window[i] / p->stride[i] + 1;
    bool near = isfinite(want) ? fabs(got - want) <= 4 * eps * terms
                               : (isnan(got) && isnan(want)) || got == want;
    if (!near) {
      fprintf(stderr,
              "poolcase: case %d: rank %d: %s[%d,%d,%d,%d,%d] is %.9g instead "
              "of %.9g\n",
              g.number, g.rank, what == 'y' ? "y" : "dx", from[0], from[1],
              from[2], from[3], from[4], got, want);
      exit(1);
    }
    if (!single)
      continue;
    double bit = type_get(t->type, element(single, single->host, from));
    DEMAND(got == bit || (isnan(got) && isnan(bit)));
  }
}

static const void *scalar_of(const pool_t *p, double value, void *room) {
  if (p->type == CUDNN_DATA_DOUBLE)
    memcpy(room, &value, sizeof value);
  else
    memcpy(room, &(float){(float)value}, sizeof(float));
  return room;
}

// A window over all of the piece where it is over all of the whole.
static void describe_pool(const pool_t *p, const box_t *x) {
  int skip = 3 - g.spatial, window[3];
  for (int i = 0; i < 3; i++)
    window[i] = pool_merges(p, i + 2) ? x->extent[i + 2] : p->window[i];
  CHECK(cudnnSetPoolingNdDescriptor(g.pool, p->mode, p->nan, g.spatial,
                                    window + skip, p->pad + skip,
                                    p->stride + skip));
}

// The answer to the question for y's extents is this rank's piece.
static void sizes_check(const pool_t *p, const tensor_t *x, const box_t *y) {
  int n[DIMS], count = 0;
  if (p->own_sizes)
    return;
  CHECK(cudnnGetPoolingNdForwardOutputDim(g.pool, x->desc, g.spatial + 2, n));
  for (int d = 0; d < DIMS; d++)
    if (d != 2 || g.spatial == 3)
      DEMAND(n[count++] == y->extent[d]);
  if (g.spatial == 2) {
    int m[4];
    CHECK(cudnnGetPooling2dForwardOutputDim(g.pool, x->desc, m, m + 1, m + 2,
                                            m + 3));
    DEMAND(memcmp(m, n, sizeof m) == 0);
  }
}

typedef struct {
  tensor_t y, dx;
} results_t;

// All calls of a case on these boxes. The gradient is that of y as it comes
// without alpha and beta.
static void calls(const pool_t *p, const box_t *xs, const box_t *ys, bool local,
                  results_t *r) {
  tensor_t x, plain, dy;
  double room[4];
  const void *alpha = scalar_of(p, p->alpha, &room[0]);
  const void *beta = scalar_of(p, p->beta, &room[1]);
  const void *one = scalar_of(p, 1, &room[2]);
  const void *zero = scalar_of(p, 0, &room[3]);
  describe_pool(p, xs);
  make(p, xs, 'x', local, &x);
  sizes_check(p, &x, ys);
  make(p, ys, 'o', local, &r->y);
  CHECK(cudnnPoolingForward(g.cudnn, g.pool, alpha, x.desc, x.device, beta,
                            r->y.desc, r->y.device));
  fetch(&r->y);
  make(p, ys, 'o', local, &plain);
  make(p, ys, 'd', local, &dy);
  make(p, xs, 'o', local, &r->dx);
  CHECK(cudnnPoolingForward(g.cudnn, g.pool, one, x.desc, x.device, zero,
                            plain.desc, plain.device));
  CHECK(cudnnPoolingBackward(g.cudnn, g.pool, alpha, plain.desc, plain.device,
                             dy.desc, dy.device, x.desc, x.device, beta,
                             r->dx.desc, r->dx.device));
  fetch(&r->dx);
  done(&dy);
  done(&plain);
  done(&x);
}

static void boxes_of(const pool_t *p, int rank, box_t *x, box_t *y) {
  for (int d = DIMS - 1; d >= 0; d--) {
    int i = rank < 0 ? 0 : rank % p->pieces[d];
    int to = rank < 0 ? p->pieces[d] : i + 1;
    rank = rank < 0 ? rank : rank / p->pieces[d];
    x->first[d] = p->x_cut[d][i];
    x->extent[d] = p->x_cut[d][to] - x->first[d];
    y->first[d] = p->y_cut[d][i];
    y->extent[d] = p->y_cut[d][to] - y->first[d];
    if (pool_merges(p, d)) {
      y->first[d] = 0;
      y->extent[d] = 1;
    }
  }
}

static void run(const pool_t *p) {
  box_t x, y, all_x, all_y;
  results_t mine, single;
  boxes_of(p, -1, &all_x, &all_y);
  boxes_of(p, g.shard ? g.rank : -1, &x, &y);
  calls(p, &x, &y, false, &mine);
  // Means of pieces' means are not rounded as one mean is.
  bool mean = p->mode != CUDNN_POOLING_MAX &&
              p->mode != CUDNN_POOLING_MAX_DETERMINISTIC;
  bool compare = g.shard && !p->wrap && !(p->global && mean);
  if (compare)
    calls(p, &all_x, &all_y, true, &single);
  judge(p, &mine.y, 'y', compare ? &single.y : NULL);
  judge(p, &mine.dx, 'x', compare ? &single.dx : NULL);
  if (!g.shard) {
    DEMAND(fwrite(mine.y.host, mine.y.bytes, 1, g.out) == 1);
    DEMAND(fwrite(mine.dx.host, mine.dx.bytes, 1, g.out) == 1);
  }
  done(&mine.y);
  done(&mine.dx);
  if (compare) {
    done(&single.y);
    done(&single.dx);
  }
}

int main(int count, char **arg) {
  if (count < 9)
    return 2;
  g.rank = atoi(arg[1]);
  g.ranks = atoi(arg[2]);
  g.shard = strcmp(arg[3], "shard") == 0;
  int pieces[DIMS];
  DEMAND(sscanf(arg[4], "%d,%d,%d,%d,%d", pieces, pieces + 1, pieces + 2,
                pieces + 3, pieces + 4) == DIMS);
  g.spatial = atoi(arg[5]);
  uint64_t state = strtoull(arg[6], NULL, 10);
  int cases = atoi(arg[7]);
  g.special = count > 9 ? arg[9] : "";
  g.out = fopen(arg[8], "wb");
  DEMAND(g.out);
  if (g.shard)
    g.tag = (__typeof__(&sundog_tag))dlsym(RTLD_DEFAULT, "sundog_tag");
  CHECK(cudnnCreate(&g.cudnn));
  CHECK(cudnnCreatePoolingDescriptor(&g.pool));
  for (int left = cases; left > 0; g.number++) {
    pool_t p;
    if (!pool_draw(&state, pieces, g.spatial, !g.shard, g.special, &p))
      continue;
    run(&p);
    left--;
  }
  CHECK(cudnnDestroyPoolingDescriptor(g.pool));
  CHECK(cudnnDestroy(g.cudnn));
  return fclose(g.out) != 0;
}
