// SPDX-License-Identifier: Apache-2.0
// The ranks of a group tell each other their GPUs and one NCCL id.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/channel.h"
#include "src/base/hash.h"
#include "src/base/vendor.h"
#include "src/control/control.h"
#include "src/comm/connection.h"
#include "src/job/job.h"

// ---- the ranks' GPUs -------------------------------------------------------

// This rank's GPU, in a form that other ranks can compare.
typedef struct gpu {
  uint64_t machine; // hash of the boot id, the process namespace, NCCL_HOSTID
  char bus[24];     // "0000:3B:00.0"
} gpu_t;

// Containers on one machine may share a host name or have different ones; the
// boot id is the same. The host device's bus id contains a process number,
// which is valid only within its process namespace. NCCL_HOSTID is part of the
// hash because NCCL lets ranks with different values share a GPU.
static uint64_t machine_hash(void) {
  char boot[64] = "";
  const char *told = getenv("NCCL_HOSTID");
  struct stat processes = {0};
  uint64_t hash = sdg_hash_text(SDG_HASH_SEED, told ? told : "");
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file && !fgets(boot, sizeof boot, file))
    boot[0] = '\0';
  if (file)
    fclose(file);
  hash = sdg_hash_text(hash, boot);
  if (stat("/proc/self/ns/pid", &processes) == 0)
    hash = sdg_hash_word(hash, (uint64_t)processes.st_ino);
  return hash;
}

static sdg_status_t gpu_find(gpu_t *out_gpu) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  int device;
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  memset(out_gpu, 0, sizeof *out_gpu);
  SDG_TRY(sdg_vendor_check(cuda->cudaGetDevice(&device), "current device"));
  SDG_TRY(sdg_vendor_check(cuda->cudaDeviceGetPCIBusId(
                               out_gpu->bus, (int)sizeof out_gpu->bus, device),
                           "bus of the device"));
  out_gpu->machine = machine_hash();
  return SDG_OK;
}

static bool gpu_same(const gpu_t *a, const gpu_t *b) {
  return a->machine == b->machine &&
         strncmp(a->bus, b->bus, sizeof a->bus) == 0;
}

// The record that ranks exchange before they create a communicator.
typedef struct introduction {
  ncclUniqueId id; // set by the communicator's first rank
  gpu_t gpu;
} introduction_t;

// If two ranks use one GPU, NCCL fails with an unclear message; this check
// reports it first.
static sdg_status_t gpus_compare(const sdg_group_t *group,
                                 const sdg_records_t *records) {
  const size_t *bytes = records->bytes;
  introduction_t a, b;
  for (int i = 0; i < group->count; i++) {
    memcpy(&a, records->data[i], sizeof a);
    for (int j = 0; j < i && bytes[i] == sizeof a; j++) {
      memcpy(&b, records->data[j], sizeof b);
      if (bytes[j] == sizeof b && gpu_same(&a.gpu, &b.gpu))
        return sdg_fail(SDG_E_ONE_GPU, "ranks %d and %d are on GPU %.23s",
                        group->rank[j], group->rank[i], a.gpu.bus);
    }
  }
  return SDG_OK;
}

sdg_status_t sdg_connection_introduce(const char *what, ncclUniqueId *out_id) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  const sdg_group_t *group = sdg_job_group();
  introduction_t mine = {0}, theirs;
  SDG_TRY(gpu_find(&mine.gpu));
  if (group->me == 0) {
    ncclResult_t result = nccl->ncclGetUniqueId(&mine.id);
    if (result != ncclSuccess)
      return sdg_fail(SDG_E_NCCL, "ncclGetUniqueId: %s",
                      nccl->ncclGetErrorString(result));
  }
  sdg_records_t records;
  sdg_status_t status;
  SDG_TRY_GOTO(
      sdg_job_gather(sdg_channel_get(), &mine, sizeof mine, what, &records),
      out);
  if (records.bytes[0] != sizeof theirs)
    status = sdg_fail(
        SDG_E_DIVERGED,
        "rank %d makes another call while this rank sets up a communicator",
        group->rank[0]);
  else
    status = gpus_compare(group, &records);
  if (status == SDG_OK) {
    memcpy(&theirs, records.data[0], sizeof theirs);
    *out_id = theirs.id;
  }
out:
  sdg_records_free(&records);
  return status;
}
