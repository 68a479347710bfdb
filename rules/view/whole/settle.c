// SPDX-License-Identifier: Apache-2.0
// Updates the table of distributed tensors in the program's memory, call by
// call.
#include "rules/view/whole/settle.h"

#include <cudnn.h>
#include <stdatomic.h>

#include "rules/memory/uploads.h"
#include "rules/observe/run_record.h"
#include "rules/step/divergence.h"
#include "rules/vendor/vendor.h"
#include "rules/view/whole/contents.h"
#include "rules/view/whole/elements.h"
#include "src/base/hash.h"
#include "src/base/options.h"
#include "src/base/vendor.h"
#include "src/exchange/device.h"
#include "src/exchange/lanes.h"
#include "src/exchange/update.h"
#include "src/job/job.h"
#include "src/job/thread.h"

// The thread that makes tagged calls.
static _Atomic(const void *) owner;
static _Thread_local char thread_mark;

sdg_status_t sdg_whole_own(const char *entry_name) {
  SDG_TRY(sdg_thread_claim_only(entry_name));
  atomic_store(&owner, &thread_mark);
  return SDG_OK;
}

bool sdg_whole_owned(void) {
  return atomic_load(&owner) == &thread_mark;
}

static sdg_run_mark_t mark_if(bool records) {
  return records && sdg_options_get()->observing ? sdg_run_record_mark()
                                                 : (sdg_run_mark_t){.at_ns = 0};
}

static void update_record(const char *cause, const sdg_run_mark_t *since) {
  if (sdg_options_get()->observing)
    sdg_run_record_update(cause, since);
}

sdg_status_t sdg_whole_update(sdg_buffer_t *buffer, const sdg_box_t *need,
                              const char *cause, cudaStream_t stream,
                              sdg_report_row_t *row) {
  if (!sdg_buffer_lack(buffer, need, buffer->lack))
    return SDG_OK;
  SDG_TRY(sdg_divergence_update(cause, buffer->number));
  const bool records = !row;
  const sdg_run_mark_t mark = mark_if(records);
  if (!row) {
    row = sdg_report_find(cause, "-", "update");
    sdg_report_update(row);
  }
  SDG_TRY(sdg_update_run(buffer, buffer->lack, cause, stream, row));
  if (records)
    update_record(cause, &mark);
  sdg_buffer_grow(buffer, buffer->lack);
  return SDG_OK;
}

static bool span_of(const sdg_access_t *access, sdg_span_t *out_span) {
  if (!access->at)
    return false;
  if (access->width == 0)
    return sdg_buffers_allocation(sdg_memory_table(), access->at, out_span);
  size_t rows = access->height ? access->height - 1 : 0;
  *out_span = (sdg_span_t){access->at, rows * access->pitch + access->width};
  return true;
}

sdg_status_t sdg_whole_settle(const sdg_access_t *access,
                              const sdg_buffer_t *except, const char *cause,
                              cudaStream_t stream, sdg_report_row_t *row) {
  sdg_span_t span;
  if (!span_of(access, &span))
    return SDG_OK;
  bool overwrites = !access->reads && access->width > 0 &&
                    (access->height <= 1 || access->pitch == access->width);
  for (sdg_buffer_t *buffer;
       (buffer = sdg_buffers_overlap(sdg_memory_table(), span, except));) {
    if (!overwrites || !sdg_span_contain(span, sdg_buffer_span(buffer)))
      SDG_TRY(sdg_whole_update(buffer, NULL, cause, stream, row));
    sdg_buffers_drop(sdg_memory_table(), buffer);
  }
  return SDG_OK;
}

// ---- calls that no op shares ---------------------------------------------

static sdg_status_t stream_get(const sdg_memory_access_t *memory,
                               cudaStream_t *out_stream) {
  void *given = (void *)(uintptr_t)memory->stream;
  *out_stream = given;
  int got = 0;
  if (memory->stream_kind == SDG_STREAM_CUDNN) {
    const sdg_cudnn_t *cudnn = sdg_cudnn_get();
    if (!cudnn)
      return SDG_E_LIBRARY_MISSING;
    got = given ? (int)cudnn->cudnnGetStream(given, out_stream) : 0;
  } else if (memory->stream_kind == SDG_STREAM_CUBLAS) {
    const sdg_cublas_t *cublas = sdg_cublas_get();
    if (!cublas)
      return SDG_E_LIBRARY_MISSING;
    got = given ? (int)cublas->cublasGetStream_v2(given, out_stream) : 0;
  }
  return got ? sdg_fail(SDG_E_VENDOR_CALL, "the stream of %s: status %d",
                        memory->name, got)
             : SDG_OK;
}

static bool is_capturing(cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  if (cuda->cudaStreamIsCapturing(stream, &capturing) == cudaSuccess)
    return capturing != cudaStreamCaptureStatusNone;
  (void)cuda->cudaGetLastError();
  return true;
}

sdg_status_t sdg_whole_stream(const sdg_memory_access_t *memory,
                              cudaStream_t *out_stream, bool *out_capturing) {
  SDG_TRY(stream_get(memory, out_stream));
  *out_capturing = is_capturing(*out_stream);
  return SDG_OK;
}

static sdg_status_t accesses_settle(const sdg_memory_access_t *memory,
                                    cudaStream_t stream,
                                    sdg_report_row_t *row) {
  // Two passes, because a call may read what it overwrites.
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < memory->accesses; i++)
      if (memory->access[i].reads == (pass == 0))
        SDG_TRY(sdg_whole_settle(&memory->access[i], NULL, memory->name, stream,
                                 row));
  while (memory->everything && sdg_memory_table()->buffers > 0) {
    SDG_TRY(sdg_whole_update(sdg_memory_table()->buffer[0], NULL, memory->name,
                             stream, row));
    sdg_buffers_drop(sdg_memory_table(), sdg_memory_table()->buffer[0]);
  }
  return SDG_OK;
}

// A hash of what must be alike on all ranks in an elementwise call on pieces.
// Scalars in device memory are not read.
static sdg_status_t elements_hash(const sdg_memory_access_t *memory,
                                  uint64_t *out_hash) {
  const sdg_cublas_t *cublas = sdg_cublas_get();
  cublasPointerMode_t mode;
  if (memory->stream_kind != SDG_STREAM_CUBLAS) {
    *out_hash = sdg_hash_word(
        memory->sizes, sdg_contents_pieces_of(memory, sdg_memory_table()));
    return SDG_OK;
  }
  if (!cublas)
    return SDG_E_LIBRARY_MISSING;
  cublasStatus_t got = cublas->cublasGetPointerMode_v2(
      (cublasHandle_t)(uintptr_t)memory->stream, &mode);
  if (got != CUBLAS_STATUS_SUCCESS)
    return sdg_fail(SDG_E_VENDOR_CALL, "cublasGetPointerMode: %d", (int)got);
  uint64_t hash = sdg_hash_word(
      memory->sizes, sdg_contents_pieces_of(memory, sdg_memory_table()));
  hash = sdg_hash_word(hash, (uint64_t)mode);
  for (int i = 0; i < 2 && mode == CUBLAS_POINTER_MODE_HOST; i++)
    hash = sdg_hash_bytes(hash, memory->scalar[i], memory->scalar_bytes[i]);
  *out_hash = hash;
  return SDG_OK;
}

// Another thread's calls may have another order on other ranks.
static sdg_status_t elements_compare(const sdg_memory_access_t *memory) {
  uint64_t hash = 0;
  if (!sdg_whole_owned())
    return SDG_OK;
  SDG_TRY(elements_hash(memory, &hash));
  SDG_TRY(sdg_divergence_update(memory->name, hash));
  return sdg_contents_compare_of(memory, sdg_memory_table());
}

// An elementwise call on pieces: the written tensors stay in pieces. Its
// scalars may be in device memory.
static sdg_status_t elements_run(const sdg_memory_access_t *memory,
                                 cudaStream_t stream, sdg_report_row_t *row) {
  SDG_TRY(elements_compare(memory));
  sdg_contents_overwritten(memory, sdg_memory_table());
  for (int i = 0; i < memory->accesses; i++)
    if (memory->access[i].width == 0)
      SDG_TRY(sdg_whole_settle(&memory->access[i], NULL, memory->name, stream,
                               row));
  if (!sdg_elements_stay(sdg_memory_table(),
                         memory)) // these lay in one allocation
    return accesses_settle(memory, stream, row);
  if (sdg_whole_owned())
    sdg_contents_made_of(memory, sdg_memory_table());
  return sdg_elements_note(sdg_memory_table(), memory, sdg_job_mesh(),
                           sdg_job_rank());
}

// Returns the access of a small copy from device memory to the host; NULL if
// the call is not such a copy.
static const sdg_access_t *host_read(const sdg_memory_access_t *memory) {
  const sdg_access_t *from = NULL;
  sdg_span_t span;
  for (int i = 0; memory->copies && i < memory->accesses; i++) {
    const sdg_access_t *access = &memory->access[i];
    bool device = sdg_buffers_allocation(sdg_memory_table(), access->at, &span);
    if (access->writes && device)
      return NULL;
    if (access->reads && device)
      from = access;
  }
  return from && from->width > 0 && from->height > 0 &&
                 from->width <= SDG_HOST_READ_BYTES / from->height
             ? from
             : NULL;
}

static void uploads_note(const sdg_memory_access_t *memory) {
  if (sdg_memory_notes_inputs())
    sdg_uploads_note(memory);
}

// The tensor in pieces to which the byte at `at` belongs, if each of its
// elements is computed by one rank only; NULL if there is none.
static const sdg_buffer_t *pieces_at(uintptr_t at) {
  const sdg_buffer_t *buffer =
      sdg_buffers_overlap(sdg_memory_table(), (sdg_span_t){at, 1}, NULL);
  return buffer && buffer->axes == sdg_job_axes() &&
                 sdg_layout_dense(&buffer->layout)
             ? buffer
             : NULL;
}

// Whether every byte that the host reads is brought from the rank that computed
// it. Then all ranks have the same bits. Values that each rank computes may
// differ.
static bool from_pieces(const sdg_access_t *read) {
  sdg_span_t span;
  if (!span_of(read, &span))
    return false;
  for (uintptr_t at = span.at; at < span.at + span.bytes;) {
    const sdg_buffer_t *buffer = pieces_at(at);
    if (!buffer)
      return false;
    sdg_span_t tensor = sdg_buffer_span(buffer);
    at = tensor.at + tensor.bytes;
  }
  return true;
}

// What the host reads is the first rank's on every rank.
static sdg_status_t first_take(const char *name, const sdg_access_t *read,
                               cudaStream_t stream) {
  const bool several = sdg_job_group()->count > 1;
  const sdg_run_mark_t mark = mark_if(several);
  sdg_report_row_t *row = several ? sdg_report_find(name, "-", "update") : NULL;
  sdg_report_update(row);
  SDG_TRY(sdg_update_from_first((void *)read->at, read->width, read->pitch,
                                read->height, name, stream, row));
  if (several)
    update_record(name, &mark);
  return SDG_OK;
}

static sdg_status_t touch_run(const sdg_memory_access_t *memory) {
  cudaStream_t stream;
  bool capturing;
  SDG_TRY(sdg_whole_stream(memory, &stream, &capturing));
  sdg_report_row_t *row = NULL;
  const sdg_access_t *read = host_read(memory);
  const bool alike = read && from_pieces(read);
  bool stays = !capturing && sdg_memory_table()->buffers > 0 &&
               sdg_elements_stay(sdg_memory_table(), memory);
  if (!stays)
    sdg_contents_overwritten(memory, sdg_memory_table());
  if (capturing)
    return SDG_OK;
  if (stays)
    SDG_TRY(elements_run(memory, stream, row));
  else if (sdg_memory_table()->buffers > 0)
    SDG_TRY(accesses_settle(memory, stream, row));
  // Copies of another thread may have another order on other ranks.
  if (read && sdg_whole_owned()) {
    SDG_TRY(sdg_divergence_update(memory->name, read->width * read->height));
    SDG_TRY(sdg_contents_compare_of(memory, sdg_memory_table()));
    if (!alike)
      return first_take(memory->name, read, stream);
  }
  return sdg_lanes_follow(0, stream); // the channel of tagged calls
}

// Whether the call uses memory of which this rank has its rows only.
static bool uses_pieces(const sdg_memory_access_t *memory) {
  const sdg_buffers_t *table = sdg_memory_table();
  bool in_pieces = memory->everything && table->buffers > 0;
  for (int i = 0; i < memory->accesses && !in_pieces; i++) {
    sdg_span_t span;
    in_pieces = span_of(&memory->access[i], &span) &&
                sdg_buffers_overlap(table, span, NULL) != NULL;
  }
  return in_pieces;
}

// A thread that a shared function waits for, or another one. Rows of other
// ranks cannot be brought now; those that the call has brought may be on their
// way.
static sdg_status_t beside_function(const sdg_memory_access_t *memory,
                                    const char *function) {
  cudaStream_t stream;
  bool capturing;
  if (uses_pieces(memory))
    return sdg_fail(SDG_E_FUNCTION_THREAD,
                    "%s of another thread, while the ranks share a call of %s",
                    memory->name, function);
  SDG_TRY(sdg_whole_stream(memory, &stream, &capturing));
  sdg_contents_overwritten(memory, sdg_memory_table());
  return capturing ? SDG_OK : sdg_lanes_follow(0, stream);
}

sdg_status_t sdg_whole_access(const sdg_memory_access_t *memory) {
  uploads_note(memory);
  // Before the first tagged call, and on one rank, nothing is distributed.
  if (!sdg_job_joined() || sdg_job_group()->count < 2 ||
      (memory->accesses == 0 && !memory->everything))
    return SDG_OK;
  (void)sdg_memory_lock();
  const char *function = sdg_memory_lent();
  if (function) {
    sdg_status_t beside = beside_function(memory, function);
    sdg_memory_unlock();
    return beside == SDG_OK ? SDG_OK : sdg_job_fail(beside);
  }
  // A second thread may copy while the first one waits for it. Then its
  // exchanges have the same order on all ranks.
  int channel = sdg_channel_own;
  sdg_channel_own = 0;
  if (!sdg_whole_owned() && sdg_memory_table()->buffers > 0)
    sdg_divergence_say_second();
  sdg_status_t status = touch_run(memory);
  sdg_channel_own = channel;
  sdg_memory_unlock();
  return status == SDG_OK ? SDG_OK : sdg_job_fail(status);
}
