/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's operations between processes: every rank checks what it received. */
#include "tests/host/nccl/ranks.h"
#include "tests/host/nccl/types.h"
#include "tests/unit/harness.h"

static size_t message_bytes(int round, int source, int destination) {
  unsigned seed =
      (unsigned)(round * 64 + source * 8 + destination + 1) * 2654435761u;
  seed ^= seed >> 15;
  switch (seed % 6) {
  case 0:
    return 0;
  case 1:
    return 131072 * (seed >> 8 & 7);
  case 2:
    return seed >> 8 & 0x3fffff;
  default:
    return seed >> 8 & 0x1fff;
  }
}

static unsigned char message_byte(int round, int source, int destination,
                                  size_t i) {
  return (unsigned char)(i * 31 + i / 251 + (size_t)(round * 7 + source * 3) +
                         (size_t)destination);
}

/* All to all with random sizes, receives first on odd ranks; self included. */
static void play_exchange(const rank_info_t *info) {
  ncclComm_t comm = join(info);
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  for (int round = 0; round < 8; round++) {
    unsigned char *host[RANKS_MAX];
    void *send[RANKS_MAX], *recv[RANKS_MAX];
    for (int p = 0; p < info->ranks; p++) {
      size_t out = message_bytes(round, info->rank, p);
      host[p] = malloc((4 << 20) + 1);
      for (size_t i = 0; i < out; i++)
        host[p][i] = message_byte(round, info->rank, p, i);
      send[p] = upload(host[p], out);
      CUDA(cudaMalloc(&recv[p], message_bytes(round, p, info->rank) + 1));
    }
    NCCL(ncclGroupStart());
    for (int half = 0; half < 2; half++)
      for (int p = 0; p < info->ranks; p++)
        if (half == (info->rank & 1))
          NCCL(ncclSend(send[p], message_bytes(round, info->rank, p), ncclInt8,
                        p, comm, stream));
        else
          NCCL(ncclRecv(recv[p], message_bytes(round, p, info->rank), ncclInt8,
                        p, comm, stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(stream));
    for (int p = 0; p < info->ranks; p++) {
      size_t in = message_bytes(round, p, info->rank);
      download(host[p], recv[p], in);
      for (size_t i = 0; i < in; i++)
        RANK_REQUIRE(host[p][i] == message_byte(round, p, info->rank, i));
      free(host[p]);
      CUDA(cudaFree(send[p]));
      CUDA(cudaFree(recv[p]));
    }
  }
  NCCL(ncclCommDestroy(comm));
}

/* Small integers, so that one formula fits all types; signs for signed types;
 * products stay small. */
static double element(ncclDataType_t type, int rank, size_t i) {
  int value = (int)((i * 5 + (size_t)rank * 3) % 7);
  if (type == ncclUint8 || type == ncclUint32 || type == ncclUint64)
    return value % 3;
  return types_is_integer(type) ? value % 5 - 2 : (value - 3) * 0.5;
}

typedef struct buffers {
  ncclDataType_t type;
  size_t size;
  void *host;
  char *device; /* room for ranks * count elements, twice */
} buffers_t;

static void fill(const buffers_t *b, const rank_info_t *info, size_t from,
                 size_t count, size_t at) {
  for (size_t i = 0; i < count; i++)
    types_put(b->type, b->host, i, element(b->type, info->rank, from + i));
  CUDA(cudaMemcpy(b->device + at, b->host, count * b->size,
                  cudaMemcpyHostToDevice));
}

static void expect(const buffers_t *b, size_t at, size_t i, double want) {
  char got[8], wanted[8];
  download(got, b->device + at + i * b->size, b->size);
  types_put(b->type, wanted, 0, want);
  /* Not by bits, because 0 and -0 are both right. */
  if (types_get(b->type, got, 0) != types_get(b->type, wanted, 0))
    fprintf(stderr, "type %d element %zu: %g instead of %g\n", b->type, i,
            types_get(b->type, got, 0), types_get(b->type, wanted, 0));
  RANK_REQUIRE(types_get(b->type, got, 0) == types_get(b->type, wanted, 0));
}

/* A few elements of a result: reading all one by one is slow. */
static size_t some(size_t count, size_t k) {
  return k < 8 ? k : k == 8 ? count - 1 : k * 2654435761u % count;
}

static double reduced(ncclDataType_t type, ncclRedOp_t op, int ranks,
                      size_t i) {
  double value[RANKS_MAX] = {0};
  for (int r = 0; r < ranks; r++)
    value[r] = element(type, r, i);
  return types_combine(type, op, ranks, value);
}

static void check_reductions(const rank_info_t *info, ncclComm_t comm,
                             const buffers_t *b, size_t count, ncclRedOp_t op,
                             bool in_place) {
  int root = (int)(count % (size_t)info->ranks);
  size_t n = (size_t)info->ranks * count;
  size_t half = n * b->size; /* offset of the second buffer */
  size_t target = in_place ? 0 : half;
  char *d = b->device;
  fill(b, info, 0, count, 0);
  NCCL(ncclAllReduce(d, d + target, count, b->type, op, comm, 0));
  CUDA(cudaStreamSynchronize(0));
  for (size_t k = 0; k < 40; k++)
    expect(b, target, some(count, k) % count,
           reduced(b->type, op, info->ranks, some(count, k) % count));
  fill(b, info, 0, count, 0);
  NCCL(ncclReduce(d, info->rank == root ? d + target : NULL, count, b->type, op,
                  root, comm, 0));
  CUDA(cudaStreamSynchronize(0));
  for (size_t k = 0; k < 20 && info->rank == root; k++)
    expect(b, target, some(count, k) % count,
           reduced(b->type, op, info->ranks, some(count, k) % count));
  fill(b, info, 0, n, 0);
  size_t own = (size_t)info->rank * count;
  size_t out = in_place ? own * b->size : half;
  NCCL(ncclReduceScatter(d, d + out, count, b->type, op, comm, 0));
  CUDA(cudaStreamSynchronize(0));
  for (size_t k = 0; k < 20; k++)
    expect(b, out, some(count, k) % count,
           reduced(b->type, op, info->ranks, own + some(count, k) % count));
}

static void check_copies(const rank_info_t *info, ncclComm_t comm,
                         const buffers_t *b, size_t count, bool in_place) {
  size_t n = (size_t)info->ranks * count;
  size_t bytes = count * b->size, half = n * b->size;
  size_t own = (size_t)info->rank * bytes;
  int root = info->ranks - 1;
  char *d = b->device;
  /* Gathers on all ranks, then on the root. */
  for (int all = 0; all < 2; all++) {
    size_t from = in_place ? half + own : 0;
    fill(b, info, 0, count, from);
    NCCL(all ? ncclAllGather(d + from, d + half, count, b->type, comm, 0)
             : ncclGather(d + from, d + half, count, b->type, root, comm, 0));
    CUDA(cudaStreamSynchronize(0));
    for (size_t k = 0; k < 20 && (all || info->rank == root); k++) {
      size_t i = some(n, k) % n;
      expect(b, half, i, element(b->type, (int)(i / count), i % count));
    }
  }
  fill(b, info, 0, count, 0);
  size_t target = in_place ? 0 : half;
  if (in_place)
    NCCL(ncclBcast(d, count, b->type, root, comm, 0));
  else
    NCCL(ncclBroadcast(info->rank == root ? d : NULL, d + half, count, b->type,
                       root, comm, 0));
  CUDA(cudaStreamSynchronize(0));
  for (size_t k = 0; k < 20; k++)
    expect(b, target, some(count, k) % count,
           element(b->type, root, some(count, k) % count));
  fill(b, info, 0, n, 0);
  target = in_place && info->rank == root ? own : half;
  NCCL(ncclScatter(d, d + target, count, b->type, root, comm, 0));
  CUDA(cudaStreamSynchronize(0));
  for (size_t k = 0; k < 20; k++)
    expect(b, target, some(count, k) % count,
           element(b->type, root,
                   (size_t)info->rank * count + some(count, k) % count));
  fill(b, info, 0, n, 0);
  NCCL(ncclAlltoAll(d, d + half, count, b->type, comm, 0));
  CUDA(cudaStreamSynchronize(0));
  for (size_t k = 0; k < 20; k++) {
    size_t i = some(n, k) % n;
    expect(b, half, i,
           element(b->type, (int)(i / count),
                   (size_t)info->rank * count + i % count));
  }
}

static void play_collectives(const rank_info_t *info) {
  ncclComm_t comm = join(info);
  static const size_t counts[] = {1, 5, 1000, 70001};
  size_t room = 2 * (size_t)info->ranks * 70001 * 8;
  buffers_t b = {.host = malloc(room)};
  CUDA(cudaMalloc((void **)&b.device, room));
  for (int type = 0; type < ncclNumTypes; type++)
    for (int c = 0; c < 4; c++) {
      /* The search tables are slow: large vectors for the common types. */
      if (c == 3 && type != ncclFloat32 && type != ncclInt8)
        continue;
      b.type = (ncclDataType_t)type;
      b.size = types_bytes(b.type);
      for (int in_place = 0; in_place < 2; in_place++) {
        check_copies(info, comm, &b, counts[c], in_place);
        for (int op = 0; op < ncclNumOps; op++)
          if (c < 2 || op == (type + c) % ncclNumOps || op == ncclSum)
            check_reductions(info, comm, &b, counts[c], (ncclRedOp_t)op,
                             in_place);
      }
    }
  free(b.host);
  CUDA(cudaFree(b.device));
  NCCL(ncclCommDestroy(comm));
}

/* Repeats an inexact sum: all ranks and all runs must have the same bits, in
 * any order of arrival. */
static void play_reproducible(const rank_info_t *info) {
  enum { N = 30011 };
  ncclComm_t comm = join(info);
  static float in[N], first[N], out[N];
  for (int i = 0; i < N; i++)
    in[i] = (float)((i * 7919 + info->rank * 104729) % 10007) / 977.0f;
  float *send = upload(in, sizeof in), *recv = upload(in, sizeof in);
  float *all = upload(in, 1);
  CUDA(cudaFree(all));
  CUDA(cudaMalloc((void **)&all, sizeof in * (size_t)info->ranks));
  float *every = malloc(sizeof in * (size_t)info->ranks);
  for (int round = 0; round < 10; round++) {
    usleep((useconds_t)((info->rank * 7 + round * 3) % 5 * 1000));
    NCCL(ncclAllReduce(send, recv, N, ncclFloat32, ncclSum, comm, 0));
    NCCL(ncclAllGather(recv, all, N, ncclFloat32, comm, 0));
    download(out, recv, sizeof out);
    download(every, all, sizeof in * (size_t)info->ranks);
    if (round == 0)
      memcpy(first, out, sizeof out);
    RANK_REQUIRE(memcmp(first, out, sizeof out) == 0);
    for (int r = 0; r < info->ranks; r++)
      RANK_REQUIRE(memcmp(every + (size_t)r * N, out, sizeof out) == 0);
  }
  free(every);
  NCCL(ncclCommDestroy(comm));
}

/* Three communicators that number the ranks differently, each on its own
 * stream. */
static void play_several(const rank_info_t *info) {
  ncclComm_t comm[IDS];
  cudaStream_t stream[IDS];
  NCCL(ncclGroupStart());
  for (int c = 0; c < IDS; c++)
    NCCL(ncclCommInitRank(&comm[c], info->ranks, info->id[c],
                          c == 1 ? info->ranks - 1 - info->rank : info->rank));
  NCCL(ncclGroupEnd());
  int *device[IDS];
  for (int c = 0; c < IDS; c++) {
    int rank, ranks, number;
    NCCL(ncclCommUserRank(comm[c], &rank));
    NCCL(ncclCommCount(comm[c], &ranks));
    NCCL(ncclCommCuDevice(comm[c], &number));
    RANK_REQUIRE(ranks == info->ranks && number == 0);
    RANK_REQUIRE(rank == (c == 1 ? info->ranks - 1 - info->rank : info->rank));
    CUDA(cudaStreamCreateWithFlags(&stream[c], cudaStreamNonBlocking));
    int value = 1 + info->rank;
    device[c] = upload(&value, sizeof value);
  }
  /* Odd ranks launch the communicators in the opposite order. */
  for (int round = 0; round < 20; round++)
    for (int k = 0; k < IDS; k++) {
      int c = info->rank & 1 ? IDS - 1 - k : k;
      NCCL(ncclAllReduce(device[c], device[c], 1, ncclInt32, ncclMax, comm[c],
                         stream[c]));
    }
  for (int c = 0; c < IDS; c++) {
    int value;
    CUDA(cudaStreamSynchronize(stream[c]));
    download(&value, device[c], sizeof value);
    RANK_REQUIRE(value == info->ranks);
    NCCL(ncclCommFinalize(comm[c]));
    NCCL(ncclCommDestroy(comm[c]));
  }
}

static void play_nonblocking(const rank_info_t *info) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm;
  if (info->rank > 0)
    gate_pass(); /* rank 0 has found no other rank */
  ncclResult_t result = ncclCommInitRankConfig(&comm, info->ranks, info->id[0],
                                               info->rank, &config);
  RANK_REQUIRE(result == ncclInProgress);
  int value = 1;
  int *device = upload(&value, sizeof value);
  if (info->rank == 0 && info->ranks > 1) {
    NCCL(ncclCommGetAsyncError(comm, &result));
    RANK_REQUIRE(result == ncclInProgress);
    RANK_REQUIRE(ncclAllReduce(device, device, 1, ncclInt32, ncclSum, comm,
                               0) == ncclInvalidArgument);
    RANK_REQUIRE(ncclCommDestroy(comm) == ncclInvalidArgument);
    gate_open();
  }
  while (result == ncclInProgress) {
    usleep(1000);
    NCCL(ncclCommGetAsyncError(comm, &result));
  }
  RANK_REQUIRE(result == ncclSuccess);
  NCCL(ncclAllReduce(device, device, 1, ncclInt32, ncclSum, comm, 0));
  download(&value, device, sizeof value);
  RANK_REQUIRE(value == info->ranks);
  result = ncclCommFinalize(comm);
  RANK_REQUIRE(result == ncclSuccess || result == ncclInProgress);
  while (result == ncclInProgress)
    NCCL(ncclCommGetAsyncError(comm, &result));
  RANK_REQUIRE(result == ncclSuccess);
  RANK_REQUIRE(ncclAllReduce(device, device, 1, ncclInt32, ncclSum, comm, 0) ==
               ncclInvalidUsage);
  NCCL(ncclCommDestroy(comm));
}

/* What groups guarantee besides several calls at once. */
static void play_groups(const rank_info_t *info) {
  ncclComm_t comm = join(info);
  cudaStream_t stream[2];
  CUDA(cudaStreamCreate(&stream[0]));
  CUDA(cudaStreamCreate(&stream[1]));
  int next = (info->rank + 1) % info->ranks;
  int previous = (info->rank + info->ranks - 1) % info->ranks;
  int host[4] = {info->rank, info->rank + 100, -1, -1};
  int *d = upload(host, sizeof host);
  RANK_REQUIRE(ncclGroupEnd() == ncclInvalidUsage);
  /* Nested; messages to one peer arrive in their order; two streams and the
   * legacy one; a collective between, which even ranks issue last. */
  int *sum = upload(host, sizeof host);
  NCCL(ncclGroupStart());
  if (info->rank & 1)
    NCCL(ncclAllReduce(sum, sum, 1, ncclInt32, ncclSum, comm, 0));
  NCCL(ncclSend(d, 1, ncclInt32, next, comm, stream[0]));
  NCCL(ncclGroupStart());
  NCCL(ncclSend(d + 1, 1, ncclInt32, next, comm, stream[1]));
  NCCL(ncclGroupEnd());
  NCCL(ncclRecv(d + 2, 1, ncclInt32, previous, comm, stream[1]));
  NCCL(ncclRecv(d + 3, 1, ncclInt32, previous, comm, stream[0]));
  if (!(info->rank & 1))
    NCCL(ncclAllReduce(sum, sum, 1, ncclInt32, ncclSum, comm, 0));
  NCCL(ncclGroupEnd());
  CUDA(
      cudaMemcpyAsync(host, d, sizeof host, cudaMemcpyDeviceToHost, stream[1]));
  CUDA(cudaStreamSynchronize(stream[1]));
  RANK_REQUIRE(host[2] == previous && host[3] == previous + 100);
  int total;
  download(&total, sum, sizeof total);
  RANK_REQUIRE(total == info->ranks * (info->ranks - 1) / 2);
  /* After an error inside a group no rank launches anything. */
  NCCL(ncclGroupStart());
  NCCL(ncclSend(d, 1, ncclInt32, next, comm, stream[0]));
  RANK_REQUIRE(ncclSend(d, 1, ncclInt32, info->ranks, comm, stream[0]) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclGroupEnd() == ncclInvalidArgument);
  /* A send to the rank itself needs its receive. */
  RANK_REQUIRE(ncclSend(d, 1, ncclInt32, info->rank, comm, 0) ==
               ncclInvalidUsage);
  NCCL(ncclGroupStart());
  NCCL(ncclRecv(d, 1, ncclInt32, info->rank, comm, 0));
  NCCL(ncclSend(d + 3, 2, ncclFloat16, info->rank, comm, 0));
  NCCL(ncclGroupEnd());
  download(host, d, sizeof(int));
  RANK_REQUIRE(host[0] == previous + 100);
  /* No elements: nothing is read or written, sizes still agree. */
  NCCL(ncclAllReduce(NULL, NULL, 0, ncclFloat32, ncclSum, comm, 0));
  NCCL(ncclAllGather(NULL, NULL, 0, ncclFloat32, comm, 0));
  NCCL(ncclGroupStart());
  NCCL(ncclSend(NULL, 0, ncclInt32, next, comm, 0));
  NCCL(ncclRecv(NULL, 0, ncclInt32, previous, comm, 0));
  NCCL(ncclGroupEnd());
  CUDA(cudaDeviceSynchronize());
  NCCL(ncclCommDestroy(comm));
}

static const rank_scenario_t scenarios[] = {
    {"exchange", play_exchange},         {"collectives", play_collectives},
    {"reproducible", play_reproducible}, {"several", play_several},
    {"nonblocking", play_nonblocking},   {"groups", play_groups},
};

static const int rank_counts[] = {1, 2, 3, 4, 8};

START_TEST(all_to_all_of_random_sizes_in_one_group) {
  launch_all("exchange", rank_counts[_i]);
}
END_TEST

START_TEST(collectives_in_all_types_match_the_reference) {
  launch_all("collectives", rank_counts[_i]);
}
END_TEST

START_TEST(sums_are_the_same_bits_everywhere_and_always) {
  launch_all("reproducible", rank_counts[_i]);
}
END_TEST

START_TEST(communicators_are_independent) {
  launch_all("several", rank_counts[_i]);
}
END_TEST

START_TEST(joining_without_blocking_is_in_progress_until_all_have_come) {
  launch_all("nonblocking", rank_counts[_i]);
}
END_TEST

START_TEST(groups_nest_span_streams_and_fail_as_a_whole) {
  launch_all("groups", rank_counts[_i]);
}
END_TEST

int main(int argc, char **argv) {
  if (argc == 4)
    return rank_play(argv, scenarios, sizeof scenarios / sizeof *scenarios);
  Suite *suite = suite_create("nccl");
  TCase *tcase = tcase_create("processes as ranks");
  tcase_set_timeout(tcase, 60);
  tcase_add_loop_test(tcase, all_to_all_of_random_sizes_in_one_group, 0, 5);
  tcase_add_loop_test(tcase, collectives_in_all_types_match_the_reference, 0,
                      5);
  tcase_add_loop_test(tcase, sums_are_the_same_bits_everywhere_and_always, 0,
                      5);
  tcase_add_loop_test(tcase, communicators_are_independent, 0, 5);
  tcase_add_loop_test(
      tcase, joining_without_blocking_is_in_progress_until_all_have_come, 0, 5);
  tcase_add_loop_test(tcase, groups_nest_span_streams_and_fail_as_a_whole, 0,
                      5);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
