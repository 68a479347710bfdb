// SPDX-License-Identifier: Apache-2.0
// Finds what work costs this rank's device, and keeps what the group agreed on.
#include "src/job/cost.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>

#include "src/base/vendor.h"

static struct {
  pthread_mutex_t lock;
  sdg_cost_t mine, agreed;
} costs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
  int major, minor, bus_bits;
  sdg_cost_t cost;
} rows[] = {
#define SDG_COST(major, minor, bus_bits, copy_bytes_s, launch_us, strip_us,    \
                 run_bytes)                                                    \
  {major, minor, bus_bits, {copy_bytes_s, launch_us, strip_us, run_bytes}},
#include "src/job/cost.def"
#undef SDG_COST
};

sdg_cost_t sdg_cost_of(int major, int minor, int bus_bits) {
  int first = -1, last = -1;
  for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
    bool above = rows[i].major > major ||
                 (rows[i].major == major && rows[i].minor > minor);
    if (rows[i].bus_bits) {
      if (rows[i].bus_bits == bus_bits && rows[i].major == major &&
          rows[i].minor == minor)
        return rows[i].cost;
      continue;
    }
    first = first < 0 ? i : first;
    last = above ? last : i;
  }
  return rows[last < 0 ? first : last].cost;
}

// The process's own runtime. The table of src/base/vendor.h needs NCCL, too,
// which a job that exchanges nothing may lack.
typedef struct device {
  cudaError_t (*cudaGetDevice)(int *device);
  cudaError_t (*cudaDeviceGetAttribute)(int *value, enum cudaDeviceAttr,
                                        int device);
} device_t;

static sdg_status_t attribute_get(const device_t *cuda, int device,
                                  enum cudaDeviceAttr attribute, int *out) {
  cudaError_t result = cuda->cudaDeviceGetAttribute(out, attribute, device);
  return result == cudaSuccess
             ? SDG_OK
             : sdg_fail(SDG_E_CUDA, "attribute %d of device %d: error %d",
                        (int)attribute, device, (int)result);
}

static sdg_status_t device_cost(sdg_cost_t *out) {
  static const sdg_library_row_t wanted[] = {
      {SDG_LIBRARY_CUDART, "cudaGetDevice", offsetof(device_t, cudaGetDevice)},
      {SDG_LIBRARY_CUDART, "cudaDeviceGetAttribute",
       offsetof(device_t, cudaDeviceGetAttribute)},
  };
  device_t cuda;
  int device, major, minor, bus_bits;
  SDG_TRY(sdg_library_fill(wanted, 2, &cuda));
  cudaError_t result = cuda.cudaGetDevice(&device);
  if (result != cudaSuccess)
    return sdg_fail(SDG_E_CUDA, "current device: error %d", (int)result);
  SDG_TRY(
      attribute_get(&cuda, device, cudaDevAttrComputeCapabilityMajor, &major));
  SDG_TRY(
      attribute_get(&cuda, device, cudaDevAttrComputeCapabilityMinor, &minor));
  SDG_TRY(
      attribute_get(&cuda, device, cudaDevAttrGlobalMemoryBusWidth, &bus_bits));
  *out = sdg_cost_of(major, minor, bus_bits);
  return SDG_OK;
}

sdg_status_t sdg_cost_prepare(void) {
  sdg_cost_t mine = sdg_cost_mine();
  if (mine.copy_bytes_s > 0)
    return SDG_OK;
  mine = sdg_options_get()->cost;
  if (mine.copy_bytes_s == 0)
    SDG_TRY(device_cost(&mine));
  pthread_mutex_lock(&costs.lock);
  costs.mine = mine;
  pthread_mutex_unlock(&costs.lock);
  return SDG_OK;
}

static sdg_cost_t cost_read(const sdg_cost_t *cost) {
  pthread_mutex_lock(&costs.lock);
  sdg_cost_t copy = *cost;
  pthread_mutex_unlock(&costs.lock);
  return copy;
}

sdg_cost_t sdg_cost_mine(void) {
  return cost_read(&costs.mine);
}

bool sdg_cost_sound(const sdg_cost_t *cost) {
  return isfinite(cost->copy_bytes_s) && cost->copy_bytes_s >= 0 &&
         isfinite(cost->launch_us) && cost->launch_us >= 0 &&
         isfinite(cost->strip_us) && cost->strip_us >= 0 &&
         isfinite(cost->run_bytes) && cost->run_bytes >= 0;
}

sdg_cost_t sdg_cost_slowest(const sdg_cost_t *a, const sdg_cost_t *b) {
  if (a->copy_bytes_s == 0 || b->copy_bytes_s == 0)
    return (sdg_cost_t){.copy_bytes_s = 0};
  return (sdg_cost_t){
      .copy_bytes_s =
          a->copy_bytes_s < b->copy_bytes_s ? a->copy_bytes_s : b->copy_bytes_s,
      .launch_us = a->launch_us > b->launch_us ? a->launch_us : b->launch_us,
      .strip_us = a->strip_us > b->strip_us ? a->strip_us : b->strip_us,
      .run_bytes = a->run_bytes > b->run_bytes ? a->run_bytes : b->run_bytes,
  };
}

void sdg_cost_settle(const sdg_cost_t *cost) {
  pthread_mutex_lock(&costs.lock);
  costs.agreed = *cost;
  pthread_mutex_unlock(&costs.lock);
}

sdg_cost_t sdg_cost_agreed(void) {
  return cost_read(&costs.agreed);
}
