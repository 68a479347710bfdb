// SPDX-License-Identifier: Apache-2.0
// Descriptions of a device, as text that plans contain.
#include "src/host/cudnn/backend/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/runtime.h"

// The keys that NVIDIA's library wants, in its order; several attributes make
// an array.
static const struct {
  const char *key;
  int count;
  enum cudaDeviceAttr from[3];
} keys[] = {
    {"maxGridSize",
     3,
     {cudaDevAttrMaxGridDimX, cudaDevAttrMaxGridDimY, cudaDevAttrMaxGridDimZ}},
    {"maxBlockSize",
     3,
     {cudaDevAttrMaxBlockDimX, cudaDevAttrMaxBlockDimY,
      cudaDevAttrMaxBlockDimZ}},
    {"regsPerBlock", 1, {cudaDevAttrMaxRegistersPerBlock}},
    {"multiProcessorCount", 1, {cudaDevAttrMultiProcessorCount}},
    {"smClockRateKHz", 1, {cudaDevAttrClockRate}},
    {"memClockRateKHz", 1, {cudaDevAttrMemoryClockRate}},
    {"l2CacheSize", 1, {cudaDevAttrL2CacheSize}},
    {"warpSize", 1, {cudaDevAttrWarpSize}},
    {"maxSharedMemoryPerBlock", 1, {cudaDevAttrMaxSharedMemoryPerBlock}},
    {"maxSharedMemoryPerBlockOptin",
     1,
     {cudaDevAttrMaxSharedMemoryPerBlockOptin}},
    {"reservedSharedMemoryPerBlock",
     1,
     {cudaDevAttrReservedSharedMemoryPerBlock}},
    {"maxRegistersPerSM", 1, {cudaDevAttrMaxRegistersPerMultiprocessor}},
    {"pciDeviceId", 1, {cudaDevAttrPciDeviceId}},
    {"maxCtasPerSM", 1, {cudaDevAttrMaxBlocksPerMultiprocessor}},
    {"maxThreadsPerBlock", 1, {cudaDevAttrMaxThreadsPerBlock}},
    {"maxThreadsPerSM", 1, {cudaDevAttrMaxThreadsPerMultiProcessor}},
    {"isTccDriver", 1, {cudaDevAttrTccDriver}},
    {"supportCoopLaunch", 1, {cudaDevAttrCooperativeLaunch}},
};

static int attribute(enum cudaDeviceAttr name, int device) {
  int value = 0;
  (void)cudaDeviceGetAttribute(&value, name, device);
  return value;
}

static void write_device(FILE *to, int device) {
  char name[256] = "", uuid[16];
  size_t available = 0, total = 0;
  int driver = 0;
  host_runtime()->identity(name, uuid);
  (void)cudaMemGetInfo(&available, &total);
  (void)cudaDriverGetVersion(&driver);
  fprintf(to, "{\"deviceVer\":%d,\"driverVer\":%d",
          100 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
              10 * attribute(cudaDevAttrComputeCapabilityMinor, device),
          driver);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    fprintf(to, ",\"%s\":%s", keys[i].key, keys[i].count > 1 ? "[" : "");
    for (int j = 0; j < keys[i].count; j++)
      fprintf(to, "%s%d", j > 0 ? "," : "", attribute(keys[i].from[j], device));
    fputs(keys[i].count > 1 ? "]" : "", to);
  }
  fprintf(to,
          ",\"cudaDeviceId\":%d,\"totalGlobalMem\":%zu,\"deviceName\":\"%s\"}",
          device, total, name);
}

char *host_device_text(int device) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *to = open_memstream(&text, &bytes);
  if (!to)
    return NULL;
  write_device(to, device);
  fclose(to);
  return text;
}

static bool has(const char *text, const char *key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\"", key);
  return strstr(text, quoted) != NULL;
}

// NVIDIA's library wants every key.
static cudnnStatus_t check_text(host_value_t *json) {
  char *text = host_value_text(json);
  REFUSE_IF(!text, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  static const char *const others[] = {"deviceVer", "driverVer", "cudaDeviceId",
                                       "totalGlobalMem", "deviceName"};
  bool whole = text[strspn(text, " \t\r\n")] == '{';
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    whole = whole && has(text, others[i]);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    whole = whole && has(text, keys[i].key);
  free(text);
  REFUSE_IF(!whole, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_finalize_device(host_object_t *device) {
  host_value_t *json = HOST_VALUE(device, DEVICEPROP_JSON_REPRESENTATION);
  if (json->count > 0)
    return check_text(json);
  int devices = 0;
  int64_t id = host_object_integer(device, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, 0);
  REFUSE_IF(cudaGetDeviceCount(&devices) != cudaSuccess || id < 0 ||
                id >= devices,
            CUDNN_STATUS_NOT_INITIALIZED);
  char *text = host_device_text((int)id);
  cudnnStatus_t status = host_value_put_text(json, text);
  free(text);
  return status;
}
