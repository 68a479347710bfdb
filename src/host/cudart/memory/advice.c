// SPDX-License-Identifier: Apache-2.0
// cudaMemAdvise, cudaMemPrefetchAsync: advice about managed memory is kept page
// by page, and can be read back. A prefetch makes the system bring the pages
// in.
#include "src/host/cudart/graph/capture.h"
#include "src/host/cudart/memory/advice.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NOWHERE = -2 }; // cudaInvalidDeviceId

// The advice for [begin, end). The list is sorted and has no overlaps.
typedef struct span {
  struct span *next;
  uintptr_t begin, end;
  bool read_mostly, by_device, by_host;
  int preferred, prefetched; // device, cudaCpuDeviceId or NOWHERE
} span_t;

// Guards the list; innermost.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static span_t *spans;

static span_t *span_new(uintptr_t begin, uintptr_t end, span_t *next) {
  span_t *span = malloc(sizeof *span);
  if (span)
    *span = (span_t){.next = next,
                     .begin = begin,
                     .end = end,
                     .preferred = NOWHERE,
                     .prefetched = NOWHERE};
  return span;
}

// Cuts the list so that spans begin at `begin`, end at `end` and leave no gap
// between. Returns the position of the first span; NULL if memory is short.
static span_t **cut(uintptr_t begin, uintptr_t end) {
  span_t **at = &spans, **first = NULL;
  while (*at && (*at)->end <= begin)
    at = &(*at)->next;
  for (uintptr_t here = begin; here < end; at = &(*at)->next) {
    span_t *span = *at;
    if (!span || span->begin > here) {
      uintptr_t stop = span && span->begin < end ? span->begin : end;
      if (!(span = span_new(here, stop, *at)))
        return NULL;
      *at = span;
    } else if (span->begin < here || span->end > end) {
      uintptr_t where = span->begin < here ? here : end;
      span_t *rest = malloc(sizeof *rest);
      if (!rest)
        return NULL;
      *rest = *span;
      rest->begin = span->end = where;
      span->next = rest;
      if (span->begin < here)
        continue;
    }
    if (!first)
      first = at;
    here = (*at)->end;
  }
  return first;
}

void host_hint_forget(const void *pointer, size_t bytes) {
  uintptr_t begin = (uintptr_t)pointer, end = begin + bytes;
  pthread_mutex_lock(&lock);
  for (span_t **at = &spans; *at;) {
    span_t *span = *at;
    if (span->begin >= begin && span->end <= end) {
      *at = span->next;
      free(span);
    } else {
      at = &span->next;
    }
  }
  pthread_mutex_unlock(&lock);
}

// ---- giving advice ----

static bool is_managed(const void *pointer, size_t bytes) {
  host_block_t block;
  return bytes > 0 && host_block_find(pointer, &block) &&
         block.region->kind == HOST_KIND_MANAGED &&
         bytes <= block.bytes - (size_t)((const char *)pointer - block.base);
}

// The number of the location; NOWHERE if it does not exist.
static int place_of(struct cudaMemLocation location) {
  switch (location.type) {
  case cudaMemLocationTypeDevice:
    return location.id == 0                 ? 0
           : location.id == cudaCpuDeviceId ? cudaCpuDeviceId
                                            : NOWHERE;
  case cudaMemLocationTypeHost:
  case cudaMemLocationTypeHostNuma:
  case cudaMemLocationTypeHostNumaCurrent:
    return cudaCpuDeviceId;
  default:
    return NOWHERE;
  }
}

static void say(span_t *span, enum cudaMemoryAdvise advice, int place) {
  switch (advice) {
  case cudaMemAdviseSetReadMostly:
  case cudaMemAdviseUnsetReadMostly:
    span->read_mostly = advice == cudaMemAdviseSetReadMostly;
    break;
  case cudaMemAdviseSetPreferredLocation:
    span->preferred = place;
    break;
  case cudaMemAdviseUnsetPreferredLocation:
    span->preferred = NOWHERE;
    break;
  case cudaMemAdviseSetAccessedBy:
  case cudaMemAdviseUnsetAccessedBy:
    *(place == cudaCpuDeviceId ? &span->by_host : &span->by_device) =
        advice == cudaMemAdviseSetAccessedBy;
    break;
  }
}

static bool wants_place(enum cudaMemoryAdvise advice) {
  return advice == cudaMemAdviseSetPreferredLocation ||
         advice == cudaMemAdviseSetAccessedBy ||
         advice == cudaMemAdviseUnsetAccessedBy;
}

cudaError_t cudaMemAdvise(const void *devPtr, size_t count,
                          enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  int place = place_of(location);
  if (!is_managed(devPtr, count) || advice < cudaMemAdviseSetReadMostly ||
      advice > cudaMemAdviseUnsetAccessedBy)
    return host_result(cudaErrorInvalidValue);
  if (wants_place(advice) && place == NOWHERE)
    return host_result(cudaErrorInvalidDevice);
  uintptr_t begin = (uintptr_t)devPtr, end = begin + count;
  pthread_mutex_lock(&lock);
  span_t **first = cut(begin, end);
  for (span_t *span = first ? *first : NULL; span && span->begin < end;
       span = span->next)
    say(span, advice, place);
  pthread_mutex_unlock(&lock);
  return host_result(first ? cudaSuccess : cudaErrorMemoryAllocation);
}

typedef struct fetch {
  char *begin;
  size_t bytes;
} fetch_t;

static cudaError_t fetch_run(void *argument) {
  const fetch_t *fetch = argument;
  (void)madvise(fetch->begin, fetch->bytes, MADV_WILLNEED);
  return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count,
                                 struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  host_stream_t *found = host_stream_get(stream);
  int place = place_of(location);
  if (!found)
    return host_result(cudaErrorInvalidResourceHandle);
  if (flags != 0 || !is_managed(devPtr, count))
    return host_result(cudaErrorInvalidValue);
  if (place == NOWHERE)
    return host_result(cudaErrorInvalidDevice);
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = (uintptr_t)devPtr, end = begin + count;
  fetch_t fetch = {(char *)(begin & ~(page - 1)), 0};
  fetch.bytes = (size_t)((char *)end - fetch.begin);
  error = host_stream_push(found,
                           &(host_work_t){.run = fetch_run,
                                          .payload = &fetch,
                                          .payload_bytes = sizeof fetch},
                           NULL);
  if (error)
    return host_result(error);
  pthread_mutex_lock(&lock);
  span_t **first = cut(begin, end);
  for (span_t *span = first ? *first : NULL; span && span->begin < end;
       span = span->next)
    span->prefetched = place;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

// The one device may always use managed memory.
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *devPtr,
                                     size_t length, unsigned int flags) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  host_stream_t *found = host_stream_get(stream);
  if (!found)
    return host_result(cudaErrorInvalidResourceHandle);
  if (host_captured(found))
    return host_result(
        host_capture_spoil(found, cudaErrorStreamCaptureUnsupported));
  if ((flags != cudaMemAttachGlobal && flags != cudaMemAttachHost &&
       flags != cudaMemAttachSingle) ||
      !is_managed(devPtr, length ? length : 1))
    return host_result(cudaErrorInvalidValue);
  return cudaSuccess;
}

// ---- reading back ----

// The advice common to all of [begin, end).
static span_t common(uintptr_t begin, uintptr_t end) {
  span_t all = {.read_mostly = true,
                .by_device = true,
                .by_host = true,
                .preferred = NOWHERE,
                .prefetched = NOWHERE};
  uintptr_t here = begin;
  for (const span_t *span = spans; span && span->begin < end;
       span = span->next) {
    if (span->end <= begin)
      continue;
    bool is_first = here == begin;
    if (span->begin > here)
      break;
    all.read_mostly = all.read_mostly && span->read_mostly;
    all.by_device = all.by_device && span->by_device;
    all.by_host = all.by_host && span->by_host;
    if (is_first || all.preferred != span->preferred)
      all.preferred = is_first ? span->preferred : NOWHERE;
    if (is_first || all.prefetched != span->prefetched)
      all.prefetched = is_first ? span->prefetched : NOWHERE;
    here = span->end;
  }
  if (here < end)
    all = (span_t){.preferred = NOWHERE, .prefetched = NOWHERE};
  return all;
}

static int place_type(int place) {
  return place == NOWHERE           ? cudaMemLocationTypeInvalid
         : place == cudaCpuDeviceId ? cudaMemLocationTypeHost
                                    : cudaMemLocationTypeDevice;
}

// The value of an attribute that is one number.
static int number_of(const span_t *all, enum cudaMemRangeAttribute attribute) {
  switch (attribute) {
  case cudaMemRangeAttributeReadMostly:
    return all->read_mostly;
  case cudaMemRangeAttributePreferredLocation:
    return all->preferred;
  case cudaMemRangeAttributeLastPrefetchLocation:
    return all->prefetched;
  case cudaMemRangeAttributePreferredLocationType:
    return place_type(all->preferred);
  case cudaMemRangeAttributeLastPrefetchLocationType:
    return place_type(all->prefetched);
  case cudaMemRangeAttributePreferredLocationId:
    return all->preferred < 0 ? 0 : all->preferred;
  default:
    return all->prefetched < 0 ? 0 : all->prefetched;
  }
}

cudaError_t cudaMemRangeGetAttribute(void *data, size_t dataSize,
                                     enum cudaMemRangeAttribute attribute,
                                     const void *devPtr, size_t count) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  int *numbers = data;
  bool list = attribute == cudaMemRangeAttributeAccessedBy;
  if (!data || !is_managed(devPtr, count) ||
      attribute < cudaMemRangeAttributeReadMostly ||
      attribute > cudaMemRangeAttributeLastPrefetchLocationId ||
      dataSize % sizeof(int) != 0 || dataSize == 0 ||
      (!list && dataSize != sizeof(int)))
    return host_result(cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  span_t all = common((uintptr_t)devPtr, (uintptr_t)devPtr + count);
  pthread_mutex_unlock(&lock);
  if (!list) {
    numbers[0] = number_of(&all, attribute);
    return cudaSuccess;
  }
  size_t room = dataSize / sizeof(int), at = 0;
  if (all.by_device)
    numbers[at++] = 0;
  if (all.by_host && at < room)
    numbers[at++] = cudaCpuDeviceId;
  while (at < room)
    numbers[at++] = NOWHERE;
  return cudaSuccess;
}

cudaError_t cudaMemRangeGetAttributes(void **data, size_t *dataSizes,
                                      enum cudaMemRangeAttribute *attributes,
                                      size_t numAttributes, const void *devPtr,
                                      size_t count) {
  if (!data || !dataSizes || !attributes || numAttributes == 0)
    return host_result(cudaErrorInvalidValue);
  for (size_t i = 0; i < numAttributes; i++) {
    cudaError_t error = cudaMemRangeGetAttribute(data[i], dataSizes[i],
                                                 attributes[i], devPtr, count);
    if (error)
      return error;
  }
  return cudaSuccess;
}
