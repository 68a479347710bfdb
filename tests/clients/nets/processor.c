/* SPDX-License-Identifier: Apache-2.0 */
/* The processor of a weather model: a transformer whose tokens, places along a
 * line, attend to those within a window. It learns to move and to fade what it
 * is given. The defaults are small; the real thing has
 *
 *   processor --tokens 40320 --channels 1024 --heads 16 --hidden 4096 \
 *             --window 512 --layers 16
 *
 * Tokens come from a formula of their place, so that a process can be told to
 * work on some of them only. */
#include <getopt.h>
#include <math.h>
#include <string.h>

#include "transformer.h"

typedef struct options {
  int steps, total, part, layers, timed;
  double rate;
  const char *parts;
  transformer_shape_t shape;
} options_t;

typedef struct processor {
  transformer_t t;
  int layers;
  transformer_layer_t *layer;
  net_tensor_t in, right, off;
  cudnnTensorDescriptor_t number;
  net_real *loss;
  double points; /* of all tokens */
} processor_t;

static const net_real one = 1, zero = 0;

static void processor_init(processor_t *p, const options_t *o,
                           net_rows_t tokens) {
  transformer_shape_t shape = o->shape;
  memset(p, 0, sizeof *p);
  shape.tokens = tokens.count;
  transformer_init(&p->t, shape, (net_real)o->rate);
  int extent[4] = {1, tokens.count, shape.channels, 1}, ones[4] = {1, 1, 1, 1};
  p->in = net_tensor(4, extent);
  p->right = net_tensor(4, extent);
  p->off = net_tensor(4, extent);
  p->layers = o->layers;
  p->layer = calloc((size_t)o->layers, sizeof *p->layer);
  if (!p->layer)
    exit(EXIT_FAILURE);
  for (int i = 0; i < o->layers; i++)
    p->layer[i] = transformer_layer(&p->t);
  CUDNN(cudnnCreateTensorDescriptor(&p->number));
  CUDNN(cudnnSetTensorNdDescriptor(p->number, NET_DATA, 4, ones, ones));
  p->loss = net_zeros(1);
  p->points = (double)tokens.total * shape.channels;
}

static void processor_fini(processor_t *p) {
  for (int i = 0; i < p->layers; i++)
    transformer_layer_free(&p->layer[i]);
  free(p->layer);
  net_tensor_free(&p->in);
  net_tensor_free(&p->right);
  net_tensor_free(&p->off);
  CUDNN(cudnnDestroyTensorDescriptor(p->number));
  CUDA(cudaFree(p->loss));
  transformer_fini(&p->t);
}

/* Each channel is a wave along the tokens. The right output is the wave moved
 * by some tokens; channels have different speeds. */
static void load(processor_t *p, int step, net_rows_t tokens) {
  int channels = p->t.shape.channels;
  size_t bytes = p->in.count * sizeof(net_real), at = 0;
  net_real *in = malloc(bytes), *right = malloc(bytes);
  if (!in || !right)
    exit(EXIT_FAILURE);
  for (int i = tokens.first; i < tokens.first + tokens.count; i++)
    for (int c = 0; c < channels; c++, at++) {
      double wave = 0.05 + 0.11 * (c % 5), phase = 0.7 * c + 1.3 * step;
      in[at] = (net_real)(sin(wave * i + phase) + 0.3 * cos(0.9 * i + step));
      right[at] = (net_real)(0.8 * sin(wave * (i - 1 - c % 2) + phase));
    }
  CUDA(cudaMemcpy(p->in.at, in, bytes, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(p->right.at, right, bytes, cudaMemcpyHostToDevice));
  free(in);
  free(right);
}

/* Returns the mean square error of the output; its gradient is the last layer's
 * dy. */
static double train(processor_t *p) {
  cudnnHandle_t cudnn = p->t.net.cudnn;
  net_real minus = -1, share = (net_real)(1 / p->points),
           twice = (net_real)(2 / p->points), mean;
  const net_tensor_t *x = &p->in;
  for (int i = 0; i < p->layers; i++) {
    transformer_forward(&p->t, &p->layer[i], x);
    x = &p->layer[i].y;
  }
  CUDNN(cudnnOpTensor(cudnn, p->t.net.add, &one, x->desc, x->at, &minus,
                      x->desc, p->right.at, &zero, x->desc, p->off.at));
  CUDNN(cudnnOpTensor(cudnn, p->t.multiply, &share, x->desc, p->off.at, &one,
                      x->desc, p->off.at, &zero, x->desc, p->off.grad));
  transformer_sum(&p->t, &p->off, p->off.grad, p->number, p->loss);
  CUDNN(cudnnTransformTensor(cudnn, &twice, x->desc, p->off.at, &zero, x->desc,
                             x->grad));
  for (int i = p->layers - 1; i >= 0; i--)
    transformer_backward(&p->t, &p->layer[i], i ? &p->layer[i - 1].y : &p->in);
  CUDA(cudaMemcpy(&mean, p->loss, sizeof mean, cudaMemcpyDeviceToHost));
  return mean;
}

static int usage(void) {
  fprintf(stderr,
          "usage: processor [--steps N] [--layers N] [--channels N] [--heads N]"
          "\n                 [--hidden N] [--window N] [--rate R] [--time]\n"
          "                 [--tokens N | --parts N,N,... --part I]\n"
          "--time prints what a step takes, in place of the losses.\n");
  return 2;
}

/* 0: they are wrong. */
static int options_read(int argc, char **argv, options_t *o) {
  *o = (options_t){
      .steps = 60,
      .total = 50,
      .layers = 2,
      .rate = 1,
      .shape = {.channels = 8, .heads = 2, .hidden = 24, .window = 5}};
  static const struct option table[] = {
      {"steps", 1, 0, 'n'}, {"tokens", 1, 0, 't'}, {"parts", 1, 0, 'p'},
      {"part", 1, 0, 'i'},  {"layers", 1, 0, 'l'}, {"channels", 1, 0, 'c'},
      {"heads", 1, 0, 'h'}, {"hidden", 1, 0, 'f'}, {"window", 1, 0, 'w'},
      {"rate", 1, 0, 'r'},  {"time", 0, 0, 'T'},   {0, 0, 0, 0}};
  int *const numbers[128] = {
      ['n'] = &o->steps,          ['t'] = &o->total,
      ['i'] = &o->part,           ['l'] = &o->layers,
      ['c'] = &o->shape.channels, ['h'] = &o->shape.heads,
      ['f'] = &o->shape.hidden,   ['w'] = &o->shape.window};
  for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;)
    if (c == 'p')
      o->parts = optarg;
    else if (c == 'r')
      o->rate = atof(optarg);
    else if (c == 'T')
      o->timed = 1;
    else if (c < 128 && numbers[c])
      *numbers[c] = atoi(optarg);
    else
      return 0;
  return optind == argc && o->layers > 0 && o->shape.heads > 0 &&
         o->shape.channels > 0 && o->shape.channels % o->shape.heads == 0 &&
         o->shape.hidden > 0 && o->shape.window >= 0;
}

int main(int argc, char **argv) {
  options_t o;
  net_rows_t tokens;
  net_clock_t clock = {0};
  if (!options_read(argc, argv, &o) ||
      !net_rows(o.total, o.parts, o.part, &tokens))
    return usage();
  processor_t processor;
  processor_init(&processor, &o, tokens);
  for (int step = 1; step <= o.steps; step++) {
    if (!o.timed || step == 1)
      load(&processor, step % 3, tokens);
    double now = train(&processor);
    if (o.timed)
      net_clock_tick(&clock);
    else
      printf("step %d loss %.*g\n", step, NET_DIGITS, now);
    fflush(stdout);
  }
  if (o.timed)
    net_clock_print(&clock);
  processor_fini(&processor);
  return EXIT_SUCCESS;
}
