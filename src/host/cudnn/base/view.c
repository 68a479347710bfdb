// SPDX-License-Identifier: Apache-2.0
// Tensors of any type and strides, read and written as dense doubles.
#include "src/host/cudnn/base/view.h"

#include <string.h>

#include "src/host/cudnn/base/rows.h"
#include "src/host/cudnn/base/work.h"

cudnnDataType_t host_type_scalar(cudnnDataType_t type) {
  if (type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_INT8x32)
    return CUDNN_DATA_INT8;
  return type == CUDNN_DATA_UINT8x4 ? CUDNN_DATA_UINT8 : type;
}

cudnnStatus_t host_view_init_any(const struct cudnnTensorStruct *tensor,
                                 const void *data, host_view_t *out) {
  REFUSE_IF(!tensor || !data || tensor->rank < 1, CUDNN_STATUS_BAD_PARAM);
  int vector = host_type_vector(tensor->type);
  // Refuses vectors whose length is not that of the type.
  REFUSE_IF((tensor->vector_length > 1 || vector > 1) &&
                tensor->vector_length != vector,
            CUDNN_STATUS_NOT_SUPPORTED);
  *out = (host_view_t){.type = host_type_scalar(tensor->type),
                       .rank = tensor->rank,
                       .vector = vector > 1 ? vector : 0};
  for (int i = 0; i < tensor->rank; i++) {
    REFUSE_IF(tensor->stride[i] < 0, CUDNN_STATUS_NOT_SUPPORTED);
    out->dim[i] = tensor->dim[i];
    out->stride[i] = (int64_t)tensor->stride[i] * vector;
  }
  out->data = host_tensor_resolve(tensor, data);
  REFUSE_IF(!out->data, CUDNN_STATUS_EXECUTION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_view_init(const struct cudnnTensorStruct *tensor,
                             const void *data, host_view_t *out) {
  REFUSE_IF(!tensor || !data || tensor->rank < 1, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(tensor->vector_length > 1 || host_type_vector(tensor->type) > 1,
            CUDNN_STATUS_NOT_SUPPORTED);
  return host_view_init_any(tensor, data, out);
}

cudnnStatus_t host_view_pair(const struct cudnnTensorStruct *a,
                             const void *a_data,
                             const struct cudnnTensorStruct *b,
                             const void *b_data, host_view_t *out_a,
                             host_view_t *out_b) {
  REFUSE_IF(!a || !b || a->type != b->type, CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = host_view_init(a, a_data, out_a);
  if (!status)
    status = host_view_init(b, b_data, out_b);
  if (!status)
    REFUSE_IF(!host_view_same(out_a, out_b), CUDNN_STATUS_BAD_PARAM);
  return status;
}

bool host_view_same(const host_view_t *a, const host_view_t *b) {
  return a->rank == b->rank &&
         memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

int64_t host_view_elements(const host_view_t *view) {
  int64_t elements = 1;
  for (int i = 0; i < view->rank; i++)
    elements *= view->dim[i];
  return elements;
}

// The rows of a box, one after the other. Extents of 1 are left out, and
// contiguous rows are merged. In vectorised tensors a box has whole vectors or
// one channel.
typedef struct {
  int rank;
  int64_t extent[CUDNN_DIM_MAX + 1], stride[CUDNN_DIM_MAX + 1];
  int64_t index[CUDNN_DIM_MAX + 1];
  int64_t at;
} walk_t;

static void walk_add(walk_t *walk, int64_t extent, int64_t stride) {
  if (extent == 1)
    return;
  int d = walk->rank;
  if (d && walk->stride[d - 1] == stride * extent) {
    walk->extent[d - 1] *= extent;
    walk->stride[d - 1] = stride;
    return;
  }
  walk->extent[d] = extent;
  walk->stride[d] = stride;
  walk->rank++;
}

static walk_t walk_start(const host_view_t *view, const int64_t *first,
                         const int64_t *extent) {
  walk_t walk = {.rank = 0};
  for (int i = 0; i < view->rank; i++) {
    if (i == 1 && view->vector) {
      walk.at +=
          first[1] / view->vector * view->stride[1] + first[1] % view->vector;
      if (extent[1] > 1) {
        walk_add(&walk, extent[1] / view->vector, view->stride[1]);
        walk_add(&walk, view->vector, 1);
      }
      continue;
    }
    walk.at += first[i] * view->stride[i];
    walk_add(&walk, extent[i], view->stride[i]);
  }
  if (!walk.rank) {
    walk.rank = 1;
    walk.extent[0] = walk.stride[0] = 1;
  }
  return walk;
}

static bool walk_next(walk_t *walk) {
  for (int d = walk->rank - 2; d >= 0; d--) {
    walk->at += walk->stride[d];
    if (++walk->index[d] < walk->extent[d])
      return true;
    walk->at -= walk->stride[d] * walk->extent[d];
    walk->index[d] = 0;
  }
  return false;
}

// A box that cuts vectors is read channel by channel.
static bool cuts_vectors(const host_view_t *view, const int64_t *first,
                         const int64_t *extent) {
  return view->vector && extent[1] > 1 &&
         (first[1] % view->vector || extent[1] % view->vector);
}

// The `number`th channel of a box, images first. Returns its elements.
static int64_t channel_of(const host_view_t *view, const int64_t *first,
                          const int64_t *extent, int64_t number, int64_t *at,
                          int64_t *box) {
  int64_t elements = 1;
  for (int i = 0; i < view->rank; i++) {
    at[i] = first[i];
    box[i] = i < 2 ? 1 : extent[i];
    elements *= box[i];
  }
  at[0] += number / extent[1];
  at[1] += number % extent[1];
  return elements;
}

void host_view_load(const host_view_t *view, const int64_t *first,
                    const int64_t *extent, double *to) {
  if (cuts_vectors(view, first, extent)) {
    int64_t at[CUDNN_DIM_MAX], box[CUDNN_DIM_MAX];
    for (int64_t i = 0; i < extent[0] * extent[1]; i++) {
      int64_t elements = channel_of(view, first, extent, i, at, box);
      host_view_load(view, at, box, to);
      to += elements;
    }
    return;
  }
  int64_t bytes = (int64_t)host_element_bytes(view->type);
  walk_t walk = walk_start(view, first, extent);
  int64_t width = walk.extent[walk.rank - 1];
  do {
    host_elements_load(view->type, view->data + walk.at * bytes,
                       walk.stride[walk.rank - 1], width, to);
    to += width;
  } while (walk_next(&walk));
}

void host_view_store(const host_view_t *view, const int64_t *first,
                     const int64_t *extent, double alpha, const double *from,
                     double beta) {
  if (cuts_vectors(view, first, extent)) {
    int64_t at[CUDNN_DIM_MAX], box[CUDNN_DIM_MAX];
    for (int64_t i = 0; i < extent[0] * extent[1]; i++) {
      int64_t elements = channel_of(view, first, extent, i, at, box);
      host_view_store(view, at, box, alpha, from, beta);
      from += elements;
    }
    return;
  }
  int64_t bytes = (int64_t)host_element_bytes(view->type);
  walk_t walk = walk_start(view, first, extent);
  int64_t width = walk.extent[walk.rank - 1];
  do {
    host_elements_store(view->type, view->data + walk.at * bytes,
                        walk.stride[walk.rank - 1], width, alpha, from, beta);
    from += width;
  } while (walk_next(&walk));
}

// Elements that are converted at once.
enum { CHUNK = 512 };

static double row_sum(const host_view_t *view, const char *from, int64_t step,
                      int64_t count) {
  bool is_double = view->type == CUDNN_DATA_DOUBLE;
  double room[CHUNK], sum = 0;
  if (step == 1 && (is_double || view->type == CUDNN_DATA_FLOAT))
    return host_rows(is_double)->sum(from, count);
  int64_t bytes = (int64_t)host_element_bytes(view->type) * step;
  for (int64_t i = 0; i < count; i += CHUNK) {
    int64_t part = count - i < CHUNK ? count - i : CHUNK;
    host_elements_load(view->type, from + i * bytes, step, part, room);
    sum += host_rows(true)->sum(room, part);
  }
  return sum;
}

double host_view_sum(const host_view_t *view, const int64_t *first,
                     const int64_t *extent) {
  double sum = 0;
  int64_t bytes = (int64_t)host_element_bytes(view->type);
  walk_t walk = walk_start(view, first, extent);
  int64_t width = walk.extent[walk.rank - 1];
  do
    sum += row_sum(view, view->data + walk.at * bytes,
                   walk.stride[walk.rank - 1], width);
  while (walk_next(&walk));
  return sum;
}
