// SPDX-License-Identifier: Apache-2.0
// Reads arguments by the table of entries.
#include "interpose/invocation.h"

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <string.h>

#include "interpose/slot.h"
#include "rules/attention/call/descriptor.h"
#include "rules/file/setup.h"
#include "rules/vendor/product.h"
#include "rules/vendor/sequence.h"
#include "rules/vendor/tensor.h"
#include "src/base/hash.h"
#include "src/call/tag.h"
#include "src/job/job.h"

static const void *pointer_at(const void *args, uint16_t offset) {
  const void *pointer = NULL;
  if (offset != SDG_ENTRY_NOWHERE)
    memcpy(&pointer, (const char *)args + offset, sizeof pointer);
  return pointer;
}

static size_t size_at(const void *args, uint16_t offset, size_t fallback) {
  if (offset != SDG_ENTRY_NOWHERE)
    memcpy(&fallback, (const char *)args + offset, sizeof fallback);
  return fallback;
}

static const void *stream_of(const sdg_entry_t *info, const void *args) {
  const void *stream = pointer_at(args, info->stream);
  if (info == &sdg_entry[SDG_ENTRY_cudaLaunchKernelExC] ||
      info == &sdg_entry[SDG_ENTRY_cudaLaunchKernelExC_ptsz]) {
    const struct sdg_args_cudaLaunchKernelExC *launch = args;
    stream = launch->config ? launch->config->stream : NULL;
  }
  return stream || !info->per_thread ? stream
                                     : (const void *)cudaStreamPerThread;
}

static sdg_stream_kind_t stream_kind(const sdg_entry_t *info) {
  if (info->library == SDG_LIBRARY_CUDNN)
    return SDG_STREAM_CUDNN;
  return info->library == SDG_LIBRARY_CUBLAS &&
                 info->handle != SDG_ENTRY_NOWHERE
             ? SDG_STREAM_CUBLAS
             : SDG_STREAM_GIVEN;
}

static size_t strip_bytes(int64_t n, int64_t step, size_t each) {
  return ((size_t)(n - 1) * (size_t)(step < 0 ? -step : step) + 1) * each;
}

// A vector has the length that the call states; it need not fill its
// allocation.
static void vectors_trim(const sdg_entry_t *info, const void *args,
                         sdg_memory_access_t *memory) {
  static const sdg_elements_t elements[] = {
      [SDG_VECTOR_COPY] = SDG_ELEMENTS_COPY,
      [SDG_VECTOR_AXPY] = SDG_ELEMENTS_UPDATE,
      [SDG_VECTOR_SCAL] = SDG_ELEMENTS_UPDATE,
      [SDG_VECTOR_SWAP] = SDG_ELEMENTS_SWAP,
      [SDG_VECTOR_ROT] = SDG_ELEMENTS_ROTATE};
  sdg_vector_t v;
  info->vector(args, &v);
  size_t x = sdg_vector_type_bytes(v.type_x);
  size_t y = v.y ? sdg_vector_type_bytes(v.type_y) : 0;
  for (int i = 0; v.result && i < memory->accesses; i++)
    if (memory->access[i].at == (uintptr_t)v.result) {
      size_t bytes = sdg_vector_type_bytes(v.type_result);
      memory->access[i].width = memory->access[i].pitch = bytes;
    }
  if (v.n < 1 || x == 0 || (v.y && y == 0))
    return;
  for (int i = 0; i < memory->accesses; i++) {
    sdg_access_t *access = &memory->access[i];
    bool is_x = access->at == (uintptr_t)v.x;
    bool is_y = v.y && access->at == (uintptr_t)v.y;
    size_t of_x = is_x ? strip_bytes(v.n, v.incx, x) : 0;
    size_t of_y = is_y ? strip_bytes(v.n, v.incy, y) : 0;
    if (!is_x && !is_y)
      continue;
    access->width = access->pitch = of_x > of_y ? of_x : of_y;
    access->height = 1;
    // The call keeps the memory between the elements.
    access->reads |= access->writes && is_y && v.incy != 1 && v.incy != -1;
  }
  if (v.op <= SDG_VECTOR_INDEX || (v.y && (v.incx != v.incy || x != y)) ||
      v.incx == 0 || (v.y && v.type_x != v.type_y))
    return;
  const int64_t sizes[] = {v.n,      v.incx,   v.incy,
                           v.type_x, v.type_y, v.type_execution};
  memory->sizes = SDG_HASH_SEED;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    memory->sizes = sdg_hash_word(memory->sizes, (uint64_t)sizes[i]);
  memory->scalar[0] = v.scalar;
  memory->scalar[1] = v.scalar2;
  memory->scalar_bytes[0] =
      v.scalar ? (size_t)v.scalars * sdg_vector_type_bytes(v.type_scalar) : 0;
  memory->scalar_bytes[1] =
      v.scalar2 ? sdg_vector_type_bytes(v.type_scalar2) : 0;
  memory->elementwise = x;
  memory->elements = elements[v.op];
  memory->gaps = v.incx != 1 && v.incx != -1;
}

// A copy of contiguous bytes: whole tensors among them keep their pieces. What
// is read comes first, as in calls on vectors.
static void bytes_trim(sdg_memory_access_t *memory) {
  const sdg_access_t to = memory->access[0], from = memory->access[1];
  if (!memory->copies || memory->accesses != 2 || !to.writes || to.reads ||
      !from.reads || from.writes || to.height != 1 || from.height != 1 ||
      to.width == 0 || to.width != from.width)
    return;
  memory->access[0] = from;
  memory->access[1] = to;
  memory->elementwise = 1;
  memory->elements = SDG_ELEMENTS_BYTES;
  memory->gaps = false;
  memory->sizes = sdg_hash_word(SDG_HASH_SEED, to.width);
  memory->scalar_bytes[0] = memory->scalar_bytes[1] = 0;
}

void sdg_invocation_access(int entry, const void *args,
                           sdg_memory_access_t *memory) {
  const sdg_entry_t *info = &sdg_entry[entry];
  memory->name = info->name;
  memory->stream_kind = stream_kind(info);
  memory->stream = memory->stream_kind == SDG_STREAM_GIVEN
                       ? stream_of(info, args)
                       : pointer_at(args, info->handle);
  memory->everything = info->everything;
  memory->copies = info->library == SDG_LIBRARY_CUDART;
  memory->accesses = 0;
  for (int i = 0; i < info->accesses; i++) {
    const sdg_entry_access_t *row = &info->access[i];
    const void *at = pointer_at(args, row->pointer);
    size_t width = size_at(args, row->width, 0);
    if (!at || (row->width != SDG_ENTRY_NOWHERE && width == 0))
      continue;
    memory->access[memory->accesses++] = (sdg_access_t){
        .at = (uintptr_t)at,
        .reads = row->reads,
        .writes = row->writes,
        .width = width,
        .pitch = size_at(args, row->pitch, width),
        .height = size_at(args, row->height, 1),
    };
  }
  memory->elementwise = 0;
  if (info->vector)
    vectors_trim(info, args, memory);
  else
    bytes_trim(memory);
}

// ---- copies whose arguments are in structs ----------------------------------

// A box of bytes; extents of array elements are not read.
static sdg_access_t volume(struct cudaPitchedPtr memory, struct cudaPos from,
                           struct cudaExtent extent, bool writes) {
  size_t slice = memory.pitch * memory.ysize;
  sdg_access_t access = {
      .at = (uintptr_t)memory.ptr + from.z * slice + from.y * memory.pitch +
            from.x,
      .reads = !writes,
      .writes = writes,
      .width = extent.width,
      .pitch = memory.pitch,
      .height = extent.height * extent.depth,
  };
  if (extent.depth > 1 && extent.height != memory.ysize) {
    access.width += (extent.height - 1) * memory.pitch;
    access.pitch = slice;
    access.height = extent.depth;
  }
  if (extent.width == 0 || access.height == 0)
    access.width = access.height = 0;
  return access;
}

static void volumes_copy(const void *from_array, struct cudaPitchedPtr from,
                         struct cudaPos from_pos, const void *to_array,
                         struct cudaPitchedPtr to, struct cudaPos to_pos,
                         struct cudaExtent extent,
                         sdg_memory_access_t *memory) {
  memory->accesses = 0;
  memory->everything = from_array && !to_array; // extents are the array's
  if (to_array || from_array)
    return;
  memory->access[memory->accesses++] = volume(from, from_pos, extent, false);
  memory->access[memory->accesses++] = volume(to, to_pos, extent, true);
}

static void batch_copy(const struct sdg_args_cudaMemcpyBatchAsync *all,
                       size_t index, sdg_memory_access_t *memory) {
  size_t bytes = all->sizes[index];
  const sdg_access_t from = {.at = (uintptr_t)all->srcs[index], .reads = true},
                     to = {.at = (uintptr_t)all->dsts[index], .writes = true};
  memory->accesses = 2;
  memory->everything = false;
  memory->access[0] = from;
  memory->access[1] = to;
  for (int i = 0; i < 2; i++) {
    memory->access[i].width = memory->access[i].pitch = bytes;
    memory->access[i].height = bytes > 0;
  }
}

// How many copies the invocation makes.
static size_t copies_of(int entry, const void *args) {
  const struct sdg_args_cudaMemcpyBatchAsync *all = args;
  if (entry != SDG_ENTRY_cudaMemcpyBatchAsync &&
      entry != SDG_ENTRY_cudaMemcpyBatchAsync_ptsz)
    return 1;
  return all->dsts && all->srcs && all->sizes ? all->count : 0;
}

bool sdg_invocation_copy(int entry, const void *args, size_t index,
                         sdg_memory_access_t *memory) {
  if (index >= copies_of(entry, args))
    return false;
  sdg_invocation_access(entry, args, memory);
  switch (entry) {
  case SDG_ENTRY_cudaMemcpyBatchAsync:
  case SDG_ENTRY_cudaMemcpyBatchAsync_ptsz:
    batch_copy(args, index, memory);
    break;
  case SDG_ENTRY_cudaMemcpy3D:
  case SDG_ENTRY_cudaMemcpy3D_ptds:
  case SDG_ENTRY_cudaMemcpy3DAsync:
  case SDG_ENTRY_cudaMemcpy3DAsync_ptsz: {
    const struct cudaMemcpy3DParms *p =
        ((const struct sdg_args_cudaMemcpy3D *)args)->p;
    if (p)
      volumes_copy(p->srcArray, p->srcPtr, p->srcPos, p->dstArray, p->dstPtr,
                   p->dstPos, p->extent, memory);
    break;
  }
  case SDG_ENTRY_cudaMemcpy3DPeer:
  case SDG_ENTRY_cudaMemcpy3DPeer_ptds:
  case SDG_ENTRY_cudaMemcpy3DPeerAsync:
  case SDG_ENTRY_cudaMemcpy3DPeerAsync_ptsz: {
    const struct cudaMemcpy3DPeerParms *p =
        ((const struct sdg_args_cudaMemcpy3DPeer *)args)->p;
    if (p)
      volumes_copy(p->srcArray, p->srcPtr, p->srcPos, p->dstArray, p->dstPtr,
                   p->dstPos, p->extent, memory);
    break;
  }
  case SDG_ENTRY_cudaMemset3D:
  case SDG_ENTRY_cudaMemset3D_ptds:
  case SDG_ENTRY_cudaMemset3DAsync:
  case SDG_ENTRY_cudaMemset3DAsync_ptsz: {
    const struct sdg_args_cudaMemset3D *p = args;
    memory->accesses = 1;
    memory->everything = false;
    memory->access[0] =
        volume(p->pitchedDevPtr, (struct cudaPos){0, 0, 0}, p->extent, true);
    break;
  }
  default:
    break;
  }
  return true;
}

void sdg_invocation_trim(const sdg_call_t *call, sdg_memory_access_t *memory) {
  for (int i = 0; i < memory->accesses; i++)
    for (int k = 0; k < call->operands; k++) {
      const sdg_operand_t *operand = &call->operand[k];
      if ((uintptr_t)operand->data != memory->access[i].at ||
          operand->elem_bytes == 0)
        continue;
      size_t bytes = sdg_operand_access(operand, true, false).width;
      if (bytes > memory->access[i].width)
        memory->access[i].width = memory->access[i].pitch = bytes;
    }
}

static bool operand_get(const sdg_call_t *call, sdg_operand_t *operand) {
  switch (operand->kind) {
  case SDG_OPERAND_FILTER:
    return sdg_filter_get(operand);
  case SDG_OPERAND_SEQUENCE:
    return sdg_sequence_get(operand);
  case SDG_OPERAND_LIMITS:
    return sdg_attention_descriptor_limits(operand);
  case SDG_OPERAND_PARAMETERS:
    return sdg_attention_descriptor_parameters(
        operand, (cudnnHandle_t)(uintptr_t)call->handle);
  case SDG_OPERAND_COORDINATES:
    for (int i = 0; i < call->operands; i++)
      if (call->operand[i].descriptor_at == operand->descriptor_at)
        operand->beside = i;
    return sdg_coordinates_get(operand);
  case SDG_OPERAND_TENSOR:
    break;
  }
  return sdg_tensor_get(operand);
}

bool sdg_invocation_call(int entry, const void *args, sdg_gemm_t *gemm,
                         sdg_call_t *call) {
  const sdg_entry_t *info = &sdg_entry[entry];
  call->entry = entry;
  call->entry_name = info->name;
  call->family = info->family;
  call->handle = pointer_at(args, info->handle);
  call->stream_kind = stream_kind(info);
  call->stream = pointer_at(args, info->stream);
  call->args = args;
  call->op_descriptor = pointer_at(args, info->op);
  call->op_generation = sdg_tag_generation(call->op_descriptor);
  call->window = NULL;
  call->is_query = info->is_query;
  call->result = 0;
  call->refused = false;
  call->memory = NULL;
  call->operands = 0;
  if (info->product) {
    info->product(args, gemm);
    gemm->in_pieces = sdg_job_asked() && sdg_setup_in_pieces();
    sdg_product_read(gemm, call);
    return true;
  }
  for (int i = 0; i < info->operands; i++) {
    const sdg_entry_operand_t *row = &info->operand[i];
    const void *descriptor = pointer_at(args, row->descriptor);
    void *data = (void *)pointer_at(args, row->data);
    bool needs_data = row->kind == SDG_OPERAND_SEQUENCE ||
                      row->kind == SDG_OPERAND_PARAMETERS;
    if (!descriptor || (needs_data && !data))
      continue;
    sdg_operand_t *operand = &call->operand[call->operands];
    *operand = (sdg_operand_t){
        .role = row->role,
        .is_output = row->is_output,
        .is_updated = row->is_updated,
        .kind = row->kind,
        .descriptor = descriptor,
        .generation = sdg_tag_generation(descriptor),
        .label = sdg_tag_label(descriptor, sdg_tag_generation(descriptor)),
        .data = data,
        .descriptor_at = row->descriptor,
        .data_at = row->data,
    };
    if (!operand_get(call, operand))
      return false;
    call->operands++;
  }
  return call->operands > 0;
}
