/* SPDX-License-Identifier: Apache-2.0 */
/* A network that trains: a list of ops, each a graph, which a step executes in
 * turn; and what this rank has of its inputs. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_NETS_MODEL_H
#define SDG_TESTS_CLIENTS_GRAPHS_NETS_MODEL_H

#include "tests/clients/graphs/nets/sketch.h"

enum { MODEL_OPS = 256, MODEL_TENSORS = 512, MODEL_PARAMETERS = 64 };

typedef struct parameter {
  tensor_t *at, *grad;
} parameter_t;

typedef struct model {
  net_t net;
  cudnnDataType_t real; /* of parameters and what is computed with them */
  op_t op[MODEL_OPS];
  tensor_t *tensor[MODEL_TENSORS]; /* owned */
  parameter_t parameter[MODEL_PARAMETERS];
  int ops, tensors, parameters, steps;
  /* Of an input of full size. */
  int64_t whole[BUILD_DIMS], dim[BUILD_DIMS], first[BUILD_DIMS];
} model_t;

/* Reads the program's words:
 *   [--manner torch|benchmark|xla] [--steps N] [--type half]
 *   [--n LIST] [--h LIST] [--w LIST]
 * A list, "12,4,8", has the extents of pieces. With LAYER_VIEW=shard in the
 * environment rank SUNDOG_RANK has its piece, row-major over lists; otherwise
 * the program has all of them. */
void model_init(model_t *m, int words, char **word);
void model_fini(model_t *m);

tensor_t *model_tensor(model_t *m, cudnnDataType_t type, int64_t n, int64_t c,
                       int64_t h, int64_t w);
tensor_t *model_like(model_t *m, const tensor_t *t);
tensor_t *model_number(model_t *m, float value);
/* Of any type, from 8 bytes that it is at the beginning of. */
tensor_t *model_number_like(model_t *m, const void *value);
/* A parameter with a value for each place, and its gradient's memory. */
parameter_t *model_parameter(model_t *m, int64_t k, int64_t c, int64_t r,
                             int64_t s);
/* One number for each channel, all alike. */
parameter_t *model_constants(model_t *m, int64_t channels, float value);
/* Writes values that depend on places in the whole. The tensor has 1/shrink of
 * the input's rows and columns; 0: one of each. */
void model_fill(const model_t *m, const tensor_t *t, int shrink, unsigned seed);

/* The value of a word of the program, as in "--name value"; NULL: it has none.
 */
const char *model_word(int words, char **word, const char *name);

/* ---- ops, at the end of the list ---- */

/* Makes an op of the sketch, which it ends. */
void model_end(model_t *m, sketch_t *s);

/* y = relu(conv(x, w) + bias + z); z may be NULL. */
void model_conv(model_t *m, const tensor_t *x, const parameter_t *w,
                const parameter_t *bias, const tensor_t *z, bool relu,
                const tensor_t *y);
/* The same with a transposed convolution of stride 2. */
void model_rise(model_t *m, const tensor_t *x, const parameter_t *w,
                const parameter_t *bias, const tensor_t *z, bool relu,
                const tensor_t *y);
/* y = conv(x, w) + bias, of patches of two rows and columns. */
void model_patch(model_t *m, const tensor_t *x, const parameter_t *w,
                 const parameter_t *bias, const tensor_t *y);
void model_pool(model_t *m, const tensor_t *x, const tensor_t *y,
                const tensor_t *indices);
/* By indices, or else by x and y. */
void model_pool_back(model_t *m, const tensor_t *dy, const tensor_t *indices,
                     const tensor_t *x, const tensor_t *y, const tensor_t *dx);
void model_relu_back(model_t *m, const tensor_t *dy, const tensor_t *y,
                     const tensor_t *dx);
/* The gradients of filter and bias, and of x, with `add` (may be NULL) added.
 * dx NULL: none is wanted. */
void model_conv_back(model_t *m, const tensor_t *x, const parameter_t *w,
                     const parameter_t *bias, const tensor_t *dy,
                     const tensor_t *add, const tensor_t *dx);
void model_rise_back(model_t *m, const tensor_t *x, const parameter_t *w,
                     const parameter_t *bias, const tensor_t *dy,
                     const tensor_t *dx);
/* The gradients of filter and bias. */
void model_patch_back(model_t *m, const tensor_t *x, const parameter_t *w,
                      const parameter_t *bias, const tensor_t *dy);
void model_pointwise(model_t *m, cudnnPointwiseMode_t mode, const tensor_t *x,
                     const tensor_t *b, const tensor_t *y);
void model_sum(model_t *m, const tensor_t *x, const tensor_t *y);
/* d = x - right, and the sum of its squares. */
void model_loss(model_t *m, const tensor_t *x, const tensor_t *right,
                const tensor_t *d, const tensor_t *sum);
/* Every parameter less `rate` times its gradient, in place. */
void model_steps(model_t *m, const tensor_t *rate);

/* Numbers that Adam's steps share; without members: none. */
typedef struct adam {
  tensor_t *factor, *epsilon;
  float rate;
} adam_t;
/* Every parameter's step by Adam, in place of model_steps(). */
adam_t model_adam(model_t *m, float rate);
/* Before a step, from 1. */
void adam_set(const adam_t *adam, int at_step);

/* Every rank has all of it. */
void model_tag_local(const tensor_t *t);

/* Executes the list. */
void model_run(model_t *m);
/* Prints "step STEP loss LOSS". */
void model_tell(int step, const tensor_t *sum, double points);
/* Prints "parameter NUMBER PLACE VALUE" for all of them. */
void model_tell_parameters(const model_t *m);

#endif
