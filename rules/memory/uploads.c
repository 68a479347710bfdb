// SPDX-License-Identifier: Apache-2.0
// Sets of bytes, and a list of copies from the host with a digest of each.
#include "rules/memory/uploads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rules/memory/memory.h"
#include "src/base/hash.h"
#include "src/base/vendor.h"
#include "src/geometry/spans.h"

// A tensor with gaps and at most so many runs is tracked run by run.
enum { RUNS_MAX = 64 };

typedef struct upload {
  sdg_span_t span;
  uint64_t digest;
} upload_t;

static struct {
  pthread_mutex_t lock;
  sdg_spans_t known;     // made by tagged calls, or compared
  sdg_spans_t untouched; // allocated, and not written since
  upload_t *upload;      // into known memory, in the order of the copies
  size_t count, room;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct runtime {
  __typeof__(&cudaPointerGetAttributes) cudaPointerGetAttributes;
} runtime_t;

static const runtime_t *runtime_get(void) {
  static const sdg_library_row_t row = {
      SDG_LIBRARY_CUDART, "cudaPointerGetAttributes",
      offsetof(runtime_t, cudaPointerGetAttributes)};
  static runtime_t runtime;
  if (!runtime.cudaPointerGetAttributes &&
      sdg_library_fill(&row, 1, &runtime) != SDG_OK)
    return NULL;
  return &runtime;
}

bool sdg_uploads_managed(const void *at) {
  struct cudaPointerAttributes attributes;
  const runtime_t *runtime = runtime_get();
  return at && runtime &&
         runtime->cudaPointerGetAttributes(&attributes, at) == cudaSuccess &&
         attributes.type == cudaMemoryTypeManaged;
}

static sdg_span_t span_of(const sdg_access_t *access) {
  size_t rows = access->height ? access->height - 1 : 0;
  return (sdg_span_t){access->at, rows * access->pitch + access->width};
}

// Call with the lock held.
static void overwritten_drop(sdg_span_t span) {
  size_t kept = 0;
  for (size_t i = 0; i < all.count; i++)
    if (!sdg_span_contain(span, all.upload[i].span))
      all.upload[kept++] = all.upload[i];
  all.count = kept;
}

// If memory is short the copy is not compared. Call with the lock held.
static void upload_add(sdg_span_t span, uint64_t digest) {
  if (all.count == all.room) {
    size_t room = all.room ? 2 * all.room : 64;
    upload_t *grown = realloc(all.upload, room * sizeof *grown);
    if (!grown)
      return;
    all.upload = grown;
    all.room = room;
  }
  all.upload[all.count++] = (upload_t){span, digest};
}

// If memory for the set is short, nothing counts as untouched, so that more is
// compared.
static void untouched_remove(sdg_span_t span) {
  if (all.untouched.count > 0 && !sdg_spans_remove(&all.untouched, span))
    sdg_spans_clear(&all.untouched);
}

void sdg_uploads_allocated(sdg_span_t span) {
  pthread_mutex_lock(&all.lock);
  (void)sdg_spans_remove(&all.known, span);
  (void)!sdg_spans_add(&all.untouched, span);
  overwritten_drop(span);
  pthread_mutex_unlock(&all.lock);
}

void sdg_uploads_freed(sdg_span_t span) {
  pthread_mutex_lock(&all.lock);
  (void)sdg_spans_remove(&all.known, span);
  untouched_remove(span);
  overwritten_drop(span);
  pthread_mutex_unlock(&all.lock);
}

void sdg_uploads_forget(void) {
  pthread_mutex_lock(&all.lock);
  sdg_spans_clear(&all.known);
  sdg_spans_clear(&all.untouched);
  all.count = 0;
  pthread_mutex_unlock(&all.lock);
}

// ---- what the program writes -----------------------------------------------

// False for a copy that does not wait and reads pinned memory: its contents may
// still change.
static bool readable(const sdg_memory_access_t *memory,
                     const sdg_access_t *from) {
  struct cudaPointerAttributes attributes;
  const runtime_t *runtime = runtime_get();
  if (from->width == 0 || !runtime ||
      runtime->cudaPointerGetAttributes(&attributes, (const void *)from->at) !=
          cudaSuccess)
    return false;
  return attributes.type == cudaMemoryTypeUnregistered ||
         (attributes.type == cudaMemoryTypeHost &&
          !strstr(memory->name, "Async"));
}

// Whether a copy writes memory that tagged calls have read.
static bool comes_again(const sdg_memory_access_t *memory) {
  bool again = false;
  pthread_mutex_lock(&all.lock);
  for (int i = 0; i < memory->accesses; i++)
    if (memory->access[i].writes)
      again |= sdg_spans_overlap(&all.known, span_of(&memory->access[i]));
  pthread_mutex_unlock(&all.lock);
  return again;
}

// The digest of the bytes that a copy brings from the host; false if it cannot
// be computed, or is not needed.
static bool copied_digest(const sdg_memory_access_t *memory,
                          uint64_t *out_digest) {
  const sdg_access_t *from = NULL;
  sdg_digest_t digest;
  for (int i = 0; memory->copies && i < memory->accesses; i++)
    if (memory->access[i].reads && !memory->access[i].writes)
      from = &memory->access[i];
  if (!from || !comes_again(memory) || sdg_memory_holds((void *)from->at) ||
      !readable(memory, from))
    return false;
  sdg_digest_init(&digest);
  for (size_t row = 0; row < (from->height ? from->height : 1); row++)
    sdg_digest_add(&digest, (const char *)from->at + row * from->pitch,
                   from->width);
  *out_digest = sdg_digest_value(&digest);
  return true;
}

void sdg_uploads_note(const sdg_memory_access_t *memory) {
  uint64_t digest = 0;
  bool has_digest = copied_digest(memory, &digest);
  sdg_span_t held;
  pthread_mutex_lock(&all.lock);
  if (memory->everything)
    sdg_spans_clear(&all.untouched);
  for (int i = 0; i < memory->accesses; i++) {
    const sdg_access_t *to = &memory->access[i];
    if (!to->writes)
      continue;
    if (to->width == 0) { // the number of bytes is unknown
      sdg_spans_clear(&all.untouched);
      continue;
    }
    held = span_of(to);
    untouched_remove(held);
    if (!to->reads && (to->height <= 1 || to->pitch == to->width))
      overwritten_drop(held);
    if (has_digest && !to->reads)
      upload_add(held, digest);
  }
  pthread_mutex_unlock(&all.lock);
}

// ---- what tagged calls read and write --------------------------------------

// Dimensions with more than one element, the outermost first, and how many of
// them, from the outside, are not contiguous.
typedef struct runs {
  int outer;
  int64_t extent[SDG_DIMS_MAX], step_bytes[SDG_DIMS_MAX], count;
  size_t run_bytes;
} runs_t;

static runs_t runs_of(const sdg_layout_t *layout) {
  runs_t runs = {.count = 1, .run_bytes = (size_t)layout->elem_bytes};
  int dims = 0;
  for (int d = 0; d < layout->dims; d++) {
    int64_t step = layout->stride[d] * layout->elem_bytes;
    if (layout->extent[d] <= 1)
      continue;
    int i = dims++;
    for (; i > 0 && runs.step_bytes[i - 1] < step; i--) {
      runs.step_bytes[i] = runs.step_bytes[i - 1];
      runs.extent[i] = runs.extent[i - 1];
    }
    runs.step_bytes[i] = step;
    runs.extent[i] = layout->extent[d];
  }
  while (dims > 0 && runs.step_bytes[dims - 1] == (int64_t)runs.run_bytes)
    runs.run_bytes *= (size_t)runs.extent[--dims];
  runs.outer = dims;
  for (int d = 0; d < dims; d++)
    runs.count *= runs.extent[d];
  return runs;
}

// Call with the lock held.
static void known_add(sdg_span_t span) {
  if (!sdg_spans_contain(&all.known, span))
    (void)!sdg_spans_add(&all.known, span);
}

static void runs_add(const runs_t *runs, int dim, uintptr_t at) {
  if (dim == runs->outer) {
    known_add((sdg_span_t){at, runs->run_bytes});
    return;
  }
  for (int64_t i = 0; i < runs->extent[dim]; i++)
    runs_add(runs, dim + 1, at + (uintptr_t)(i * runs->step_bytes[dim]));
}

static sdg_span_t tensor_span(const sdg_operand_t *operand,
                              sdg_layout_t *out_layout) {
  *out_layout = sdg_operand_layout(operand);
  return (sdg_span_t){(uintptr_t)operand->data, sdg_layout_bytes(out_layout)};
}

void sdg_uploads_made(const sdg_operand_t *operand) {
  sdg_layout_t layout;
  if (!operand->data || operand->elem_bytes == 0)
    return;
  sdg_span_t span = tensor_span(operand, &layout);
  pthread_mutex_lock(&all.lock);
  runs_t runs = runs_of(&layout);
  if (span.bytes > 0 && runs.count <= RUNS_MAX)
    runs_add(&runs, 0, span.at);
  else
    known_add(span); // with many gaps, the gaps count as the tensor's
  untouched_remove(span);
  overwritten_drop(span);
  pthread_mutex_unlock(&all.lock);
}

// Whether every run of the tensor is known. Call with the lock held.
static bool is_known(const runs_t *runs, int dim, uintptr_t at) {
  if (dim == runs->outer)
    return sdg_spans_contain(&all.known, (sdg_span_t){at, runs->run_bytes});
  for (int64_t i = 0; i < runs->extent[dim]; i++)
    if (!is_known(runs, dim + 1, at + (uintptr_t)(i * runs->step_bytes[dim])))
      return false;
  return true;
}

// Mixes in what was copied into the tensor since the last query. Call with the
// lock held.
static bool uploads_take(sdg_span_t tensor, uint64_t *io_digest) {
  sdg_digest_t digest;
  size_t kept = 0;
  sdg_digest_init(&digest);
  sdg_digest_add(&digest, io_digest, sizeof *io_digest);
  for (size_t i = 0; i < all.count; i++) {
    upload_t upload = all.upload[i];
    if (!sdg_span_overlap(upload.span, tensor)) {
      all.upload[kept++] = upload;
      continue;
    }
    // Uses offsets in the tensor, because addresses differ between ranks.
    uint64_t place[3] = {upload.span.at - tensor.at, upload.span.bytes,
                         upload.digest};
    sdg_digest_add(&digest, place, sizeof place);
  }
  bool any = kept < all.count;
  all.count = kept;
  if (any)
    *io_digest = sdg_digest_value(&digest);
  return any;
}

sdg_upload_t sdg_uploads_of(const sdg_operand_t *operand, bool always,
                            uint64_t *io_digest) {
  sdg_layout_t layout;
  sdg_span_t span = tensor_span(operand, &layout);
  sdg_upload_t found = SDG_UPLOAD_FIRST;
  if (span.bytes == 0)
    return SDG_UPLOAD_NONE;
  pthread_mutex_lock(&all.lock);
  bool known = !always && sdg_spans_contain(&all.known, span);
  if (!always && !known) {
    runs_t runs = runs_of(&layout);
    known = runs.count <= RUNS_MAX && is_known(&runs, 0, span.at);
  }
  if (known)
    found = all.count > 0 && uploads_take(span, io_digest) ? SDG_UPLOAD_AGAIN
                                                           : SDG_UPLOAD_NONE;
  else if (sdg_spans_contain(&all.untouched, span))
    found = SDG_UPLOAD_NONE;
  pthread_mutex_unlock(&all.lock);
  return !known && found == SDG_UPLOAD_NONE && sdg_memory_unseen_writes()
             ? SDG_UPLOAD_FIRST
             : found;
}
