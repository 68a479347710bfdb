/* SPDX-License-Identifier: Apache-2.0 */
/* A U-Net that learns one step of a flow: random waves drift and diffuse.
 *
 * Two levels of convolution, normalisation, relu and maximum pooling down to a
 * third, transposed convolutions and sums with what lies beside them up again;
 * two dimensions of space, or three. Waves and the exact solution come from
 * formulas of global coordinates, so that a process can be told to work on some
 * rows (slices, of three dimensions) only. */
#include <getopt.h>
#include <math.h>
#include <string.h>

#include "net.h"

enum { LEVELS = 2, SAMPLES = 2, WAVES = 3 };

typedef struct options {
  int steps, dims, total, width, channels, part, timed;
  const char *parts;
} options_t;

/* conv - norm - relu. */
typedef struct block {
  net_conv_t conv;
  net_norm_t norm;
  net_tensor_t before, after;
} block_t;

typedef struct unet {
  net_t net;
  net_tensor_t in;
  block_t down[LEVELS], bottom, side[LEVELS];
  cudnnPoolingDescriptor_t pool;
  net_tensor_t pooled[LEVELS], up[LEVELS];
  net_conv_t rise[LEVELS], last;
  net_tensor_t out, right; /* right.grad: what is squared for the loss */
  cudnnOpTensorDescriptor_t multiply;
  cudnnReduceTensorDescriptor_t mean;
  cudnnTensorDescriptor_t number;
  net_real *loss;
  net_real *reduce_space;
  size_t reduce_bytes;
  double points; /* of all samples and the whole domain */
} unet_t;

static const net_real one = 1, zero = 0;

static block_t block(net_t *net, const net_tensor_t *x, int channels) {
  block_t b;
  b.conv = net_conv(net, x->dims, x->extent[1], channels, 3, 1, 1);
  b.before = net_conv_output(&b.conv, x);
  b.after = net_tensor(x->dims, b.before.extent);
  b.norm = net_norm(&b.before);
  return b;
}

static void block_free(block_t *b) {
  net_conv_free(&b->conv);
  net_norm_free(&b->norm);
  net_tensor_free(&b->before);
  net_tensor_free(&b->after);
}

static void block_forward(net_t *net, block_t *b, const net_tensor_t *x) {
  net_conv_forward(net, &b->conv, x, &b->before);
  net_norm_forward(net, &b->norm, &b->before, &b->after);
  net_relu(net, &b->after);
}

static void block_backward(net_t *net, block_t *b, const net_tensor_t *x,
                           int wanted) {
  net_relu_backward(net, &b->after);
  net_norm_backward(net, &b->norm, &b->before, &b->after);
  net_conv_backward(net, &b->conv, x, &b->before, wanted, 0);
}

static void unet_init(unet_t *u, const options_t *o, net_rows_t rows) {
  int extent[NET_DIMS_MAX] = {SAMPLES, 1, rows.count, o->width, o->width};
  int ones[NET_DIMS_MAX] = {1, 1, 1, 1, 1}, twos[3] = {2, 2, 2};
  int channels = o->channels;
  memset(u, 0, sizeof *u);
  net_init(&u->net, (net_real)0.02);
  u->in = net_tensor(o->dims + 2, extent);
  u->pool = net_pool(CUDNN_POOLING_MAX, o->dims, twos);
  u->points = SAMPLES;
  for (int d = 0; d < o->dims; d++)
    u->points *= d ? o->width : rows.total;
  const net_tensor_t *x = &u->in;
  for (int l = 0; l < LEVELS; l++, channels *= 2) {
    u->down[l] = block(&u->net, x, channels);
    u->pooled[l] = net_pool_output(u->pool, &u->down[l].after);
    x = &u->pooled[l];
  }
  u->bottom = block(&u->net, x, channels / 2);
  x = &u->bottom.after;
  for (int l = LEVELS - 1; l >= 0; l--) {
    const net_tensor_t *beside = &u->down[l].after;
    u->rise[l] =
        net_conv(&u->net, x->dims, beside->extent[1], x->extent[1], 2, 0, 2);
    u->up[l] = net_tensor(x->dims, beside->extent);
    u->side[l] = block(&u->net, &u->up[l],
                       l ? u->down[l - 1].after.extent[1] : o->channels);
    x = &u->side[l].after;
  }
  u->last = net_conv(&u->net, x->dims, x->extent[1], 1, 1, 0, 1);
  u->out = net_conv_output(&u->last, x);
  u->right = net_tensor(o->dims + 2, extent);
  CUDNN(cudnnCreateOpTensorDescriptor(&u->multiply));
  CUDNN(cudnnSetOpTensorDescriptor(u->multiply, CUDNN_OP_TENSOR_MUL, NET_DATA,
                                   CUDNN_PROPAGATE_NAN));
  CUDNN(cudnnCreateReduceTensorDescriptor(&u->mean));
  CUDNN(cudnnSetReduceTensorDescriptor(
      u->mean, CUDNN_REDUCE_TENSOR_AVG, NET_DATA, CUDNN_PROPAGATE_NAN,
      CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
  CUDNN(cudnnCreateTensorDescriptor(&u->number));
  CUDNN(
      cudnnSetTensorNdDescriptor(u->number, NET_DATA, o->dims + 2, ones, ones));
  u->loss = net_zeros(1);
  CUDNN(cudnnGetReductionWorkspaceSize(u->net.cudnn, u->mean, u->right.desc,
                                       u->number, &u->reduce_bytes));
  u->reduce_space = net_zeros(u->reduce_bytes / sizeof(net_real) + 1);
}

static void unet_fini(unet_t *u) {
  for (int l = 0; l < LEVELS; l++) {
    block_free(&u->down[l]);
    block_free(&u->side[l]);
    net_tensor_free(&u->pooled[l]);
    net_tensor_free(&u->up[l]);
    net_conv_free(&u->rise[l]);
  }
  block_free(&u->bottom);
  net_conv_free(&u->last);
  CUDNN(cudnnDestroyPoolingDescriptor(u->pool));
  net_tensor_free(&u->in);
  net_tensor_free(&u->out);
  net_tensor_free(&u->right);
  CUDNN(cudnnDestroyOpTensorDescriptor(u->multiply));
  CUDNN(cudnnDestroyReduceTensorDescriptor(u->mean));
  CUDNN(cudnnDestroyTensorDescriptor(u->number));
  CUDA(cudaFree(u->loss));
  CUDA(cudaFree(u->reduce_space));
  net_fini(&u->net);
}

static double chance(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) / (double)(1 << 24);
}

/* cos(wave . x + phase) drifts by `drift` radians and fades by `fade`: x and
 * its solution at one point. */
typedef struct wave {
  double of[3], phase, drift, fade;
} wave_t;

static wave_t wave(unsigned *state, const int *periods, int dims) {
  static const double speed[3] = {0.6, -0.4, 0.3};
  wave_t w = {.phase = 6.283185307 * chance(state)};
  double square = 0;
  for (int d = 0; d < dims; d++) {
    int count = (int)(3 * chance(state)) + (d ? -1 : 1);
    w.of[d] = 6.283185307 * count / periods[d];
    w.drift += speed[d] * w.of[d];
    square += w.of[d] * w.of[d];
  }
  w.fade = exp(-0.5 * square);
  return w;
}

/* The step's samples and what becomes of them. */
static void load(unet_t *u, const options_t *o, int step, net_rows_t rows) {
  net_real *in = malloc(u->in.count * sizeof *in), *in_at = in;
  net_real *right = malloc(u->in.count * sizeof *right), *right_at = right;
  int periods[3] = {rows.total, o->width, o->width};
  int deep = o->dims > 2 ? o->width : 1;
  if (!in || !right)
    exit(EXIT_FAILURE);
  for (int n = 0; n < SAMPLES; n++) {
    unsigned state = (unsigned)(step * SAMPLES + n) * 2654435761u + 1;
    wave_t waves[WAVES];
    for (int i = 0; i < WAVES; i++)
      waves[i] = wave(&state, periods, o->dims);
    for (int r = rows.first; r < rows.first + rows.count; r++)
      for (int k = 0; k < o->width; k++)
        for (int m = 0; m < deep; m++) {
          double before = 0, after = 0;
          for (int i = 0; i < WAVES; i++) {
            const wave_t *w = &waves[i];
            double at = w->of[0] * r + w->of[1] * k + w->of[2] * m + w->phase;
            before += cos(at);
            after += w->fade * cos(at - w->drift);
          }
          *in_at++ = (net_real)before;
          *right_at++ = (net_real)after;
        }
  }
  size_t bytes = u->in.count * sizeof *in;
  CUDA(cudaMemcpy(u->in.at, in, bytes, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(u->right.at, right, bytes, cudaMemcpyHostToDevice));
  free(in);
  free(right);
}

static void forward(unet_t *u) {
  net_t *net = &u->net;
  const net_tensor_t *x = &u->in;
  for (int l = 0; l < LEVELS; l++) {
    block_forward(net, &u->down[l], x);
    net_pool_forward(net, u->pool, &u->down[l].after, &u->pooled[l]);
    x = &u->pooled[l];
  }
  block_forward(net, &u->bottom, x);
  x = &u->bottom.after;
  for (int l = LEVELS - 1; l >= 0; l--) {
    const net_tensor_t *beside = &u->down[l].after;
    net_conv_up(net, &u->rise[l], x, &u->up[l]);
    // A GPU's library lets the result lie in the first operand's memory only.
    CUDNN(cudnnOpTensor(net->cudnn, net->add, &one, u->up[l].desc, u->up[l].at,
                        &one, beside->desc, beside->at, &zero, u->up[l].desc,
                        u->up[l].at));
    block_forward(net, &u->side[l], &u->up[l]);
    x = &u->side[l].after;
  }
  net_conv_forward(net, &u->last, x, &u->out);
}

/* The mean square of what the output is off by, and the output's gradient. */
static void loss(unet_t *u) {
  cudnnHandle_t cudnn = u->net.cudnn;
  net_real minus = -1, slope = (net_real)(2 / u->points);
  CUDNN(cudnnOpTensor(cudnn, u->net.add, &one, u->out.desc, u->out.at, &minus,
                      u->right.desc, u->right.at, &zero, u->out.desc,
                      u->out.grad));
  CUDNN(cudnnOpTensor(cudnn, u->multiply, &one, u->out.desc, u->out.grad, &one,
                      u->out.desc, u->out.grad, &zero, u->right.desc,
                      u->right.grad));
  CUDNN(cudnnReduceTensor(cudnn, u->mean, NULL, 0, u->reduce_space,
                          u->reduce_bytes, &one, u->right.desc, u->right.grad,
                          &zero, u->number, u->loss));
  CUDNN(cudnnScaleTensor(cudnn, u->out.desc, u->out.grad, &slope));
}

static void backward(unet_t *u) {
  net_t *net = &u->net;
  net_conv_backward(net, &u->last, &u->side[0].after, &u->out, 1, 0);
  for (int l = 0; l < LEVELS; l++) {
    const net_tensor_t *below =
        l + 1 < LEVELS ? &u->side[l + 1].after : &u->bottom.after;
    block_backward(net, &u->side[l], &u->up[l], 1);
    net_conv_up_backward(net, &u->rise[l], below, &u->up[l]);
  }
  block_backward(net, &u->bottom, &u->pooled[LEVELS - 1], 1);
  for (int l = LEVELS - 1; l >= 0; l--) {
    const net_tensor_t *beside = &u->down[l].after;
    /* What goes up and what goes beside: the sum's gradient is that of both. */
    CUDA(cudaMemcpyAsync(beside->grad, u->up[l].grad,
                         beside->count * sizeof(net_real),
                         cudaMemcpyDeviceToDevice, 0));
    net_pool_backward(net, u->pool, beside, &u->pooled[l], 1);
    block_backward(net, &u->down[l], l ? &u->pooled[l - 1] : &u->in, l > 0);
  }
}

static double train(unet_t *u) {
  net_real mean;
  forward(u);
  loss(u);
  backward(u);
  CUDA(cudaMemcpy(&mean, u->loss, sizeof mean, cudaMemcpyDeviceToHost));
  return mean;
}

static int usage(FILE *to) {
  fprintf(to,
          "usage: unet [--dims 2|3] [--steps N] [--width N] [--channels N]\n"
          "            [--rows N | --parts N,N,... --part I] [--time]\n"
          "--time prints what a step takes, in place of the losses.\n");
  return to == stderr ? 2 : EXIT_SUCCESS;
}

/* 0: they are wrong. */
static int options_read(int argc, char **argv, options_t *o) {
  *o = (options_t){200, 2, 32, 16, 4, 0, 0, NULL};
  static const struct option table[] = {
      {"steps", 1, 0, 'n'},    {"dims", 1, 0, 'd'},  {"rows", 1, 0, 'r'},
      {"width", 1, 0, 'w'},    {"parts", 1, 0, 'p'}, {"part", 1, 0, 'i'},
      {"channels", 1, 0, 'c'}, {"time", 0, 0, 't'},  {0, 0, 0, 0}};
  for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;)
    switch (c) {
    case 'n':
      o->steps = atoi(optarg);
      break;
    case 'd':
      o->dims = atoi(optarg);
      break;
    case 'r':
      o->total = atoi(optarg);
      break;
    case 'w':
      o->width = atoi(optarg);
      break;
    case 'c':
      o->channels = atoi(optarg);
      break;
    case 'p':
      o->parts = optarg;
      break;
    case 'i':
      o->part = atoi(optarg);
      break;
    case 't':
      o->timed = 1;
      break;
    default:
      return 0;
    }
  return optind == argc && (o->dims == 2 || o->dims == 3) && o->width >= 4 &&
         o->width % 4 == 0 && o->channels > 0;
}

int main(int argc, char **argv) {
  options_t o;
  net_rows_t rows;
  net_clock_t clock = {0};
  if (!options_read(argc, argv, &o) ||
      !net_rows(o.total, o.parts, o.part, &rows) || rows.total % 4)
    return usage(stderr);
  unet_t unet;
  unet_init(&unet, &o, rows);
  for (int step = 1; step <= o.steps; step++) {
    if (!o.timed || step == 1)
      load(&unet, &o, step, rows);
    double now = train(&unet);
    if (o.timed)
      net_clock_tick(&clock);
    else
      printf("step %d loss %.*g\n", step, NET_DIGITS, now);
    fflush(stdout);
  }
  if (o.timed)
    net_clock_print(&clock);
  unet_fini(&unet);
  return EXIT_SUCCESS;
}
