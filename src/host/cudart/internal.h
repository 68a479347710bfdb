/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the CUDA runtime work-alike share. */
#ifndef SDG_SRC_HOST_CUDART_INTERNAL_H
#define SDG_SRC_HOST_CUDART_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/host/host.h"

#define HOST_HIDDEN      __attribute__((visibility("hidden")))
#define HOST_LIKELY(x)   __builtin_expect(!!(x), 1)
#define HOST_UNLIKELY(x) __builtin_expect(!!(x), 0)

#ifndef HOST_CUDART_VERSION /* cuda12.h defines another version */
#define HOST_CUDART_VERSION CUDART_VERSION
#endif

#pragma GCC visibility push(hidden)

/* ---- state.c: start, fork, errors ---- */

/* Call this first in every function that needs the device. Returns cudaSuccess,
 * or the call's error: the sticky error, cudaErrorInitializationError in a
 * child forked after the device was used, cudaErrorNotPermitted inside a host
 * function of a stream. Stores the error as the thread's last one. */
cudaError_t host_enter(void);
/* As host_enter, without the sticky error: for queries that need no work. */
cudaError_t host_enter_query(void);
/* Records a failure as the calling thread's last error and returns it. */
cudaError_t host_result(cudaError_t error);
cudaError_t host_sticky(void);
/* The first error stays until the device is reset. */
void host_sticky_set(cudaError_t error);
void host_sticky_clear(void);
/* For runtime.h: calls between the two keep the thread's last error and do not
 * count as calls by the program. */
void host_face_begin(void);
void host_face_end(void);
/* Whether the program has called a function that needs the device. */
bool host_used(void);
/* Raised while the calling thread runs a program's host function. */
extern _Thread_local int host_in_callback;
/* Bytes that cudaMalloc may give out in all. */
size_t host_memory_limit(void);
/* True if fresh device memory is filled with NaN: SUNDOG_HOST_POISON=1. */
bool host_memory_poisoned(void);
void host_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- memory/region.c: one range of addresses, its allocations, their lookup
 * ---- */

enum {
  HOST_CHUNK_SHIFT = 21, /* granularity of large blocks and slabs */
  HOST_SLOT_MIN_SHIFT = 8,
  HOST_SLOT_MAX_SHIFT = 20,
  HOST_CLASSES = HOST_SLOT_MAX_SHIFT - HOST_SLOT_MIN_SHIFT + 1,
};

#define HOST_CHUNK_BYTES ((size_t)1 << HOST_CHUNK_SHIFT)

typedef enum host_kind {
  HOST_KIND_DEVICE,
  HOST_KIND_PINNED,
  HOST_KIND_MANAGED,
  HOST_KIND_IMPORT,
} host_kind_t;

typedef struct host_slab host_slab_t;

typedef struct host_region {
  host_kind_t kind;
  char *base; /* addresses that programs see */
  size_t reserved_bytes;
  ptrdiff_t distance; /* readable address - program's address */
  int fd;             /* the memfd; -1 for pinned and managed memory */
  size_t chunks;
  /* Per chunk: 0 if free; 2 * (first chunk of its large block) + 1; or the
   * address of its host_slab_t. */
  _Atomic uintptr_t *chunk;
  _Atomic size_t *large_bytes;        /* at the first chunk of a large block */
  host_slab_t *partial[HOST_CLASSES]; /* slabs with a free slot */
  host_slab_t *spare[HOST_CLASSES];   /* descriptors without a chunk */
  size_t used_bytes;
  bool *kept; /* per chunk: free, but its memory is kept */
  size_t kept_chunks;
  bool mapped; /* the program's addresses have the memory, too */
} host_region_t;

typedef struct host_block {
  const host_region_t *region;
  char *base;
  size_t bytes;
} host_block_t;

/* This process's region, made at the first use. NULL and a line on stderr when
 * the addresses cannot be reserved. */
host_region_t *host_region_own(host_kind_t kind);
/* Adds a region over another process's memfd; takes the descriptor. */
host_region_t *host_region_import(int fd, size_t reserved_bytes);
/* NULL when the limit or the addresses are used up. */
void *host_region_allocate(host_region_t *region, size_t bytes);
/* False if `pointer` is not the start of an allocation. */
bool host_region_free(host_region_t *region, void *pointer);
/* _mark: registers [offset, offset + bytes), which the exporter allocated, in
 * an imported region. _unmark removes it. */
bool host_region_mark(host_region_t *region, size_t offset, size_t bytes);
void host_region_unmark(host_region_t *region, size_t offset);
/* The allocation, own or imported, device or pinned, that holds `pointer`;
 * lock-free. */
bool host_block_find(const void *pointer, host_block_t *out_block);
/* True inside any guarded range, allocated or not. */
bool host_address_is_guarded(const void *pointer);
/* Between the two, programs can read and write device memory at its addresses.
 * May be nested, from any thread. False if that cannot be. */
bool host_region_expose(void);
void host_region_hide(void);
void host_region_usage(size_t *out_used_bytes);
/* Frees everything, for cudaDeviceReset. */
void host_region_free_all(void);

/* ---- memory/reserve.c: the addresses and the memory of a region ---- */

/* A memfd of this size without any memory in use; -1 and a line on stderr after
 * a failure. */
int host_region_memory(size_t bytes);
/* Fills in the tables, base and distance from reserved_bytes and fd. False and
 * a line on stderr if memory or addresses are short. */
bool host_region_map(host_region_t *region);
/* Makes a guarded region accessible at the program's addresses, or not. False
 * if addresses cannot be mapped. */
bool host_region_guard(host_region_t *region, bool accessible);
/* Marks chunks as free. Their memory goes back to the system, except for a
 * small stock, because first use of fresh memory is slow. Call this and the
 * next function with the allocator's lock held. */
void host_region_give_back(host_region_t *region, size_t first, size_t count);
/* Marks chunks as used. */
void host_region_take(host_region_t *region, size_t first, size_t count);

/* ---- memory/host.c: memory registered by cudaHostRegister ---- */
bool host_registered_find(const void *pointer, size_t bytes);

/* ---- stream/queue.c, stream/stream.c: ordered work ---- */

enum { HOST_PAYLOAD_BYTES = 160 };

typedef struct CUstream_st host_stream_t;

typedef struct host_work {
  cudaError_t (*run)(void *argument);
  void *argument; /* NULL with payload_bytes > 0: the queue's own copy is passed
                   */
  void (*release)(void *argument);
  const void *payload;
  size_t payload_bytes; /* <= HOST_PAYLOAD_BYTES */
  bool always;          /* run even if the device is in an error state */
  bool waits;           /* the payload is a point, and run waits for it */
} host_work_t;

/* A point in a stream: everything submitted before it. Stays valid after the
 * stream is destroyed. */
typedef struct host_point {
  host_stream_t *stream; /* NULL: nothing to wait for */
  uint64_t ticket;
} host_point_t;

/* The stream of a handle; 0 is the legacy stream. NULL if there is none. */
host_stream_t *host_stream_get(cudaStream_t handle);
host_stream_t *host_stream_legacy(void);
host_stream_t *host_stream_open(unsigned flags, int priority);
/* Destroys the handle. Queued work is still done. */
void host_stream_close(host_stream_t *stream);
/* Queues work after what the rules of the legacy stream require. */
cudaError_t host_stream_push(host_stream_t *stream, const host_work_t *work,
                             host_point_t *out_point);
/* The point at the end of the stream, legacy rules included. */
cudaError_t host_stream_end(host_stream_t *stream, host_point_t *out_point);
/* Lets later work of the stream wait for the point. */
cudaError_t host_stream_join(host_stream_t *stream, host_point_t point);
/* Waits while the queue is very long. Call it without holding a lock. */
void host_stream_throttle(host_stream_t *stream);
bool host_point_passed(host_point_t point);
/* Waits for the point, and runs queued work itself if no other thread does. */
void host_point_wait(host_point_t point);
void host_stream_wait_all(void);
void host_stream_close_all(void);
unsigned host_stream_flags(const host_stream_t *stream);
int host_stream_priority(const host_stream_t *stream);
unsigned long long host_stream_id(const host_stream_t *stream);

/* ---- stream/event.c, stream/api.c: for nodes of graphs ---- */
bool host_event_known(cudaEvent_t event);
/* _push records the event in a stream that is not captured; _await makes the
 * stream wait for it. */
cudaError_t host_event_push(cudaEvent_t event, host_stream_t *stream);
cudaError_t host_event_await(cudaEvent_t event, host_stream_t *stream);
cudaError_t host_function_push(cudaHostFn_t function, void *data,
                               host_stream_t *stream);

/* ---- stream/event.c, memory/ipc.c: for cudaDeviceReset ---- */
void host_event_close_all(void);
void host_ipc_forget_all(void);

#pragma GCC visibility pop

#endif
