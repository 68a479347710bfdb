/* SPDX-License-Identifier: Apache-2.0 */
/* What cuDNN 9.19 refuses on a Hopper GPU, though the host device could compute
 * it. SUNDOG_HOST_MODEL=hopper refuses it here, too, with the same status, so
 * that a program which runs on the host device finds no other limits on a GPU.
 *
 * The limits are those that cuDNN's own host code shows for an H100: what is
 * refused here is refused there. Calls that no limit names are computed. */
#ifndef SDG_SRC_HOST_CUDNN_MODEL_MODEL_H
#define SDG_SRC_HOST_CUDNN_MODEL_MODEL_H

#include "src/host/cudnn/descriptor/types.h"

enum { HOST_MODEL_OPERANDS = 5 };

/* The tensors of a call, in the order of its arguments. */
typedef struct {
  int operands;
  struct {
    const struct cudnnTensorStruct *tensor;
    const void *data; /* compared, never read */
  } operand[HOST_MODEL_OPERANDS];
} host_model_call_t;

/* SUCCESS, or NOT_SUPPORTED if the limits of `function` refuse the call. The
 * first refusal by each limit is printed. */
cudnnStatus_t host_model_check(const char *function,
                               const host_model_call_t *call);

/* The same for `count` tensors whose addresses do not matter. */
cudnnStatus_t
host_model_check_tensors(const char *function, int count,
                         const struct cudnnTensorStruct *const tensors[]);

#define HOST_MODEL_CHECK(function, ...)                                        \
  host_model_check_tensors(                                                    \
      #function,                                                               \
      (int)(sizeof((const struct cudnnTensorStruct *[]){__VA_ARGS__}) /        \
            sizeof(void *)),                                                   \
      (const struct cudnnTensorStruct *[]){__VA_ARGS__})

/* What a convolution or one of its gradients may use. */
typedef struct {
  unsigned algorithms; /* bit a: algorithm a exists for these tensors */
  unsigned without;    /* bit a: algorithm a needs no workspace */
  size_t workspace;    /* bytes that each other algorithm needs */
} host_model_offer_t;

static inline size_t host_model_workspace(const host_model_offer_t *offer,
                                          int algorithm) {
  return offer->without >> algorithm & 1 ? 0 : offer->workspace;
}

/* The offers for forward (0), data gradient (1) and filter gradient (2), as
 * host_conv_kind_t numbers them. Without a model: every algorithm, no
 * workspace. */
void host_model_convolution(const struct cudnnTensorStruct *x,
                            const struct cudnnTensorStruct *y,
                            host_model_offer_t out[3]);

/* Prints once that `function` has no such algorithm for these tensors, or that
 * its workspace is too small. */
void host_model_print_convolution(const char *function);

/* True under SUNDOG_HOST_MODEL=hopper. */
bool host_model_is_hopper(void);

/* Prints that `function` is refused, its limit and the remedy, unless *printed;
 * then sets it. */
void host_model_print(bool *printed, const char *function, const char *text);

#endif
