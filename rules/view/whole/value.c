// SPDX-License-Identifier: Apache-2.0
// Computes values of vectors in pieces: each rank that of its elements, then
// the ranks combine these.
#include "rules/view/whole/value.h"

#include <string.h>

#include "rules/memory/memory.h"
#include "rules/memory/uploads.h"
#include "rules/step/together.h"
#include "rules/view/whole/contents.h"
#include "rules/view/whole/settle.h"
#include "rules/view/whole/vector_share.h"
#include "src/exchange/device.h"
#include "src/exchange/lanes.h"
#include "src/job/job.h"
#include "src/job/thread.h"
#include "src/plan/plan.h"

// One vector of the call, and the address of this rank's elements of it.
typedef struct operand {
  const void *at;
  int64_t inc;
  size_t elem_bytes;
  char *packed;
} operand_t;

static const void *element(const operand_t *o, int64_t index) {
  int64_t step = o->inc < 0 ? -o->inc : o->inc;
  return (const char *)o->at + index * step * (int64_t)o->elem_bytes;
}

// Copies the blocks, one after another, to packed memory.
static sdg_status_t pack(const operand_t *o, const sdg_vector_share_t *share,
                         cudaStream_t stream) {
  char *to = o->packed;
  for (int b = 0; b < share->blocks; b++) {
    const sdg_vector_block_t *block = &share->block[b];
    int64_t from_stride[SDG_VECTOR_DIMS], to_stride[SDG_VECTOR_DIMS], count = 1;
    for (int d = block->dims - 1; d >= 0; d--) {
      from_stride[d] = block->step[d] * (o->inc < 0 ? -o->inc : o->inc);
      to_stride[d] = count;
      count *= block->extent[d];
    }
    sdg_region_t from = {(void *)(uintptr_t)element(o, block->first),
                         from_stride};
    SDG_TRY(sdg_device_copy(&from, &(sdg_region_t){to, to_stride},
                            block->extent, block->dims, (int)o->elem_bytes,
                            stream));
    to += count * (int64_t)o->elem_bytes;
  }
  return SDG_OK;
}

// A rank without elements computes the value of one element 0, so that the
// vendor's library gets a call on every rank and may refuse it.
static sdg_status_t packed_fill(const operand_t *o,
                                const sdg_vector_share_t *share,
                                cudaStream_t stream) {
  const int64_t one = 1;
  if (share->count > 0)
    return pack(o, share, stream);
  return sdg_device_zero(&(sdg_region_t){o->packed, &one}, &one, 1,
                         (int)o->elem_bytes, stream);
}

static sdg_status_t packed_make(operand_t *x, operand_t *y,
                                const sdg_vector_share_t *share,
                                cudaStream_t stream) {
  size_t count = share->count > 0 ? (size_t)share->count : 1;
  bool twice = y->at == x->at && y->inc == x->inc; // x times x
  size_t x_bytes = sdg_plan_aligned(count * x->elem_bytes);
  size_t y_bytes = y->at && !twice ? count * y->elem_bytes : 0;
  void *scratch;
  SDG_TRY(sdg_scratch_get(SDG_SCRATCH_OWN, x_bytes + y_bytes, &scratch));
  x->packed = scratch;
  y->packed = twice ? x->packed : x->packed + x_bytes;
  SDG_TRY(packed_fill(x, share, stream));
  return y_bytes ? packed_fill(y, share, stream) : SDG_OK;
}

// The call on this rank's elements; they are not packed if they are one run.
static sdg_status_t piece_make(const sdg_vector_t *vector,
                               const sdg_vector_share_t *share,
                               cudaStream_t stream, sdg_vector_t *out) {
  operand_t x = {vector->x, vector->incx, sdg_vector_type_bytes(vector->type_x),
                 NULL};
  operand_t y = {vector->y, vector->incy, sdg_vector_type_bytes(vector->type_y),
                 NULL};
  *out = *vector;
  out->n = share->count > 0 ? share->count : 1;
  if (share->blocks == 1 && share->block[0].dims == 1) {
    out->x = element(&x, share->block[0].first);
    out->y = y.at ? element(&y, share->block[0].first) : NULL;
    return SDG_OK;
  }
  SDG_TRY(packed_make(&x, &y, share, stream));
  out->x = x.packed;
  out->y = y.at ? y.packed : NULL;
  out->incx = out->incy = 1;
  return SDG_OK;
}

// Every rank writes the whole result.
static sdg_status_t result_settle(const sdg_memory_access_t *memory,
                                  const sdg_vector_t *vector,
                                  cudaStream_t stream) {
  const sdg_access_t access = {.at = (uintptr_t)vector->result,
                               .writes = true,
                               .width =
                                   sdg_vector_type_bytes(vector->type_result),
                               .height = 1};
  return sdg_whole_settle(&access, NULL, memory->name, stream, NULL);
}

static bool share_get(const sdg_vector_t *vector, sdg_vector_share_t *out) {
  return sdg_vector_share_make(sdg_memory_table(), vector, sdg_job_mesh(),
                               sdg_job_rank(), out) &&
         !(out->axes & ~sdg_job_axes());
}

// Decides whether the value is computed in pieces (*out_done), and prepares
// this rank's call.
static sdg_status_t value_begin(const sdg_memory_access_t *memory,
                                const sdg_vector_t *vector, bool *out_done,
                                sdg_vector_share_t *out_share,
                                sdg_vector_t *out_piece) {
  cudaStream_t stream;
  bool capturing;
  if (!share_get(vector, out_share))
    return SDG_OK;
  SDG_TRY(sdg_whole_stream(memory, &stream, &capturing));
  if (capturing)
    return SDG_OK;
  SDG_TRY(result_settle(memory, vector, stream));
  sdg_contents_overwritten(memory, sdg_memory_table());
  if (!share_get(vector, out_share)) // the result lay in it
    return SDG_OK;
  if (sdg_memory_notes_inputs())
    sdg_uploads_note(memory);
  SDG_TRY(sdg_lanes_follow(sdg_channel_get(), stream));
  SDG_TRY(piece_make(vector, out_share, stream, out_piece));
  *out_done = true;
  return SDG_OK;
}

sdg_status_t sdg_whole_value(const sdg_memory_access_t *memory,
                             const sdg_vector_t *vector,
                             const sdg_vector_call_t *call, bool *out_done,
                             int *out_result) {
  sdg_vector_t piece;
  sdg_vector_share_t share;
  *out_done = false;
  // Values of another thread may have another order on other ranks.
  if (!sdg_job_joined() || sdg_job_group()->count < 2 || !sdg_whole_owned() ||
      !vector->result || !sdg_together_may(vector))
    return SDG_OK;
  (void)sdg_memory_lock();
  sdg_status_t status = value_begin(memory, vector, out_done, &share, &piece);
  sdg_memory_unlock();
  if (status != SDG_OK)
    return sdg_job_fail(status);
  if (!*out_done)
    return SDG_OK;
  // May wait for the device; other threads go on.
  *out_result = call->run(call->args, &piece);
  (void)sdg_memory_lock();
  uint64_t contents[2];
  sdg_contents_of_vectors(vector, sdg_memory_table(), contents);
  status = *out_result ? sdg_together_refused(vector)
                       : sdg_together_make(vector, share.axes, true, share.hash,
                                           contents);
  sdg_memory_unlock();
  return status == SDG_OK ? SDG_OK : sdg_job_fail(status);
}
