// SPDX-License-Identifier: Apache-2.0
// Recurrent networks in float or double: the forward pass, and what it shares
// with the gradients.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/recurrent/part.h"

// ---- memory ----

bool active(const host_rnn_job_t *job, int64_t t, int64_t b) {
  return t < job->length[b];
}

// Sequences in memory as dense rows, zeros beyond their ends.
void load_rows(const run_t *r, const host_rnn_data_t *d, const void *data,
               real_t *to) {
  const host_rnn_job_t *job = r->job;
  size_t unit = host_type_bytes(job->type);
  for (int64_t t = 0; t < job->time; t++)
    for (int64_t b = 0; b < job->batch; b++, to += d->vector) {
      int64_t row = host_rnn_row(job, d->layout, t, b) * d->vector;
      if (active(job, t, b))
        load(job->type, (const char *)data + (size_t)row * unit, d->vector, to);
      else
        memset(to, 0, (size_t)d->vector * sizeof *to);
    }
}

// The inverse; with `fills`, the layout's padding symbol goes beyond the ends.
void store_rows(const run_t *r, const host_rnn_data_t *d, void *data,
                bool fills, const real_t *from) {
  const host_rnn_job_t *job = r->job;
  size_t unit = host_type_bytes(job->type);
  bool packed = d->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  for (int64_t t = 0; t < job->time; t++)
    for (int64_t b = 0; b < job->batch; b++, from += d->vector) {
      if (!active(job, t, b) && packed)
        continue;
      int64_t row = host_rnn_row(job, d->layout, t, b) * d->vector;
      char *to = (char *)data + (size_t)row * unit;
      if (active(job, t, b))
        store(job->type, to, d->vector, from, false);
      else if (fills)
        for (int64_t i = 0; i < d->vector; i++)
          memcpy(to + (size_t)i * unit, d->fill, unit);
      else
        memset(to, 0, (size_t)d->vector * unit);
    }
}

real_t *take(run_t *r, int64_t count) {
  real_t *at = r->block + r->used;
  r->used += (size_t)count;
  return at;
}

part_t part_of(const run_t *r, int pseudo) {
  const host_rnn_net_t *net = r->net;
  host_rnn_reserve_t at = host_rnn_reserve(net, r->rows, pseudo);
  return (part_t){.pseudo = pseudo,
                  .layer = pseudo / net->ways,
                  .way = pseudo % net->ways,
                  .gates = net->gates * net->hidden,
                  .width = host_rnn_input(net, pseudo / net->ways),
                  .place = host_rnn_place(net, pseudo),
                  .gate = r->kept + at.gates,
                  .state = r->kept + at.state,
                  .out = r->kept + at.out,
                  .delta = r->kept + at.delta,
                  .d_out = r->kept + at.d_out};
}

// A state of the program (hx ...) of one pseudo-layer, or zeros.
void load_state(const run_t *r, const void *data, int pseudo, int64_t width,
                real_t *to) {
  int64_t count = r->job->batch * width;
  size_t unit = host_type_bytes(r->job->type);
  if (data)
    load(r->job->type, (const char *)data + (size_t)(pseudo * count) * unit,
         count, to);
  else
    memset(to, 0, (size_t)count * sizeof *to);
}

void store_state(const run_t *r, void *data, int pseudo, int64_t width,
                 const real_t *from) {
  int64_t count = r->job->batch * width;
  size_t unit = host_type_bytes(r->job->type);
  if (data)
    store(r->job->type, (char *)data + (size_t)(pseudo * count) * unit, count,
          from, false);
}

// ---- forward ----

static real_t sigmoid(real_t x) {
  return 1 / (1 + (real_t)exp((double)-x));
}

real_t clip(const host_rnn_net_t *net, real_t c) {
  if (!net->clips)
    return c;
  if (c != c)
    return net->clip_nan ? c : (real_t)net->clip_low;
  return c < (real_t)net->clip_low    ? (real_t)net->clip_low
         : c > (real_t)net->clip_high ? (real_t)net->clip_high
                                      : c;
}

// One row. `a` holds the input's part of the gates and becomes the gates; `rec`
// is the state's part. h and c are the row's state; `m` is the output before a
// projection.
static void cell(const run_t *r, const real_t *rec_bias, real_t *a,
                 const real_t *rec, real_t *state, const real_t *h, real_t *c,
                 real_t *m) {
  const host_rnn_net_t *net = r->net;
  int64_t n = net->hidden;
  for (int64_t j = 0; j < n; j++) {
    real_t pre[4];
    for (int g = 0; g < net->gates; g++)
      pre[g] = a[g * n + j];
    real_t late = rec[(net->gates - 1) * n + j] +
                  (rec_bias ? rec_bias[(net->gates - 1) * n + j] : 0);
    int first = net->cell == CUDNN_GRU ? 2 : net->gates;
    for (int g = 0; g < first; g++)
      pre[g] += rec[g * n + j] + (rec_bias ? rec_bias[g * n + j] : 0);
    switch (net->cell) {
    case CUDNN_RNN_RELU:
      a[j] = m[j] = pre[0] > 0 ? pre[0] : 0;
      break;
    case CUDNN_RNN_TANH:
      a[j] = m[j] = (real_t)tanh((double)pre[0]);
      break;
    case CUDNN_LSTM: {
      real_t in = sigmoid(pre[0]), forget = sigmoid(pre[1]);
      real_t fresh = (real_t)tanh((double)pre[2]), o = sigmoid(pre[3]);
      c[j] = forget * clip(net, c[j]) + in * fresh;
      state[j] = c[j];
      m[j] = o * (real_t)tanh((double)clip(net, c[j]));
      a[j] = in;
      a[n + j] = forget;
      a[2 * n + j] = fresh;
      a[3 * n + j] = o;
      break;
    }
    case CUDNN_GRU: {
      real_t reset = sigmoid(pre[0]), update = sigmoid(pre[1]);
      real_t fresh = (real_t)tanh((double)(pre[2] + reset * late));
      state[j] = late;
      m[j] = (1 - update) * fresh + update * h[j];
      a[j] = reset;
      a[n + j] = update;
      a[2 * n + j] = fresh;
      break;
    }
    }
  }
}

// The input's part of the gates for all rows; in: rows x width.
static bool forward_input(run_t *r, const part_t *p, const real_t *in) {
  const real_t *w = r->weights;
  int64_t n = r->net->hidden;
  for (int64_t i = 0; i < r->rows; i++)
    for (int64_t j = 0; j < p->gates; j++)
      p->gate[i * p->gates + j] =
          (p->place.input_bias < 0 ? 0 : w[p->place.input_bias + j]) +
          (p->place.input < 0 ? in[i * p->width + j % n] : 0);
  return p->place.input < 0 ||
         product(false, true, r->rows, p->gates, p->width, in, p->width,
                 w + p->place.input, p->width, 1, p->gate, p->gates);
}

static bool forward_part(run_t *r, const part_t *p, const real_t *in) {
  const host_rnn_job_t *job = r->job;
  const host_rnn_net_t *net = r->net;
  int64_t batch = job->batch, hidden = net->hidden, out = net->out;
  size_t mark = r->used;
  real_t *h = take(r, batch * out), *c = take(r, batch * hidden);
  real_t *rec = take(r, batch * p->gates), *m = take(r, batch * hidden);
  real_t *next = take(r, batch * out);
  load_state(r, job->hx, p->pseudo, out, h);
  load_state(r, job->cx, p->pseudo, hidden, c);
  const real_t *bias =
      p->place.hidden_bias < 0 ? NULL : r->weights + p->place.hidden_bias;
  bool ok = forward_input(r, p, in);
  for (int64_t i = 0; ok && i < job->time; i++) {
    int64_t t = p->way ? job->time - 1 - i : i;
    ok = product(false, true, batch, p->gates, out, h, out,
                 r->weights + p->place.hidden, out, 0, rec, p->gates);
    memset(m, 0, (size_t)(batch * hidden) * sizeof *m);
    for (int64_t b = 0; b < batch; b++) {
      int64_t row = t * batch + b;
      if (active(job, t, b))
        cell(r, bias, p->gate + row * p->gates, rec + b * p->gates,
             p->state + row * hidden, h + b * out, c + b * hidden,
             m + b * hidden);
      else
        memset(p->gate + row * p->gates, 0, (size_t)p->gates * sizeof *p->gate);
    }
    if (net->projects)
      ok =
          ok && product(false, true, batch, out, hidden, m, hidden,
                        r->weights + p->place.projection, hidden, 0, next, out);
    const real_t *now = net->projects ? next : m;
    for (int64_t b = 0; b < batch; b++) {
      real_t *kept = p->out + (t * batch + b) * out;
      size_t bytes = (size_t)out * sizeof *kept;
      if (!active(job, t, b)) {
        memset(kept, 0, bytes);
        continue;
      }
      memcpy(h + b * out, now + b * out, bytes);
      memcpy(kept, now + b * out, bytes);
    }
  }
  store_state(r, job->hy, p->pseudo, out, h);
  if (net->cell == CUDNN_LSTM)
    store_state(r, job->cy, p->pseudo, hidden, c);
  r->used = mark;
  return ok;
}

// Puts the outputs of all directions of a layer side by side.
static void join(const run_t *r, int layer, real_t *to) {
  const host_rnn_net_t *net = r->net;
  int64_t width = net->out * net->ways;
  for (int way = 0; way < net->ways; way++) {
    part_t p = part_of(r, layer * net->ways + way);
    for (int64_t i = 0; i < r->rows; i++)
      memcpy(to + i * width + way * net->out, p.out + i * net->out,
             (size_t)net->out * sizeof *to);
  }
}

real_t *mask_of(const run_t *r, int layer) {
  host_rnn_reserve_t at =
      host_rnn_reserve(r->net, r->rows, layer * r->net->ways);
  return r->kept + at.mask;
}

bool drops(const run_t *r) {
  return r->job->reserve && r->job->dropout > 0;
}

// The input of a layer; with dropout, the mask was drawn before.
void input_of(const run_t *r, int layer, real_t *to) {
  int64_t width = host_rnn_input(r->net, layer);
  if (layer == 0) {
    load_rows(r, &r->job->x, r->job->x.data, to);
    return;
  }
  join(r, layer - 1, to);
  const real_t *mask = mask_of(r, layer);
  for (int64_t i = 0; i < r->rows * width && drops(r); i++)
    to[i] *= mask[i];
}

static void draw_mask(const run_t *r, int layer) {
  REAL(host_real_mask)
  (mask_of(r, layer), r->rows * host_rnn_input(r->net, layer), r->job->dropout,
   r->job->dropout_states);
}

int64_t widest(const host_rnn_net_t *net) {
  int64_t deep = net->out * net->ways;
  return net->input > deep ? net->input : deep;
}

static bool forward(run_t *r) {
  const host_rnn_net_t *net = r->net;
  real_t *in = take(r, r->rows * widest(net));
  bool ok = true;
  for (int layer = 0; ok && layer < net->layers; layer++) {
    if (layer && drops(r))
      draw_mask(r, layer);
    input_of(r, layer, in);
    for (int way = 0; ok && way < net->ways; way++) {
      part_t p = part_of(r, layer * net->ways + way);
      ok = forward_part(r, &p, in);
    }
  }
  join(r, net->layers - 1, in);
  store_rows(r, &r->job->y, r->job->y.data, true, in);
  return ok;
}

bool REAL(host_rnn_run)(const host_rnn_job_t *job) {
  const host_rnn_net_t *net = &job->net;
  run_t r = {.job = job, .net = net, .rows = job->time * job->batch};
  int64_t weights = host_rnn_weights(net);
  int64_t kept =
      host_rnn_reserve(net, r.rows, net->layers * net->ways - 1).elements;
  int64_t gates = net->gates * net->hidden;
  int64_t state = net->hidden + net->out;
  // The most memory that the functions above use at once.
  int64_t room =
      2 * weights + 2 * r.rows * widest(net) + r.rows * (state + gates) +
      job->batch * (4 * state + 2 * gates) + (job->reserve ? 0 : kept);
  r.block = calloc((size_t)room, sizeof(real_t));
  if (!r.block)
    return false;
  r.kept = job->reserve ? job->reserve : take(&r, kept);
  if (job->kind == HOST_RNN_WEIGHTS) {
    r.d_weights = take(&r, weights);
  } else {
    r.weights = take(&r, weights);
    load(job->type, job->weights, weights, r.weights);
  }
  bool ok = job->kind == HOST_RNN_FORWARD ? forward(&r)
            : job->kind == HOST_RNN_DATA  ? backward_data(&r)
                                          : backward_weights(&r);
  free(r.block);
  return ok;
}
