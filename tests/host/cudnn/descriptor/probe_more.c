// SPDX-License-Identifier: Apache-2.0
// The part of the probe about the descriptors that few programs use:
// transforms, dropout, spatial transformers, recurrent networks, CTC loss and
// attention.
#include "tests/host/cudnn/descriptor/probe.h"

/* One value in twelve is replaced by one that may be out of range. */
static int choose(int usual, int low, int high) {
  return draw(12) ? usual : range(low, high);
}

static void transforms(int cases) {
  cudnnTensorTransformDescriptor_t t;
  cudnnTensorDescriptor_t x, y;
  for (int i = 0; i < cases; i++) {
    start(7, i);
    cudnnCreateTensorTransformDescriptor(&t);
    cudnnCreateTensorDescriptor(&x);
    cudnnCreateTensorDescriptor(&y);
    int nb = choose(range(3, 5), 0, 9), dim[8], before[9], after[9];
    unsigned fold[9];
    for (int j = 0; j < 9; j++) {
      before[j] = draw(3) ? 0 : range(-1, 3);
      after[j] = draw(3) ? 0 : range(-1, 3);
      fold[j] = (unsigned)choose(range(1, 2), 0, 3);
    }
    for (int j = 0; j < 8; j++)
      dim[j] = range(1, 9);
    int fm = choose(range(0, 1), -1, 3), way = range(-1, 2);
    int s = cudnnSetTensorTransformDescriptor(t, (uint32_t)nb, fm, before,
                                              after, fold, way);
    printf("transform %d nb %d format %d way %d", i, nb, fm, way);
    list("b", before, 8);
    list("a", after, 8);
    list("f", (int *)fold, 6);
    list("x", dim, 5);
    printf(" -> %d", s);
    int f2 = -7, d2 = -7;
    memset(before, 0x5a, sizeof before);
    memset(after, 0x5a, sizeof after);
    memset(fold, 0x5a, sizeof fold);
    int request = choose(8, 0, 9);
    int g = cudnnGetTensorTransformDescriptor(
        t, (uint32_t)request, (cudnnTensorFormat_t *)&f2, before, after, fold,
        (cudnnFoldingDirection_t *)&d2);
    printf(" get(%d) %d %d %d", request, g, f2, d2);
    list("b", before, 9);
    list("a", after, 9);
    list("f", (int *)fold, 9);
    size_t bytes = 77;
    if (s == 0 && fm >= 0 && nb > 2) {
      cudnnSetTensorNdDescriptorEx(x, range(0, 1), choose(0, 0, 4),
                                   nb > 5 ? 5 : nb, dim);
      s = cudnnInitTransformDest(t, x, y, &bytes);
      printf(" init %d", s);
      if (s == 0) {
        printf(" %zu", bytes);
        int nd = -7, d[8] = {0}, st[8] = {0};
        cudnnDataType_t ty = (cudnnDataType_t)-7;
        cudnnGetTensorNdDescriptor(y, 8, &ty, &nd, d, st);
        printf(" %d %d", (int)ty, nd);
        list("d", d, 8);
        list("s", st, 8);
      }
    }
    printf("\n");
    cudnnDestroyTensorTransformDescriptor(t);
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyTensorDescriptor(y);
  }
}

static void small_sizes(int cases) {
  cudnnSpatialTransformerDescriptor_t st;
  cudnnDropoutDescriptor_t drop;
  cudnnTensorDescriptor_t x, y;
  cudnnCreateSpatialTransformerDescriptor(&st);
  cudnnCreateDropoutDescriptor(&drop);
  cudnnCreateTensorDescriptor(&x);
  cudnnCreateTensorDescriptor(&y);
  for (int i = 0; i < cases; i++) {
    start(8, i);
    int dim[8], ty = (int)type(), sampler = choose(0, -1, 2);
    for (int j = 0; j < 8; j++)
      dim[j] = range(1, 20);
    int nb = range(3, 5);
    printf("sampler %d type %d -> %d", sampler, ty,
           cudnnSetSpatialTransformerNdDescriptor(st, sampler, ty, 4, dim));
    cudnnSetTensorNdDescriptorEx(x, range(0, 1), choose(0, 0, 2), nb, dim);
    size_t bytes = 77;
    int s = cudnnDropoutGetReserveSpaceSize(x, &bytes);
    list("x", dim, nb);
    printf(" reserve %d %zu", s, bytes);
    int mode = range(-1, 3), rank = -7, made[8] = {0}, strides[8] = {0};
    cudnnDataType_t kind = (cudnnDataType_t)-7;
    s = cudnnDeriveBNTensorDescriptor(y, x, mode);
    printf(" derived %d -> %d", mode, s);
    if (s == 0) {
      cudnnGetTensorNdDescriptor(y, 8, &kind, &rank, made, strides);
      printf(" %d %d", (int)kind, rank);
      list("d", made, rank);
      list("s", strides, rank);
    }
    cudnnTensorDescriptor_t both[2];
    int groups = choose(1, -1, 2);
    for (int j = 0; j < 2; j++)
      cudnnCreateTensorDescriptor(&both[j]);
    s = cudnnDeriveNormTensorDescriptor(both[0], both[1], x, mode, groups);
    printf(" norm %d -> %d", groups, s);
    for (int j = 0; j < 2; j++) {
      if (s == 0) {
        cudnnGetTensorNdDescriptor(both[j], 8, &kind, &rank, made, strides);
        printf(" %d %d", (int)kind, rank);
        list("d", made, rank);
        list("s", strides, rank);
      }
      cudnnDestroyTensorDescriptor(both[j]);
    }
    printf("\n");
  }
  cudnnDestroySpatialTransformerDescriptor(st);
  cudnnDestroyDropoutDescriptor(drop);
  cudnnDestroyTensorDescriptor(y);
  cudnnDestroyTensorDescriptor(x);
}

/* At most one argument is illegal, because the order in which faults are found
 * is not compared. */
/* A stand-in for calls that only check that a handle is given: without a GPU no
 * handle can be created. */
static char no_handle[1 << 16];

static void show_part(const char *label, cudnnTensorDescriptor_t t, void *at) {
  int nb = -7, dim[8] = {0}, stride[8] = {0};
  cudnnDataType_t ty = (cudnnDataType_t)-7;
  cudnnGetTensorNdDescriptor(t, 8, &ty, &nb, dim, stride);
  printf(" %s %ld type %d nb %d", label, (long)(uintptr_t)at, (int)ty, nb);
  list("d", dim, 3);
  list("s", stride, 3);
}

/* Prints the order and extents of all parameters, and of some that do not
 * exist. */
static void show_parameters(cudnnRNNDescriptor_t rnn) {
  cudnnHandle_t handle = (cudnnHandle_t)no_handle;
  cudnnTensorDescriptor_t m, b;
  size_t bytes = 77;
  int s = cudnnGetRNNWeightSpaceSize(handle, rnn, &bytes);
  printf(" space %d %zu", s, bytes);
  for (int k = 0; k < 6 && s == 0; k++) {
    cudnnCreateTensorDescriptor(&m);
    cudnnCreateTensorDescriptor(&b);
    int part = range(-1, 6), id = range(-1, 9);
    void *m_at = NULL, *b_at = NULL;
    int r = cudnnGetRNNWeightParams(handle, rnn, part, bytes - !draw(8),
                                    (void *)0x10000, id, m, &m_at, b, &b_at);
    printf(" part %d.%d -> %d", part, id, r);
    if (r == 0) {
      show_part("m", m, m_at);
      show_part("b", b, b_at);
    }
    cudnnDestroyTensorDescriptor(m);
    cudnnDestroyTensorDescriptor(b);
  }
}

static void recurrent(int cases) {
  cudnnRNNDescriptor_t rnn;
  cudnnDropoutDescriptor_t drop;
  cudnnRNNDataDescriptor_t data;
  cudnnCreateDropoutDescriptor(&drop);
  cudnnCreateRNNDescriptor(&rnn);
  cudnnCreateRNNDataDescriptor(&data);
  for (int i = 0; i < cases; i++) {
    start(9, i);
    static const int pairs[][2] = {{0, 0}, {1, 1}, {2, 0}, {2, 2}, {9, 0}};
    int pair = range(0, 4), hidden = range(8, 20), v[12];
    v[0] = 0;
    v[1] = range(0, 3);
    v[2] = range(0, 3);
    v[3] = range(0, 1);
    v[4] = range(0, 1);
    v[5] = pairs[pair][0];
    v[6] = pairs[pair][1];
    v[7] = range(0, 3);
    v[8] = range(1, 9);
    v[9] = hidden;
    v[10] = v[1] == 2 ? range(1, hidden) : hidden;
    v[11] = range(1, 3);
    int flags = range(0, 1), at = range(0, 20);
    if (at < 5 || (at > 6 && at < 12))
      v[at] = range(-1, 4);
    else if (at < 7)
      v[at] = range(0, 3);
    else if (at == 12)
      flags = range(0, 3);
    int s = cudnnSetRNNDescriptor_v8(rnn, v[0], v[1], v[2], v[3], v[4], v[5],
                                     v[6], v[7], v[8], v[9], v[10], v[11], drop,
                                     (uint32_t)flags);
    list("rnn", v, 12);
    printf(" %d -> %d", flags, s);
    if (s == 0)
      show_parameters(rnn);
    int o[14], nan = -7, mode = -7;
    memset(o, 0x5a, sizeof o);
    cudnnDropoutDescriptor_t d = NULL;
    s = cudnnGetRNNDescriptor_v8(
        rnn, (cudnnRNNAlgo_t *)&o[0], (cudnnRNNMode_t *)&o[1],
        (cudnnRNNBiasMode_t *)&o[2], (cudnnDirectionMode_t *)&o[3],
        (cudnnRNNInputMode_t *)&o[4], (cudnnDataType_t *)&o[5],
        (cudnnDataType_t *)&o[6], (cudnnMathType_t *)&o[7], &o[8], &o[9],
        &o[10], &o[11], &d, (uint32_t *)&o[12]);
    printf(" get %d %d", s, d == drop);
    list("v", o, 13);
    double low = real_value(), high = real_value();
    s = draw(2)
            ? (int)cudnnRNNSetClip_v8(rnn, range(-1, 2), range(0, 1), low, high)
            : (int)cudnnRNNSetClip_v9(rnn, range(-1, 2), low, high);
    printf(" clip %g %g -> %d", low, high, s);
    s = cudnnRNNGetClip_v8(rnn, (cudnnRNNClipMode_t *)&mode,
                           (cudnnNanPropagation_t *)&nan, &low, &high);
    printf(" %d %d %d %g %g", s, mode, nan, low, high);
    int length[6], time = range(2, 6), batch = choose(range(1, 5), -1, 5);
    for (int j = 0; j < 6; j++)
      length[j] = choose(range(1, time), -1, 7);
    if (draw(2)) { /* sorted */
      length[0] = time;
      for (int j = 1; j < 6; j++)
        if (length[j] > length[j - 1])
          length[j] = length[j - 1];
    }
    double fill = 1.5;
    int ty = choose(range(0, 2), -1, 9), layout = choose(range(0, 2), -1, 3);
    if (draw(12) == 0)
      time = range(-1, 1);
    s = cudnnSetRNNDataDescriptor(data, ty, layout, time, batch, 3, length,
                                  draw(2) ? &fill : NULL);
    printf(" data %d %d %d %d", ty, layout, time, batch);
    list("l", length, 6);
    printf(" -> %d", s);
    memset(o, 0x5a, sizeof o);
    memset(length, 0x5a, sizeof length);
    fill = 7;
    int request = range(-1, 6);
    s = cudnnGetRNNDataDescriptor(data, (cudnnDataType_t *)&o[0],
                                  (cudnnRNNDataLayout_t *)&o[1], &o[2], &o[3],
                                  &o[4], request, length, &fill);
    printf(" get(%d) %d", request, s);
    list("v", o, 5);
    list("l", length, 6);
    printf(" %g\n", fill);
  }
  cudnnDestroyRNNDescriptor(rnn);
  cudnnDestroyRNNDataDescriptor(data);
  cudnnDestroyDropoutDescriptor(drop);
}

static void losses(int cases) {
  cudnnCTCLossDescriptor_t loss;
  cudnnCreateCTCLossDescriptor(&loss);
  for (int i = 0; i < cases; i++) {
    start(10, i);
    int ty = range(-1, 3), norm = range(-1, 2), grad = range(-1, 2), s;
    int labels = range(-1, 300), kind = range(0, 3);
    s = kind == 0   ? (int)cudnnSetCTCLossDescriptor(loss, ty)
        : kind == 1 ? (int)cudnnSetCTCLossDescriptorEx(loss, ty, norm, grad)
        : kind == 2
            ? (int)cudnnSetCTCLossDescriptor_v8(loss, ty, norm, grad, labels)
            : (int)cudnnSetCTCLossDescriptor_v9(loss, ty, norm, grad, labels);
    printf("loss %d %d %d %d %d -> %d", kind, ty, norm, grad, labels, s);
    int o[10];
    memset(o, 0x5a, sizeof o);
    s = cudnnGetCTCLossDescriptor(loss, (cudnnDataType_t *)&o[0]);
    s += cudnnGetCTCLossDescriptorEx(loss, (cudnnDataType_t *)&o[0],
                                     (cudnnLossNormalizationMode_t *)&o[1],
                                     (cudnnNanPropagation_t *)&o[2]);
    s += cudnnGetCTCLossDescriptor_v8(loss, (cudnnDataType_t *)&o[3],
                                      (cudnnLossNormalizationMode_t *)&o[4],
                                      (cudnnNanPropagation_t *)&o[5], &o[6]);
    s += cudnnGetCTCLossDescriptor_v9(loss, (cudnnDataType_t *)&o[3],
                                      (cudnnLossNormalizationMode_t *)&o[7],
                                      (cudnnCTCGradMode_t *)&o[8], &o[9]);
    list("get", o, 10);
    printf(" %d\n", s);
  }
  cudnnDestroyCTCLossDescriptor(loss);
}

static void show_projections(cudnnAttnDescriptor_t attn) {
  cudnnTensorDescriptor_t w;
  for (int k = 0; k < 4; k++) {
    int kind = range(-1, 8);
    void *at = NULL;
    cudnnCreateTensorDescriptor(&w);
    int s = cudnnGetMultiHeadAttnWeights((cudnnHandle_t)no_handle, attn,
                                         (cudnnMultiHeadAttnWeightKind_t)kind,
                                         1 << 30, (void *)0x10000, w, &at);
    printf(" kind %d -> %d", kind, s);
    if (s == 0)
      show_part("w", w, at);
    cudnnDestroyTensorDescriptor(w);
  }
}

static void attentions(int cases) {
  cudnnAttnDescriptor_t attn;
  cudnnSeqDataDescriptor_t seq;
  cudnnCreateAttnDescriptor(&attn);
  cudnnCreateSeqDataDescriptor(&seq);
  for (int i = 0; i < cases; i++) {
    start(11, i);
    static const int pairs[][2] = {{0, 0}, {1, 1}, {2, 0}, {2, 2}, {9, 0}};
    int pair = range(0, 4), v[16];
    v[0] = range(0, 3);
    v[1] = pairs[pair][0];
    v[2] = pairs[pair][1];
    v[3] = range(0, 3);
    for (int j = 4; j < 16; j++)
      v[j] = range(1, 9);
    v[9] = v[8];
    double scale = range(0, 3);
    if (draw(4) == 0) {
      v[6] = v[5];
      v[8] = v[9] = 0;
    }
    int at = range(0, 24);
    if (at == 1 || at == 2)
      v[at] = range(0, 3);
    else if (at < 16)
      v[at] = range(-1, 5);
    else if (at == 16)
      scale = real_value();
    int s = cudnnSetAttnDescriptor(
        attn, (unsigned)v[0], v[4], scale, v[1], v[2], v[3], NULL, NULL, v[5],
        v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15]);
    list("attn", v, 16);
    printf(" %g -> %d", scale, s);
    if (s == 0)
      show_projections(attn);
    unsigned mode = 77;
    int o[16];
    memset(o, 0x5a, sizeof o);
    cudnnDropoutDescriptor_t d1, d2;
    s = cudnnGetAttnDescriptor(
        attn, &mode, &o[4], &scale, (cudnnDataType_t *)&o[1],
        (cudnnDataType_t *)&o[2], (cudnnMathType_t *)&o[3], &d1, &d2, &o[5],
        &o[6], &o[7], &o[8], &o[9], &o[10], &o[11], &o[12], &o[13], &o[14],
        &o[15]);
    printf(" get %d %u %g", s, mode, scale);
    list("v", o + 1, 15);
    int dim[4], length[12], ty = choose(range(0, 2), -1, 2);
    for (int j = 0; j < 4; j++)
      dim[j] = choose(range(1, 3), -1, 3);
    cudnnSeqDataAxis_t axes[4] = {0, 1, 2, 3};
    for (int j = 2; j > 0; j--) {
      int k = range(0, j);
      cudnnSeqDataAxis_t keep = axes[j];
      axes[j] = axes[k];
      axes[k] = keep;
    }
    if (draw(12) == 0)
      axes[range(0, 3)] = range(0, 4);
    for (int j = 0; j < 12; j++)
      length[j] = choose(1, -1, 4);
    int count = choose(dim[1] * dim[2], 0, 9), nb = choose(4, 0, 6);
    double fill = 1.5;
    s = cudnnSetSeqDataDescriptor(seq, ty, nb, dim, axes, (size_t)count, length,
                                  draw(2) ? &fill : NULL);
    printf(" seq %d %d", ty, nb);
    list("d", dim, 4);
    list("x", (int *)axes, 4);
    list("l", length, 9);
    printf(" (%d) -> %d", count, s);
    size_t n = 77;
    memset(o, 0x5a, sizeof o);
    memset(dim, 0x5a, sizeof dim);
    memset(axes, 0x5a, sizeof axes);
    memset(length, 0x5a, sizeof length);
    fill = 7;
    s = cudnnGetSeqDataDescriptor(seq, (cudnnDataType_t *)&o[0], &o[1],
                                  range(0, 4), dim, axes, &n,
                                  (size_t)range(0, 9), length, &fill);
    printf(" get %d %d %d %zu %g", s, o[0], o[1], n, fill);
    list("d", dim, 4);
    list("x", (int *)axes, 4);
    list("l", length, 9);
    printf("\n");
  }
  cudnnDestroyAttnDescriptor(attn);
  cudnnDestroySeqDataDescriptor(seq);
}

void probe_more(int cases) {
  transforms(cases / 2);
  small_sizes(cases / 8);
  recurrent(cases / 2);
  losses(cases / 8);
  attentions(cases / 2);
}
