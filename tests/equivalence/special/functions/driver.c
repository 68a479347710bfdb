// SPDX-License-Identifier: Apache-2.0
// Calls drawn functions and launches drawn kernels on a rank's pieces (in the
// whole view: on whole tensors), and functions with the same bodies on whole
// tensors; compares what they wrote.
//
// usage: driver FILE
//
// A line of FILE: the number of a function, then for each dimension where the
// piece begins, where it ends, and the extent of the whole.
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"
#include "tests/calls.h"

enum { GAP = 0x5a };

// One function's tensors, of a piece or of the whole.
typedef struct side {
  struct run run;
  int64_t first[DIMS], whole[DIMS];
  size_t bytes[TENSORS];
  // What the function is given: run.data, or device memory that only kernels
  // can read, of which run.data is a copy.
  void *given[TENSORS];
} side_t;

static void *memory_get(bool managed, size_t bytes) {
  void *memory = NULL;
  if (managed)
    CHECK(cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal));
  else
    memory = malloc(bytes);
  CHECK(memory == NULL);
  return memory;
}

// Places count ghosts.
static void rooms_of(const struct tensor *tensor, const side_t *side,
                     int64_t *out) {
  for (int i = 0; i < tensor->dims; i++)
    out[i] = side->run.extent[tensor->dim[i]] + tensor->before[i] +
             tensor->behind[i];
}

static char *element(const struct tensor *tensor, const side_t *side, int t,
                     const int64_t *place, const int64_t *first) {
  int64_t at = 0;
  for (int i = 0; i < tensor->dims; i++)
    at += (place[i] + (first ? first[tensor->dim[i]] : 0)) *
          side->run.stride[t][i];
  return (char *)side->run.data[t] + at * tensor->bytes;
}

// Whether the element at a place is another rank's, so that it has no meaning
// but while sundog has filled it.
static bool is_others(const struct prototype *p, const struct tensor *tensor,
                      const side_t *side, const int64_t *place) {
  for (int i = 0; i < tensor->dims; i++) {
    int d = tensor->dim[i];
    int64_t at = place[i] - tensor->before[i];
    int64_t in_whole = at + side->first[d];
    if ((at < 0 || at >= side->run.extent[d]) &&
        (p->border[d] == 'w' || (in_whole >= 0 && in_whole < side->whole[d])))
      return true;
  }
  return false;
}

// The program fills ghosts of dimensions that are periodic and whole here.
static void ghosts_wrap(const struct prototype *p, side_t *side) {
  for (int t = 0; t < p->tensors; t++)
    for (int i = 0; i < p->tensor[t].dims; i++) {
      const struct tensor *tensor = &p->tensor[t];
      int d = tensor->dim[i];
      int64_t place[DIMS] = {0}, room[DIMS], n = side->run.extent[d];
      if (p->border[d] != 'w' || n != side->whole[d])
        continue;
      rooms_of(tensor, side, room);
      do {
        int64_t from[DIMS], at = place[i] - tensor->before[i];
        memcpy(from, place, sizeof from);
        from[i] = (at % n + n) % n + tensor->before[i];
        memmove(element(tensor, side, t, place, NULL),
                element(tensor, side, t, from, NULL), (size_t)tensor->bytes);
      } while (place_next(tensor->dims, room, place));
    }
}

// Values by the place in the whole; the gaps between them have others.
static void tensor_fill(const struct prototype *p, side_t *side, int t) {
  const struct tensor *tensor = &p->tensor[t];
  int64_t place[DIMS] = {0}, room[DIMS];
  rooms_of(tensor, side, room);
  memset(side->run.data[t], GAP, side->bytes[t]);
  if (tensor->use == USE_RESULT)
    return;
  do {
    uint64_t value = (uint64_t)t;
    for (int i = 0; i < tensor->dims; i++)
      value = mix(value, (uint64_t)(side->first[tensor->dim[i]] + place[i] -
                                    tensor->before[i]));
    if (is_others(p, tensor, side, place))
      value = 0x2b2b2b2b2b2b2b2b;
    if (tensor->kind == 'b')
      value &= 1;
    memcpy(element(tensor, side, t, place, NULL), &value,
           (size_t)tensor->bytes);
  } while (place_next(tensor->dims, room, place));
}

static void *device_memory(size_t bytes) {
  void *memory = NULL;
  CHECK(cudaMalloc(&memory, bytes));
  return memory;
}

// All ranks choose alike.
static bool is_in_device(const function_t *f, int t) {
  return f->is_kernel && mix((uint64_t)(f - functions), (uint64_t)t) % 4 != 0;
}

static void side_copy(const function_t *f, side_t *side,
                      enum cudaMemcpyKind kind) {
  for (int t = 0; t < f->prototype->tensors; t++)
    if (side->given[t] == side->run.data[t])
      continue;
    else if (kind == cudaMemcpyHostToDevice)
      CHECK(
          cudaMemcpy(side->given[t], side->run.data[t], side->bytes[t], kind));
    else
      CHECK(
          cudaMemcpy(side->run.data[t], side->given[t], side->bytes[t], kind));
}

static void side_make(const function_t *f, side_t *side, bool managed) {
  f->strides(side->run.extent, side->run.stride);
  for (int t = 0; t < f->prototype->tensors; t++) {
    const struct tensor *tensor = &f->prototype->tensor[t];
    int64_t last = tensor->use == USE_RESULT ? tensor->count - 1 : 0;
    int64_t room[DIMS];
    rooms_of(tensor, side, room);
    for (int i = 0; i < tensor->dims; i++)
      last += (room[i] - 1) * side->run.stride[t][i];
    side->bytes[t] = (size_t)(last + 1) * (size_t)tensor->bytes;
    // A result of a function on the host may lie in any memory.
    bool device = managed && is_in_device(f, t);
    side->run.data[t] = memory_get(
        managed && !device && !(tensor->use == USE_RESULT && f->on_host),
        side->bytes[t]);
    side->given[t] = device ? device_memory(side->bytes[t]) : side->run.data[t];
    tensor_fill(f->prototype, side, t);
  }
}

static bool same(const function_t *f, const side_t *piece, const side_t *whole,
                 int step) {
  const struct prototype *p = f->prototype;
  for (int t = 0; t < p->tensors; t++) {
    const struct tensor *tensor = &p->tensor[t];
    int64_t place[DIMS] = {0}, room[DIMS];
    char *seen = calloc(piece->bytes[t], 1);
    if (tensor->use == USE_RESULT) {
      free(seen);
      double want = 0, got = 0;
      for (int n = 0; n < tensor->count && tensor->combine == 'm'; n++) {
        const char *w = (char *)whole->run.data[t] + n * tensor->bytes,
                   *g = (char *)piece->run.data[t] + n * tensor->bytes;
        want = tensor->bytes == 8 ? *(const double *)w : *(const float *)w;
        got = tensor->bytes == 8 ? *(const double *)g : *(const float *)g;
        double far = want > got ? want - got : got - want;
        if (!(far < (tensor->bytes == 8 ? 1e-12 : 1e-4)))
          goto result_bad;
      }
      if (tensor->combine != 'm' &&
          memcmp(piece->run.data[t], whole->run.data[t], piece->bytes[t]) != 0)
      result_bad:
        return fprintf(stderr, "%s step %d: result %d differs\n", p->name, step,
                       t),
               false;
      continue;
    }
    rooms_of(tensor, piece, room);
    do {
      char *a = element(tensor, piece, t, place, NULL);
      const char *b = element(tensor, whole, t, place, piece->first);
      memset(seen + (a - (char *)piece->run.data[t]), 1, (size_t)tensor->bytes);
      if (!is_others(p, tensor, piece, place) &&
          memcmp(a, b, (size_t)tensor->bytes) != 0) {
        fprintf(stderr, "%s step %d: tensor %d differs at", p->name, step, t);
        for (int i = 0; i < tensor->dims; i++)
          fprintf(stderr, " %c%lld", "NCDHW"[tensor->dim[i]],
                  (long long)(place[i] - tensor->before[i] +
                              piece->first[tensor->dim[i]]));
        fprintf(stderr, "\n");
        return false;
      }
    } while (place_next(tensor->dims, room, place));
    for (size_t i = 0; i < piece->bytes[t]; i++)
      if (!seen[i] && ((char *)piece->run.data[t])[i] != GAP)
        return fprintf(stderr, "%s step %d: tensor %d: a gap was written\n",
                       p->name, step, t),
               false;
    free(seen);
  }
  return true;
}

// Tensors move to other memory: a plan that came before is used again.
static void side_move(const function_t *f, side_t *side) {
  for (int t = 0; t < f->prototype->tensors; t += 2) {
    if (f->prototype->tensor[t].use == USE_RESULT)
      continue;
    if (is_in_device(f, t)) {
      void *there = device_memory(side->bytes[t]);
      CHECK(cudaMemcpy(there, side->given[t], side->bytes[t],
                       cudaMemcpyDeviceToDevice));
      CHECK(cudaFree(side->given[t]));
      side->given[t] = there;
      continue;
    }
    void *memory = memory_get(true, side->bytes[t]);
    memcpy(memory, side->run.data[t], side->bytes[t]);
    side->run.data[t] = side->given[t] = memory;
  }
}

static bool has_ghosts(const struct prototype *p) {
  for (int d = 0; d < DIMS; d++)
    if (p->has_ghosts[d])
      return true;
  return false;
}

static bool function_check(const function_t *f, const int64_t (*box)[3]) {
  side_t piece = {.bytes = {0}}, whole = {.bytes = {0}};
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  for (int d = 0; d < DIMS; d++) {
    piece.run.extent[d] = box[d][1] - box[d][0];
    piece.first[d] = box[d][0];
    whole.run.extent[d] = piece.whole[d] = whole.whole[d] = box[d][2];
  }
  side_make(f, &piece, true);
  side_make(f, &whole, false);
  // Some results stay on the device from one launch to the next.
  bool stays = (f - functions) % 2 && !has_ghosts(f->prototype);
  for (int step = 0; step < 3; step++) {
    ghosts_wrap(f->prototype, &piece);
    ghosts_wrap(f->prototype, &whole);
    if (step == 0 || !stays)
      side_copy(f, &piece, cudaMemcpyHostToDevice);
    uint64_t got = f->call(piece.run.extent, piece.given, stream, step, 0);
    CHECK(cudaStreamSynchronize(stream));
    uint64_t want = f->call(whole.run.extent, whole.run.data, NULL, step, 1);
    CHECK(cudaDeviceSynchronize());
    if (step == 2 || !stays)
      side_copy(f, &piece, cudaMemcpyDeviceToHost);
    uint64_t far = got > want ? got - want : want - got;
    if (f->near ? far > 2 : far > 0)
      return fprintf(stderr, "%s step %d: returns %llx, not %llx\n",
                     f->prototype->name, step, (unsigned long long)got,
                     (unsigned long long)want),
             false;
    if ((step == 2 || !stays) && !same(f, &piece, &whole, step))
      return false;
    side_move(f, &piece);
  }
  return true;
}

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, uint3 *tid,
                            uint3 *bid, dim3 *block, dim3 *grid, int *warp);
static void **binary;

// As nvcc's code does before main.
__attribute__((constructor)) static void all_register(void) {
  static int contents;
  binary = __cudaRegisterFatBinary(&contents);
  kernels_register();
  __cudaRegisterFatBinaryEnd(binary);
}

void kernel_register(const char *stub, const char *symbol) {
  char *name = strdup(symbol);
  __cudaRegisterFunction(binary, stub, name, name, -1, NULL, NULL, NULL, NULL,
                         NULL);
}

void kernel_launch(const void *stub, dim3 grid, dim3 block, void **args,
                   cudaStream_t stream, int way) {
  cudaLaunchConfig_t config = {
      .gridDim = grid, .blockDim = block, .stream = stream};
  if (way % 3 == 0)
    CHECK(cudaLaunchKernelExC(&config, stub, args));
  else if (way % 3 == 1)
    CHECK(cudaLaunchCooperativeKernel(stub, grid, block, args, 0, stream));
  else
    CHECK(cudaLaunchKernel(stub, grid, block, args, 0, stream));
}

int main(int argc, char **argv) {
  FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
  int index, bad = 0;
  CHECK(file == NULL);
  while (fscanf(file, "%d", &index) == 1) {
    int64_t box[DIMS][3];
    for (int d = 0; d < DIMS; d++)
      for (int i = 0; i < 3; i++) {
        long long number;
        CHECK(fscanf(file, "%lld", &number) != 1);
        box[d][i] = number;
      }
    bad += !function_check(&functions[index], box);
  }
  fclose(file);
  return bad ? 3 : 0;
}
