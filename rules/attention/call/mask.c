// SPDX-License-Identifier: Apache-2.0
// Computes masks on the device from the ends of windows.
//
// For key j and a window [lo, hi), min(j - lo + 1/2, hi - 1/2 - j) is at least
// 1/2 if the key is seen, and at most -1/2 if it is not. Two products with the
// largest finite number make it infinite, with its sign. So only the ends of
// the windows are copied from the host, not a mask of queries x keys.
#include "rules/attention/call/mask.h"

#include <cuda_runtime_api.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "rules/kit/merge.h"
#include "rules/vendor/vendor.h"
#include "src/base/vendor.h"

// Vectors with one number per query, one after the other in memory. The indices
// of the keys follow them.
enum { LOW, HIGH, LEAST, MOST, SHARE, VECTORS };

// Host memory that the plan owns and copies from.
typedef struct upload {
  size_t bytes;
  double data[];
} upload_t;

static cudnnStatus_t upload_run(const sdg_subcall_run_t *run) {
  const upload_t *upload = run->op;
  cudaStream_t stream;
  cudnnStatus_t got = sdg_cudnn_get()->cudnnGetStream(run->handle, &stream);
  if (got != CUDNN_STATUS_SUCCESS)
    return got;
  return sdg_vendor_get()->cudaMemcpyAsync(
             run->data[0], upload->data, upload->bytes, cudaMemcpyHostToDevice,
             stream) == cudaSuccess
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_EXECUTION_FAILED;
}

static void number_put(void *data, sdg_type_t type, int64_t at, double value) {
  if (type == CUDNN_DATA_DOUBLE)
    ((double *)data)[at] = value;
  else
    ((float *)data)[at] = (float)value;
}

static bool nothing(sdg_range_t range) {
  return range.lo >= range.hi;
}

static sdg_range_t common(sdg_range_t a, sdg_range_t b) {
  sdg_range_t both = {a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
  return both;
}

// The keys of this rank that query t sees, counted from this rank's first key;
// all of this rank's keys if the query sees none of them.
static sdg_range_t window_of(const sdg_attention_sight_t *sight, int64_t t) {
  sdg_range_t seen = common(sight->row[t], sight->keys);
  if (nothing(seen))
    seen = sight->keys;
  return (sdg_range_t){seen.lo - sight->keys.lo, seen.hi - sight->keys.lo};
}

static void numbers_fill(const sdg_attention_sight_t *sight, sdg_type_t type,
                         void *data) {
  int64_t rows = sight->rows, keys = sight->keys.hi - sight->keys.lo;
  for (int64_t t = 0; t < rows; t++) {
    sdg_range_t window = window_of(sight, t);
    bool lost = nothing(sight->row[t]);
    bool away = nothing(common(sight->row[t], sight->keys));
    number_put(data, type, LOW * rows + t, (double)window.lo - 0.5);
    number_put(data, type, HIGH * rows + t, (double)window.hi - 0.5);
    number_put(data, type, LEAST * rows + t, away ? 0 : -(double)INFINITY);
    number_put(data, type, MOST * rows + t,
               away && !lost ? -(double)INFINITY : 0);
    number_put(data, type, SHARE * rows + t, lost ? 0 : 1);
  }
  for (int64_t j = 0; j < keys; j++)
    number_put(data, type, VECTORS * rows + j, (double)j);
}

static sdg_status_t upload_add(sdg_plan_t *plan,
                               const sdg_attention_sight_t *sight,
                               sdg_type_t type, int slab) {
  size_t bytes =
      (size_t)(sdg_box_count(&plan->slab[slab].box) * sdg_merge_bytes(type));
  upload_t *upload = malloc(sizeof *upload + bytes);
  if (!upload)
    return sdg_fail(SDG_E_NO_MEMORY, "windows of %lld queries",
                    (long long)sight->rows);
  upload->bytes = bytes;
  numbers_fill(sight, type, upload->data);
  sdg_subcall_t sub = {.fn = upload_run,
                       .tensors = 1,
                       .tensor = {sdg_subcall_slab(plan, slab, type)},
                       .op = upload,
                       .op_destroy = free};
  return sdg_subcall_add(plan, &sub);
}

// Takes rows x keys numbers of the slab, from number `first` on, as a tensor.
static sdg_status_t vector_take(sdg_plan_t *plan, int slab, sdg_type_t type,
                                int64_t first, int64_t rows, int64_t keys,
                                sdg_subcall_tensor_t *out) {
  sdg_box_t box = {.dims = 4, .dim = {{0, rows}, {0, keys}, {0, 1}, {0, 1}}};
  int vector;
  SDG_TRY(sdg_plan_within(plan, slab, (size_t)(first * sdg_merge_bytes(type)),
                          &box, slab, &vector));
  *out = sdg_subcall_slab(plan, vector, type);
  return SDG_OK;
}

static sdg_status_t room_take(sdg_plan_t *plan, int64_t rows, int64_t keys,
                              sdg_type_t type, sdg_subcall_tensor_t *out) {
  static const int64_t row_major[SDG_DIMS_MAX] = {4, 3, 2, 1};
  sdg_box_t box = {.dims = 4, .dim = {{0, rows}, {0, keys}, {0, 1}, {0, 1}}};
  int slab;
  SDG_TRY(sdg_plan_packed(plan, &box, row_major, sdg_merge_bytes(type), &slab));
  *out = sdg_subcall_slab(plan, slab, type);
  return SDG_OK;
}

static sdg_status_t seen_make(sdg_plan_t *plan, int numbers, int64_t rows,
                              int64_t keys, sdg_type_t type,
                              const sdg_subcall_tensor_t *seen) {
  double max = type == CUDNN_DATA_DOUBLE ? DBL_MAX : (double)FLT_MAX;
  sdg_subcall_tensor_t low, high, index, above;
  SDG_TRY(vector_take(plan, numbers, type, LOW * rows, rows, 1, &low));
  SDG_TRY(vector_take(plan, numbers, type, HIGH * rows, rows, 1, &high));
  SDG_TRY(vector_take(plan, numbers, type, VECTORS * rows, 1, keys, &index));
  SDG_TRY(room_take(plan, rows, keys, type, &above));
  SDG_TRY(sdg_subcall_set(plan, 0, seen));
  SDG_TRY(
      sdg_subcall_op(plan, CUDNN_OP_TENSOR_ADD, 1, seen, 1, &index, 0, seen));
  SDG_TRY(
      sdg_subcall_op(plan, CUDNN_OP_TENSOR_ADD, -1, seen, 1, &high, 0, &above));
  SDG_TRY(
      sdg_subcall_op(plan, CUDNN_OP_TENSOR_ADD, 1, seen, -1, &low, 0, seen));
  SDG_TRY(
      sdg_subcall_op(plan, CUDNN_OP_TENSOR_MIN, 1, seen, 1, &above, 0, seen));
  SDG_TRY(sdg_subcall_scale(plan, max, seen));
  return sdg_subcall_scale(plan, max, seen);
}

sdg_status_t sdg_attention_mask_add(sdg_plan_t *plan,
                                    const sdg_attention_sight_t *sight,
                                    sdg_type_t type,
                                    sdg_attention_mask_t *out) {
  int64_t rows = sight->rows, keys = sight->keys.hi - sight->keys.lo;
  sdg_subcall_tensor_t numbers;
  *out = (sdg_attention_mask_t){.some = false};
  for (int64_t t = 0; t < rows; t++) {
    sdg_range_t seen = common(sight->row[t], sight->keys);
    out->some |=
        keys == 0 || seen.lo != sight->keys.lo || seen.hi != sight->keys.hi;
    out->away |= nothing(seen);
    out->lost |= nothing(sight->row[t]);
  }
  if (!out->some)
    return SDG_OK;
  SDG_TRY(room_take(plan, VECTORS * rows + keys, 1, type, &numbers));
  SDG_TRY(upload_add(plan, sight, type, numbers.slab));
  SDG_TRY(
      vector_take(plan, numbers.slab, type, MOST * rows, rows, 1, &out->max));
  SDG_TRY(vector_take(plan, numbers.slab, type, LEAST * rows, rows, 1,
                      &out->least));
  SDG_TRY(vector_take(plan, numbers.slab, type, SHARE * rows, rows, 1,
                      &out->share));
  if (keys == 0)
    return SDG_OK;
  SDG_TRY(room_take(plan, rows, keys, type, &out->seen));
  return seen_make(plan, numbers.slab, rows, keys, type, &out->seen);
}
