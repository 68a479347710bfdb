// SPDX-License-Identifier: Apache-2.0
// Copies outputs to the host after each call and appends them to a file.
#include "rules/observe/values.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rules/file/setup.h"
#include "rules/vendor/product.h"
#include "rules/vendor/vendor.h"
#include "src/base/options.h"
#include "src/base/vendor.h"
#include "src/exchange/device.h"
#include "src/job/job.h"
#include "src/job/thread.h"
#include "src/observe/event_file.h"

// The thread whose calls are recorded, and the call whose outputs are next.
static _Atomic(const void *) owner;
static _Thread_local char thread_mark;
static struct {
  bool stopped;
  int64_t ordinal, number;
  sdg_call_t *call; // a copy, owned; NULL: no call
  sdg_box_t box[SDG_OPERANDS_MAX];
} values;

static sdg_event_file_t outputs = {
    SDG_EVENT_FILE("outputs of calls", SDG_EVENT_CREATE, "values-%r")};

bool sdg_values_wanted(void) {
  return sdg_options_get()->values[0] != '\0';
}

static bool is_ours(void) {
  const void *none = NULL;
  return (atomic_compare_exchange_strong(&owner, &none, &thread_mark) ||
          none == &thread_mark) &&
         !values.stopped;
}

void sdg_values_begin(const sdg_call_t *call) {
  if (!call->is_query && is_ours())
    values.ordinal++;
}

bool sdg_values_wanted_of(const sdg_call_t *call) {
  // A halo is no result, and as large as each rank's piece wants it.
  return !sdg_family_is(call->family, SDG_FAMILY_MOVES) &&
         call->family != SDG_FAMILY_HALO && sdg_values_wanted();
}

// Whether a product's sums are left to the program: its result consists of
// addends.
static bool has_terms(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  int index = sdg_call_operand(call, SDG_ROLE_PRODUCT);
  const sdg_placement_t *product = &tagging->placement[index < 0 ? 0 : index];
  return sdg_family_is_product(call->family) &&
         product->split[SDG_K].axes > 0 && !tagging->section->sum_axes;
}

sdg_box_t *sdg_values_boxes(const sdg_call_t *call,
                            const sdg_tagging_t *tagging) {
  if (!sdg_values_wanted_of(call) || has_terms(call, tagging))
    return NULL;
  sdg_box_t *boxes = calloc(SDG_OPERANDS_MAX, sizeof *boxes);
  for (int i = 0; boxes && i < call->operands; i++)
    if (tagging->placement[i].dims > 0)
      boxes[i] = sdg_tagging_own(tagging, &tagging->placement[i]);
  return boxes;
}

// A single product becomes a batch of one, whichever entry makes it.
static void batch_add(sdg_operand_t *operand, sdg_box_t *box) {
  if (operand->dims != 2 || box->dims != 2)
    return;
  operand->dims = box->dims = 3;
  for (int d = 2; d > 0; d--) {
    operand->extent[d] = operand->extent[d - 1];
    operand->stride[d] = operand->stride[d - 1];
    box->dim[d] = box->dim[d - 1];
  }
  operand->extent[0] = 1;
  operand->stride[0] = 0;
  box->dim[0] = (sdg_range_t){0, 1};
}

void sdg_values_expect(const sdg_call_t *call, const sdg_box_t *boxes) {
  if (call->is_query || call->family == SDG_FAMILY_FUNCTION || !is_ours() ||
      values.ordinal > sdg_options_get()->values_calls)
    return;
  sdg_values_forget();
  values.call = malloc(sizeof *values.call);
  if (!values.call)
    return;
  *values.call = *call;
  values.number =
      sdg_job_joined()
          ? (int64_t)sdg_control_count_of(sdg_job_control(), sdg_channel_get(),
                                          sdg_job_rank(), NULL, 0)
          : 0;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    values.box[i].dims = boxes ? boxes[i].dims : operand->dims;
    for (int d = 0; d < values.box[i].dims; d++)
      values.box[i].dim[d] =
          boxes ? boxes[i].dim[d] : (sdg_range_t){0, operand->extent[d]};
    if (sdg_family_is(call->family, SDG_FAMILY_STATED))
      batch_add(&values.call->operand[i], &values.box[i]);
  }
}

bool sdg_values_expected(void) {
  return atomic_load(&owner) == &thread_mark && values.call;
}

void sdg_values_forget(void) {
  free(values.call);
  values.call = NULL;
}

static void bytes_write(const void *data, size_t bytes) {
  sdg_event_append(&outputs, sdg_options_get()->values, data, bytes);
}

// Copies `bytes` bytes at `data` to the host after all work of `stream`.
static cudaEvent_t done; // the last copy

static sdg_status_t fetch(const sdg_vendor_t *cuda, cudaStream_t stream,
                          const void *data, size_t bytes, void *out) {
  const struct timespec pause = {.tv_nsec = 100000};
  if (!done)
    SDG_TRY(sdg_vendor_check(
        cuda->cudaEventCreateWithFlags(&done, cudaEventDisableTiming),
        "creation of an event"));
  SDG_TRY(sdg_vendor_check(
      cuda->cudaMemcpyAsync(out, data, bytes, cudaMemcpyDeviceToHost, stream),
      "copy of an output to the host"));
  SDG_TRY(
      sdg_vendor_check(cuda->cudaEventRecord(done, stream), "event record"));
  cudaError_t state;
  while ((state = cuda->cudaEventQuery(done)) == cudaErrorNotReady)
    nanosleep(&pause, NULL);
  (void)cuda->cudaGetLastError(); // the program must not see this "not ready"
  return sdg_vendor_check(state, "copy of an output to the host");
}

// Packs elements in the order of their indices, whatever the strides. Returns
// the end.
static char *pack(const sdg_operand_t *operand, const sdg_box_t *box, int dim,
                  const char *from, char *to) {
  size_t bytes = (size_t)operand->elem_bytes;
  if (dim == operand->dims) {
    memcpy(to, from, bytes);
    return to + bytes;
  }
  for (int64_t i = 0; i < box->dim[dim].hi - box->dim[dim].lo; i++)
    to = pack(operand, box, dim + 1,
              from + i * operand->stride[dim] * operand->elem_bytes, to);
  return to;
}

// Where the box begins in memory, in elements. The memory holds the box only,
// or the whole tensor. Sums of a product that stay in pieces are alone in the
// shard view even if the call states the whole.
static int64_t begin_of(const sdg_operand_t *operand, const sdg_box_t *box) {
  int64_t begin = 0;
  bool alone = true;
  if (!sdg_setup_is_whole())
    return 0;
  for (int d = 0; d < operand->dims; d++) {
    alone &= operand->extent[d] == box->dim[d].hi - box->dim[d].lo;
    begin += box->dim[d].lo * operand->stride[d];
  }
  return alone ? 0 : begin;
}

static sdg_status_t output_keep(const sdg_vendor_t *cuda, cudaStream_t stream,
                                int index) {
  const sdg_call_t *call = values.call;
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_box_t *box = &values.box[index];
  sdg_values_head_t head = {.magic = SDG_VALUES_MAGIC,
                            .ordinal = values.ordinal,
                            .call = values.number,
                            .operand = index,
                            .role = (int32_t)operand->role,
                            .type = operand->type,
                            .dims = operand->dims,
                            .elem_bytes = operand->elem_bytes};
  size_t elements = 1;
  int64_t last = 0;
  for (int d = 0; d < operand->dims; d++) {
    int64_t extent = box->dim[d].hi - box->dim[d].lo;
    head.lo[d] = box->dim[d].lo;
    head.hi[d] = box->dim[d].hi;
    if (extent < 1)
      return SDG_OK; // this rank has no part of it
    elements *= (size_t)extent;
    last += (extent - 1) * operand->stride[d];
  }
  const char *data = (const char *)operand->data +
                     begin_of(operand, box) * operand->elem_bytes;
  size_t span = (size_t)(last + 1) * (size_t)operand->elem_bytes;
  head.bytes = elements * (size_t)operand->elem_bytes;
  snprintf(head.entry, sizeof head.entry, "%s", call->entry_name);
  char *image = malloc(span), *dense = malloc(head.bytes);
  sdg_status_t status =
      image && dense
          ? fetch(cuda, stream, data, span, image)
          : sdg_fail(SDG_E_NO_MEMORY, "an output of %zu bytes", span);
  if (status == SDG_OK) {
    (void)pack(operand, box, 0, image, dense);
    bytes_write(&head, sizeof head);
    bytes_write(dense, head.bytes);
  }
  free(image);
  free(dense);
  return status;
}

void sdg_values_take(void) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  cudaStream_t stream;
  if (!values.stopped && cuda && sdg_stream_of(values.call, &stream) == SDG_OK)
    for (int i = 0; i < values.call->operands; i++) {
      const sdg_operand_t *operand = &values.call->operand[i];
      if (operand->is_output && operand->data && operand->elem_bytes > 0 &&
          values.box[i].dims == operand->dims &&
          output_keep(cuda, stream, i) != SDG_OK)
        values.stopped = true;
    }
  sdg_values_forget();
}

void sdg_values_drop(void) {
  values.stopped = true;
  values.call = NULL; // belongs to the parent
  sdg_event_drop(&outputs);
}

void sdg_values_reset(void) {
  done = NULL;
}
