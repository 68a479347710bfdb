/* SPDX-License-Identifier: Apache-2.0 */
/* What cuDNN 9.19 refuses on a Hopper GPU, though the host device could compute
 * it. It is refused here, too, with the same status, so that a program which
 * runs on the host device finds no other limits on a GPU. SUNDOG_HOST_MODEL=any
 * computes it.
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
  /* The type that a reduction is computed in; the type of scales. */
  cudnnDataType_t inner;
} host_model_call_t;

/* SUCCESS, or NOT_SUPPORTED if the limits of `function` refuse the call. The
 * first refusal by each limit is printed, with the name of the entry. */
cudnnStatus_t host_model_check(const char *entry, const char *function,
                               const host_model_call_t *call);

/* The same for `count` tensors whose addresses do not matter. */
cudnnStatus_t
host_model_check_tensors(const char *entry, const char *function, int count,
                         const struct cudnnTensorStruct *const tensors[]);

#define HOST_MODEL_CHECK(function, ...)                                        \
  host_model_check_tensors(                                                    \
      __func__, #function,                                                     \
      (int)(sizeof((const struct cudnnTensorStruct *[]){__VA_ARGS__}) /        \
            sizeof(void *)),                                                   \
      (const struct cudnnTensorStruct *[]){__VA_ARGS__})

/* What a convolution or one of its gradients may use. */
typedef struct {
  unsigned algorithms; /* bit a: algorithm a exists for these tensors */
  size_t workspace;    /* bytes that each algorithm needs */
  int row;             /* the limit that leaves no algorithm */
} host_model_offer_t;

/* The offers for forward (0), data gradient (1) and filter gradient (2), as
 * host_conv_kind_t numbers them. Without a model: every algorithm, no
 * workspace. */
void host_model_convolution(const struct cudnnTensorStruct *x,
                            const struct cudnnTensorStruct *y,
                            host_model_offer_t out[3]);

/* NOT_SUPPORTED if the offer lacks the algorithm, BAD_PARAM if it needs more
 * than `workspace` bytes. The first refusal by each limit is printed; `asker`
 * is NULL for calls, and the return address of queries. */
cudnnStatus_t host_model_check_convolution(const char *function,
                                           const void *asker,
                                           const host_model_offer_t *offer,
                                           int algorithm, size_t workspace);

/* Whether an algorithm of a host_conv_kind_t computes the same bits again. */
cudnnDeterminism_t host_model_determinism(int kind, int algorithm);

/* True unless SUNDOG_HOST_MODEL=any. */
bool host_model_is_hopper(void);

/* Whether this address is in a library that stands before cuDNN's `function`:
 * what it asks is not the program's question. */
bool host_model_interposes(const char *function, const void *address);

/* Prints that `function` is refused, its limit and the remedy, unless *printed;
 * then sets it. */
void host_model_print(bool *printed, const char *function, const char *text);

#endif
