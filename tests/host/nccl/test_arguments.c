// SPDX-License-Identifier: Apache-2.0
// What NCCL's functions refuse, by which codes.
#include "tests/host/nccl/ranks.h"
#include "tests/unit/harness.h"

static void play_arguments(const rank_info_t *info) {
  ncclComm_t comm, none;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  int number;
  ncclResult_t state;
  NCCL(ncclGetVersion(&number));
  RANK_REQUIRE(number == 22809);
  RANK_REQUIRE(ncclGetVersion(NULL) == ncclInvalidArgument);
  RANK_REQUIRE(ncclGetUniqueId(NULL) == ncclInvalidArgument);
  RANK_REQUIRE(memcmp(&info->id[0], &info->id[1], sizeof(ncclUniqueId)) != 0);
  ncclUniqueId zero = {{0}};
  RANK_REQUIRE(ncclCommInitRank(&none, 1, zero, 0) == ncclInvalidArgument);
  RANK_REQUIRE(ncclCommInitRank(NULL, 1, info->id[0], 0) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclCommInitRank(&none, 0, info->id[0], 0) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclCommInitRank(&none, 2, info->id[0], 2) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclCommInitRank(&none, 2, info->id[0], -1) ==
               ncclInvalidArgument);
  /* The name does not contain the secret, so a stranger cannot use it. */
  ncclUniqueId guessed = info->id[0];
  guessed.internal[30] ^= 1;
  RANK_REQUIRE(ncclCommInitRank(&none, 1, guessed, 0) == ncclRemoteError);
  NCCL(ncclCommInitRank(&comm, 1, info->id[0], 0));
  NCCL(ncclCommDestroy(comm));
  RANK_REQUIRE(ncclCommInitRank(&none, 1, info->id[0], 0) == ncclRemoteError);
  /* A process has one device, a device one rank. */
  NCCL(ncclGroupStart());
  NCCL(ncclCommInitRank(&none, 2, info->id[1], 0));
  NCCL(ncclCommInitRank(&comm, 2, info->id[1], 1));
  RANK_REQUIRE(ncclGroupEnd() == ncclInvalidUsage);
  RANK_REQUIRE(none == NULL && comm == NULL);
  config.magic = 1;
  RANK_REQUIRE(ncclCommInitRankConfig(&none, 1, info->id[0], 0, &config) ==
               ncclInvalidArgument);
  NCCL(ncclCommInitAll(&comm, 1, NULL));
  RANK_REQUIRE(ncclCommInitAll(&none, 2, NULL) == ncclInvalidArgument);
  float value = 3;
  float *d = upload(&value, sizeof value);
  RANK_REQUIRE(pncclAllReduce(NULL, d, 1, ncclFloat32, ncclSum, comm, 0) ==
               ncclInvalidArgument);
  RANK_REQUIRE(strstr(ncclGetLastError(comm), "ncclAllReduce") != NULL);
  RANK_REQUIRE(ncclAllReduce(d, NULL, 1, ncclFloat32, ncclSum, comm, 0) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclAllReduce(d, d, 1, ncclFloat32, ncclSum, NULL, 0) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclAllReduce(d, d, 1, ncclNumTypes, ncclSum, comm, 0) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclAllReduce(d, d, 1, ncclFloat32, ncclNumOps, comm, 0) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclBroadcast(d, d, 1, ncclFloat32, 1, comm, 0) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclBroadcast(d, d, SIZE_MAX / 2, ncclFloat32, 0, comm, 0) ==
               ncclInvalidArgument);
  RANK_REQUIRE(ncclCommCount(NULL, &number) == ncclInvalidArgument);
  RANK_REQUIRE(ncclCommCount(comm, NULL) == ncclInvalidArgument);
  RANK_REQUIRE(ncclCommGetAsyncError(comm, NULL) == ncclInvalidArgument);
  RANK_REQUIRE(ncclGroupSimulateEnd(NULL) == ncclInvalidUsage);
  RANK_REQUIRE(strcmp(ncclGetErrorString(ncclSuccess), "no error") == 0);
  NCCL(ncclAllReduce(d, d, 1, ncclFloat32, ncclAvg, comm, 0));
  download(&value, d, sizeof value);
  RANK_REQUIRE(value == 3);
  NCCL(ncclCommGetAsyncError(comm, &state));
  RANK_REQUIRE(state == ncclSuccess);
  NCCL(ncclCommDestroy(comm));
  NCCL(ncclCommDestroy(NULL));
}

static const rank_scenario_t scenarios[] = {{"arguments", play_arguments}};

START_TEST(arguments_are_refused_with_the_codes_of_nccl) {
  launch_all("arguments", 1);
}
END_TEST

int main(int argc, char **argv) {
  if (argc == 4)
    return rank_play(argv, scenarios, sizeof scenarios / sizeof *scenarios);
  Suite *suite = suite_create("nccl arguments");
  TCase *tcase = tcase_create("a process as a rank");
  tcase_set_timeout(tcase, 60);
  tcase_add_test(tcase, arguments_are_refused_with_the_codes_of_nccl);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
