// SPDX-License-Identifier: Apache-2.0
// Multi-head attention in float or double, one sequence after the other. The
// gradients repeat the forward pass.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/attention/compute.h"
#include "src/host/cudnn/base/real.h"

#define product  REAL(host_product)
#define load     REAL(host_real_load)
#define store    REAL(host_real_store)
#define add_rows REAL(host_real_add_rows)
#define draw     REAL(host_real_mask)

// Dense rows of one sequence; projected rows have all its heads.
typedef struct {
  real_t *raw[3];  // q, k, v before the projection: length x vector
  real_t *seen[3]; // q, k, v after the projection: length x seen width
  int64_t width[3],
      pitch[3];    // elements of a head's vector; elements from one
                   //                                  head to the next
  real_t *weight;  // heads x queries x keys: softmax
  real_t *kept;    // the same after dropout
  real_t *context; // queries x heads * v width
  real_t *out;     // queries x out
} pass_t;

typedef struct {
  const host_attn_job_t *job;
  const host_attn_net_t *net;
  const int *window, *q_length, *k_length;
  real_t *weights, *d_weights;
  real_t *block;
  int64_t used;
  int64_t queries, keys; // of the current sequence
  real_t *sum[3];        // gradients of k and v, which all beams share
} run_t;

static real_t *take(run_t *r, int64_t count) {
  real_t *at = r->block + r->used;
  r->used += count;
  return at;
}

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t seen_width(const host_attn_net_t *net, int part) {
  const host_attn_part_t *p = &net->part[part];
  return p->there ? net->heads * p->to : p->from;
}

static int64_t length_of(const host_attn_data_t *d, const int *length,
                         int64_t batch, int64_t beam) {
  int64_t count = length[batch * d->beam + beam];
  return count < 0 ? 0 : lesser(count, d->time);
}

// ---- memory ----

static char *row_of(const run_t *r, const host_attn_data_t *d, const void *data,
                    int64_t time, int64_t batch, int64_t beam) {
  int64_t at = time * d->stride[CUDNN_SEQDATA_TIME_DIM] +
               batch * d->stride[CUDNN_SEQDATA_BATCH_DIM] +
               beam * d->stride[CUDNN_SEQDATA_BEAM_DIM];
  return (char *)data + at * (int64_t)host_type_bytes(r->job->type);
}

static void load_rows(const run_t *r, const host_attn_data_t *d,
                      const void *data, int64_t batch, int64_t beam,
                      int64_t count, real_t *to) {
  for (int64_t t = 0; t < count; t++)
    load(r->job->type, row_of(r, d, data, t, batch, beam), d->vector,
         to + t * d->vector);
}

// Stores rows; those beyond the sequence's end become zeros.
static void store_rows(const run_t *r, const host_attn_data_t *d, int64_t batch,
                       int64_t beam, int64_t count, const real_t *from) {
  int only = r->job->only;
  for (int64_t t = 0; t < d->time; t++) {
    void *to = row_of(r, d, d->data, t, batch, beam);
    if (only >= 0 && t != only)
      continue;
    if (t < count)
      store(r->job->type, to, d->vector, from + t * d->vector, false);
    else
      memset(to, 0, (size_t)d->vector * host_type_bytes(r->job->type));
  }
}

// ---- forward ----

// Projects `rows` vectors of q, k or v.
static bool project(const run_t *r, int part, int64_t rows, pass_t *p) {
  const host_attn_part_t *w = &r->net->part[part];
  int64_t width = seen_width(r->net, part);
  p->width[part] = w->to;
  p->pitch[part] = w->there ? w->to : 0;
  if (!w->there) {
    memcpy(p->seen[part], p->raw[part],
           (size_t)(rows * width) * sizeof(real_t));
    return true;
  }
  for (int64_t i = 0; i < rows * width; i++)
    p->seen[part][i] = w->bias < 0 ? 0 : r->weights[w->bias + i % width];
  return product(false, false, rows, width, w->from, p->raw[part], w->from,
                 r->weights + w->matrix, width, 1, p->seen[part], width);
}

// Softmax of a row over its window; zeros outside.
static void soften(real_t *row, int64_t count, int64_t low, int64_t high) {
  low = low < 0 ? 0 : low;
  high = lesser(high, count);
  real_t most = -INFINITY, sum = 0;
  for (int64_t j = low; j < high; j++)
    most = row[j] > most ? row[j] : most;
  for (int64_t j = 0; j < count; j++)
    if (j < low || j >= high)
      row[j] = 0;
    else
      sum += row[j] = (real_t)exp((double)(row[j] - most));
  for (int64_t j = low; j < high; j++)
    row[j] /= sum;
}

// The stored dropout mask of sequence `number`; NULL without dropout.
static real_t *mask_of(const run_t *r, int64_t number, bool post) {
  const host_attn_job_t *job = r->job;
  if (!job->masks || !((post ? job->post_dropout : job->dropout) > 0))
    return NULL;
  int64_t first = r->net->heads * job->q.time * job->k.time;
  return (real_t *)job->masks +
         number * host_attn_masks(r->net, job->q.time, job->k.time) +
         (post ? first : 0);
}

static bool attend(const run_t *r, int64_t number, pass_t *p) {
  const host_attn_net_t *net = r->net;
  int64_t q = r->queries, k = r->keys;
  int64_t wide = net->heads * p->width[HOST_ATTN_V];
  int64_t sq = seen_width(net, HOST_ATTN_Q), sk = seen_width(net, HOST_ATTN_K);
  int64_t sv = seen_width(net, HOST_ATTN_V);
  const real_t *mask = mask_of(r, number, false);
  bool ok = true;
  for (int64_t h = 0; ok && h < net->heads; h++) {
    real_t *weight = p->weight + h * q * k, *kept = p->kept + h * q * k;
    ok = product(false, true, q, k, p->width[HOST_ATTN_Q],
                 p->seen[HOST_ATTN_Q] + h * p->pitch[HOST_ATTN_Q], sq,
                 p->seen[HOST_ATTN_K] + h * p->pitch[HOST_ATTN_K], sk, 0,
                 weight, k);
    for (int64_t i = 0; i < q; i++) {
      for (int64_t j = 0; j < k; j++)
        weight[i * k + j] *= (real_t)net->scale;
      soften(weight + i * k, k, r->window[2 * i], r->window[2 * i + 1]);
      for (int64_t j = 0; j < k; j++)
        kept[i * k + j] =
            weight[i * k + j] *
            (mask ? mask[(h * r->job->q.time + i) * r->job->k.time + j] : 1);
    }
    ok = ok && product(false, false, q, p->width[HOST_ATTN_V], k, kept, k,
                       p->seen[HOST_ATTN_V] + h * p->pitch[HOST_ATTN_V], sv, 0,
                       p->context + h * p->width[HOST_ATTN_V], wide);
  }
  return ok;
}

// From the heads' results to the output before its dropout.
static bool combine(const run_t *r, pass_t *p) {
  const host_attn_part_t *w = &r->net->part[HOST_ATTN_O];
  int64_t wide = r->net->heads * p->width[HOST_ATTN_V], out = r->net->out;
  if (!w->there) {
    memcpy(p->out, p->context, (size_t)(r->queries * out) * sizeof(real_t));
    return true;
  }
  for (int64_t i = 0; i < r->queries * out; i++)
    p->out[i] = w->bias < 0 ? 0 : r->weights[w->bias + i % out];
  return product(false, false, r->queries, out, wide, p->context, wide,
                 r->weights + w->matrix, out, 1, p->out, out);
}

// The forward pass of one sequence, up to the output before dropout.
static bool pass(run_t *r, int64_t batch, int64_t beam, pass_t *p) {
  const host_attn_job_t *job = r->job;
  const host_attn_data_t *const in[] = {&job->q, &job->k, &job->v};
  int64_t k_beam = job->k.beam > 1 ? beam : 0;
  r->queries = length_of(&job->q, r->q_length, batch, beam);
  r->keys = length_of(&job->k, r->k_length, batch, k_beam);
  bool ok = true;
  for (int i = 0; ok && i < 3; i++) {
    int64_t rows = i == HOST_ATTN_Q ? r->queries : r->keys;
    p->raw[i] = take(r, rows * in[i]->vector);
    p->seen[i] = take(r, rows * seen_width(r->net, i));
    load_rows(r, in[i], in[i]->data, batch, i == HOST_ATTN_Q ? beam : k_beam,
              rows, p->raw[i]);
    ok = project(r, i, rows, p);
  }
  int64_t pairs = r->net->heads * r->queries * r->keys;
  p->weight = take(r, pairs);
  p->kept = take(r, pairs);
  p->context =
      take(r, r->queries * r->net->heads * r->net->part[HOST_ATTN_V].to);
  p->out = take(r, r->queries * r->net->out);
  int64_t number = batch * job->q.beam + beam;
  return ok && attend(r, number, p) && combine(r, p);
}

static bool forward(run_t *r, int64_t batch, int64_t beam) {
  const host_attn_job_t *job = r->job;
  int64_t number = batch * job->q.beam + beam, out = r->net->out;
  real_t *mask = mask_of(r, number, false), *post = mask_of(r, number, true);
  if (mask)
    draw(mask, r->net->heads * job->q.time * job->k.time, job->dropout,
         job->states);
  if (post)
    draw(post, job->q.time * out, job->post_dropout, job->post_states);
  pass_t p;
  if (!pass(r, batch, beam, &p))
    return false;
  for (int64_t i = 0; post && i < r->queries * out; i++)
    p.out[i] *= post[i];
  if (job->residual) {
    real_t *residual = take(r, r->queries * out);
    load_rows(r, &job->q, job->residual, batch, beam, r->queries, residual);
    for (int64_t i = 0; i < r->queries * out; i++)
      p.out[i] += residual[i];
  }
  store_rows(r, &job->o, batch, beam, r->queries, p.out);
  return true;
}

// ---- gradients ----

// Gradients of the projected q, k and v from the gradient of the heads'
// results.
static bool attend_back(run_t *r, int64_t number, const pass_t *p,
                        const real_t *d_context, real_t *const d_seen[3]) {
  const host_attn_net_t *net = r->net;
  int64_t q = r->queries, k = r->keys;
  int64_t dv = p->width[HOST_ATTN_V], dq = p->width[HOST_ATTN_Q];
  int64_t wide = net->heads * dv;
  int64_t sq = seen_width(net, HOST_ATTN_Q), sk = seen_width(net, HOST_ATTN_K);
  int64_t sv = seen_width(net, HOST_ATTN_V);
  const real_t *mask = mask_of(r, number, false);
  real_t *d = take(r, q * k);
  bool ok = true;
  for (int64_t h = 0; ok && h < net->heads; h++) {
    const real_t *weight = p->weight + h * q * k;
    const real_t *d_head = d_context + h * dv;
    int64_t at[3];
    for (int i = 0; i < 3; i++)
      at[i] = h * p->pitch[i];
    ok = product(false, true, q, k, dv, d_head, wide,
                 p->seen[HOST_ATTN_V] + at[HOST_ATTN_V], sv, 0, d, k) &&
         product(true, false, k, dv, q, p->kept + h * q * k, k, d_head, wide, 1,
                 d_seen[HOST_ATTN_V] + at[HOST_ATTN_V], sv);
    for (int64_t i = 0; i < q; i++) {
      real_t sum = 0;
      for (int64_t j = 0; j < k; j++) {
        if (mask)
          d[i * k + j] *= mask[(h * r->job->q.time + i) * r->job->k.time + j];
        sum += d[i * k + j] * weight[i * k + j];
      }
      for (int64_t j = 0; j < k; j++)
        d[i * k + j] =
            weight[i * k + j] * (d[i * k + j] - sum) * (real_t)net->scale;
    }
    ok = ok &&
         product(false, false, q, dq, k, d, k,
                 p->seen[HOST_ATTN_K] + at[HOST_ATTN_K], sk, 1,
                 d_seen[HOST_ATTN_Q] + at[HOST_ATTN_Q], sq) &&
         product(true, false, k, dq, q, d, k,
                 p->seen[HOST_ATTN_Q] + at[HOST_ATTN_Q], sq, 1,
                 d_seen[HOST_ATTN_K] + at[HOST_ATTN_K], sk);
  }
  return ok;
}

// Adds the gradients of a projection's weights.
static bool weigh(const run_t *r, int part, int64_t rows, int64_t from,
                  const real_t *in, int64_t width, const real_t *d) {
  const host_attn_part_t *w = &r->net->part[part];
  if (!w->there)
    return true;
  if (w->bias >= 0)
    add_rows(d, rows, width, r->d_weights + w->bias);
  return product(true, false, from, width, rows, in, from, d, width, 1,
                 r->d_weights + w->matrix, width);
}

// Through a projection to the gradients of its input.
static bool unproject(const run_t *r, int part, int64_t rows, const real_t *d,
                      real_t *to) {
  const host_attn_part_t *w = &r->net->part[part];
  int64_t width = seen_width(r->net, part);
  if (w->there)
    return product(false, true, rows, w->from, width, d, width,
                   r->weights + w->matrix, width, 0, to, w->from);
  memcpy(to, d, (size_t)(rows * width) * sizeof *to);
  return true;
}

static bool backward(run_t *r, int64_t batch, int64_t beam) {
  const host_attn_job_t *job = r->job;
  const host_attn_net_t *net = r->net;
  int64_t number = batch * job->q.beam + beam, out = net->out;
  pass_t p;
  if (!pass(r, batch, beam, &p))
    return false;
  int64_t wide = net->heads * p.width[HOST_ATTN_V];
  real_t *d_out = take(r, r->queries * out), *d_context = d_out;
  load_rows(r, &job->o, job->o.data, batch, beam, r->queries, d_out);
  const real_t *post = mask_of(r, number, true);
  for (int64_t i = 0; post && i < r->queries * out; i++)
    d_out[i] *= post[i];
  const host_attn_part_t *w = &net->part[HOST_ATTN_O];
  if (w->there) {
    d_context = take(r, r->queries * wide);
    if (!product(false, true, r->queries, wide, out, d_out, out,
                 r->weights + w->matrix, out, 0, d_context, wide))
      return false;
  }
  real_t *d_seen[3];
  for (int i = 0; i < 3; i++) {
    int64_t count =
        (i == HOST_ATTN_Q ? r->queries : r->keys) * seen_width(net, i);
    d_seen[i] = take(r, count);
    memset(d_seen[i], 0, (size_t)count * sizeof(real_t));
  }
  bool ok = attend_back(r, number, &p, d_context, d_seen);
  if (job->kind == HOST_ATTN_WEIGHTS)
    ok = ok && weigh(r, HOST_ATTN_O, r->queries, wide, p.context, out, d_out);
  const host_attn_data_t *const to[] = {&job->dq, &job->dk, &job->dv};
  for (int i = 0; ok && i < 3; i++) {
    int64_t rows = i == HOST_ATTN_Q ? r->queries : r->keys;
    if (job->kind == HOST_ATTN_WEIGHTS) {
      ok = weigh(r, i, rows, net->part[i].from, p.raw[i], seen_width(net, i),
                 d_seen[i]);
      continue;
    }
    ok = unproject(r, i, rows, d_seen[i], p.raw[i]);
    if (i == HOST_ATTN_Q || job->k.beam > 1) {
      store_rows(r, to[i], batch, beam, rows, p.raw[i]);
      continue;
    }
    // All beams of a query use the same keys, so their gradients are added;
    // rounded once.
    int64_t count = rows * to[i]->vector;
    for (int64_t j = 0; j < count; j++)
      r->sum[i][j] = (beam > 0 ? r->sum[i][j] : 0) + p.raw[i][j];
    if (beam + 1 == job->q.beam)
      store_rows(r, to[i], batch, 0, rows, r->sum[i]);
  }
  return ok;
}

// The most memory that one sequence needs.
static int64_t room(const host_attn_job_t *job) {
  const host_attn_net_t *net = &job->net;
  int64_t q = job->q.time, k = job->k.time;
  int64_t sum = k * (net->part[HOST_ATTN_K].from + net->part[HOST_ATTN_V].from);
  for (int i = 0; i < 3; i++)
    sum += (i == HOST_ATTN_Q ? q : k) *
           (net->part[i].from + 2 * seen_width(net, i));
  return sum + 3 * net->heads * q * k +
         q * (2 * net->heads * net->part[HOST_ATTN_V].to + 3 * net->out);
}

// Windows and lengths are the call's or, for weight gradients, the forward
// call's.
static void know(run_t *r) {
  const host_attn_job_t *job = r->job;
  size_t windows = 2 * (size_t)job->q.time;
  size_t q_count = (size_t)(job->q.batch * job->q.beam);
  size_t k_count = (size_t)(job->k.batch * job->k.beam);
  if (job->kind == HOST_ATTN_WEIGHTS) {
    r->window = job->kept;
    r->q_length = job->kept + windows;
    r->k_length = r->q_length + q_count;
    return;
  }
  r->window = job->window;
  r->q_length = job->q.length;
  r->k_length = job->k.length;
  if (!job->kept)
    return;
  memcpy(job->kept, job->window, windows * sizeof(int));
  memcpy(job->kept + windows, job->q.length, q_count * sizeof(int));
  memcpy(job->kept + windows + q_count, job->k.length, k_count * sizeof(int));
}

bool REAL(host_attn_run)(const host_attn_job_t *job) {
  const host_attn_net_t *net = &job->net;
  run_t r = {.job = job, .net = net};
  know(&r);
  r.block = malloc((size_t)(2 * net->weights + room(job)) * sizeof(real_t));
  if (!r.block)
    return false;
  r.weights = take(&r, net->weights);
  r.d_weights = take(&r, net->weights);
  if (net->weights)
    load(job->type, job->weights, net->weights, r.weights);
  memset(r.d_weights, 0, (size_t)net->weights * sizeof(real_t));
  for (int i = HOST_ATTN_K; i <= HOST_ATTN_V; i++)
    r.sum[i] = take(&r, job->k.time * net->part[i].from);
  int64_t mark = r.used;
  bool ok = true;
  for (int64_t batch = 0; ok && batch < job->q.batch; batch++)
    for (int64_t beam = 0; ok && beam < job->q.beam; beam++) {
      r.used = mark;
      ok = job->kind == HOST_ATTN_FORWARD ? forward(&r, batch, beam)
                                          : backward(&r, batch, beam);
    }
  if (ok && job->kind == HOST_ATTN_WEIGHTS)
    store(job->type, job->d_weights, net->weights, r.d_weights, job->adds);
  free(r.block);
  return ok;
}
