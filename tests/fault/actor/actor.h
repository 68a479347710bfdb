/* SPDX-License-Identifier: Apache-2.0 */
/* What the actions of the actor share. An action returns 1 if the program must
 * stop. */
#ifndef SDG_TESTS_FAULT_ACTOR_ACTOR_H
#define SDG_TESTS_FAULT_ACTOR_ACTOR_H

#include <cuda_runtime_api.h>
#include <cudnn.h>

typedef struct actor {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  int out[4]; /* extents of y */
  size_t y_count;
  char *dx, *dy, *dw;
  void *space;
  size_t space_bytes;
  cudnnConvolutionFwdAlgo_t algo;
  int careless; /* goes on after failures */
  int rank;
} actor_t;
extern actor_t actor;

/* The value of a setting. */
int actor_get(const char *name);

/* Prints what failed. Returns 1 if the program must stop. */
int actor_failed(const char *what, const char *text);
int actor_dnn_failed(const char *what, cudnnStatus_t status);
int actor_cuda_failed(const char *what, cudaError_t status);

#define DNN(call)                                                              \
  do {                                                                         \
    if (actor_dnn_failed(#call, call))                                         \
      return 1;                                                                \
  } while (0)
#define CUDA(call)                                                             \
  do {                                                                         \
    if (actor_cuda_failed(#call, call))                                        \
      return 1;                                                                \
  } while (0)

/* Makes a tagged call that needs no device. */
cudnnStatus_t actor_ask(void);

#define ACTOR_ACTIONS(ROW)                                                     \
  /* calls.c */                                                                \
  ROW(create)                                                                  \
  ROW(set)                                                                     \
  ROW(again)                                                                   \
  ROW(conv)                                                                    \
  ROW(query)                                                                   \
  ROW(pool)                                                                    \
  ROW(softmax)                                                                 \
  ROW(backward)                                                                \
  ROW(gradient)                                                                \
  ROW(scale)                                                                   \
  ROW(null)                                                                    \
  ROW(nullop)                                                                  \
  ROW(nulldata)                                                                \
  ROW(nullscale)                                                               \
  ROW(sync)                                                                    \
  ROW(write)                                                                   \
  ROW(poll)                                                                    \
  ROW(capture)                                                                 \
  ROW(dropout)                                                                 \
  /* threads.c */                                                              \
  ROW(thread)                                                                  \
  ROW(runaway)                                                                 \
  ROW(alice)                                                                   \
  ROW(bob)                                                                     \
  ROW(crowd)                                                                   \
  ROW(misnamed)                                                                \
  ROW(twice)                                                                   \
  ROW(renamed)                                                                 \
  ROW(locked)                                                                  \
  ROW(threadset)                                                               \
  ROW(share)                                                                   \
  ROW(cancel)                                                                  \
  ROW(tagh)                                                                    \
  ROW(tagw)                                                                    \
  ROW(tagd)                                                                    \
  ROW(tagy)                                                                    \
  /* process.c */                                                              \
  ROW(print)                                                                   \
  ROW(careless)                                                                \
  ROW(nap)                                                                     \
  ROW(hang)                                                                    \
  ROW(stop)                                                                    \
  ROW(kill)                                                                    \
  ROW(abort)                                                                   \
  ROW(segv)                                                                    \
  ROW(exit0)                                                                   \
  ROW(exit3)                                                                   \
  ROW(_exit0)                                                                  \
  ROW(quick)                                                                   \
  ROW(thread_exit)                                                             \
  ROW(zombie)                                                                  \
  ROW(fill)                                                                    \
  ROW(ncclkill)                                                                \
  ROW(ncclstop)                                                                \
  ROW(fork)                                                                    \
  ROW(system)                                                                  \
  ROW(second)                                                                  \
  ROW(close)                                                                   \
  ROW(clearenv)                                                                \
  ROW(child)                                                                   \
  ROW(become)                                                                  \
  /* damage.c */                                                               \
  ROW(scribble)                                                                \
  ROW(scribbler)

#define ROW(name) int act_##name(void);
ACTOR_ACTIONS(ROW)
#undef ROW

#endif
