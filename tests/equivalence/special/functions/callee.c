// SPDX-License-Identifier: Apache-2.0
// Computes what callee.h describes.
#include "callee.h"

#include <stdlib.h>
#include <string.h>

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 29) * 0x94d049bb133111ebu;
  return x ^ x >> 32;
}

uint64_t hash_bytes(uint64_t hash, const void *at, int bytes) {
  for (int i = 0; i < bytes; i++)
    hash = mix(hash, ((const unsigned char *)at)[i]);
  return hash;
}

int place_next(int dims, const int64_t *extent, int64_t *place) {
  for (int i = dims - 1; i >= 0; i--) {
    if (++place[i] < extent[i])
      return 1;
    place[i] = 0;
  }
  return 0;
}

static int64_t index_of(const struct prototype *p, const struct run *run, int t,
                        const int64_t *place) {
  int64_t at = 0;
  for (int i = 0; i < p->tensor[t].dims; i++)
    at += (place[i] + p->tensor[t].before[i]) * run->stride[t][i];
  return at * p->tensor[t].bytes;
}

static void extents_of(const struct prototype *p, const struct run *run, int t,
                       int64_t *out) {
  for (int i = 0; i < p->tensor[t].dims; i++)
    out[i] = run->extent[p->tensor[t].dim[i]];
}

static uint64_t load(const struct prototype *p, const struct run *run, int t,
                     const int64_t *place) {
  uint64_t bits = 0;
  memcpy(&bits, (const char *)run->data[t] + index_of(p, run, t, place),
         (size_t)p->tensor[t].bytes);
  return bits;
}

static void rooms_of(const struct prototype *p, const struct run *run, int t,
                     int64_t *out) {
  extents_of(p, run, t, out);
  for (int i = 0; i < p->tensor[t].dims; i++)
    out[i] += p->tensor[t].before[i] + p->tensor[t].behind[i];
}

// What the function read, ghosts included: packed, in the order of a tensor's
// dims.
static uint64_t *values_of(const struct prototype *p, const struct run *run,
                           int t) {
  int64_t room[DIMS], step[DIMS] = {0}, place[DIMS], count = 1;
  rooms_of(p, run, t, room);
  for (int i = 0; i < p->tensor[t].dims; i++)
    count *= room[i];
  uint64_t *values = malloc((size_t)count * sizeof *values), *at = values;
  do {
    for (int i = 0; i < p->tensor[t].dims; i++)
      place[i] = step[i] - p->tensor[t].before[i];
    *at++ = load(p, run, t, place);
  } while (place_next(p->tensor[t].dims, room, step));
  return values;
}

// The part of an element at `at` (by dimension; -1: it lacks it) that input t
// makes.
static uint64_t input_part(const struct prototype *p, const struct run *run,
                           int t, const uint64_t *values, const int64_t *at) {
  const struct tensor *in = &p->tensor[t];
  int64_t extent[DIMS], room[DIMS], window[DIMS], step[DIMS] = {0};
  int64_t before[DIMS];
  uint64_t sum = 0;
  extents_of(p, run, t, extent);
  rooms_of(p, run, t, room);
  for (int i = 0; i < in->dims; i++) {
    int d = in->dim[i];
    int own = p->has_ghosts[d] && in->before[i] + in->behind[i] == 0;
    before[i] = own ? 0 : p->before[d];
    window[i] = at[d] < 0 || p->reach[d] == REACH_ALL
                    ? extent[i]
                    : 1 + (own ? 0 : p->before[d] + p->behind[d]);
  }
  do {
    int64_t index = 0, outside = 0, skipped = 0;
    uint64_t weight = (uint64_t)t;
    for (int i = 0; i < in->dims; i++) {
      int d = in->dim[i];
      int64_t place = step[i];
      if (at[d] >= 0 && p->reach[d] != REACH_ALL) {
        place = at[d] + step[i] - before[i];
        if (p->border[d] == 'w' && !p->has_ghosts[d])
          place = (place % extent[i] + extent[i]) % extent[i];
        if (place < -in->before[i] || place >= extent[i] + in->behind[i]) {
          skipped = 1;
          outside |= p->border[d] == 'o';
          place = 0;
        }
      }
      weight = mix(weight, (uint64_t)step[i] + 100 * (uint64_t)i);
      index = index * room[i] + place + in->before[i];
    }
    sum += outside ? weight : skipped ? 0 : mix(weight, values[index]);
  } while (place_next(in->dims, window, step));
  return sum;
}

static void output_compute(const struct prototype *p, const struct run *run,
                           int t, uint64_t *const *values) {
  const struct tensor *out = &p->tensor[t];
  int64_t extent[DIMS], place[DIMS] = {0};
  extents_of(p, run, t, extent);
  do {
    int64_t at[DIMS] = {-1, -1, -1, -1, -1};
    uint64_t hash = mix(run->hash, (uint64_t)t);
    for (int i = 0; i < out->dims; i++) {
      at[out->dim[i]] = place[i];
      hash = mix(hash, (uint64_t)(run->offset[out->dim[i]] == NO_OFFSET
                                      ? 0
                                      : run->offset[out->dim[i]] + place[i]));
    }
    for (int k = 0; k < p->tensors; k++)
      if (p->tensor[k].use == USE_IN || p->tensor[k].use == USE_INOUT)
        hash += input_part(p, run, k, values[k], at);
    if (out->kind == 'b')
      hash = hash >> 8 & 1;
    // Some elements stay as they are.
    if (hash % 7 != 3)
      memcpy((char *)run->data[t] + index_of(p, run, t, place), &hash,
             (size_t)out->bytes);
  } while (place_next(out->dims, extent, place));
}

static void number_store(const struct tensor *t, double value, void *at) {
  int64_t integer = (int64_t)value;
  float single = (float)value;
  if (t->kind == 'f')
    memcpy(at, t->bytes == 8 ? (void *)&value : (void *)&single,
           (size_t)t->bytes);
  else
    memcpy(at, &integer, (size_t)t->bytes);
}

static void result_compute(const struct prototype *p, const struct run *run,
                           int t, const uint64_t *values) {
  const struct tensor *result = &p->tensor[t];
  const struct tensor *lead = &p->tensor[p->lead];
  int64_t extent[DIMS], room[DIMS];
  extents_of(p, run, p->lead, extent);
  rooms_of(p, run, p->lead, room);
  for (int n = 0; n < result->count; n++) {
    int64_t place[DIMS] = {0}, count = 0;
    double all = 0;
    do {
      int64_t index = 0, e = count++;
      for (int i = 0; i < lead->dims; i++)
        index = index * room[i] + place[i] + lead->before[i];
      double value = (double)(mix(values[index], run->hash + (uint64_t)n) % 97);
      if (result->kind != 'u')
        value -= 48;
      if (result->combine == 's' || result->combine == 'm')
        all += value;
      else if (e == 0 || (result->combine == 'x' ? value > all : value < all))
        all = value;
    } while (place_next(lead->dims, extent, place));
    if (result->combine == 'm')
      all /= (double)count;
    number_store(result, all, (char *)run->data[t] + n * result->bytes);
  }
}

void callee_result(const struct prototype *p, const struct run *run,
                   char combine, char kind, int bytes, void *out) {
  struct prototype one = *p;
  struct run to = *run;
  uint64_t *values = values_of(p, run, p->lead);
  one.tensor[0] = (struct tensor){.use = USE_RESULT,
                                  .kind = kind,
                                  .bytes = bytes,
                                  .count = 1,
                                  .combine = combine};
  one.tensor[1] = p->tensor[p->lead];
  one.lead = 1;
  to.data[0] = out;
  result_compute(&one, &to, 0, values);
  free(values);
}

void callee_compute(const struct prototype *p, const struct run *run) {
  uint64_t *values[TENSORS] = {0};
  for (int t = 0; t < p->tensors; t++)
    if (p->tensor[t].use == USE_IN || p->tensor[t].use == USE_INOUT)
      values[t] = values_of(p, run, t);
  for (int t = 0; t < p->tensors; t++)
    if (p->tensor[t].use == USE_RESULT)
      result_compute(p, run, t, values[p->lead]);
  for (int t = 0; t < p->tensors; t++)
    if (p->tensor[t].use == USE_OUT || p->tensor[t].use == USE_INOUT)
      output_compute(p, run, t, values);
  for (int t = 0; t < p->tensors; t++)
    free(values[t]);
}
