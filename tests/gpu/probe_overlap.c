// SPDX-License-Identifier: Apache-2.0
// Measures what a halo's journey costs beside a convolution, without sundog: on
// one GPU, a message of NCCL from the rank to itself, and copies.
//
// usage: probe_overlap [EDGE [CHANNELS]]    (1024 64: 3x3, half, NHWC)
#include <nccl.h>

#include "tests/gpu/probe_conv.h"

enum { BLOCKS = 4, ROUNDS = 9 };

static int edge = 1024, channels = 64;
static cudnnHandle_t cudnn;
static cudaStream_t compute;

// ---- the convolution --------------------------------------------------------

static probe_conv_t conv_make(void) {
  probe_conv_t c = {.cudnn = cudnn,
                    .algorithm =
                        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM};
  size_t bytes = probe_conv_elements(channels, edge) * PROBE_HALF_BYTES;
  probe_conv_open(&c, CUDNN_TENSOR_NHWC, channels, edge, edge, edge);
  PROBE_CUDNN(cudnnGetConvolutionForwardWorkspaceSize(
      cudnn, c.x, c.w, c.how, c.y, (cudnnConvolutionFwdAlgo_t)c.algorithm,
      &c.space_bytes));
  c.x_at = probe_halves(bytes);
  c.y_at = probe_halves(bytes);
  c.w_at = probe_halves((size_t)channels * (size_t)channels * PROBE_KERNEL *
                        PROBE_KERNEL * PROBE_HALF_BYTES);
  c.space = probe_device(c.space_bytes);
  return c;
}

static void conv_run(void *with) {
  PROBE_CUDNN(probe_conv_forward(with));
}

// ---- what travels beside it -------------------------------------------------

typedef struct travel {
  const char *name;
  void (*enqueue)(void *);
  cudaStream_t stream;
  ncclComm_t comm;
  char *from, *to;
  size_t bytes;
} travel_t;

#define NCCL(call) PROBE_MUST(ncclResult_t, ncclGetErrorString, call)

static void message(void *with) {
  const travel_t *t = with;
  NCCL(ncclGroupStart());
  NCCL(ncclSend(t->from, t->bytes, ncclInt8, 0, t->comm, t->stream));
  NCCL(ncclRecv(t->to, t->bytes, ncclInt8, 0, t->comm, t->stream));
  NCCL(ncclGroupEnd());
}

static void copy(void *with) {
  const travel_t *t = with;
  PROBE_CUDA(
      cudaMemcpyAsync(t->to, t->from, t->bytes, cudaMemcpyDefault, t->stream));
}

static cudaStream_t stream_make(int high) {
  int least, greatest;
  cudaStream_t stream;
  PROBE_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  PROBE_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                          high ? greatest : least));
  return stream;
}

static ncclComm_t comm_make(int blocks) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclUniqueId id;
  ncclComm_t comm;
  config.blocking = 1;
  if (blocks)
    config.maxCTAs = blocks;
  NCCL(ncclGetUniqueId(&id));
  NCCL(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  return comm;
}

static float elapsed_us(cudaEvent_t from, cudaEvent_t to) {
  float ms;
  PROBE_CUDA(cudaEventElapsedTime(&ms, from, to));
  return 1e3f * ms;
}

// When, after a common begin, the journey and the convolution end. `first`: the
// journey is enqueued before the convolution.
static void beside(const probe_conv_t *c, const travel_t *t, int first) {
  double travels[ROUNDS], computes[ROUNDS];
  cudaEvent_t begin, travelled, computed;
  PROBE_CUDA(cudaEventCreate(&begin));
  PROBE_CUDA(cudaEventCreate(&travelled));
  PROBE_CUDA(cudaEventCreate(&computed));
  for (int round = -1; round < ROUNDS; round++) {
    probe_gate_t gate = {0};
    PROBE_CUDA(cudaDeviceSynchronize());
    if (round >= 0)
      probe_gate_shut(&gate, compute);
    conv_run((void *)(uintptr_t)c); // the call before
    PROBE_CUDA(cudaEventRecord(begin, compute));
    PROBE_CUDA(cudaStreamWaitEvent(t->stream, begin, 0));
    if (!first)
      conv_run((void *)(uintptr_t)c);
    t->enqueue((void *)(uintptr_t)t);
    PROBE_CUDA(cudaEventRecord(travelled, t->stream));
    if (first)
      conv_run((void *)(uintptr_t)c);
    PROBE_CUDA(cudaEventRecord(computed, compute));
    atomic_store(&gate.open, 1);
    PROBE_CUDA(cudaDeviceSynchronize());
    probe_gate_note(&gate);
    if (round >= 0) {
      travels[round] = (double)elapsed_us(begin, travelled);
      computes[round] = (double)elapsed_us(begin, computed);
    }
  }
  char point[128];
  snprintf(point, sizeof point, "%s, enqueued %s a convolution", t->name,
           first ? "before" : "behind");
  probe_say(point, "ends after %.1f us, the convolution after %.1f us",
            probe_median(travels, ROUNDS), probe_median(computes, ROUNDS));
  PROBE_CUDA(cudaEventDestroy(begin));
  PROBE_CUDA(cudaEventDestroy(travelled));
  PROBE_CUDA(cudaEventDestroy(computed));
}

static void travel_probe(const probe_conv_t *c, travel_t *t) {
  probe_time_t alone = probe_time(t->enqueue, t, t->stream);
  probe_say(t->name, "alone %.1f us on the device, the caller's %.1f",
            alone.gpu_us, alone.cpu_us);
  beside(c, t, 0);
  beside(c, t, 1);
}

static void travels_probe(const probe_conv_t *c) {
  size_t bytes = 2 * (size_t)edge * (size_t)channels * PROBE_HALF_BYTES;
  char *from = probe_device(bytes), *to = probe_device(bytes), *host;
  PROBE_CUDA(cudaMallocHost((void **)&host, bytes));
  travel_t travels[] = {
      {.name = "two rows by NCCL, as it comes", .enqueue = message},
      {.name = "two rows by NCCL, highest priority and 4 blocks",
       .enqueue = message},
      {.name = "two rows by a copy on the device", .enqueue = copy},
      {.name = "two rows by a copy engine, to the host", .enqueue = copy},
  };
  for (int i = 0; i < 4; i++) {
    travel_t *t = &travels[i];
    t->stream = stream_make(i > 0);
    t->from = from;
    t->to = i == 3 ? host : to;
    t->bytes = bytes;
    if (t->enqueue == message)
      t->comm = comm_make(i == 1 ? BLOCKS : 0);
    travel_probe(c, t);
    if (t->comm)
      NCCL(ncclCommDestroy(t->comm));
    PROBE_CUDA(cudaStreamDestroy(t->stream));
  }
  PROBE_CUDA(cudaFree(from));
  PROBE_CUDA(cudaFree(to));
  PROBE_CUDA(cudaFreeHost(host));
}

// ---- columns ----------------------------------------------------------------

// A halo of `width` columns of an NCHW tensor: channels x rows short rows.
typedef struct columns {
  char *from, *to;
  int width;
  cudnnTensorDescriptor_t source, target;             // of half numbers
  cudnnTensorDescriptor_t source_bytes, target_bytes; // of int8
} columns_t;

static void columns_copy(void *with) {
  const columns_t *c = with;
  size_t row = (size_t)c->width * PROBE_HALF_BYTES;
  PROBE_CUDA(cudaMemcpy2DAsync(
      c->to, row, c->from, (size_t)edge * PROBE_HALF_BYTES, row,
      (size_t)channels * (size_t)edge, cudaMemcpyDeviceToDevice, compute));
}

static void columns_transform(void *with) {
  static const float one = 1, zero = 0;
  const columns_t *c = with;
  PROBE_CUDNN(cudnnTransformTensor(cudnn, &one, c->source, c->from, &zero,
                                   c->target, c->to));
}

// As sundog copies runs that are shorter than the last number of SUNDOG_COST:
// no bit of any type changes.
static void columns_bytes(void *with) {
  static const float one = 1, zero = 0;
  const columns_t *c = with;
  PROBE_CUDNN(cudnnTransformTensor(cudnn, &one, c->source_bytes, c->from, &zero,
                                   c->target_bytes, c->to));
}

static cudnnTensorDescriptor_t probe_columns(cudnnDataType_t type, int width,
                                             int pitch) {
  cudnnTensorDescriptor_t desc;
  PROBE_CUDNN(cudnnCreateTensorDescriptor(&desc));
  PROBE_CUDNN(cudnnSetTensor4dDescriptorEx(desc, type, 1, channels, edge, width,
                                           channels * edge * pitch,
                                           edge * pitch, pitch, 1));
  return desc;
}

// The same elements of a buffer of noise, copied by both.
static void columns_equal(const columns_t *c) {
  size_t bytes =
      (size_t)channels * (size_t)edge * (size_t)c->width * PROBE_HALF_BYTES;
  char *by[2];
  for (int i = 0; i < 2; i++) {
    (i ? columns_bytes : columns_copy)((void *)(uintptr_t)c);
    PROBE_CUDA(cudaStreamSynchronize(compute));
    by[i] = malloc(bytes);
    if (!by[i])
      exit(2);
    PROBE_CUDA(cudaMemcpy(by[i], c->to, bytes, cudaMemcpyDeviceToHost));
    PROBE_CUDA(cudaMemset(c->to, 0, bytes));
  }
  probe_expect("a copy as int8 keeps every bit", !memcmp(by[0], by[1], bytes),
               "yes", "no");
  free(by[0]);
  free(by[1]);
}

// All patterns of 16 bits, those of NaNs included.
static void patterns_fill(char *at) {
  static unsigned short pattern[1 << 16];
  size_t bytes =
      (size_t)channels * (size_t)edge * (size_t)edge * PROBE_HALF_BYTES;
  for (int i = 0; i < 1 << 16; i++)
    pattern[i] = (unsigned short)i;
  for (size_t done = 0; done < bytes; done += sizeof pattern)
    PROBE_CUDA(cudaMemcpy(at + done, pattern,
                          bytes - done < sizeof pattern ? bytes - done
                                                        : sizeof pattern,
                          cudaMemcpyHostToDevice));
}

static void columns_probe(const probe_conv_t *conv) {
  patterns_fill(conv->x_at);
  for (int width = 1; width <= 128 && width <= edge; width *= 2) {
    char point[96];
    columns_t c = {.from = conv->x_at, .to = conv->y_at, .width = width};
    c.source = probe_columns(CUDNN_DATA_HALF, width, edge);
    c.target = probe_columns(CUDNN_DATA_HALF, width, width);
    c.source_bytes = probe_columns(CUDNN_DATA_INT8, width * PROBE_HALF_BYTES,
                                   edge * PROBE_HALF_BYTES);
    c.target_bytes = probe_columns(CUDNN_DATA_INT8, width * PROBE_HALF_BYTES,
                                   width * PROBE_HALF_BYTES);
    columns_equal(&c);
    probe_time_t copied = probe_time(columns_copy, &c, compute);
    probe_time_t transformed = probe_time(columns_transform, &c, compute);
    probe_time_t bytes = probe_time(columns_bytes, &c, compute);
    snprintf(point, sizeof point, "%d rows of %d bytes", channels * edge,
             width * PROBE_HALF_BYTES);
    probe_say(point,
              "cudaMemcpy2DAsync %.1f us (caller %.1f), cudnnTransformTensor "
              "%.1f us (caller %.1f), as int8 %.1f us (caller %.1f)",
              copied.gpu_us, copied.cpu_us, transformed.gpu_us,
              transformed.cpu_us, bytes.gpu_us, bytes.cpu_us);
    const cudnnTensorDescriptor_t all[] = {c.source, c.target, c.source_bytes,
                                           c.target_bytes};
    for (int i = 0; i < 4; i++)
      PROBE_CUDNN(cudnnDestroyTensorDescriptor(all[i]));
  }
}

// ---- copies as one graph ----------------------------------------------------

// So many halos of two rows of an NCHW tensor into packed buffers.
typedef struct halos {
  char *from, *to;
  int count;
  cudaGraphExec_t graph;
} halos_t;

static void halos_copy(void *with) {
  const halos_t *h = with;
  size_t row = 2 * (size_t)edge * PROBE_HALF_BYTES;
  for (int i = 0; i < h->count; i++)
    PROBE_CUDA(cudaMemcpy2DAsync(
        h->to + (size_t)i * row * (size_t)channels, row,
        h->from + (size_t)i * row, (size_t)edge * edge * PROBE_HALF_BYTES, row,
        (size_t)channels, cudaMemcpyDeviceToDevice, compute));
}

static void halos_launch(void *with) {
  const halos_t *h = with;
  PROBE_CUDA(cudaGraphLaunch(h->graph, compute));
}

static void halos_probe(const probe_conv_t *conv) {
  static const int counts[] = {3, 4, 7};
  for (int i = 0; i < 3; i++) {
    char point[96];
    cudaGraph_t graph;
    halos_t h = {.from = conv->x_at, .to = conv->y_at, .count = counts[i]};
    PROBE_CUDA(cudaStreamBeginCapture(compute, cudaStreamCaptureModeRelaxed));
    halos_copy(&h);
    PROBE_CUDA(cudaStreamEndCapture(compute, &graph));
    PROBE_CUDA(cudaGraphInstantiateWithFlags(&h.graph, graph, 0));
    PROBE_CUDA(cudaGraphDestroy(graph));
    probe_time_t apart = probe_time(halos_copy, &h, compute);
    probe_time_t together = probe_time(halos_launch, &h, compute);
    snprintf(point, sizeof point, "%d copies of two rows, NCHW", counts[i]);
    probe_say(point,
              "one by one %.1f us (caller %.1f), as one graph %.1f us (caller "
              "%.1f)",
              apart.gpu_us, apart.cpu_us, together.gpu_us, together.cpu_us);
    PROBE_CUDA(cudaGraphExecDestroy(h.graph));
  }
}

int main(int count, char **words) {
  if (count > 1)
    edge = atoi(words[1]);
  if (count > 2)
    channels = atoi(words[2]);
  if (edge < 16 || channels < 1)
    return 2;
  compute = stream_make(0);
  PROBE_CUDNN(cudnnCreate(&cudnn));
  PROBE_CUDNN(cudnnSetStream(cudnn, compute));
  probe_conv_t conv = conv_make();
  probe_time_t alone = probe_time(conv_run, &conv, compute);
  probe_say("convolution", "%.1f us on the device, the caller's %.1f",
            alone.gpu_us, alone.cpu_us);
  travels_probe(&conv);
  columns_probe(&conv);
  halos_probe(&conv);
  PROBE_CUDNN(cudnnDestroy(cudnn));
  return probe_faults > 0;
}
