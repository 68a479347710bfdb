// SPDX-License-Identifier: Apache-2.0
// The program's callback for messages, which is called for every refusal.
#include "src/host/cudnn/descriptor/callback.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  unsigned mask; // CUDNN_SEV_..._EN
  void *data;
  cudnnCallback_t call; // NULL: no callback
} listener_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static listener_t listener;

static listener_t present(void) {
  pthread_mutex_lock(&lock);
  listener_t now = listener;
  pthread_mutex_unlock(&lock);
  return now;
}

void host_report(cudnnStatus_t status, const char *message) {
  listener_t now = present();
  if (!now.call || !(now.mask & CUDNN_SEV_ERROR_EN))
    return;
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  cudnnDebug_t about;
  memset(&about, 0, sizeof about);
  about.cudnn_version = CUDNN_VERSION;
  about.cudnnStatus = status;
  about.time_sec = (unsigned)t.tv_sec;
  about.time_usec = (unsigned)(t.tv_nsec / 1000);
  about.pid = (unsigned long long)getpid();
  about.tid = (unsigned long long)syscall(SYS_gettid);
  about.cudaDeviceId = -1; // belongs to no call
  now.call(CUDNN_SEV_ERROR, now.data, &about, message);
}

// A mask that includes a severity includes all worse ones.
static unsigned widened(unsigned mask) {
  unsigned wide = CUDNN_SEV_ERROR_EN;
  if (mask & (CUDNN_SEV_WARNING_EN | CUDNN_SEV_INFO_EN))
    wide |= CUDNN_SEV_WARNING_EN;
  return mask & CUDNN_SEV_INFO_EN ? wide | CUDNN_SEV_INFO_EN : wide;
}

cudnnStatus_t cudnnSetCallback(unsigned mask, void *data,
                               cudnnCallback_t call) {
  pthread_mutex_lock(&lock);
  listener = (listener_t){widened(mask), data, call};
  pthread_mutex_unlock(&lock);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetCallback(unsigned *mask, void **data,
                               cudnnCallback_t *call) {
  REFUSE_IF(!mask || !data || !call, CUDNN_STATUS_BAD_PARAM);
  listener_t now = present();
  *mask = now.mask;
  *data = now.data;
  *call = now.call;
  return CUDNN_STATUS_SUCCESS;
}
