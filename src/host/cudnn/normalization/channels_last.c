// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of floats whose channels are contiguous: a few channels
// at a time are transposed into rows, and back.
#include "src/host/cudnn/normalization/channels_last.h"

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/transpose.h"

enum { TENSORS = 6, PARAMS = 8 };
enum { CHANNELS = 16 }; // one line of the caches

// The distance between the points of an image; 0 if it is not the same for all.
static int64_t distance(const host_view_t *view) {
  int64_t first = 0, next = 0;
  for (int i = view->rank - 1; i >= 2; i--) {
    if (view->dim[i] == 1)
      continue;
    if (next && view->stride[i] != next)
      return 0;
    first = next ? first : view->stride[i];
    next = view->stride[i] * view->dim[i];
  }
  return first;
}

static bool fits(const host_view_t *view) {
  return !view->data || (view->type == CUDNN_DATA_FLOAT &&
                         view->stride[1] == 1 && distance(view) != 0);
}

bool host_bn_last_is(const host_bn_t *bn) {
  return !bn->per_activation && !bn->swish && bn->x.dim[1] > 1 &&
         fits(&bn->x) && fits(&bn->y) && fits(&bn->z) && fits(&bn->dy) &&
         fits(&bn->dx) && fits(&bn->dz);
}

// `channels` channels of a tensor from `first` on; `room` holds their rows.
typedef struct {
  const host_view_t *view;
  int64_t first, channels, points;
  float *room;
} part_t;

static void turn(const part_t *part, bool back) {
  int64_t step = distance(part->view);
  for (int64_t n = 0; n < part->view->dim[0]; n++) {
    float *at =
        (float *)part->view->data + n * part->view->stride[0] + part->first;
    float *rows = part->room + n * part->channels * part->points;
    if (back)
      host_transpose(rows, part->points, part->channels, part->points, at,
                     step);
    else
      host_transpose(at, step, part->points, part->channels, rows,
                     part->points);
  }
}

// The rows as a tensor.
static host_view_t rows_view(const part_t *part) {
  host_view_t view = *part->view;
  int64_t stride = 1;
  view.dim[1] = part->channels;
  for (int i = view.rank - 1; i >= 0; stride *= view.dim[i--])
    view.stride[i] = stride;
  view.data = (char *)part->room;
  return view;
}

static void params_cut(host_bn_t *bn, int64_t first, int64_t channels) {
  host_view_t *const params[PARAMS] = {
      &bn->scale,      &bn->bias,         &bn->mean,   &bn->variance,
      &bn->saved_mean, &bn->saved_invstd, &bn->dscale, &bn->dbias};
  for (int i = 0; i < PARAMS; i++) {
    if (!params[i]->data)
      continue;
    params[i]->data += first * params[i]->stride[1] *
                       (int64_t)host_type_bytes(params[i]->type);
    params[i]->dim[1] = channels;
  }
}

bool host_bn_last_run(const host_bn_t *bn, bool (*run)(const host_bn_t *bn)) {
  static const host_scratch_t kind[TENSORS] = {
      HOST_SCRATCH_INPUT,  HOST_SCRATCH_OUTPUT, HOST_SCRATCH_WEIGHTS,
      HOST_SCRATCH_FILTER, HOST_SCRATCH_TYPED,  HOST_SCRATCH_REORDERED};
  bool back = bn->kind == HOST_BN_BACKWARD;
  int64_t points = 1, all = bn->x.dim[1];
  for (int i = 2; i < bn->x.rank; i++)
    points *= bn->x.dim[i];
  for (int64_t first = 0; first < all; first += CHANNELS) {
    int64_t channels = all - first < CHANNELS ? all - first : CHANNELS;
    host_bn_t part = *bn;
    host_view_t *const tensor[TENSORS] = {&part.x,  &part.y,  &part.z,
                                          &part.dy, &part.dx, &part.dz};
    const host_view_t *const of[TENSORS] = {&bn->x,  &bn->y,  &bn->z,
                                            &bn->dy, &bn->dx, &bn->dz};
    part_t turned[TENSORS];
    const host_view_t *result = back ? &bn->dx : &bn->y;
    for (int i = 0; i < TENSORS; i++) {
      if (!of[i]->data)
        continue;
      size_t bytes = (size_t)(bn->x.dim[0] * channels * points) * sizeof(float);
      turned[i] = (part_t){of[i], first, channels, points,
                           host_scratch_get(kind[i], bytes)};
      if (!turned[i].room)
        return false;
      if (of[i] != &bn->dz && (of[i] != result || bn->beta != 0))
        turn(&turned[i], false);
      *tensor[i] = rows_view(&turned[i]);
    }
    params_cut(&part, first, channels);
    if (!run(&part))
      return false;
    for (int i = 0; i < TENSORS; i++)
      if (of[i]->data && (of[i] == result || of[i] == &bn->dz))
        turn(&turned[i], true);
  }
  return true;
}
