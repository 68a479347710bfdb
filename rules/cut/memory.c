// SPDX-License-Identifier: Apache-2.0
// The memory of the ranks that are played: copies of the program's arrays, with
// margins around them.
#include <stdlib.h>
#include <string.h>

#include "rules/cut/attempt.h"
#include "rules/function/fit.h"
#include "src/base/vendor.h"

// A margin is as large as the array, within these limits, so that a function
// that takes it for larger than it is stays in it.
enum { MARGIN_LEAST = 4096, MARGIN_MOST = 1 << 20 };

bool sdg_cut_next(const sdg_box_t *box, int64_t *io_index) {
  for (int d = box->dims - 1; d >= 0; d--) {
    if (++io_index[d] < box->dim[d].hi)
      return true;
    io_index[d] = box->dim[d].lo;
  }
  return false;
}

size_t sdg_cut_byte(const sdg_cut_array_t *array, const int64_t *index) {
  int64_t at = 0;
  for (int d = 0; d < array->operand.dims; d++)
    at += index[d] * array->operand.stride[d];
  return (size_t)at * (size_t)array->operand.elem_bytes;
}

size_t sdg_cut_byte_of_piece(const sdg_cut_piece_t *piece, int elem_bytes,
                             const int64_t *index) {
  int64_t at = 0;
  for (int d = 0; d < piece->held.dims; d++)
    at += (index[d] - piece->held.dim[d].lo) * piece->stride[d];
  return piece->margin + (size_t)at * (size_t)elem_bytes;
}

static bool cuda_good(sdg_cut_t *cut, cudaError_t got, const char *what) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (got == cudaSuccess)
    return true;
  (void)cuda->cudaGetLastError(); // the error is not the program's
  return sdg_cut_fails(cut, "%s: %s", what, cuda->cudaGetErrorString(got));
}

bool sdg_cut_copy(sdg_cut_t *cut, void *to, const void *from, size_t bytes) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  cudaError_t got =
      cuda->cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cut->stream);
  if (got == cudaSuccess)
    got = cuda->cudaStreamSynchronize(cut->stream);
  return cuda_good(cut, got, "a copy of its tensors");
}

// ---- the program's arrays --------------------------------------------------

static void array_describe(sdg_cut_t *cut, int index) {
  sdg_cut_array_t *array = &cut->array[index];
  int tensor = sdg_function_tensor_of(cut->function, index);
  int64_t last = 0;
  array->operand = cut->call.operand[index];
  for (int d = 0; d < array->operand.dims; d++) {
    int at = sdg_function_extent_at(cut->function, tensor, d);
    if (at >= 0 && !cut->whole) { // there ghosts are elements like others
      array->before[d] = cut->function->tensor[tensor].ghost[at].before;
      array->behind[d] = cut->function->tensor[tensor].ghost[at].behind;
      array->operand.extent[d] += array->before[d] + array->behind[d];
    }
    last += (array->operand.extent[d] - 1) * array->operand.stride[d];
  }
  array->bytes = (size_t)(last + 1) * (size_t)array->operand.elem_bytes;
}

// The operand with the same memory; -1: it has a part of another's.
static int twin_of(const sdg_cut_t *cut, int index) {
  const sdg_cut_array_t *array = &cut->array[index];
  uintptr_t at = (uintptr_t)array->operand.data;
  for (int i = 0; i < index; i++) {
    uintptr_t other = (uintptr_t)cut->array[i].operand.data;
    if (at == other && cut->array[i].bytes == array->bytes)
      return cut->array[i].twin;
    if (at < other + cut->array[i].bytes && other < at + array->bytes)
      return -1;
  }
  return index;
}

static bool array_open(sdg_cut_t *cut, int index) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  sdg_cut_array_t *array = &cut->array[index];
  struct cudaPointerAttributes is = {.type = cudaMemoryTypeUnregistered};
  array_describe(cut, index);
  array->twin = twin_of(cut, index);
  if (array->twin < 0)
    return sdg_cut_fails(
        cut, "two of its tensors overlap: are their extents right?");
  if (cuda->cudaPointerGetAttributes(&is, array->operand.data) != cudaSuccess)
    (void)cuda->cudaGetLastError(); // the error is not the program's
  array->on_device = is.type == cudaMemoryTypeDevice;
  array->on_host = is.type == cudaMemoryTypeUnregistered;
  if (array->on_host &&
      !(sdg_cut_is_result(cut, index) && cut->function->on_host))
    return sdg_cut_fails(cut,
                         "'%s' is in memory that the CUDA runtime did not "
                         "allocate",
                         sdg_cut_name(cut, index));
  array->old = malloc(array->bytes);
  if (!array->old)
    return sdg_cut_fails(cut, "no memory for copies of its tensors");
  return sdg_cut_copy(cut, array->old, array->operand.data, array->bytes);
}

bool sdg_cut_arrays(sdg_cut_t *cut) {
  for (int i = 0; i < cut->call.operands; i++)
    if (!array_open(cut, i))
      return false;
  return true;
}

// ---- pieces ----------------------------------------------------------------

// Which elements a rank has. In the whole view it has room for all, and which
// of them are up to date depends on the plan.
static void boxes_find(const sdg_cut_t *cut, int index, int rank,
                       sdg_cut_piece_t *out) {
  const sdg_cut_array_t *array = &cut->array[index];
  const sdg_placement_t *placement = &cut->placement[index];
  out->held = sdg_box_whole(array->operand.dims, array->operand.extent);
  out->own = out->held;
  if (cut->whole || placement->dims == 0 || rank == SDG_CUT_ALONE)
    return;
  sdg_box_t piece = sdg_placement_box(placement, cut->mesh, rank);
  for (int d = 0; d < piece.dims; d++) {
    int64_t lo = piece.dim[d].lo, hi = piece.dim[d].hi;
    if (!sdg_placement_splits(placement, d))
      continue;
    bool last = hi == sdg_placement_extent(placement, d);
    out->held.dim[d] =
        (sdg_range_t){lo, hi + array->before[d] + array->behind[d]};
    out->own.dim[d] =
        (sdg_range_t){lo == 0 ? 0 : lo + array->before[d],
                      hi + array->before[d] + (last ? array->behind[d] : 0)};
  }
}

static bool block_allocate(sdg_cut_t *cut, bool on_device, bool on_host,
                           size_t bytes, char **out) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  void *block = NULL;
  if (on_host) {
    *out = malloc(bytes);
    return *out || sdg_cut_fails(cut, "no memory for copies of its results");
  }
  bool good = cuda_good(
      cut,
      on_device ? cuda->cudaMalloc(&block, bytes)
                : cuda->cudaMallocManaged(&block, bytes, cudaMemAttachGlobal),
      "memory for copies of its tensors");
  *out = block;
  return good;
}

static bool piece_allocate(sdg_cut_t *cut, int index, sdg_cut_rank_t *rank) {
  const sdg_cut_array_t *array = &cut->array[index];
  sdg_cut_piece_t *piece = &rank->piece[index];
  const sdg_operand_t *operand = &rank->call.operand[index];
  size_t margin = array->bytes < MARGIN_LEAST  ? MARGIN_LEAST
                  : array->bytes > MARGIN_MOST ? MARGIN_MOST
                                               : array->bytes;
  int64_t last = 0;
  for (int d = 0; d < operand->dims; d++) {
    piece->stride[d] = operand->stride[d];
    last += (sdg_box_length(&piece->held, d) - 1) * operand->stride[d];
  }
  piece->bytes = (size_t)(last + 1) * (size_t)operand->elem_bytes;
  piece->margin = margin / MARGIN_LEAST * MARGIN_LEAST; // keeps the alignment
  size_t all = piece->bytes + 2 * piece->margin;
  piece->given = malloc(all);
  piece->after = malloc(all);
  if (!piece->given || !piece->after)
    return sdg_cut_fails(cut, "no memory for copies of its tensors");
  memset(piece->given, cut->nothing, all);
  return block_allocate(cut, array->on_device, array->on_host, all,
                        &piece->block);
}

// ---- arguments -------------------------------------------------------------

// The played rank calls the function as the program does.
static void played(const sdg_function_call_t *call, void *const *value,
                   bool keeps) {
  const sdg_function_call_t *own = call->user;
  own->invoke(own, value, keeps);
  if (keeps && own->returned)
    memcpy(call->returned, own->returned, 16);
}

static bool integers_fit(sdg_cut_t *cut, int rank, int64_t *out) {
  memcpy(out, cut->own->integer, sizeof cut->own->integer);
  if (cut->whole || rank == SDG_CUT_ALONE)
    return true;
  sdg_box_t piece = sdg_placement_box(&cut->placement[0], cut->mesh, rank);
  return sdg_function_fit(cut->own, &piece, out) == SDG_OK ||
         sdg_cut_fails(cut, "%s", sdg_last_error());
}

static bool arguments_make(sdg_cut_t *cut, int number, sdg_cut_rank_t *rank) {
  const sdg_function_t *function = cut->function;
  if (!integers_fit(cut, number, rank->number))
    return false;
  for (int a = 0; a < function->arguments && function->is_kernel; a++)
    if (rank->number[a] != cut->own->integer[a] &&
        !sdg_grid_follows(&function->grid, a))
      return sdg_cut_fails(cut, "grid does not say how the launch follows '%s'",
                           function->argument[a].name);
  rank->function = *cut->own;
  rank->function.value = rank->value;
  rank->function.invoke = played;
  rank->function.user = (void *)(uintptr_t)cut->own;
  rank->function.returned = rank->returned;
  for (int a = 0; a < function->arguments; a++) {
    rank->value[a] = cut->own->value[a];
    if (rank->number[a] == cut->own->integer[a])
      continue;
    rank->address[a] = &rank->number[a]; // little endian
    rank->value[a] = function->argument[a].by_reference
                         ? (void *)&rank->address[a]
                         : (void *)&rank->number[a];
  }
  for (int i = 0; i < cut->call.operands; i++) { // until there is memory
    int a = function->tensor[sdg_function_tensor_of(function, i)].argument;
    rank->address[a] = cut->call.operand[i].data;
    rank->value[a] = &rank->address[a];
  }
  return sdg_function_call_init(&rank->function, &rank->call) == SDG_OK ||
         sdg_cut_fails(cut, "%s", sdg_last_error());
}

// The rank's extents are those of its piece: otherwise a split run refuses the
// call.
static bool extents_check(sdg_cut_t *cut, int number,
                          const sdg_cut_rank_t *rank) {
  for (int i = 0; i < cut->call.operands; i++) {
    const sdg_placement_t *placement = &cut->placement[i];
    if (placement->dims == 0 || cut->whole || number == SDG_CUT_ALONE)
      continue;
    sdg_box_t box = sdg_placement_box(placement, cut->mesh, number);
    for (int d = 0; d < placement->dims; d++)
      if (rank->call.operand[i].extent[d] != sdg_box_length(&box, d))
        return sdg_cut_fails(cut,
                             "'%s' of a piece does not have the elements of "
                             "that piece",
                             sdg_cut_name(cut, i));
  }
  return true;
}

bool sdg_cut_pieces(sdg_cut_t *cut, int number, sdg_cut_rank_t *rank) {
  if (!arguments_make(cut, number, rank) || !extents_check(cut, number, rank))
    return false;
  for (int i = 0; i < cut->call.operands; i++) {
    int twin = cut->array[i].twin;
    sdg_cut_piece_t *piece = &rank->piece[i];
    boxes_find(cut, i, number, piece);
    if (twin == i && !piece_allocate(cut, i, rank))
      return false;
    if (twin != i) {
      sdg_box_t own = piece->own;
      *piece = rank->piece[twin];
      piece->own = own;
    }
    int a = cut->function->tensor[sdg_function_tensor_of(cut->function, i)]
                .argument;
    rank->call.operand[i].data = piece->block + piece->margin;
    rank->address[a] = rank->call.operand[i].data;
  }
  return true;
}

// ---- elements --------------------------------------------------------------

static void elements_give(const sdg_cut_t *cut, int index, sdg_box_t box,
                          sdg_cut_piece_t *piece) {
  const sdg_cut_array_t *array = &cut->array[index];
  const char *old = cut->array[array->twin].old;
  int64_t at[SDG_DIMS_MAX] = {0};
  box = sdg_box_intersect(&box, &piece->held);
  if (sdg_box_empty(&box))
    return;
  for (int d = 0; d < box.dims; d++)
    at[d] = box.dim[d].lo;
  do
    memcpy(piece->given +
               sdg_cut_byte_of_piece(piece, array->operand.elem_bytes, at),
           old + sdg_cut_byte(array, at), (size_t)array->operand.elem_bytes);
  while (sdg_cut_next(&box, at));
}

// Rows beyond the ends of a periodic dimension are those of the other end.
static void images_give(const sdg_cut_t *cut, int index, const sdg_box_t *box,
                        sdg_cut_piece_t *piece) {
  int64_t shift[SDG_DIMS_MAX], d;
  for (d = 0; d < box->dims; d++)
    shift[d] = -1;
  do {
    sdg_box_t moved = *box;
    for (d = 0; d < box->dims; d++) {
      moved.dim[d].lo += shift[d] * cut->array[index].operand.extent[d];
      moved.dim[d].hi += shift[d] * cut->array[index].operand.extent[d];
    }
    elements_give(cut, index, moved, piece);
    for (d = box->dims - 1; d >= 0 && ++shift[d] > 1; d--)
      shift[d] = -1;
  } while (d >= 0);
}

static void piece_fill(sdg_cut_t *cut, sdg_cut_rank_t *rank, int number,
                       int index) {
  sdg_cut_piece_t *piece = &rank->piece[index];
  const sdg_share_t *share = rank->plan ? rank->plan->share : NULL;
  if (share && share->reads[index])
    images_give(cut, index, &share->reads[index][number], piece);
  else
    elements_give(cut, index, piece->own, piece);
}

static bool scratch_open(sdg_cut_t *cut, sdg_cut_rank_t *rank) {
  const sdg_plan_t *plan = rank->plan;
  size_t bytes = plan->scratch_bytes + 2 * (size_t)MARGIN_LEAST;
  bool managed = plan->on_host;
  for (int i = 0; i < cut->call.operands; i++)
    managed |= plan->on_host_as_operands && !cut->array[i].on_device &&
               !cut->array[i].on_host;
  return block_allocate(cut, !managed, false, bytes, &rank->scratch) &&
         cuda_good(cut,
                   sdg_vendor_get()->cudaMemsetAsync(
                       rank->scratch, cut->nothing, bytes, cut->stream),
                   "a fill of scratch memory");
}

bool sdg_cut_fill(sdg_cut_t *cut, int number, sdg_cut_rank_t *rank) {
  for (int i = 0; i < cut->call.operands; i++)
    piece_fill(cut, rank, number, i);
  for (int i = 0; i < cut->call.operands; i++) {
    sdg_cut_piece_t *piece = &rank->piece[i];
    if (cut->array[i].twin == i &&
        !sdg_cut_copy(cut, piece->block, piece->given,
                      piece->bytes + 2 * piece->margin))
      return false;
  }
  return !rank->plan || scratch_open(cut, rank);
}

bool sdg_cut_take(sdg_cut_t *cut, sdg_cut_rank_t *rank) {
  for (int i = 0; i < cut->call.operands; i++) {
    sdg_cut_piece_t *piece = &rank->piece[i];
    if (cut->array[i].twin == i &&
        !sdg_cut_copy(cut, piece->after, piece->block,
                      piece->bytes + 2 * piece->margin))
      return false;
  }
  return true;
}

void sdg_cut_memory_free(sdg_cut_t *cut, sdg_cut_rank_t *rank) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  for (int i = 0; i < cut->call.operands; i++) {
    if (cut->array[i].twin != i || !rank->piece[i].block)
      continue;
    if (cut->array[i].on_host)
      free(rank->piece[i].block);
    else
      (void)cuda->cudaFree(rank->piece[i].block);
    rank->piece[i].block = NULL;
  }
  if (rank->scratch)
    (void)cuda->cudaFree(rank->scratch);
  rank->scratch = NULL;
}

void sdg_cut_copies_free(sdg_cut_t *cut, sdg_cut_rank_t *rank) {
  for (int i = 0; i < cut->call.operands; i++)
    if (cut->array[i].twin == i) {
      free(rank->piece[i].given);
      free(rank->piece[i].after);
    }
  sdg_plan_destroy(rank->plan);
}
