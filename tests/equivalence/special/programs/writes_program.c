// SPDX-License-Identifier: Apache-2.0
// Calls each function that writes memory on a tensor in pieces, and checks the
// sum of that tensor afterwards. The program does not use sundog's functions.
//
// usage: writes_program RANK [NAME]
// The sum must be
//   OWN    of this rank's memory: the function overwrote the whole tensor
//   ALL    of all ranks' memory: the new elements depend on the old ones, or on
//          another tensor in pieces
//   DOUBT  refused: nothing shows where the function wrote, or it wrote a part
// The program also calls functions that the host device does not have.
#include <cublas_v2.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <math.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/workspace.h"

// The tensor y has N elements; as a matrix it is M x M.
enum { M = 8, N = M * M, ROOM = N * N };

static cudnnHandle_t cudnn;
static cublasHandle_t cublas;
static cublasLtHandle_t lt;
static ncclComm_t comm;
static cudnnTensorDescriptor_t x_desc, y_desc;
// In device memory: y and p are tensors in pieces, a is the identity, b has
// ones that calls may overwrite, c has ones that no call overwrites.
static float *x, *y, *p, *a, *b, *c;
static int *ints;
// Arrays of one address.
static float **fy, **fa, **fb;
static float host[ROOM], host_a[ROOM]; // pageable
static int info[M];
static const float one = 1, zero = 0;
static const cuComplex c_one = {1, 0}, c_zero = {0, 0}, c_i = {0, 1};
static const double d_one = 1, d_zero = 0;

static void check(int status, const char *word) {
  if (status == 0)
    return;
  printf("%s failed with %d\n", word, status);
  fflush(stdout);
  exit(3);
}
#define TRY(call) check((int)(call), #call)

static void *make(size_t bytes) {
  void *made;
  TRY(cudaMalloc(&made, bytes));
  TRY(cudaMemset(made, 0, bytes));
  return made;
}

static void *address_of(void *memory) {
  void **made = make(sizeof *made);
  TRY(cudaMemcpy(made, &memory, sizeof memory, cudaMemcpyHostToDevice));
  return made;
}

static void fill(float *to, size_t elements, float value, float diagonal) {
  for (size_t i = 0; i < elements; i++)
    host_a[i] = i % (M + 1) == 0 ? diagonal : value;
  TRY(cudaMemcpy(to, host_a, elements * sizeof *to, cudaMemcpyHostToDevice));
}

static void begin(int rank) {
  ncclUniqueId id;
  TRY(cudnnCreate(&cudnn));
  TRY(cublasCreate(&cublas));
  TRY(cublasLtCreate(&lt));
  TRY(ncclGetUniqueId(&id));
  TRY(ncclCommInitRank(&comm, 1, id, 0));
  x = make(2 * N * sizeof *x);
  y = make(1 << 20);
  p = make(ROOM * sizeof *p);
  a = make(ROOM * sizeof *a);
  b = make(ROOM * sizeof *b);
  c = make(ROOM * sizeof *c);
  ints = make(ROOM * sizeof *ints);
  fy = address_of(y);
  fa = address_of(a);
  fb = address_of(b);
  fill(a, ROOM, 0, 1);
  fill(c, ROOM, 1, 1);
  fill(x, 2 * N, (float)(1 + rank), (float)(1 + rank));
  TRY(cudnnCreateTensorDescriptor(&x_desc));
  TRY(cudnnSetTensor4dDescriptor(x_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                                 2, M, M));
  TRY(cudnnCreateTensorDescriptor(&y_desc));
  TRY(cudnnSetTensor4dDescriptor(y_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                                 1, M, M));
}

// A split call that writes a tensor in pieces.
static void convolve(float *to) {
  static cudnnFilterDescriptor_t filter;
  static cudnnConvolutionDescriptor_t conv;
  static float *w;
  if (!w) {
    w = make(2 * sizeof *w);
    fill(w, 2, 1, 1);
    TRY(cudnnCreateFilterDescriptor(&filter));
    TRY(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                   1, 2, 1, 1));
    TRY(cudnnCreateConvolutionDescriptor(&conv));
    TRY(cudnnSetConvolution2dDescriptor(
        conv, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  }
  TRY(cudnnConvolutionForward(cudnn, &one, x_desc, x, filter, w, conv,
                              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                              workspace(), WORKSPACE_BYTES, &zero, y_desc, to));
}

typedef enum found { OWN, ALL, DOUBT } found_t;

// Returns what the sum of y is.
static found_t found(void) {
  float sum = 0, own = 0;
  if (cublasSasum(cublas, N, y, 1, &sum) != CUBLAS_STATUS_SUCCESS)
    return DOUBT;
  TRY(cudaMemcpy(host, y, N * sizeof *host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < N; i++)
    own += fabsf(host[i]);
  if (own != own || own < 1e-30F)
    check(1, "a sum that tells nothing");
  return sum > own * 1.2F ? ALL : OWN;
}

// ---- cuDNN ------------------------------------------------------------------

static cudnnRNNDescriptor_t rnn;
static cudnnRNNDataDescriptor_t rnn_data;
static cudnnTensorDescriptor_t rnn_state;
static cudnnDropoutDescriptor_t dropout;
static size_t weight_bytes;

// An RNN with one step of N / M sequences of M numbers each.
static void rnn_begin(void) {
  int lengths[M];
  if (rnn)
    return;
  for (int i = 0; i < M; i++)
    lengths[i] = 1;
  TRY(cudnnCreateDropoutDescriptor(&dropout));
  TRY(cudnnSetDropoutDescriptor(dropout, cudnn, 0, NULL, 0, 0));
  TRY(cudnnCreateRNNDescriptor(&rnn));
  TRY(cudnnSetRNNDescriptor_v8(
      rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
      CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT,
      CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, M, M, M, 1, dropout, 0));
  TRY(cudnnCreateRNNDataDescriptor(&rnn_data));
  TRY(cudnnSetRNNDataDescriptor(rnn_data, CUDNN_DATA_FLOAT,
                                CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, 1, M, M,
                                lengths, NULL));
  TRY(cudnnCreateTensorDescriptor(&rnn_state));
  TRY(cudnnSetTensorNdDescriptor(rnn_state, CUDNN_DATA_FLOAT, 3,
                                 (int[]){1, M, M}, (int[]){N, M, 1}));
  TRY(cudnnGetRNNWeightSpaceSize(cudnn, rnn, &weight_bytes));
}

static float *weights, *other, *work, *reserve;
static size_t work_bytes, reserve_bytes;

static void recur_begin(void) {
  rnn_begin();
  if (work)
    return;
  TRY(cudnnGetRNNTempSpaceSizes(cudnn, rnn, CUDNN_FWD_MODE_TRAINING, rnn_data,
                                &work_bytes, &reserve_bytes));
  weights = make(weight_bytes);
  other = make(ROOM * sizeof *other);
  work = make(work_bytes + N * sizeof *y);
  reserve = make(reserve_bytes + 64);
  fill(weights, weight_bytes / sizeof *weights, 0.1F, 0.1F);
  for (int i = 0; i < M; i++)
    info[i] = 1;
  TRY(cudaMemcpy(ints, info, sizeof info, cudaMemcpyHostToDevice));
}

static void recur_with(float *from, float *out, float *hy, float *cy,
                       float *workspace) {
  recur_begin();
  TRY(cudnnRNNForward(
      cudnn, rnn, CUDNN_FWD_MODE_TRAINING, ints, rnn_data, from, rnn_data,
      out ? out : other, rnn_state, NULL, hy, rnn_state, NULL, cy, weight_bytes,
      weights, work_bytes + N * sizeof *y, workspace, reserve_bytes, reserve));
}

static void recur(float *from, float *out, float *hy, float *cy) {
  recur_begin();
  recur_with(from, out, hy, cy, work);
}

static void recur_in(float *workspace) {
  recur_begin();
  recur_with(b, NULL, NULL, NULL, workspace);
}

// Backward needs the reserve that forward wrote.
static void recur_back(float *dx, float *dhx, float *dcx) {
  recur(b, NULL, NULL, NULL);
  TRY(cudnnRNNBackwardData_v8(cudnn, rnn, ints, rnn_data, other, c, rnn_data,
                              dx ? dx : b, rnn_state, NULL, NULL, dhx,
                              rnn_state, NULL, NULL, dcx, weight_bytes, weights,
                              work_bytes, work, reserve_bytes, reserve));
}

static void recur_weights(cudnnWgradMode_t mode) {
  recur_back(NULL, NULL, NULL);
  (void)cudnnRNNBackwardWeights_v8(
      cudnn, rnn, mode, ints, rnn_data, b, rnn_state, NULL, rnn_data, other,
      weight_bytes, y, work_bytes, work, reserve_bytes, reserve);
}

// A CTC loss of two steps of M / 2 sequences.
static void ctc(float *probabilities, float *gradients, float *costs) {
  int extent[] = {2, M / 2, M}, stride[] = {N / 2, M, 1};
  int labels[M / 2], length[M / 2], steps[M / 2];
  static cudnnTensorDescriptor_t desc;
  static cudnnCTCLossDescriptor_t loss;
  if (!desc) {
    TRY(cudnnCreateTensorDescriptor(&desc));
    TRY(cudnnSetTensorNdDescriptor(desc, CUDNN_DATA_FLOAT, 3, extent, stride));
    TRY(cudnnCreateCTCLossDescriptor(&loss));
    TRY(cudnnSetCTCLossDescriptorEx(loss, CUDNN_DATA_FLOAT,
                                    CUDNN_LOSS_NORMALIZATION_SOFTMAX,
                                    CUDNN_PROPAGATE_NAN));
  }
  for (int i = 0; i < M / 2; i++) {
    labels[i] = length[i] = 1;
    steps[i] = 2;
  }
  recur_begin();
  TRY(cudnnCTCLoss(cudnn, desc, probabilities, labels, length, steps, costs,
                   desc, gradients, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, loss,
                   work, work_bytes));
}

static void dropout_states(void) {
  cudnnDropoutDescriptor_t made;
  size_t bytes;
  TRY(cudnnCreateDropoutDescriptor(&made));
  TRY(cudnnDropoutGetStatesSize(cudnn, &bytes));
  (void)cudnnSetDropoutDescriptor(made, cudnn, 0.5F, y, bytes, 1);
}

// ---- copies -----------------------------------------------------------------

static void cube(float *to, float *from, size_t rows) {
  size_t row = M * sizeof *to;
  struct cudaMemcpy3DParms all = {
      .srcPtr = {from, row, row, M},
      .dstPtr = {to, row, row, M},
      .extent = {row, rows, 1},
      .kind = cudaMemcpyDefault,
  };
  TRY(cudaMemcpy3D(&all));
}

static void cube_peer(float *to, float *from) {
  size_t row = M * sizeof *to;
  struct cudaMemcpy3DPeerParms all = {
      .srcPtr = {from, row, row, M},
      .dstPtr = {to, row, row, M},
      .extent = {row, M, 1},
  };
  (void)cudaMemcpy3DPeer(&all);
}

static void cube_set(float *to) {
  size_t row = M * sizeof *to;
  TRY(cudaMemset3D((struct cudaPitchedPtr){to, row, row, M}, 1,
                   (struct cudaExtent){row, M, 1}));
}

static void batch_of_copies(float *to) {
  void *each[] = {to, b};
  const void *from[] = {c, c};
  size_t bytes[] = {N * sizeof *y, N * sizeof *y}, first = 0;
  struct cudaMemcpyAttributes how = {.srcAccessOrder =
                                         cudaMemcpySrcAccessOrderStream};
  cudaStream_t stream;
  TRY(cudaStreamCreate(&stream));
  (void)cudaMemcpyBatchAsync(each, from, bytes, 2, &how, &first, 1, stream);
  TRY(cudaStreamSynchronize(stream));
  TRY(cudaStreamDestroy(stream));
}

// The toolkit that sundog is built with may be older than this function.
static void copy_with_attributes(float *to) {
  struct cudaMemcpyAttributes how = {.srcAccessOrder =
                                         cudaMemcpySrcAccessOrderStream};
  cudaError_t (*copy)(void *, const void *, size_t,
                      struct cudaMemcpyAttributes *, cudaStream_t);
  *(void **)&copy = dlsym(RTLD_DEFAULT, "cudaMemcpyWithAttributesAsync");
  if (copy)
    TRY(copy(to, b, N * sizeof *to, &how, NULL));
}

static void from_array(float *to) {
  struct cudaChannelFormatDesc form = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t array = NULL;
  size_t row = M * sizeof *to;
  (void)cudaMallocArray(&array, &form, M, M, 0);
  (void)cudaMemcpy2DFromArray(to, row, array, 0, 0, row, M,
                              cudaMemcpyDeviceToDevice);
}

static void transform(float *from) {
  cublasLtMatrixTransformDesc_t how;
  cublasLtMatrixLayout_t layout;
  TRY(cublasLtMatrixTransformDescCreate(&how, CUDA_R_32F));
  TRY(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, M, M, M));
  TRY(cublasLtMatrixTransform(lt, how, &one, from, layout, &zero, NULL, NULL, y,
                              layout, 0));
}

static void exchange(float *to, size_t elements) {
  TRY(ncclGroupStart());
  TRY(ncclSend(c, elements, ncclFloat, 0, comm, 0));
  TRY(ncclRecv(to, elements, ncclFloat, 0, comm, 0));
  TRY(ncclGroupEnd());
}

// ---- the table --------------------------------------------------------------

#define on_device(call)                                                        \
  (cublasSetPointerMode(H, CUBLAS_POINTER_MODE_DEVICE), call,                  \
   cublasSetPointerMode(H, CUBLAS_POINTER_MODE_HOST))
#define UPPER CUBLAS_FILL_MODE_UPPER
#define OP    CUBLAS_OP_N
#define UNIT  CUBLAS_DIAG_NON_UNIT
#define LEFT  CUBLAS_SIDE_LEFT
#define H     cublas
// y and c as arrays of other types.
#define cy ((cuComplex *)y)
#define ca ((cuComplex *)c)
#define dy ((double *)y)
#define dd ((double *)c)
#define ra ((const float *const *)fa)
#define rb ((const float *const *)fb)

// clang-format off
#define EACH_CALL(ROW)                                                         \
  ROW(gbmv, OWN, cublasSgbmv(H, OP, N, 1, N - 1, 0, &one, a, N, a, 1, &zero, y, 1)) \
  ROW(gbmv_t, OWN, cublasSgbmv(H, CUBLAS_OP_T, 1, N, 0, N - 1, &one, a, 1, a, 1, &zero, y, 1)) \
  ROW(symv, OWN, cublasSsymv(H, UPPER, N, &one, a, N, b, 1, &zero, y, 1))        \
  ROW(symv_beta, ALL, cublasSsymv(H, UPPER, N, &one, a, N, b, 1, &one, y, 1))    \
  ROW(sbmv, OWN, cublasSsbmv(H, UPPER, N, 0, &one, b, 1, b, 1, &zero, y, 1))     \
  ROW(spmv, OWN, cublasSspmv(H, UPPER, N, &one, a, b, 1, &zero, y, 1))           \
  ROW(hemv, OWN, cublasChemv(H, UPPER, N / 2, &c_one, ca, N, ca, 1, &c_zero, cy, 1)) \
  ROW(hbmv, OWN, cublasChbmv(H, UPPER, N / 2, 0, &c_one, ca, 1, ca, 1, &c_zero, cy, 1)) \
  ROW(hpmv, OWN, cublasChpmv(H, UPPER, N / 2, &c_one, ca, ca, 1, &c_zero, cy, 1)) \
  ROW(trmv, ALL, cublasStrmv(H, UPPER, OP, UNIT, N, a, N, y, 1))                 \
  ROW(trsv, ALL, cublasStrsv(H, UPPER, OP, CUBLAS_DIAG_UNIT, N, a, N, y, 1))     \
  ROW(ger, ALL, cublasSger(H, M, M, &one, b, 1, b, 1, y, M))                     \
  ROW(syr, ALL, cublasSsyr(H, UPPER, M, &one, b, 1, y, M))                       \
  ROW(spr, ALL, cublasSspr(H, UPPER, M, &one, b, 1, y))                          \
  ROW(syr2, ALL, cublasSsyr2(H, UPPER, M, &one, b, 1, b, 1, y, M))               \
  ROW(syrk, DOUBT, cublasSsyrk(H, UPPER, OP, M, M, &one, b, M, &zero, y, M))     \
  ROW(syrk_beta, ALL, cublasSsyrk(H, UPPER, OP, M, M, &one, b, M, &one, y, M))   \
  ROW(herk, DOUBT, cublasCherk(H, UPPER, OP, 4, 4, &one, ca, 4, &zero, cy, 4))   \
  ROW(syr2k, DOUBT, cublasSsyr2k(H, UPPER, OP, M, M, &one, b, M, b, M, &zero, y, M)) \
  ROW(syrkx, DOUBT, cublasSsyrkx(H, UPPER, OP, M, M, &one, b, M, b, M, &zero, y, M)) \
  ROW(syrkEx, DOUBT, cublasCsyrkEx(H, UPPER, OP, 4, 4, &c_one, ca, CUDA_C_32F, 4, &c_zero, cy, CUDA_C_32F, 4)) \
  ROW(symm, OWN, cublasSsymm(H, LEFT, UPPER, M, M, &one, a, M, b, M, &zero, y, M)) \
  ROW(symm_part, ALL, cublasSsymm(H, LEFT, UPPER, M, M / 2, &one, a, M, b, M, &zero, y, M)) \
  ROW(symm_64, OWN, cublasSsymm_64(H, LEFT, UPPER, M, M, &one, a, M, b, M, &zero, y, M)) \
  ROW(symm_double, OWN, cublasDsymm(H, LEFT, UPPER, 8, 4, &d_one, dd, 8, dd, 8, &d_zero, dy, 8)) \
  ROW(hemm, OWN, cublasChemm(H, LEFT, UPPER, M, 4, &c_one, ca, M, ca, M, &c_zero, cy, M)) \
  ROW(hemm_imaginary, ALL, cublasChemm(H, LEFT, UPPER, M, 4, &c_one, ca, M, ca, M, &c_i, cy, M)) \
  ROW(trsm, ALL, cublasStrsm(H, LEFT, UPPER, OP, CUBLAS_DIAG_UNIT, M, M, &one, a, M, y, M)) \
  ROW(trmm, OWN, cublasStrmm(H, LEFT, UPPER, OP, UNIT, M, M, &one, b, M, b, M, y, M)) \
  ROW(trmm_in_place, ALL, cublasStrmm(H, LEFT, UPPER, OP, CUBLAS_DIAG_UNIT, M, M, &one, a, M, y, M, y, M)) \
  ROW(geam, OWN, cublasSgeam(H, OP, OP, M, M, &one, b, M, &zero, NULL, M, y, M)) \
  ROW(geam_of_pieces, ALL, cublasSgeam(H, OP, CUBLAS_OP_T, M, M, &one, b, M, &one, p, M, y, M)) \
  ROW(geam_without_pieces, OWN, cublasSgeam(H, OP, OP, M, M, &one, b, M, &zero, p, M, y, M)) \
  ROW(geam_in_place, ALL, cublasSgeam(H, OP, OP, M, M, &one, y, M, &one, b, M, y, M)) \
  ROW(dgmm, OWN, cublasSdgmm(H, LEFT, M, M, b, M, b, 1, y, M))                   \
  ROW(dgmm_of_pieces, ALL, cublasSdgmm(H, CUBLAS_SIDE_RIGHT, M, M, p, M, b, 1, y, M)) \
  ROW(dgmm_by_pieces, ALL, cublasSdgmm(H, LEFT, M, M, b, M, p, 1, y, M))         \
  ROW(tpttr, DOUBT, cublasStpttr(H, UPPER, M, b, y, M))                          \
  ROW(trttp, OWN, cublasStrttp(H, UPPER, 11, b, 11, y))                          \
  ROW(trttp_of_pieces, ALL, cublasStrttp(H, UPPER, 11, p, 11, y))                \
  ROW(rotg, ALL, on_device(cublasSrotg(H, y, y + 1, y + 2, y + 3)))                         \
  ROW(rotmg, ALL, on_device(cublasSrotmg(H, b, b + 1, b + 2, b + 3, y)))                    \
  ROW(bytes, ALL, cublasUint8gemmBias(H, OP, OP, OP, 4, 4, 4, (void *)b, 0, 4, (void *)b, 0, 4, (void *)y, 0, 4, 1, 0)) \
  /* products that no rule knows */                                            \
  ROW(cgemm, OWN, cublasCgemm(H, OP, OP, M, 4, M, &c_one, ca, M, ca, M, &c_zero, cy, M)) \
  ROW(cgemm_beta, ALL, cublasCgemm(H, OP, OP, M, 4, M, &c_one, ca, M, ca, M, &c_i, cy, M)) \
  ROW(gemm3m, OWN, cublasCgemm3m(H, OP, OP, M, 4, M, &c_one, ca, M, ca, M, &c_zero, cy, M)) \
  ROW(cgemv, OWN, cublasCgemv(H, OP, N / 2, 1, &c_one, ca, N, ca, 1, &c_zero, cy, 1)) \
  ROW(cgemmEx, OWN, cublasGemmEx(H, OP, OP, M, 4, M, &c_one, ca, CUDA_C_32F, M, ca, CUDA_C_32F, M, &c_zero, cy, CUDA_C_32F, M, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT)) \
  ROW(cgemmStrided, OWN, cublasCgemmStridedBatched(H, OP, OP, 4, 4, 4, &c_one, ca, 4, 0, ca, 4, 0, &c_zero, cy, 4, 16, 2)) \
  ROW(gemmStrided, OWN, cublasSgemmStridedBatched(H, OP, OP, 4, 4, 4, &one, b, 4, 0, b, 4, 0, &zero, y, 4, 16, 4)) \
  ROW(gemmStrided_beta, ALL, cublasSgemmStridedBatched(H, OP, OP, 4, 4, 4, &one, b, 4, 0, b, 4, 0, &one, y, 4, 16, 4)) \
  /* arrays of addresses, which are in device memory */                        \
  ROW(gemmBatched, DOUBT, cublasSgemmBatched(H, OP, OP, M, M, M, &one, rb, M, rb, M, &zero, fy, M, 1)) \
  ROW(gemmBatchedEx, DOUBT, cublasGemmBatchedEx(H, OP, OP, M, M, M, &one, (void *)fb, CUDA_R_32F, M, (void *)fb, CUDA_R_32F, M, &zero, (void *)fy, CUDA_R_32F, M, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT)) \
  ROW(gemvBatched, DOUBT, cublasSgemvBatched(H, OP, M, M, &one, rb, M, rb, 1, &zero, fy, 1, 1)) \
  ROW(trsmBatched, DOUBT, cublasStrsmBatched(H, LEFT, UPPER, OP, CUBLAS_DIAG_UNIT, M, M, &one, ra, M, fy, M, 1)) \
  ROW(matinvBatched, DOUBT, cublasSmatinvBatched(H, M, ra, M, fy, M, ints, 1))   \
  ROW(geqrfBatched, DOUBT, cublasSgeqrfBatched(H, M, M, fy, M, fb, info, 1))     \
  ROW(gelsBatched, DOUBT, cublasSgelsBatched(H, OP, M, M, 1, fb, M, fy, M, info, ints, 1)) \
  ROW(getrfBatched, DOUBT, cublasSgetrfBatched(H, M, fy, M, ints, ints, 1))      \
  ROW(getriBatched, DOUBT, cublasSgetriBatched(H, M, ra, M, ints, fy, M, ints, 1)) \
  ROW(getrsBatched, DOUBT, cublasSgetrsBatched(H, OP, M, 1, ra, M, ints, fy, M, info, 1)) \
  ROW(gemmGrouped, DOUBT, cublasGemmGroupedBatchedEx(H, ops, ops, sizes, sizes, sizes, &one, (void *)fb, CUDA_R_32F, sizes, (void *)fb, CUDA_R_32F, sizes, &zero, (void *)fy, CUDA_R_32F, sizes, 1, ones, CUBLAS_COMPUTE_32F)) \
  /* copies */                                                                 \
  ROW(SetVector, OWN, cublasSetVector(N, 4, host_a, 1, y, 1))                    \
  ROW(SetVectorAsync, OWN, cublasSetVectorAsync(N, 4, host_a, 1, y, 1, 0))       \
  ROW(SetVector_part, ALL, cublasSetVector(N / 2, 4, host_a, 1, y, 1))           \
  ROW(SetVector_steps, ALL, cublasSetVector(N / 2, 4, host_a, 1, y, 2))          \
  ROW(SetMatrix, OWN, cublasSetMatrix(M, M, 4, host_a, M, y, M))                 \
  ROW(SetMatrixAsync, OWN, cublasSetMatrixAsync(M, M, 4, host_a, M, y, M, 0))    \
  ROW(GetVector, ALL, cublasGetVector(N, 4, y, 1, host, 1))                      \
  ROW(GetMatrix, ALL, cublasGetMatrix(M, M, 4, y, M, host, M))                   \
  ROW(transform, OWN, transform(a))                                            \
  ROW(transform_of_pieces, ALL, transform(p))                                  \
  ROW(cube, OWN, cube(y, b, M))                                                \
  ROW(cube_beside, ALL, cube(b, a, M))                                         \
  ROW(cube_part, ALL, cube(y, b, M / 2))                                       \
  ROW(cube_of_pieces, ALL, cube(y, p, M))                                      \
  ROW(cube_peer, OWN, cube_peer(y, b))                                         \
  ROW(cube_set, OWN, (cube_set(y), cublasSetVector(1, 4, host_a, 1, y, 1)))    \
  ROW(batch, OWN, batch_of_copies(y))                                          \
  ROW(batch_beside, ALL, batch_of_copies(b))                                   \
  ROW(attributes, OWN, copy_with_attributes(y))                                \
  ROW(array, OWN, from_array(y))                                               \
  /* the program's own calls of NCCL */                                        \
  ROW(AllReduce, OWN, ncclAllReduce(y, y, N, ncclFloat, ncclSum, comm, 0))       \
  ROW(AllReduce_beside, ALL, ncclAllReduce(y, b, N, ncclFloat, ncclSum, comm, 0)) \
  ROW(Broadcast, OWN, ncclBroadcast(b, y, N, ncclFloat, 0, comm, 0))             \
  ROW(Bcast, OWN, ncclBcast(y, N, ncclFloat, 0, comm, 0))                        \
  ROW(Reduce, DOUBT, ncclReduce(b, y, N, ncclFloat, ncclSum, 0, comm, 0))        \
  ROW(ReduceScatter, OWN, ncclReduceScatter(b, y, N, ncclFloat, ncclSum, comm, 0)) \
  ROW(AllGather, OWN, ncclAllGather(b, y, N, ncclFloat, comm, 0))                \
  ROW(SendRecv, OWN, exchange(y, N))                                           \
  ROW(SendRecv_part, ALL, exchange(y, M))                                      \
  /* cuDNN */                                                                  \
  ROW(rnn_y, OWN, recur(b, y, NULL, NULL))                                     \
  ROW(rnn_y_of_pieces, ALL, recur(p, y, NULL, NULL))                           \
  ROW(rnn_hy, OWN, recur(b, NULL, y, NULL))                                    \
  ROW(rnn_cy, OWN, recur(b, NULL, NULL, y))                                    \
  ROW(rnn_dx, OWN, recur_back(y, NULL, NULL))                                  \
  ROW(rnn_dhx, OWN, recur_back(NULL, y, NULL))                                 \
  ROW(rnn_dcx, OWN, recur_back(NULL, NULL, y))                                 \
  ROW(rnn_dw, OWN, recur_weights(CUDNN_WGRAD_MODE_SET))                        \
  ROW(rnn_dw_added, ALL, recur_weights(CUDNN_WGRAD_MODE_ADD))                  \
  ROW(rnn_workspace, OWN, recur_in(y))                                         \
  ROW(ctc_gradients, OWN, ctc(b, y, b))                                        \
  ROW(ctc_gradients_of_pieces, ALL, ctc(p, y, b))                              \
  ROW(ctc_costs, ALL, ctc(b, b, y))                                            \
  ROW(dropout_states, OWN, dropout_states())
// clang-format on

static const cublasOperation_t ops[] = {OP};
static const int sizes[] = {M}, ones[] = {1};

#define ENUM(name, want, call) CASE_##name,
enum { EACH_CALL(ENUM) CASES };
static const struct {
  const char *name;
  found_t want;
} cases[] = {
#define NAMES(name, want, call) {#name, want},
    EACH_CALL(NAMES)};

static void make_call(int which) {
  switch (which) {
#define CASE(name, want, call)                                                 \
  case CASE_##name:                                                            \
    (void)(call);                                                              \
    break;
    EACH_CALL(CASE)
  }
}

int main(int argc, char **argv) {
  static const char *const word[] = {"own", "all", "refused"};
  int failed = 0;
  if (argc < 2)
    return 2;
  begin(atoi(argv[1]));
  for (int i = 0; i < CASES; i++) {
    if (argc > 2 && strcmp(argv[2], cases[i].name) != 0)
      continue;
    fill(b, ROOM, 1, 1);
    convolve(p);
    convolve(y);
    make_call(i);
    found_t got = found();
    if (got != cases[i].want)
      failed += printf("%s: the sum is %s, not %s\n", cases[i].name, word[got],
                       word[cases[i].want]) > 0;
  }
  printf("%d cases, %d failed\n", CASES, failed);
  return failed > 0;
}
