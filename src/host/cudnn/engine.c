// SPDX-License-Identifier: Apache-2.0
// Which engine computes a convolution.
#include "src/host/cudnn/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* With few channels, turning x into channels last costs more than the
 * arithmetic. Extents are not asked: a shard must choose as the whole does. */
static bool prefers_direct(const host_conv_t *conv) {
  return conv->groups == 1 && conv->c * (int64_t)conv->k <= 32;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool only_direct, only_onednn;

static void read_environment(void) {
  const char *forced = getenv("SUNDOG_HOST_ENGINE");
  only_direct = forced && strcmp(forced, "direct") == 0;
  only_onednn = forced && strcmp(forced, "onednn") == 0;
}

bool host_conv_run(const host_conv_t *conv) {
  pthread_once(&once, read_environment);
  if (conv->is_double || only_direct || (!only_onednn && prefers_direct(conv)))
    return host_conv_direct(conv);
  bool done = false;
  if (!host_conv_onednn(conv, &done))
    return false;
  return done || host_conv_direct(conv);
}
