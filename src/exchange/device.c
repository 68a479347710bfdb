// SPDX-License-Identifier: Apache-2.0
// Device memory: copies and fills strided boxes with the fewest CUDA runtime
// calls, and holds the buffers that the plans of one calling thread share.
#include "src/exchange/device.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "src/base/vendor.h"
#include "src/job/cost.h"
#include "src/job/thread.h"

// cudaMemcpy2D refuses pitches at or above this (cudaDevAttrMaxPitch).
static const int64_t PITCH_BYTES_MAX = INT32_MAX;

// A strided copy as nested loops around contiguous runs: loop[0] is the
// innermost. Extents are > 1.
typedef struct loops {
  enum cudaMemcpyKind kind;
  int64_t run_bytes;
  int count;
  struct {
    // The byte counts are the steps between iterations.
    int64_t extent, from_bytes, to_bytes;
  } loop[SDG_COPY_DIMS_MAX];
} loops_t;

// Orders the dimensions by stride, then merges dimensions that are contiguous
// in both regions. Example: 8 rows of a packed NCHW tensor (N=2 C=3 H=32 W=64,
// floats) to a packed strip: runs of 8*64*4 bytes, one loop of 6 with steps
// 32*64*4 and 8*64*4 bytes.
static loops_t loops_make(const int64_t *from, const int64_t *to,
                          const int64_t *extent, int dims, int elem_bytes) {
  int order[SDG_COPY_DIMS_MAX];
  int used = 0;
  for (int d = 0; d < dims; d++) {
    if (extent[d] <= 1)
      continue;
    int i = used++;
    for (; i > 0 && from[order[i - 1]] > from[d]; i--)
      order[i] = order[i - 1];
    order[i] = d;
  }
  loops_t loops = {.kind = cudaMemcpyDeviceToDevice, .run_bytes = elem_bytes};
  for (int i = 0; i < used; i++) {
    int64_t n = extent[order[i]];
    int64_t from_bytes = from[order[i]] * elem_bytes;
    int64_t to_bytes = to[order[i]] * elem_bytes;
    if (loops.count == 0 && from_bytes == loops.run_bytes &&
        to_bytes == loops.run_bytes) {
      loops.run_bytes *= n;
      continue;
    }
    if (loops.count > 0) {
      __typeof__(&loops.loop[0]) inner = &loops.loop[loops.count - 1];
      if (from_bytes == inner->extent * inner->from_bytes &&
          to_bytes == inner->extent * inner->to_bytes) {
        inner->extent *= n;
        continue;
      }
    }
    loops.loop[loops.count].extent = n;
    loops.loop[loops.count].from_bytes = from_bytes;
    loops.loop[loops.count].to_bytes = to_bytes;
    loops.count++;
  }
  return loops;
}

static bool pitch_fits(int64_t pitch_bytes, int64_t run_bytes) {
  return pitch_bytes >= run_bytes && pitch_bytes < PITCH_BYTES_MAX;
}

// Copies the innermost `levels` loops (0, 1 or 2) with one runtime call.
static cudaError_t copy_block(const sdg_vendor_t *cuda, const loops_t *loops,
                              int levels, const char *from, char *to,
                              cudaStream_t stream) {
  size_t run = (size_t)loops->run_bytes;
  if (levels == 0)
    return cuda->cudaMemcpyAsync(to, from, run, loops->kind, stream);
  size_t from_pitch = (size_t)loops->loop[0].from_bytes;
  size_t to_pitch = (size_t)loops->loop[0].to_bytes;
  size_t height = (size_t)loops->loop[0].extent;
  if (levels == 1)
    return cuda->cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, run, height,
                                   loops->kind, stream);
  struct cudaMemcpy3DParms parms = {
      .srcPtr = {(void *)(uintptr_t)from, from_pitch, run,
                 (size_t)loops->loop[1].from_bytes / from_pitch},
      .dstPtr = {to, to_pitch, run, (size_t)loops->loop[1].to_bytes / to_pitch},
      .extent = {run, height, (size_t)loops->loop[1].extent},
      .kind = loops->kind,
  };
  return cuda->cudaMemcpy3DAsync(&parms, stream);
}

// Whether one 3-D copy can run loop `slices` around loop `rows`: slices have to
// be a whole number of row pitches apart.
static bool slices_fit(const loops_t *loops, int rows, int slices) {
  int64_t from = loops->loop[rows].from_bytes, to = loops->loop[rows].to_bytes;
  int64_t height = loops->loop[rows].extent;
  int64_t from_slice = loops->loop[slices].from_bytes;
  int64_t to_slice = loops->loop[slices].to_bytes;
  return from_slice % from == 0 && to_slice % to == 0 &&
         from_slice / from >= height && to_slice / to >= height;
}

static void loop_move(loops_t *loops, int from, int to) {
  __typeof__(loops->loop[0]) moved = loops->loop[from];
  for (; from > to; from--)
    loops->loop[from] = loops->loop[from - 1];
  loops->loop[to] = moved;
}

// Chooses the loops that one runtime call copies, so that the fewest calls
// remain, and makes them the innermost. Returns how many these are: 0, 1 or 2.
static int levels_choose(loops_t *loops) {
  int rows = -1, slices = -1;
  int64_t most = 0;
  for (int i = 0; i < loops->count; i++) {
    if (!pitch_fits(loops->loop[i].from_bytes, loops->run_bytes) ||
        !pitch_fits(loops->loop[i].to_bytes, loops->run_bytes))
      continue;
    int64_t alone = loops->loop[i].extent;
    if (alone > most)
      most = alone, rows = i, slices = -1;
    for (int j = i + 1; j < loops->count; j++)
      if (alone * loops->loop[j].extent > most && slices_fit(loops, i, j))
        most = alone * loops->loop[j].extent, rows = i, slices = j;
  }
  if (rows < 0)
    return 0;
  loop_move(loops, rows, 0);
  if (slices < 0)
    return 1;
  loop_move(loops, slices, 1);
  return 2;
}

// *out_at: the start of the block that the runtime refused.
static cudaError_t copy_nest(const sdg_vendor_t *cuda, const loops_t *loops,
                             int level, int levels, const char *from, char *to,
                             cudaStream_t stream, const char **out_at) {
  cudaError_t result = cudaSuccess;
  if (level == levels) {
    *out_at = from;
    return copy_block(cuda, loops, levels, from, to, stream);
  }
  for (int64_t i = 0;
       i < loops->loop[level - 1].extent && result == cudaSuccess; i++)
    result =
        copy_nest(cuda, loops, level - 1, levels,
                  from + i * loops->loop[level - 1].from_bytes,
                  to + i * loops->loop[level - 1].to_bytes, stream, out_at);
  return result;
}

static sdg_status_t copy_check(cudaError_t result, const loops_t *loops,
                               int levels, const char *from) {
  if (result == cudaSuccess)
    return SDG_OK;
  int64_t span = loops->run_bytes;
  for (int i = 0; i < levels; i++)
    span += (loops->loop[i].extent - 1) * loops->loop[i].from_bytes;
  char what[160];
  snprintf(what, sizeof what,
           "copy of a box within %lld bytes from %p (is the memory as large as "
           "the tensor?)",
           (long long)span, (const void *)from);
  return sdg_vendor_check(result, what);
}

static bool extent_empty(const int64_t *extent, int dims) {
  for (int d = 0; d < dims; d++)
    if (extent[d] <= 0)
      return true;
  return false;
}

// ---- copies of short runs ---------------------------------------------------

// The runtime copies run by run, which takes long where runs are few bytes: a
// halo of columns. A kernel copies byte by byte.
static _Atomic(sdg_narrow_copy_t *) narrow_copy;

void sdg_device_set_narrow(sdg_narrow_copy_t *copy) {
  atomic_store_explicit(&narrow_copy, copy, memory_order_release);
}

// The inner loops that one kernel runs, the last of them up to `most` times.
typedef struct narrow {
  sdg_narrow_copy_t *copy;
  int levels; // 0: the runtime copies
  int64_t most;
} narrow_t;

// How often a loop can run within `room` bytes.
static int64_t times(int64_t room, int64_t step) {
  return step > 0 ? 1 + room / step : INT64_MAX;
}

// A kernel reaches less than 2 GiB far.
static narrow_t narrow_choose(const loops_t *loops) {
  narrow_t narrow = {
      .copy = atomic_load_explicit(&narrow_copy, memory_order_acquire)};
  int64_t from = INT32_MAX - loops->run_bytes, to = from;
  if (!narrow.copy || loops->count == 0 ||
      (double)loops->run_bytes >= sdg_cost_agreed().run_bytes)
    return narrow;
  for (int i = 0; i < loops->count && i < SDG_NARROW_DIMS_MAX - 1; i++) {
    __typeof__(&loops->loop[0]) loop = &loops->loop[i];
    int64_t can = times(from, loop->from_bytes);
    if (can > times(to, loop->to_bytes))
      can = times(to, loop->to_bytes);
    if (can < 2)
      break;
    narrow.levels++;
    narrow.most = can < loop->extent ? can : loop->extent;
    if (can < loop->extent)
      break;
    from -= (loop->extent - 1) * loop->from_bytes;
    to -= (loop->extent - 1) * loop->to_bytes;
  }
  for (int i = 0; i < loops->count; i++)
    if (loops->loop[i].from_bytes == 0) // the same run again
      narrow.levels = 0;
  return narrow;
}

static sdg_status_t narrow_block(const narrow_t *narrow, const loops_t *loops,
                                 int64_t count, const char *from, char *to,
                                 cudaStream_t stream) {
  enum { LEAST_DIMS = 4 };
  sdg_narrow_t all = {.from = from, .to = to, .dims = narrow->levels + 1};
  if (all.dims < LEAST_DIMS)
    all.dims = LEAST_DIMS;
  for (int d = 0; d < all.dims; d++)
    all.extent[d] = all.from_stride[d] = all.to_stride[d] = 1;
  all.extent[all.dims - 1] = (int)loops->run_bytes;
  for (int i = 0, d = all.dims - 2; i < narrow->levels; i++, d--) {
    bool last = i == narrow->levels - 1;
    all.extent[d] = (int)(last ? count : loops->loop[i].extent);
    all.from_stride[d] = (int)loops->loop[i].from_bytes;
    all.to_stride[d] = (int)loops->loop[i].to_bytes;
  }
  return narrow->copy(&all, stream);
}

static sdg_status_t narrow_nest(const narrow_t *narrow, const loops_t *loops,
                                int level, const char *from, char *to,
                                cudaStream_t stream) {
  __typeof__(&loops->loop[0]) loop = &loops->loop[level - 1];
  bool inside = level == narrow->levels;
  int64_t step = inside ? narrow->most : 1;
  for (int64_t i = 0; i < loop->extent; i += step) {
    const char *source = from + i * loop->from_bytes;
    char *target = to + i * loop->to_bytes;
    int64_t left = loop->extent - i;
    SDG_TRY(
        inside ? narrow_block(narrow, loops, left < step ? left : step, source,
                              target, stream)
               : narrow_nest(narrow, loops, level - 1, source, target, stream));
  }
  return SDG_OK;
}

sdg_status_t sdg_device_copy(const sdg_region_t *from, const sdg_region_t *to,
                             const int64_t *extent, int dims, int elem_bytes,
                             cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  if (extent_empty(extent, dims))
    return SDG_OK;
  loops_t loops =
      loops_make(from->stride, to->stride, extent, dims, elem_bytes);
  const narrow_t narrow = narrow_choose(&loops);
  if (narrow.levels > 0)
    return narrow_nest(&narrow, &loops, loops.count, from->data, to->data,
                       stream);
  int levels = levels_choose(&loops);
  const char *at = NULL;
  cudaError_t result = copy_nest(cuda, &loops, loops.count, levels, from->data,
                                 to->data, stream, &at);
  return copy_check(result, &loops, levels, at);
}

bool sdg_device_fetch(const sdg_region_t *from, const sdg_region_t *to,
                      const int64_t *extent, int dims, int elem_bytes,
                      cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return false;
  if (extent_empty(extent, dims))
    return true;
  loops_t loops =
      loops_make(from->stride, to->stride, extent, dims, elem_bytes);
  loops.kind = cudaMemcpyDeviceToHost;
  int levels = levels_choose(&loops);
  const char *at = NULL;
  bool done = copy_nest(cuda, &loops, loops.count, levels, from->data, to->data,
                        stream, &at) == cudaSuccess;
  if (!done)
    (void)cuda->cudaGetLastError(); // the error is not the program's
  return done;
}

static sdg_status_t zero_nest(const sdg_vendor_t *cuda, const loops_t *loops,
                              int level, char *data, cudaStream_t stream) {
  size_t run = (size_t)loops->run_bytes;
  if (level == 0)
    return sdg_vendor_check(cuda->cudaMemsetAsync(data, 0, run, stream),
                            "fill of a box");
  int64_t step = loops->loop[level - 1].to_bytes;
  int64_t n = loops->loop[level - 1].extent;
  if (level == 1 && pitch_fits(step, loops->run_bytes))
    return sdg_vendor_check(
        cuda->cudaMemset2DAsync(data, (size_t)step, 0, run, (size_t)n, stream),
        "fill of a box");
  for (int64_t i = 0; i < n; i++)
    SDG_TRY(zero_nest(cuda, loops, level - 1, data + i * step, stream));
  return SDG_OK;
}

sdg_status_t sdg_device_zero(const sdg_region_t *region, const int64_t *extent,
                             int dims, int elem_bytes, cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  if (extent_empty(extent, dims))
    return SDG_OK;
  loops_t loops =
      loops_make(region->stride, region->stride, extent, dims, elem_bytes);
  return zero_nest(cuda, &loops, loops.count, region->data, stream);
}

// ---- scratch ----------------------------------------------------------------

// Index: the thread's channel. Other threads read the sizes for the report.
typedef struct buffer {
  void *data;
  _Atomic(size_t) bytes;
} buffer_t;
static buffer_t buffers[SDG_CHANNEL_THREADS][SDG_SCRATCH_COUNT];

// A quarter more, so that slowly growing shapes do not grow the buffer in each
// call; of large buffers less, because programs fill their GPU.
static size_t spare(size_t bytes) {
  const size_t most = (size_t)64 << 20;
  return bytes / 4 < most ? bytes / 4 : most;
}

static cudaError_t allocate(const sdg_vendor_t *cuda, sdg_scratch_kind_t kind,
                            void **out, size_t bytes) {
  return kind == SDG_SCRATCH_HOST
             ? cuda->cudaMallocManaged(out, bytes, cudaMemAttachGlobal)
             : cuda->cudaMalloc(out, bytes);
}

static sdg_status_t grow(const sdg_vendor_t *cuda, sdg_scratch_kind_t kind,
                         buffer_t *own, size_t bytes) {
  // cudaFree waits for all work that uses the old buffer.
  SDG_TRY(
      sdg_vendor_check(cuda->cudaFree(own->data), "freeing of scratch memory"));
  own->data = NULL;
  own->bytes = 0;
  size_t grown = bytes + spare(bytes);
  void *buffer;
  if (allocate(cuda, kind, &buffer, grown) != cudaSuccess) {
    (void)cuda->cudaGetLastError();
    grown = bytes;
    cudaError_t result = allocate(cuda, kind, &buffer, grown);
    if (result != cudaSuccess)
      return sdg_fail(SDG_E_DEVICE_MEMORY, "%zu bytes for halos: %s", bytes,
                      cuda->cudaGetErrorString(result));
  }
  own->data = buffer;
  own->bytes = grown;
  return SDG_OK;
}

sdg_status_t sdg_scratch_get(sdg_scratch_kind_t kind, size_t bytes,
                             void **out_data) {
  buffer_t *own = &buffers[sdg_channel_get()][kind];
  if (bytes > atomic_load_explicit(&own->bytes, memory_order_relaxed)) {
    const sdg_vendor_t *cuda = sdg_vendor_get();
    if (!cuda)
      return SDG_E_LIBRARY_MISSING;
    // Otherwise it would spoil a capture that the program makes meanwhile.
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    (void)cuda->cudaThreadExchangeStreamCaptureMode(&mode);
    sdg_status_t status = grow(cuda, kind, own, bytes);
    (void)cuda->cudaThreadExchangeStreamCaptureMode(&mode);
    SDG_TRY(status);
  }
  *out_data = bytes ? own->data : NULL;
  return SDG_OK;
}

size_t sdg_scratch_bytes(void) {
  size_t all = 0;
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    for (int kind = 0; kind < SDG_SCRATCH_COUNT; kind++)
      all += buffers[channel][kind].bytes;
  return all;
}

void sdg_scratch_forget(void) {
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    for (int kind = 0; kind < SDG_SCRATCH_COUNT; kind++) {
      buffers[channel][kind].data = NULL;
      buffers[channel][kind].bytes = 0;
    }
}
