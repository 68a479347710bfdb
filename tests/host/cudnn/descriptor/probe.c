// SPDX-License-Identifier: Apache-2.0
// Prints what the libcudnn.so.9 that it finds answers to thousands of valid and
// invalid descriptor calls. Run with NVIDIA's library and with the work-alike,
// the two outputs must be equal.
//
// usage: probe [CASES PER FAMILY]. It creates no handle, so it needs no GPU. It
// does not compare descriptors after a refused set. It leaves out calls that
// crash NVIDIA's library (null arrays, null results).
#include "tests/host/cudnn/descriptor/probe.h"

static void show_tensor(cudnnTensorDescriptor_t t) {
  int v[9] = {0}, nb = -7, dim[8], stride[8];
  cudnnDataType_t ty = (cudnnDataType_t)-7;
  memset(dim, 0x5a, sizeof dim);
  memset(stride, 0x5a, sizeof stride);
  int s = cudnnGetTensor4dDescriptor(t, &ty, v, v + 1, v + 2, v + 3, v + 4,
                                     v + 5, v + 6, v + 7);
  printf(" get4 %d type %d", s, (int)ty);
  list("v", v, 8);
  /* Asked for less, NVIDIA's library writes two of a vectorised layout. */
  int request = draw(8) ? 8 : range(2, 9);
  s = cudnnGetTensorNdDescriptor(t, request, &ty, &nb, dim, stride);
  printf(" getn(%d) %d type %d nb %d", request, s, (int)ty, nb);
  list("d", dim, 8);
  list("s", stride, 8);
  size_t size = 77;
  s = cudnnGetTensorSizeInBytes(t, &size);
  printf(" size %d %zu\n", s, size);
}

static void tensors(int cases) {
  cudnnTensorDescriptor_t t;
  cudnnCreateTensorDescriptor(&t);
  show_tensor(t);
  printf("null %d %d %d\n", cudnnSetTensor4dDescriptor(NULL, 0, 0, 1, 1, 1, 1),
         cudnnSetTensor4dDescriptorEx(NULL, 0, 1, 1, 1, 1, 1, 1, 1, 1),
         cudnnDestroyTensorDescriptor(NULL));
  bool stale = false;
  for (int i = 0; i < cases; i++) {
    start(1, i);
    if (stale || draw(8) == 0) {
      cudnnDestroyTensorDescriptor(t);
      cudnnCreateTensorDescriptor(&t);
    }
    int d[10], st[10], nb = draw(10) ? range(3, 6) : range(-1, 10), s = 0;
    for (int j = 0; j < 10; j++) {
      d[j] = extent();
      st[j] = stride_value();
    }
    if (draw(4) == 0) { /* a legal dense or padded layout */
      int64_t at = 1;
      for (int j = (nb < 4 ? 4 : nb > 8 ? 8 : nb) - 1; j >= 0; j--) {
        d[j] = range(1, 12);
        st[j] = (int)at;
        at *= d[j] + range(0, 1);
      }
    }
    cudnnDataType_t ty = type();
    cudnnTensorFormat_t fm = format();
    int kind = range(0, 3);
    if (kind == 3 && nb == 2) /* uninitialised values there with NHWC */
      kind = 2;
    switch (kind) {
    case 0:
      s = cudnnSetTensor4dDescriptor(t, fm, ty, d[0], d[1], d[2], d[3]);
      break;
    case 1:
      s = cudnnSetTensor4dDescriptorEx(t, ty, d[0], d[1], d[2], d[3], st[0],
                                       st[1], st[2], st[3]);
      break;
    case 2:
      s = cudnnSetTensorNdDescriptor(t, ty, nb, d, st);
      break;
    default:
      s = cudnnSetTensorNdDescriptorEx(t, fm, ty, nb, d);
    }
    printf("tensor %d kind %d type %d format %d nb %d", i, kind, (int)ty,
           (int)fm, nb);
    list("d", d, 8);
    list("s", st, 8);
    printf(" -> %d", s);
    stale = s == CUDNN_STATUS_BAD_PARAM || nb > 8;
    if (stale)
      printf("\n");
    else
      show_tensor(t);
  }
  cudnnDestroyTensorDescriptor(t);
}

static void show_filter(cudnnFilterDescriptor_t f) {
  int v[4] = {0}, nb = -7, dim[8];
  memset(dim, 0x5a, sizeof dim);
  cudnnDataType_t ty = (cudnnDataType_t)-7;
  cudnnTensorFormat_t fm = (cudnnTensorFormat_t)-7;
  int s = cudnnGetFilter4dDescriptor(f, &ty, &fm, v, v + 1, v + 2, v + 3);
  printf(" get4 %d type %d format %d", s, (int)ty, (int)fm);
  list("v", v, 4);
  /* Asked for one, NVIDIA's library writes two. */
  int request = draw(8) ? 8 : range(2, 9);
  s = cudnnGetFilterNdDescriptor(f, request, &ty, &fm, &nb, dim);
  printf(" getn(%d) %d type %d format %d nb %d", request, s, (int)ty, (int)fm,
         nb);
  list("d", dim, 8);
  size_t size = 77;
  s = cudnnGetFilterSizeInBytes(f, &size);
  printf(" size %d %zu\n", s, size);
}

static void filters(int cases) {
  cudnnFilterDescriptor_t f;
  cudnnCreateFilterDescriptor(&f);
  show_filter(f);
  printf("null %d %d\n", cudnnSetFilter4dDescriptor(NULL, 0, 0, 1, 1, 1, 1),
         cudnnDestroyFilterDescriptor(NULL));
  bool stale = false;
  for (int i = 0; i < cases; i++) {
    start(2, i);
    if (stale || draw(8) == 0) {
      cudnnDestroyFilterDescriptor(f);
      cudnnCreateFilterDescriptor(&f);
    }
    int d[10], nb = draw(10) ? range(3, 6) : range(-1, 10);
    for (int j = 0; j < 10; j++)
      d[j] = extent();
    cudnnDataType_t ty = type();
    cudnnTensorFormat_t fm = format();
    int kind = range(0, 1);
    int s = kind
                ? cudnnSetFilterNdDescriptor(f, ty, fm, nb, d)
                : cudnnSetFilter4dDescriptor(f, ty, fm, d[0], d[1], d[2], d[3]);
    printf("filter %d kind %d type %d format %d nb %d", i, kind, (int)ty,
           (int)fm, nb);
    list("d", d, 8);
    printf(" -> %d", s);
    stale = s == CUDNN_STATUS_BAD_PARAM;
    if (stale)
      printf("\n");
    else
      show_filter(f);
  }
  cudnnDestroyFilterDescriptor(f);
}

static void show_convolution(cudnnConvolutionDescriptor_t c) {
  int v[6] = {0}, nb = -7, a[8], b[8], d[8], group = -7;
  memset(a, 0x5a, sizeof a);
  memset(b, 0x5a, sizeof b);
  memset(d, 0x5a, sizeof d);
  cudnnConvolutionMode_t mode = (cudnnConvolutionMode_t)-7;
  cudnnDataType_t ty = (cudnnDataType_t)-7;
  cudnnMathType_t math = (cudnnMathType_t)-7;
  cudnnReorderType_t order = (cudnnReorderType_t)-7;
  int s = cudnnGetConvolution2dDescriptor(c, v, v + 1, v + 2, v + 3, v + 4,
                                          v + 5, &mode, &ty);
  printf(" get2 %d mode %d type %d", s, (int)mode, (int)ty);
  list("v", v, 6);
  int request = draw(8) ? range(0, 6) : range(-1, 9);
  s = cudnnGetConvolutionNdDescriptor(c, request, &nb, a, b, d, &mode, &ty);
  printf(" getn(%d) %d nb %d mode %d type %d", request, s, nb, (int)mode,
         (int)ty);
  list("p", a, 8);
  list("s", b, 8);
  list("d", d, 8);
  s = cudnnGetConvolutionMathType(c, &math);
  printf(" math %d %d", s, (int)math);
  s = cudnnGetConvolutionGroupCount(c, &group);
  printf(" group %d %d", s, group);
  s = cudnnGetConvolutionReorderType(c, &order);
  printf(" order %d %d\n", s, (int)order);
}

static void convolutions(int cases) {
  cudnnConvolutionDescriptor_t c;
  cudnnCreateConvolutionDescriptor(&c);
  show_convolution(c);
  int any;
  cudnnMathType_t math;
  cudnnReorderType_t order;
  printf("null %d %d %d %d %d %d %d %d\n",
         cudnnSetConvolution2dDescriptor(NULL, 0, 0, 1, 1, 1, 1, 0, 0),
         cudnnSetConvolutionMathType(NULL, 0),
         cudnnGetConvolutionMathType(NULL, &math),
         cudnnSetConvolutionGroupCount(NULL, 1),
         cudnnGetConvolutionGroupCount(NULL, &any),
         cudnnSetConvolutionReorderType(NULL, 0),
         cudnnGetConvolutionReorderType(NULL, &order),
         cudnnDestroyConvolutionDescriptor(NULL));
  bool stale = false;
  for (int i = 0; i < cases; i++) {
    start(3, i);
    if (stale || draw(8) == 0) {
      cudnnDestroyConvolutionDescriptor(c);
      cudnnCreateConvolutionDescriptor(&c);
    }
    int a[10], b[10], d[10], nb = draw(6) ? range(2, 3) : range(-1, 9), s = 0;
    for (int j = 0; j < 10; j++) {
      a[j] = pad();
      b[j] = small();
      d[j] = small();
    }
    cudnnConvolutionMode_t mode = draw(12) ? range(0, 1) : range(-1, 3);
    cudnnDataType_t ty = type();
    int kind = range(0, 4), value = draw(4) ? range(0, 3) : range(-2, 40);
    switch (kind) {
    case 0:
      s = cudnnSetConvolution2dDescriptor(c, a[0], a[1], b[0], b[1], d[0], d[1],
                                          mode, ty);
      break;
    case 1:
      s = cudnnSetConvolutionNdDescriptor(c, nb, a, b, d, mode, ty);
      break;
    case 2:
      s = cudnnSetConvolutionMathType(c, (cudnnMathType_t)value);
      break;
    case 3:
      s = cudnnSetConvolutionGroupCount(c, value);
      break;
    default:
      s = cudnnSetConvolutionReorderType(c, (cudnnReorderType_t)value);
    }
    printf("convolution %d kind %d mode %d type %d nb %d value %d", i, kind,
           (int)mode, (int)ty, nb, value);
    list("p", a, 3);
    list("s", b, 3);
    list("d", d, 3);
    printf(" -> %d", s);
    stale = s == CUDNN_STATUS_BAD_PARAM;
    if (stale)
      printf("\n");
    else
      show_convolution(c);
  }
  cudnnDestroyConvolutionDescriptor(c);
}

static void output_sizes(int cases) {
  cudnnTensorDescriptor_t t;
  cudnnFilterDescriptor_t f;
  cudnnConvolutionDescriptor_t c;
  cudnnPoolingDescriptor_t pool;
  for (int i = 0; i < cases; i++) {
    start(4, i);
    cudnnCreateTensorDescriptor(&t);
    cudnnCreateFilterDescriptor(&f);
    cudnnCreateConvolutionDescriptor(&c);
    cudnnCreatePoolingDescriptor(&pool);
    int x[8], w[8], a[8], b[8], d[8], nx = range(3, 6), nw, nc, s[6];
    if (draw(4))
      nx = range(4, 5);
    nw = draw(12) ? nx : range(3, 6);
    nc = draw(12) ? nx - 2 : range(0, 5);
    int group = draw(3) ? 1 : range(1, 4), cw = range(1, 5);
    for (int j = 0; j < 8; j++) {
      x[j] = range(1, 30);
      w[j] = draw(10) ? range(1, 5) : range(1, 40);
      a[j] = draw(6) ? range(0, 4) : range(0, 40);
      b[j] = draw(2) ? 1 : range(1, 4);
      d[j] = draw(2) ? 1 : range(1, 4);
    }
    x[1] = draw(10) ? cw * group : range(1, 20);
    w[0] = draw(4) ? group * range(1, 6) : range(1, 9);
    w[1] = cw;
    s[0] = s[1] = s[2] = s[3] = -1;
    cudnnTensorFormat_t fm = range(0, 1);
    if (draw(30))
      s[0] = cudnnSetTensorNdDescriptorEx(t, fm, 0, nx, x);
    if (draw(30))
      s[1] = cudnnSetFilterNdDescriptor(f, draw(9) ? 0 : 2, range(0, 1), nw, w);
    if (draw(30))
      s[2] = cudnnSetConvolutionNdDescriptor(c, nc, a, b, d, range(0, 1), 0);
    if (group != 1)
      s[3] = cudnnSetConvolutionGroupCount(c, group);
    int o[8], p[8], request = draw(8) ? nx : range(0, 8);
    memset(o, 0x5a, sizeof o);
    memset(p, 0x5a, sizeof p);
    s[4] =
        cudnnGetConvolution2dForwardOutputDim(c, t, f, o, o + 1, o + 2, o + 3);
    s[5] = cudnnGetConvolutionNdForwardOutputDim(c, t, f, request, p);
    printf("output %d nx %d nw %d nc %d group %d", i, nx, nw, nc, group);
    list("x", x, 6);
    list("w", w, 6);
    list("p", a, 4);
    list("s", b, 4);
    list("d", d, 4);
    printf(" set %d %d %d %d", s[0], s[1], s[2], s[3]);
    printf(" -> %d", s[4]);
    list("o", o, 4);
    printf(" (%d) %d", request, s[5]);
    list("o", p, 8);
    int mode = draw(12) ? range(0, 3) : range(-1, 5);
    s[0] =
        cudnnSetPoolingNdDescriptor(pool, mode, range(0, 1), nc, w + 2, a, b);
    memset(o, 0x5a, sizeof o);
    memset(p, 0x5a, sizeof p);
    s[1] = cudnnGetPooling2dForwardOutputDim(pool, t, o, o + 1, o + 2, o + 3);
    s[2] = cudnnGetPoolingNdForwardOutputDim(pool, t, request, p);
    printf(" pool %d %d", s[0], s[1]);
    list("o", o, 4);
    printf(" %d", s[2]);
    list("o", p, 8);
    printf("\n");
    cudnnDestroyTensorDescriptor(t);
    cudnnDestroyFilterDescriptor(f);
    cudnnDestroyConvolutionDescriptor(c);
    cudnnDestroyPoolingDescriptor(pool);
  }
}

static void pointwise(int cases) {
  cudnnActivationDescriptor_t a;
  cudnnOpTensorDescriptor_t o;
  cudnnCreateActivationDescriptor(&a);
  cudnnCreateOpTensorDescriptor(&o);
  cudnnActivationMode_t mode = -7;
  cudnnNanPropagation_t nan = -7;
  cudnnOpTensorOp_t op = -7;
  cudnnDataType_t ty = -7;
  double ceiling = -7, beta = -7;
  printf("null %d %d %d %d %d\n", cudnnSetActivationDescriptor(NULL, 0, 0, 0),
         cudnnDestroyActivationDescriptor(NULL),
         cudnnSetActivationDescriptorSwishBeta(NULL, 1),
         cudnnSetOpTensorDescriptor(NULL, 0, 0, 0),
         cudnnDestroyOpTensorDescriptor(NULL));
  /* NVIDIA's library does not initialise these, so a get before the first
   * accepted set is not compared. */
  bool set_a = false, set_o = false;
  for (int i = 0; i <= cases; i++) {
    start(5, i);
    int s = cudnnGetActivationDescriptor(a, &mode, &nan, &ceiling);
    if (set_a)
      printf(" get %d %d %d %g", s, (int)mode, (int)nan, ceiling);
    s = cudnnGetActivationDescriptorSwishBeta(a, &beta);
    printf(" swish %d %g", s, beta);
    s = cudnnGetOpTensorDescriptor(o, &op, &ty, &nan);
    if (set_o)
      printf(" op %d %d %d %d", s, (int)op, (int)ty, (int)nan);
    printf("\n");
    if (i == cases)
      break;
    if (draw(6) == 0) {
      cudnnDestroyActivationDescriptor(a);
      cudnnCreateActivationDescriptor(&a);
      cudnnDestroyOpTensorDescriptor(o);
      cudnnCreateOpTensorDescriptor(&o);
      set_a = set_o = false;
    }
    int m = range(-1, 9), n = draw(6) ? range(0, 1) : range(-1, 2);
    double v = real_value();
    cudnnDataType_t t = type();
    int sa = cudnnSetActivationDescriptor(a, m, n, v);
    int sb = draw(2) ? (int)cudnnSetActivationDescriptorSwishBeta(a, v) : -1;
    int so = cudnnSetOpTensorDescriptor(o, m, t, n);
    printf("pointwise %d %d %d %g %d -> %d %d %d", i, m, n, v, (int)t, sa, sb,
           so);
    set_a |= sa == 0;
    set_o |= so == 0;
  }
  cudnnDestroyActivationDescriptor(a);
  cudnnDestroyOpTensorDescriptor(o);
}

static void others(int cases) {
  cudnnPoolingDescriptor_t pool;
  cudnnReduceTensorDescriptor_t reduce;
  cudnnLRNDescriptor_t lrn;
  cudnnCreatePoolingDescriptor(&pool);
  cudnnCreateReduceTensorDescriptor(&reduce);
  cudnnCreateLRNDescriptor(&lrn);
  bool set_r = false, stale = false;
  for (int i = 0; i <= cases; i++) {
    start(6, i);
    int v[6] = {0}, nb = -7, w[8], a[8], b[8], s;
    if (stale) {
      cudnnDestroyPoolingDescriptor(pool);
      cudnnCreatePoolingDescriptor(&pool);
    }
    cudnnPoolingMode_t mode = -7;
    cudnnNanPropagation_t nan = -7;
    memset(w, 0x5a, sizeof w);
    memset(a, 0x5a, sizeof a);
    memset(b, 0x5a, sizeof b);
    s = cudnnGetPooling2dDescriptor(pool, &mode, &nan, v, v + 1, v + 2, v + 3,
                                    v + 4, v + 5);
    printf(" get2 %d %d %d", s, (int)mode, (int)nan);
    list("v", v, 6);
    int request = range(0, 8);
    s = cudnnGetPoolingNdDescriptor(pool, request, &mode, &nan, &nb, w, a, b);
    printf(" getn(%d) %d %d %d nb %d", request, s, (int)mode, (int)nan, nb);
    list("w", w, 8);
    list("p", a, 8);
    list("s", b, 8);
    cudnnReduceTensorOp_t op = -7;
    cudnnDataType_t ty = -7;
    cudnnReduceTensorIndices_t ix = -7;
    cudnnIndicesType_t it = -7;
    s = cudnnGetReduceTensorDescriptor(reduce, &op, &ty, &nan, &ix, &it);
    if (set_r)
      printf(" reduce %d %d %d %d %d %d", s, (int)op, (int)ty, (int)nan,
             (int)ix, (int)it);
    unsigned n = 77;
    double k[3] = {-7, -7, -7};
    s = cudnnGetLRNDescriptor(lrn, &n, k, k + 1, k + 2);
    printf(" lrn %d %u %g %g %g\n", s, n, k[0], k[1], k[2]);
    if (i == cases)
      break;
    if (draw(6) == 0) {
      cudnnDestroyPoolingDescriptor(pool);
      cudnnCreatePoolingDescriptor(&pool);
      cudnnDestroyReduceTensorDescriptor(reduce);
      cudnnCreateReduceTensorDescriptor(&reduce);
      set_r = false;
      cudnnDestroyLRNDescriptor(lrn);
      cudnnCreateLRNDescriptor(&lrn);
    }
    for (int j = 0; j < 8; j++) {
      w[j] = small();
      a[j] = pad();
      b[j] = small();
    }
    int m = range(-1, 5), pn = draw(6) ? range(0, 1) : range(-1, 2);
    nb = draw(4) ? range(1, 3) : range(-1, 9);
    int kind = range(0, 1);
    s = kind ? cudnnSetPoolingNdDescriptor(pool, m, pn, nb, w, a, b)
             : cudnnSetPooling2dDescriptor(pool, m, pn, w[0], w[1], a[0], a[1],
                                           b[0], b[1]);
    printf("pool %d kind %d mode %d nan %d nb %d", i, kind, m, pn, nb);
    list("w", w, 8);
    list("p", a, 8);
    list("s", b, 8);
    printf(" -> %d", s);
    stale = s == CUDNN_STATUS_BAD_PARAM;
    int r = range(-1, 10), rt = (int)type(), ri = range(-1, 2),
        rx = range(-1, 5);
    s = cudnnSetReduceTensorDescriptor(reduce, r, rt, pn, ri, rx);
    printf(" reduce %d %d %d %d %d -> %d", r, rt, pn, ri, rx, s);
    set_r |= s == 0;
    unsigned ln = draw(20);
    double lk[3] = {real_value(), real_value(), real_value()};
    s = cudnnSetLRNDescriptor(lrn, ln, lk[0], lk[1], lk[2]);
    printf(" lrn %u %g %g %g -> %d", ln, lk[0], lk[1], lk[2], s);
  }
  cudnnDestroyPoolingDescriptor(pool);
  cudnnDestroyReduceTensorDescriptor(reduce);
  cudnnDestroyLRNDescriptor(lrn);
}

int main(int argc, char **argv) {
  int cases = argc > 1 ? atoi(argv[1]) : 4000;
  probe_library();
  tensors(cases);
  filters(cases);
  convolutions(cases);
  output_sizes(cases);
  pointwise(cases / 4);
  others(cases);
  probe_callbacks();
  probe_more(cases);
  probe_folds(cases);
  return 0;
}
