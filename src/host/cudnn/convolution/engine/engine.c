// SPDX-License-Identifier: Apache-2.0
// Chooses the engine that computes a convolution.
#include "src/host/cudnn/convolution/engine/engine.h"

#include <dnnl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/convolution/engine/matrix.h"

static int taps_of(const host_conv_t *conv) {
  return conv->window[0] * conv->window[1] * conv->window[2];
}

// With few channels, converting x to channels last costs more than the
// arithmetic. The extents have no influence, because a shard must choose as the
// whole does. For depthwise convolutions oneDNN has kernels of its own.
static bool prefers_direct(const host_conv_t *conv) {
  int64_t pairs = conv->c * (int64_t)conv->k;
  return conv->groups == 1 ? pairs <= 32 || conv->k <= 4
                           : pairs > 1 && pairs <= 32;
}

// Windows of one element, and few input channels with many output channels: x
// needs no conversion.
static bool prefers_matrix(const host_conv_t *conv) {
  return conv->groups == 1 && (taps_of(conv) == 1 ||
                               (conv->c <= 4 && taps_of(conv) * conv->c <= 27));
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool only_direct, only_onednn;

static void read_environment(void) {
  const char *forced = getenv("SUNDOG_HOST_ENGINE");
  only_direct = forced && strcmp(forced, "direct") == 0;
  only_onednn = forced && strcmp(forced, "onednn") == 0;
  // With older instruction sets the bits of oneDNN's sums depend on the
  // extents.
  int isa = (int)dnnl_get_effective_cpu_isa(),
      needed = dnnl_cpu_isa_avx512_core;
  only_direct |= !only_onednn && (isa & needed) != needed;
}

bool host_conv_only_direct(const host_conv_t *conv) {
  pthread_once(&once, read_environment);
  return conv->is_double || only_direct;
}

bool host_conv_run(const host_conv_t *conv) {
  if (host_conv_only_direct(conv) || (!only_onednn && prefers_direct(conv)))
    return host_conv_direct(conv);
  if (!only_onednn && prefers_matrix(conv))
    return host_conv_matrix(conv);
  bool done = false;
  if (!host_conv_onednn(conv, &done))
    return false;
  return done || host_conv_direct(conv);
}

bool host_conv_weights_plain(const host_conv_t *conv) {
  const int64_t extent[5] = {(int64_t)conv->groups * conv->k, conv->c,
                             conv->window[0], conv->window[1], conv->window[2]};
  int64_t at = 1;
  for (int i = 4; i >= 0; i--) {
    if (extent[i] != 1 && conv->w_stride[i] != at)
      return false;
    at *= extent[i];
  }
  return !conv->flip ||
         conv->window[0] * conv->window[1] * conv->window[2] == 1;
}

bool host_conv_turns(const host_conv_t *conv) {
  return !host_conv_only_direct(conv) &&
         (only_onednn || (!prefers_direct(conv) && !prefers_matrix(conv)));
}

bool host_wgrad_run(const host_conv_t *conv, void *sums) {
  if (host_conv_only_direct(conv))
    return host_wgrad_direct(conv, sums);
  if (!only_onednn && prefers_matrix(conv) && taps_of(conv) <= 9)
    return host_wgrad_matrix(conv, sums);
  // oneDNN is faster for any number of channels.
  bool done = false;
  if (!host_wgrad_onednn(conv, sums, &done))
    return false;
  return done || host_wgrad_direct(conv, sums);
}

void host_conv_trim(host_conv_t *conv) {
  int64_t bytes = conv->is_double ? sizeof(double) : sizeof(float);
  for (int i = 0; i < HOST_SPATIAL; i++) {
    int64_t skip = conv->pad[i] < 0 ? -(int64_t)conv->pad[i] : 0;
    int64_t rows = host_conv_rows(conv, i, conv->out[i]);
    if (skip >= conv->in[i] || conv->pad[i] >= rows) {
      conv->in[i] = 0;
      conv->pad[i] = (int)rows;
    } else if (skip) {
      conv->x = (const char *)conv->x + skip * conv->x_stride[2 + i] * bytes;
      conv->in[i] -= skip;
      conv->pad[i] = 0;
    }
  }
}
