// SPDX-License-Identifier: Apache-2.0
// Identifies the rank's GPU by machine and bus id.
#include "src/exchange/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/hash.h"
#include "src/base/vendor.h"
#include "src/exchange/device.h"

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

sdg_status_t sdg_gpu_find(sdg_gpu_t *out_gpu) {
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

bool sdg_gpu_same(const sdg_gpu_t *a, const sdg_gpu_t *b) {
  return a->machine == b->machine &&
         strncmp(a->bus, b->bus, sizeof a->bus) == 0;
}
