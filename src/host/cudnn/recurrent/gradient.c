// SPDX-License-Identifier: Apache-2.0
// The gradients of recurrent networks in float or double, from what a forward
// call in training stored.
#include <math.h>
#include <string.h>

#include "src/host/cudnn/recurrent/part.h"

// ---- gradient of the data ----

// The step before t in the direction's own order; -1 before the first.
static int64_t step_before(const run_t *r, const part_t *p, int64_t t,
                           int64_t b) {
  if (!p->way)
    return t - 1;
  return t + 1 < r->job->length[b] ? t + 1 : -1;
}

// Whether a cell's state is read unclipped, so that the gradient passes.
static bool passes(const host_rnn_net_t *net, real_t c) {
  return !net->clips ||
         (c >= (real_t)net->clip_low && c <= (real_t)net->clip_high);
}

// One row: from the gradients of the output before projection and of the cell
// to the gradients of the gates. `dc` becomes the earlier cell's gradient.
// `straight` is the gradient that reaches the earlier state without the
// matrices.
static void cell_back(const run_t *r, const real_t *a, const real_t *state,
                      const real_t *c_before, const real_t *h_before,
                      const real_t *dm, real_t *dc, real_t *delta, real_t *late,
                      real_t *straight) {
  const host_rnn_net_t *net = r->net;
  int64_t n = net->hidden;
  for (int64_t j = 0; j < n; j++) {
    switch (net->cell) {
    case CUDNN_RNN_RELU:
      delta[j] = late[j] = a[j] > 0 ? dm[j] : 0;
      break;
    case CUDNN_RNN_TANH:
      delta[j] = late[j] = dm[j] * (1 - a[j] * a[j]);
      break;
    case CUDNN_LSTM: {
      real_t in = a[j], forget = a[n + j], fresh = a[2 * n + j];
      real_t o = a[3 * n + j], read = clip(net, c_before[j]);
      real_t squashed = (real_t)tanh((double)clip(net, state[j]));
      real_t d = dc[j];
      if (passes(net, state[j]))
        d += dm[j] * o * (1 - squashed * squashed);
      delta[j] = d * fresh * in * (1 - in);
      delta[n + j] = d * read * forget * (1 - forget);
      delta[2 * n + j] = d * in * (1 - fresh * fresh);
      delta[3 * n + j] = dm[j] * squashed * o * (1 - o);
      for (int g = 0; g < 4; g++)
        late[g * n + j] = delta[g * n + j];
      dc[j] = passes(net, c_before[j]) ? d * forget : 0;
      break;
    }
    case CUDNN_GRU: {
      real_t reset = a[j], update = a[n + j], fresh = a[2 * n + j];
      real_t d = dm[j] * (1 - update) * (1 - fresh * fresh);
      delta[j] = late[j] = d * state[j] * reset * (1 - reset);
      delta[n + j] = late[n + j] =
          dm[j] * (h_before[j] - fresh) * update * (1 - update);
      delta[2 * n + j] = d;
      late[2 * n + j] = d * reset;
      straight[j] = dm[j] * update;
      break;
    }
    }
  }
}

typedef struct {
  real_t *hx, *cx, *dh, *dc, *dm, *late, *straight;
} back_t;

// Time t of one direction; d_rows is the gradient of the layer's output.
static bool back_step(run_t *r, const part_t *p, const back_t *k, int64_t t,
                      const real_t *d_rows) {
  const host_rnn_net_t *net = r->net;
  int64_t batch = r->job->batch, hidden = net->hidden, out = net->out;
  int64_t width = out * net->ways;
  for (int64_t b = 0; b < batch; b++) {
    int64_t row = t * batch + b;
    for (int64_t j = 0; j < out; j++)
      p->d_out[row * out + j] =
          active(r->job, t, b)
              ? k->dh[b * out + j] + d_rows[row * width + p->way * out + j]
              : 0;
  }
  const real_t *dm = p->d_out + t * batch * out;
  if (net->projects) {
    if (!product(false, false, batch, hidden, out, dm, out,
                 r->weights + p->place.projection, hidden, 0, k->dm, hidden))
      return false;
    dm = k->dm;
  }
  for (int64_t b = 0; b < batch; b++) {
    int64_t row = t * batch + b, before = step_before(r, p, t, b);
    real_t *delta = p->delta + row * p->gates, *late = k->late + b * p->gates;
    if (!active(r->job, t, b)) {
      memset(delta, 0, (size_t)p->gates * sizeof *delta);
      memset(late, 0, (size_t)p->gates * sizeof *late);
      continue;
    }
    int64_t past = before * batch + b;
    cell_back(r, p->gate + row * p->gates, p->state + row * hidden,
              before < 0 ? k->cx + b * hidden : p->state + past * hidden,
              before < 0 ? k->hx + b * out : p->out + past * out,
              dm + b * hidden, k->dc + b * hidden, delta, late,
              k->straight + b * hidden);
  }
  for (int64_t b = 0; b < batch; b++)
    if (active(r->job, t, b)) {
      if (net->cell == CUDNN_GRU)
        memcpy(k->dh + b * out, k->straight + b * hidden,
               (size_t)out * sizeof *k->dh);
      else
        memset(k->dh + b * out, 0, (size_t)out * sizeof *k->dh);
    }
  return product(false, false, batch, out, p->gates, k->late, p->gates,
                 r->weights + p->place.hidden, out, 1, k->dh, out);
}

// Adds the direction's contribution to d_in.
static bool back_part(run_t *r, const part_t *p, const real_t *d_rows,
                      real_t *d_in) {
  const host_rnn_job_t *job = r->job;
  const host_rnn_net_t *net = r->net;
  int64_t batch = job->batch, hidden = net->hidden, out = net->out;
  size_t mark = r->used;
  back_t k = {take(r, batch * out),    take(r, batch * hidden),
              take(r, batch * out),    take(r, batch * hidden),
              take(r, batch * hidden), take(r, batch * p->gates),
              take(r, batch * hidden)};
  load_state(r, job->hx, p->pseudo, out, k.hx);
  load_state(r, job->cx, p->pseudo, hidden, k.cx);
  load_state(r, job->dhy, p->pseudo, out, k.dh);
  load_state(r, job->dcy, p->pseudo, hidden, k.dc);
  bool ok = true;
  for (int64_t i = 0; ok && i < job->time; i++)
    ok = back_step(r, p, &k, p->way ? i : job->time - 1 - i, d_rows);
  store_state(r, job->dhx, p->pseudo, out, k.dh);
  if (net->cell == CUDNN_LSTM)
    store_state(r, job->dcx, p->pseudo, hidden, k.dc);
  r->used = mark;
  if (p->place.input >= 0)
    return ok && product(false, false, r->rows, p->width, p->gates, p->delta,
                         p->gates, r->weights + p->place.input, p->width, 1,
                         d_in, p->width);
  for (int64_t i = 0; i < r->rows; i++)
    for (int64_t j = 0; j < p->gates; j++)
      d_in[i * p->width + j % hidden] += p->delta[i * p->gates + j];
  return ok;
}

bool backward_data(run_t *r) {
  const host_rnn_net_t *net = r->net;
  real_t *d_rows = take(r, r->rows * widest(net));
  real_t *d_in = take(r, r->rows * widest(net));
  load_rows(r, &r->job->y, r->job->y.gradient, d_rows);
  bool ok = true;
  for (int layer = net->layers - 1; ok && layer >= 0; layer--) {
    int64_t count = r->rows * host_rnn_input(net, layer);
    memset(d_in, 0, (size_t)count * sizeof *d_in);
    for (int way = 0; ok && way < net->ways; way++) {
      part_t p = part_of(r, layer * net->ways + way);
      ok = back_part(r, &p, d_rows, d_in);
    }
    const real_t *mask = mask_of(r, layer);
    for (int64_t i = 0; i < count; i++)
      d_rows[i] = layer && drops(r) ? d_in[i] * mask[i] : d_in[i];
  }
  if (r->job->x.gradient)
    store_rows(r, &r->job->x, r->job->x.gradient, false, d_rows);
  return ok;
}

// ---- gradient of the weights ----

static bool weigh_part(run_t *r, const part_t *p, const real_t *in) {
  const host_rnn_job_t *job = r->job;
  const host_rnn_net_t *net = r->net;
  int64_t batch = job->batch, hidden = net->hidden, out = net->out;
  size_t mark = r->used;
  real_t *hx = take(r, batch * out), *before = take(r, r->rows * out);
  real_t *late = take(r, r->rows * p->gates), *m = take(r, r->rows * hidden);
  real_t *dw = r->d_weights;
  load_state(r, job->hx, p->pseudo, out, hx);
  for (int64_t i = 0; i < r->rows; i++) {
    int64_t b = i % batch, past = step_before(r, p, i / batch, b);
    memcpy(before + i * out,
           past < 0 ? hx + b * out : p->out + (past * batch + b) * out,
           (size_t)out * sizeof *before);
    for (int64_t j = 0; j < p->gates; j++)
      late[i * p->gates + j] = p->delta[i * p->gates + j] *
                               (net->cell == CUDNN_GRU && j >= 2 * hidden
                                    ? p->gate[i * p->gates + j % hidden]
                                    : 1);
    for (int64_t j = 0; j < hidden && net->projects; j++)
      m[i * hidden + j] = p->gate[i * p->gates + 3 * hidden + j] *
                          (real_t)tanh((double)p->state[i * hidden + j]);
  }
  bool ok = product(true, false, p->gates, out, r->rows, late, p->gates, before,
                    out, 1, dw + p->place.hidden, out);
  if (p->place.input >= 0)
    ok =
        ok && product(true, false, p->gates, p->width, r->rows, p->delta,
                      p->gates, in, p->width, 1, dw + p->place.input, p->width);
  if (net->projects)
    ok = ok && product(true, false, out, hidden, r->rows, p->d_out, out, m,
                       hidden, 1, dw + p->place.projection, hidden);
  if (p->place.input_bias >= 0)
    add_rows(p->delta, r->rows, p->gates, dw + p->place.input_bias);
  if (p->place.hidden_bias >= 0)
    add_rows(late, r->rows, p->gates, dw + p->place.hidden_bias);
  r->used = mark;
  return ok;
}

bool backward_weights(run_t *r) {
  const host_rnn_net_t *net = r->net;
  int64_t count = host_rnn_weights(net);
  real_t *in = take(r, r->rows * widest(net));
  memset(r->d_weights, 0, (size_t)count * sizeof(real_t));
  bool ok = true;
  for (int layer = 0; ok && layer < net->layers; layer++) {
    input_of(r, layer, in);
    for (int way = 0; ok && way < net->ways; way++) {
      part_t p = part_of(r, layer * net->ways + way);
      ok = weigh_part(r, &p, in);
    }
  }
  if (ok)
    store(r->job->type, r->job->d_weights, count, r->d_weights, true);
  return ok;
}
