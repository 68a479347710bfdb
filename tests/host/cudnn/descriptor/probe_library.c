// SPDX-License-Identifier: Apache-2.0
// The part of the probe about the library itself: versions, properties, texts
// of statuses, and the callback for messages.
#include "tests/host/cudnn/descriptor/probe.h"

void probe_library(void) {
  printf("version %zu cudart %zu device %zu\n", cudnnGetVersion(),
         cudnnGetCudartVersion(), cudnnGetMaxDeviceVersion());
  for (int i = -1; i < 6; i++) {
    int value = -7;
    int s = cudnnGetProperty((libraryPropertyType)i, &value);
    printf("property %d -> %d %d\n", i, s, value);
  }
  for (int i = -1; i < 6000; i++)
    if (i % 1000 < 20)
      printf("status %d %s\n", i, cudnnGetErrorString((cudnnStatus_t)i));
  printf("checks %d %d %d %d %d\n", cudnnGraphVersionCheck(),
         cudnnOpsVersionCheck(), cudnnCnnVersionCheck(), cudnnAdvVersionCheck(),
         cudnnDestroy(NULL));
}

static void hear(cudnnSeverity_t severity, void *data,
                 const cudnnDebug_t *about, const char *message) {
  (void)severity;
  (void)data;
  (void)about;
  (void)message;
}

/* Without a callback NVIDIA's library would write to stderr, so there is always
 * one. */
void probe_callbacks(void) {
  unsigned mask = 77;
  void *data = NULL;
  cudnnCallback_t call = NULL;
  for (int i = 0; i < 34; i++) {
    int s = cudnnSetCallback(i < 33 ? (unsigned)i : ~0U, (void *)(uintptr_t)i,
                             hear);
    int g = cudnnGetCallback(&mask, &data, &call);
    printf("callback %d -> %d get %d %u %d %d\n", i, s, g, mask,
           (int)(uintptr_t)data, call == hear);
  }
  cudnnSetCallback(0, NULL, hear);
  printf("null %d %d\n", cudnnGetCallback(&mask, NULL, &call),
         cudnnGetCallback(NULL, &data, &call));
}
