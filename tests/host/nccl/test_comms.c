// SPDX-License-Identifier: Apache-2.0
// What NCCL's communicators can do beside their operations: be captured, split
// and shrunk, and have operators of their own.
#include "tests/host/nccl/ranks.h"
#include "tests/unit/harness.h"

/* The sum over the communicator of 10^rank of the first one. */
static void check_members(ncclComm_t comm, int tag, double expected) {
  double value = 1;
  for (int i = 0; i < tag; i++)
    value *= 10;
  double *d = upload(&value, sizeof value);
  NCCL(ncclAllReduce(d, d, 1, ncclFloat64, ncclSum, comm, 0));
  download(&value, d, sizeof value);
  RANK_REQUIRE(value == expected);
  CUDA(cudaFree(d));
}

static double tens_of(int rank) {
  return rank == 0 ? 1 : 10 * tens_of(rank - 1);
}

/* Splits by parity, numbered backwards; of three ranks or more the last takes
 * no part; a child is split again; parent and children are used in turn. */
static void play_split(const rank_info_t *info) {
  ncclComm_t comm = join(info), part = comm, again, both[2];
  int out = info->ranks >= 3 ? info->ranks - 1 : -1;
  int color = info->rank == out ? NCCL_SPLIT_NOCOLOR : info->rank % 2;
  NCCL(ncclCommSplit(comm, color, -info->rank, &part, NULL));
  RANK_REQUIRE((part == NULL) == (color == NCCL_SPLIT_NOCOLOR));
  if (part != NULL) {
    double sum = 0;
    int ranks = 0, rank = 0, number;
    for (int r = 0; r < info->ranks; r++)
      if (r != out && r % 2 == color) {
        sum += tens_of(r);
        ranks++;
        rank += r > info->rank;
      }
    NCCL(ncclCommCount(part, &number));
    RANK_REQUIRE(number == ranks);
    NCCL(ncclCommUserRank(part, &number));
    RANK_REQUIRE(number == rank);
    check_members(part, info->rank, sum);
    NCCL(ncclCommSplit(part, 0, 0, &again, NULL));
    check_members(again, info->rank, sum);
    NCCL(ncclCommDestroy(again));
  }
  double all = 0;
  for (int r = 0; r < info->ranks; r++)
    all += tens_of(r);
  check_members(comm, info->rank, all);
  /* Two at once, in a group. */
  NCCL(ncclGroupStart());
  NCCL(ncclCommSplit(comm, 0, 0, &both[0], NULL));
  NCCL(ncclCommSplit(comm, info->rank, 0, &both[1], NULL));
  NCCL(ncclGroupEnd());
  check_members(both[0], info->rank, all);
  check_members(both[1], info->rank, tens_of(info->rank));
  RANK_REQUIRE(ncclCommSplit(comm, -2, 0, &again, NULL) == ncclInvalidArgument);
  RANK_REQUIRE(ncclCommSplit(comm, 0, 0, NULL, NULL) == ncclInvalidArgument);
  RANK_REQUIRE(ncclCommSplit(NULL, 0, 0, &again, NULL) == ncclInvalidArgument);
  NCCL(ncclCommDestroy(both[0]));
  NCCL(ncclCommDestroy(both[1]));
  if (part != NULL)
    NCCL(ncclCommDestroy(part));
  /* Shrinks to all ranks but the first, which does not take part. */
  if (info->ranks > 1 && info->rank > 0) {
    int first = 0, self = info->rank;
    RANK_REQUIRE(ncclCommShrink(comm, &self, 1, &part, NULL, 0) ==
                 ncclInvalidArgument);
    NCCL(ncclCommShrink(comm, &first, 1, &part, NULL, NCCL_SHRINK_DEFAULT));
    check_members(part, info->rank, all - 1);
    NCCL(ncclCommDestroy(part));
  }
  NCCL(ncclCommDestroy(comm));
}

/* Each rank multiplies by its own number, in host or device memory. */
static void play_multiplied(const rank_info_t *info) {
  enum { COUNT = 3000 };
  ncclComm_t comm = join(info);
  ncclRedOp_t host_op, device_op, other;
  static float values[COUNT], found[COUNT];
  for (int i = 0; i < COUNT; i++)
    values[i] = (float)(i % 17 + info->rank);
  float factor = (float)(info->rank + 1), half = 0.5f, sum = 0;
  float *d = upload(values, sizeof values), *e = upload(values, sizeof values);
  float *at = upload(&half, sizeof half);
  NCCL(ncclRedOpCreatePreMulSum(&host_op, &factor, ncclFloat32,
                                ncclScalarHostImmediate, comm));
  NCCL(ncclRedOpCreatePreMulSum(&device_op, at, ncclFloat32, ncclScalarDevice,
                                comm));
  factor = -1; /* has been read */
  NCCL(ncclAllReduce(d, e, COUNT, ncclFloat32, host_op, comm, 0));
  NCCL(ncclRedOpDestroy(host_op, comm));
  download(found, e, sizeof found);
  for (int i = 0; i < COUNT; i++) {
    sum = 0;
    for (int r = 0; r < info->ranks; r++)
      sum += (float)(i % 17 + r) * (float)(r + 1);
    RANK_REQUIRE(found[i] == sum);
  }
  download(found, d, sizeof found); /* what was sent is as before */
  RANK_REQUIRE(memcmp(found, values, sizeof found) == 0);
  NCCL(ncclAllReduce(d, d, COUNT, ncclFloat32, device_op, comm, 0));
  download(found, d, sizeof found);
  for (int i = 0; i < COUNT; i++) {
    sum = 0;
    for (int r = 0; r < info->ranks; r++)
      sum += (float)(i % 17 + r) * 0.5f;
    RANK_REQUIRE(found[i] == sum);
  }
  RANK_REQUIRE(ncclAllReduce(d, e, 1, ncclFloat32, host_op, comm, 0) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclAllReduce(d, e, 1, ncclFloat64, device_op, comm, 0) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclRedOpDestroy(host_op, comm) == ncclInvalidArgument);
  RANK_REQUIRE(ncclRedOpDestroy(ncclSum, comm) == ncclInvalidArgument);
  RANK_REQUIRE(ncclRedOpCreatePreMulSum(&other, NULL, ncclFloat32,
                                        ncclScalarDevice,
                                        comm) == ncclInvalidArgument);
  NCCL(ncclRedOpDestroy(device_op, comm));
  void *handle;
  ncclWindow_t window;
  NCCL(ncclCommRegister(comm, d, sizeof values, &handle));
  NCCL(ncclCommWindowRegister(comm, e, sizeof values, &window, 0));
  RANK_REQUIRE(ncclCommRegister(comm, NULL, 1, &handle) == ncclInvalidArgument);
  NCCL(ncclCommDeregister(comm, handle));
  NCCL(ncclCommWindowDeregister(comm, window));
  NCCL(ncclCommDestroy(comm));
}

/* Captures calls on two streams and launches them three times, with the same
 * calls directly in between; the graph lives longer than the communicator. */
static void play_captured(const rank_info_t *info) {
  ncclComm_t comm = join(info);
  cudaStream_t stream, other;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t event;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CUDA(cudaEventCreate(&event));
  double one = 1, sum = 0;
  double *d = upload(&one, sizeof one), *e = upload(&one, sizeof one);
  int next = (info->rank + 1) % info->ranks;
  int previous = (info->rank + info->ranks - 1) % info->ranks;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  NCCL(ncclAllReduce(d, d, 1, ncclFloat64, ncclSum, comm, stream));
  CUDA(cudaEventRecord(event, stream));
  CUDA(cudaStreamWaitEvent(other, event, 0));
  NCCL(ncclGroupStart());
  NCCL(ncclSend(d, 1, ncclFloat64, next, comm, stream));
  NCCL(ncclRecv(e, 1, ncclFloat64, previous, comm, other));
  NCCL(ncclGroupEnd());
  CUDA(cudaEventRecord(event, other));
  CUDA(cudaStreamWaitEvent(stream, event, 0));
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; i++) {
    CUDA(cudaGraphLaunch(exec, stream));
    NCCL(ncclAllReduce(d, d, 1, ncclFloat64, ncclMax, comm, stream));
  }
  CUDA(cudaStreamSynchronize(stream));
  download(&sum, e, sizeof sum);
  RANK_REQUIRE(sum == (double)info->ranks * info->ranks * info->ranks);
  NCCL(ncclCommDestroy(comm));
  RANK_REQUIRE(cudaGraphLaunch(exec, stream) != cudaSuccess);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaEventDestroy(event));
}

static ncclComm_t join_without_blocking(const rank_info_t *info) {
  ncclComm_t comm;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t state = ncclCommInitRankConfig(&comm, info->ranks, info->id[1],
                                              info->rank, &config);
  while (state == ncclInProgress) {
    usleep(1000);
    NCCL(ncclCommGetAsyncError(comm, &state));
  }
  NCCL(state);
  return comm;
}

/* A communicator that launches in a thread of its own would silently take that
 * thread's stream. */
static void play_per_thread(const rank_info_t *info) {
  ncclComm_t own = join(info), other = join_without_blocking(info);
  const cudaStream_t stream = cudaStreamPerThread;
  double one = 1, sum = 0;
  double *d = upload(&one, sizeof one);
  NCCL(ncclAllReduce(d, d, 1, ncclFloat64, ncclSum, own, stream));
  CUDA(cudaStreamSynchronize(stream));
  RANK_REQUIRE(ncclAllReduce(d, d, 1, ncclFloat64, ncclSum, other, stream) ==
               ncclInvalidUsage);
  NCCL(ncclGroupStart());
  RANK_REQUIRE(ncclSend(d, 1, ncclFloat64, info->rank, other, stream) ==
               ncclInvalidUsage);
  RANK_REQUIRE(ncclGroupEnd() == ncclInvalidUsage);
  NCCL(ncclAllReduce(d, d, 1, ncclFloat64, ncclSum, other, 0));
  CUDA(cudaStreamSynchronize(0));
  download(&sum, d, sizeof sum);
  RANK_REQUIRE(sum == (double)info->ranks * info->ranks);
  NCCL(ncclCommDestroy(other));
  NCCL(ncclCommDestroy(own));
}

static const rank_scenario_t scenarios[] = {
    {"per_thread", play_per_thread},
    {"captured", play_captured},
    {"split", play_split},
    {"multiplied", play_multiplied},
};

static const int rank_counts[] = {1, 2, 3, 4};

START_TEST(captured_operations_run_at_each_launch) {
  launch_all("captured", rank_counts[_i]);
}
END_TEST

START_TEST(communicators_are_split_and_shrunk) {
  launch_all("split", rank_counts[_i]);
}
END_TEST

START_TEST(operators_multiply_before_they_sum) {
  launch_all("multiplied", rank_counts[_i]);
}
END_TEST

START_TEST(a_stream_of_the_calling_thread_wants_a_blocking_communicator) {
  launch_all("per_thread", rank_counts[_i]);
}
END_TEST

int main(int argc, char **argv) {
  if (argc == 4)
    return rank_play(argv, scenarios, sizeof scenarios / sizeof *scenarios);
  Suite *suite = suite_create("nccl_comms");
  TCase *tcase = tcase_create("processes as ranks");
  tcase_set_timeout(tcase, 60);
  tcase_add_loop_test(tcase, captured_operations_run_at_each_launch, 0, 4);
  tcase_add_loop_test(tcase, communicators_are_split_and_shrunk, 0, 4);
  tcase_add_loop_test(tcase, operators_multiply_before_they_sum, 0, 4);
  tcase_add_loop_test(
      tcase, a_stream_of_the_calling_thread_wants_a_blocking_communicator, 0,
      4);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
