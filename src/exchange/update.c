// SPDX-License-Identifier: Apache-2.0
// Makes, caches and runs the plans of updates.
#include "src/exchange/update.h"

#include <stdlib.h>
#include <string.h>

#include "src/comm/comm.h"
#include "src/exchange/exec.h"
#include "src/job/job.h"
#include "src/plan/steps.h"

// Programs repeat a few updates; each is cached under the numbers that define
// it.
enum { CACHED = 64, BOX_NUMBERS = 2 * SDG_DIMS_MAX };

typedef struct request {
  const sdg_layout_t *layout;
  sdg_axes_t axes;
  int ranks, me;
  const sdg_box_t *owned, *wanted;
} request_t;

typedef struct cached {
  int64_t *key;
  size_t key_bytes;
  sdg_plan_t *plan;
  uint64_t used; // time of last use
} cached_t;
static cached_t cache[CACHED];
static uint64_t uses;

static int64_t *boxes_write(int64_t *to, const sdg_box_t *boxes, int count) {
  for (int r = 0; r < count; r++)
    for (int d = 0; d < boxes[r].dims; d++) {
      *to++ = boxes[r].dim[d].lo;
      *to++ = boxes[r].dim[d].hi;
    }
  return to;
}

// The key's memory is reused by the next key; NULL if memory runs out.
static int64_t *key_make(const request_t *r, size_t *out_bytes) {
  static int64_t *key;
  static size_t room;
  int dims = r->layout->dims;
  size_t count = 4 + 2 * (size_t)dims + 4 * (size_t)dims * (size_t)r->ranks;
  if (count > room) {
    int64_t *grown = realloc(key, count * sizeof *key);
    if (!grown)
      return NULL;
    key = grown;
    room = count;
  }
  int64_t *to = key;
  *to++ = r->layout->elem_bytes;
  *to++ = dims;
  *to++ = (int64_t)r->axes;
  *to++ = r->me;
  for (int d = 0; d < dims; d++) {
    *to++ = r->layout->extent[d];
    *to++ = r->layout->stride[d];
  }
  to = boxes_write(to, r->owned, r->ranks);
  to = boxes_write(to, r->wanted, r->ranks);
  *out_bytes = count * sizeof *key;
  return key;
}

static sdg_call_t call_of(const char *cause, const sdg_layout_t *layout,
                          void *data) {
  sdg_call_t call = {.entry_name = cause, .operands = 1};
  sdg_operand_t *operand = &call.operand[0];
  operand->data = data;
  operand->elem_bytes = layout->elem_bytes;
  operand->dims = layout->dims;
  memcpy(operand->extent, layout->extent, sizeof operand->extent);
  memcpy(operand->stride, layout->stride, sizeof operand->stride);
  return call;
}

// Rows arrive in place if they are contiguous there; otherwise they are copied
// into place after the exchange.
static sdg_status_t steps_make(sdg_plan_t *plan, const request_t *r,
                               const sdg_transfer_t *transfer, int *landed) {
  sdg_call_t call = call_of("", r->layout, NULL);
  sdg_box_t all = sdg_layout_box(r->layout);
  int slab;
  SDG_TRY(sdg_plan_operand(plan, &call, 0, &all, &slab));
  SDG_TRY(sdg_plan_messages(plan, transfer, slab, &slab, 1, landed));
  SDG_TRY(sdg_plan_exchange(plan));
  SDG_TRY(sdg_plan_join(plan, SDG_LANE_MAIN));
  for (int i = 0; i < transfer->recvs; i++)
    if (landed[i] >= 0)
      SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, landed[i], slab, NULL, NULL,
                            SDG_COPY_HALO));
  return SDG_OK;
}

// A row that wraps around the end of a dimension keeps its own index in the
// receiver's tensor, so every shift is 0.
static sdg_status_t transfer_make(const request_t *r, sdg_transfer_t *out) {
  SDG_TRY(sdg_transfer_plan(r->owned, r->wanted, r->ranks, r->me,
                            r->layout->extent, out));
  for (int i = 0; i < out->recvs; i++)
    memset(out->recv[i].shift, 0, sizeof out->recv[i].shift);
  return SDG_OK;
}

// keep: the exchange may be carried out together with a call, which uses the
// ordinary scratch.
static sdg_status_t plan_make(const request_t *r, bool keep,
                              sdg_plan_t **out_plan) {
  sdg_transfer_t transfer;
  SDG_TRY(transfer_make(r, &transfer));
  sdg_plan_t *plan;
  int *landed = calloc((size_t)transfer.recvs + 1, sizeof *landed);
  sdg_status_t status = sdg_plan_create("update", &plan);
  if (status == SDG_OK) {
    plan->axes = r->axes;
    status = landed ? steps_make(plan, r, &transfer, landed)
                    : sdg_fail(SDG_E_NO_MEMORY, "a plan");
  }
  if (status == SDG_OK && keep)
    sdg_plan_keep(plan);
  free(landed);
  sdg_transfer_fini(&transfer);
  if (status == SDG_OK) {
    sdg_traffic_count(plan, sdg_job_mesh(), sdg_job_rank());
    *out_plan = plan;
  } else {
    sdg_plan_destroy(plan);
  }
  return status;
}

static sdg_status_t plan_get(const request_t *r, sdg_plan_t **out_plan) {
  size_t bytes;
  const int64_t *key = key_make(r, &bytes);
  cached_t *oldest = &cache[0];
  if (!key)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  for (int i = 0; i < CACHED; i++) {
    cached_t *c = &cache[i];
    if (c->plan && c->key_bytes == bytes && memcmp(c->key, key, bytes) == 0) {
      c->used = ++uses;
      *out_plan = c->plan;
      return SDG_OK;
    }
    if (c->used < oldest->used)
      oldest = c;
  }
  int64_t *kept = malloc(bytes);
  if (!kept)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  memcpy(kept, key, bytes);
  sdg_plan_t *plan = NULL;
  sdg_status_t status = plan_make(r, true, &plan);
  if (status != SDG_OK) {
    free(kept);
    return status;
  }
  free(oldest->key);
  sdg_plan_destroy(oldest->plan);
  *oldest = (cached_t){kept, bytes, plan, ++uses};
  *out_plan = plan;
  return SDG_OK;
}

static sdg_status_t request_open(const request_t *r, void *at,
                                 const char *cause, sdg_call_t *call,
                                 sdg_prefetch_t *out) {
  sdg_plan_t *plan = NULL;
  sdg_comm_t *comm;
  SDG_TRY(plan_get(r, &plan));
  // All ranks create the communicator here, because some may have nothing to
  // exchange.
  SDG_TRY(sdg_comm_get(r->axes, &comm));
  *call = call_of(cause, r->layout, at);
  *out = (sdg_prefetch_t){plan, call};
  return SDG_OK;
}

static sdg_status_t request_run(const request_t *r, void *at, const char *cause,
                                cudaStream_t stream, sdg_report_row_t *row) {
  sdg_call_t call;
  sdg_prefetch_t whole;
  sdg_outcome_t outcome;
  SDG_TRY(request_open(r, at, cause, &call, &whole));
  sdg_report_moved(row, whole.plan);
  return sdg_exec_run(whole.plan, &call, stream, row, &outcome);
}

static request_t request_of(const sdg_buffer_t *buffer, const sdg_box_t *lack) {
  return (request_t){&buffer->layout, buffer->axes,  buffer->ranks,
                     buffer->me,      buffer->owned, lack};
}

sdg_status_t sdg_update_run(const sdg_buffer_t *buffer, const sdg_box_t *lack,
                            const char *cause, cudaStream_t stream,
                            sdg_report_row_t *row) {
  request_t request = request_of(buffer, lack);
  return request_run(&request, (void *)buffer->at, cause, stream, row);
}

sdg_status_t sdg_update_early(const sdg_buffer_t *buffer, const sdg_box_t *lack,
                              const char *cause, sdg_call_t *call,
                              sdg_prefetch_t *out) {
  request_t request = request_of(buffer, lack);
  return request_open(&request, (void *)buffer->at, cause, call, out);
}

// Makes `ranks` boxes each: what the first rank has and what the others need.
// Owned by the caller; NULL if memory runs out.
static sdg_box_t *boxes_make(const sdg_layout_t *layout, int ranks) {
  size_t count = (size_t)ranks;
  sdg_box_t *boxes = calloc(2 * count, sizeof *boxes);
  for (size_t r = 0; boxes && r < 2 * count; r++)
    boxes[r].dims = layout->dims;
  for (size_t r = 0; boxes && r < count; r++)
    boxes[r == 0 ? 0 : count + r] = sdg_layout_box(layout);
  return boxes;
}

sdg_status_t sdg_update_from_first(void *at, size_t width, size_t pitch,
                                   size_t height, const char *cause,
                                   cudaStream_t stream, sdg_report_row_t *row) {
  const sdg_group_t *group = sdg_job_group();
  sdg_layout_t layout = {
      .elem_bytes = 1,
      .dims = 2,
      .extent = {(int64_t)height, (int64_t)width},
      .stride = {(int64_t)pitch, 1},
  };
  sdg_box_t *boxes = boxes_make(&layout, group->count);
  if (!boxes)
    return sdg_fail(SDG_E_NO_MEMORY, "boxes of %d ranks", group->count);
  request_t request = {&layout,   sdg_job_axes(), group->count,
                       group->me, boxes,          boxes + group->count};
  sdg_status_t status = request_run(&request, at, cause, stream, row);
  free(boxes);
  return status;
}

// Unlike the cached updates, any thread may call this.
sdg_status_t sdg_update_alike(void *at, const sdg_layout_t *layout,
                              sdg_axes_t axes, const char *cause,
                              cudaStream_t stream, sdg_report_row_t *row) {
  int rank[SDG_RANKS_MAX], me = 0;
  int ranks = sdg_mesh_group(sdg_job_mesh(), sdg_job_rank(), axes, rank);
  while (rank[me] != sdg_job_rank())
    me++;
  sdg_box_t *boxes = boxes_make(layout, ranks);
  if (!boxes)
    return sdg_fail(SDG_E_NO_MEMORY, "boxes of %d ranks", ranks);
  request_t request = {layout, axes, ranks, me, boxes, boxes + ranks};
  sdg_call_t call = call_of(cause, layout, at);
  sdg_plan_t *plan = NULL;
  sdg_outcome_t outcome;
  sdg_comm_t *comm;
  sdg_status_t status = plan_make(&request, false, &plan);
  if (status == SDG_OK)
    status = sdg_comm_get(axes, &comm);
  if (status == SDG_OK)
    status = sdg_exec_run(plan, &call, stream, row, &outcome);
  if (status == SDG_OK)
    sdg_report_moved(row, plan);
  sdg_plan_destroy(plan);
  free(boxes);
  return status;
}
