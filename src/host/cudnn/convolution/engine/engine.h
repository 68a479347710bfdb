/* SPDX-License-Identifier: Apache-2.0 */
/* One forward convolution on host memory, and the engines that compute it.
 *
 * The law of the engines: the bits of an output element depend on its own
 * window and on the channel counts, never on the extents of the tensor. A piece
 * of a tensor with its halo therefore gives the same bits as the whole. What
 * lies outside a tensor takes no part in a sum, whatever its
 * factor (outside.h). */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_ENGINE_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/host/cudnn/model/model.h"

/* Always three-dimensional: missing leading dimensions are 1. */
enum { HOST_D, HOST_H, HOST_W, HOST_SPATIAL };

/* y = act(alpha * conv(x, w) + gamma * old + bias). Strides are elements in the
 * order N C D H W (w: K C D H W). `old` is y itself (gamma = beta), or z of the
 * fused call. It may be y element by element, and is not read if gamma is 0. */
typedef struct {
  bool is_double; /* all tensors float, or all double */
  /* The types in the program's memory; only host_conv_any reads them. */
  cudnnDataType_t x_type, w_type, y_type, bias_type; /* old: as y */
  /* Channels per vector (view.h), or 0; w's as x's. */
  int x_vector, y_vector;
  bool reordered; /* w and bias have the order that cudnnReorderFilterAndBias
                     makes */
  int images;
  int groups;
  int c, k; /* channels of x and of y in one group */
  int64_t in[HOST_SPATIAL], out[HOST_SPATIAL];
  int window[HOST_SPATIAL], stride[HOST_SPATIAL], dilation[HOST_SPATIAL];
  int pad[HOST_SPATIAL]; /* zeros before index 0; zeros behind follow from the
                            extents */
  bool flip;             /* CUDNN_CONVOLUTION: w is mirrored */
  int64_t x_stride[5], w_stride[5], y_stride[5], old_stride[5];
  const void *x, *w, *old, *bias; /* bias: groups * k elements or NULL */
  void *y;
  double alpha, gamma;
  bool relu, propagate_nan;
  /* What the model of a GPU offers, by host_conv_kind_t. */
  host_model_offer_t offer[3];
} host_conv_t;

/* Both compute the whole of y; false when memory is short. */
bool host_conv_direct(const host_conv_t *conv);

/* Float only. *out_done is false, and nothing written, if oneDNN has no
 * optimised implementation. Obeys the law above on processors with AVX-512, of
 * any maker; on others host_conv_run does not use it. */
bool host_conv_onednn(const host_conv_t *conv, bool *out_done);

/* Selects by SUNDOG_HOST_ENGINE (onednn
 * direct), else by type, groups, channels and window only: one of these two, or
 * the matrix engine (matrix.h). */
bool host_conv_run(const host_conv_t *conv);

/* Gradients of the same problem; the fields keep their forward names. bias, old
 * and relu are not used; alpha and gamma blend as in forward calls. Data: reads
 * w and y (dy), writes x (dx). Weights: reads x and y (dy), writes w (dw). */
bool host_conv_backward_data(const host_conv_t *conv);
bool host_conv_backward_weights(const host_conv_t *conv);

typedef enum {
  HOST_CONV_FORWARD,
  HOST_CONV_DATA,
  HOST_CONV_WEIGHTS
} host_conv_kind_t;

/* All three for tensors of any type, converted if no engine computes in the
 * type. */
bool host_conv_any(host_conv_kind_t kind, const host_conv_t *conv);

/* The sums of the weights' gradient, dense G K C D H W, in the problem's type,
 * not mirrored; they start from zero. _run chooses as host_conv_run does.
 * _onednn is for float, and *out_done may be false. */
bool host_wgrad_run(const host_conv_t *conv, void *sums);
bool host_wgrad_direct(const host_conv_t *conv, void *sums);
bool host_wgrad_onednn(const host_conv_t *conv, float *sums, bool *out_done);

/* The gradient of the data by oneDNN's own kernels: float only. If *out_done is
 * false nothing is written. */
bool host_dgrad_onednn(const host_conv_t *conv, bool *out_done);

/* Whether channels are moved last for oneDNN's kernels. */
bool host_conv_turns(const host_conv_t *conv);

/* Replaces a negative padding in front by a later start of x. If windows see
 * only padding, x becomes empty. */
void host_conv_trim(host_conv_t *conv);

/* Whether w lies in memory as dense G K C D H W, not mirrored. */
bool host_conv_weights_plain(const host_conv_t *conv);

/* Whether only the direct engine can be used, because of type, processor
 * (without AVX-512) or SUNDOG_HOST_ENGINE. */
bool host_conv_only_direct(const host_conv_t *conv);

/* Name of the oneDNN implementation last used on this thread ("" if none). */
const char *host_conv_onednn_name(void);

/* Extent of the input rows under `count` output rows of dimension `d`. */
static inline int64_t host_conv_rows(const host_conv_t *conv, int d,
                                     int64_t count) {
  return (count - 1) * conv->stride[d] +
         (int64_t)conv->dilation[d] * (conv->window[d] - 1) + 1;
}

#endif
