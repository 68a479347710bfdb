// SPDX-License-Identifier: Apache-2.0
// Builds plans: slabs, steps and messages as growing arrays.
#include "src/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "src/plan/combine.h"
#include "src/plan/steps.h"

// Every slab in scratch starts at a multiple of this, as cudaMalloc's memory
// does.
enum { ALIGN_BYTES = 256 };

size_t sdg_plan_aligned(size_t bytes) {
  return (bytes + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
}

const char *sdg_copy_kind_name(sdg_copy_kind_t kind) {
  static const char *const names[SDG_COPY_COUNT] = {
      [SDG_COPY_HALO] = "halo",
      [SDG_COPY_STRIP] = "strip",
      [SDG_COPY_ACTIVATION] = "activation",
  };
  return names[kind];
}

sdg_status_t sdg_plan_create(const char *strategy, sdg_plan_t **out_plan) {
  SDG_TRY(SDG_ALLOCATE(*out_plan, 1, "a plan"));
  (*out_plan)->strategy = strategy;
  return SDG_OK;
}

sdg_status_t sdg_plan_create_shared(const char *strategy, int ranks,
                                    sdg_plan_t **out_plan) {
  sdg_share_t *share;
  SDG_TRY(sdg_share_create(ranks, &share));
  sdg_status_t status = sdg_plan_create(strategy, out_plan);
  return sdg_plan_finish_share(share, status, out_plan);
}

sdg_status_t sdg_plan_create_refused(int refusal, sdg_plan_t **out_plan) {
  SDG_TRY(sdg_plan_create("refused", out_plan));
  (*out_plan)->refusal = refusal;
  return SDG_OK;
}

void sdg_plan_destroy(sdg_plan_t *plan) {
  if (!plan)
    return;
  if (plan->state_destroy)
    plan->state_destroy(plan->state);
  if (plan->stretches)
    plan->stretches_destroy(plan->stretches);
  sdg_share_destroy(plan->share);
  free(plan->slab);
  free(plan->step);
  free(plan->parcel);
  free(plan);
}

sdg_status_t sdg_plan_finish(sdg_plan_t *plan, sdg_status_t status,
                             sdg_plan_t **out_plan) {
  if (status == SDG_OK) {
    if (plan) // NULL: the op has none for this call
      sdg_plan_group_copies(plan);
    *out_plan = plan;
  } else {
    sdg_plan_destroy(plan);
  }
  return status;
}

sdg_status_t sdg_plan_finish_share(sdg_share_t *share, sdg_status_t status,
                                   sdg_plan_t **out_plan) {
  if (status == SDG_OK)
    (*out_plan)->share = share;
  else
    sdg_share_destroy(share);
  return status;
}

// Makes room for one more element: capacities are the powers of two from 8.
static sdg_status_t array_grow(void **array, int count, size_t elem_bytes) {
  bool full = count == 0 || (count >= 8 && (count & (count - 1)) == 0);
  if (!full)
    return SDG_OK;
  size_t capacity = count == 0 ? 8 : 2 * (size_t)count;
  void *grown = realloc(*array, capacity * elem_bytes);
  if (!grown)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan of %zu entries", capacity);
  *array = grown;
  return SDG_OK;
}

static sdg_status_t slab_add(sdg_plan_t *plan, const sdg_slab_t *slab,
                             int *out_slab) {
  SDG_TRY(array_grow((void **)&plan->slab, plan->slabs, sizeof *plan->slab));
  plan->slab[plan->slabs] = *slab;
  *out_slab = plan->slabs++;
  return SDG_OK;
}

static sdg_status_t step_add(sdg_plan_t *plan, const sdg_step_t *step) {
  SDG_TRY(array_grow((void **)&plan->step, plan->steps, sizeof *plan->step));
  plan->step[plan->steps++] = *step;
  return SDG_OK;
}

sdg_status_t sdg_plan_operand(sdg_plan_t *plan, const sdg_call_t *call,
                              int index, const sdg_box_t *box, int *out_slab) {
  return sdg_plan_tensor(plan, &call->operand[index], index, box, out_slab);
}

sdg_status_t sdg_plan_tensor(sdg_plan_t *plan, const sdg_operand_t *operand,
                             int index, const sdg_box_t *box, int *out_slab) {
  sdg_slab_t slab = {
      .operand = index, .elem_bytes = operand->elem_bytes, .box = *box};
  memcpy(slab.stride, operand->stride, sizeof slab.stride);
  memcpy(slab.nesting, sdg_operand_nesting(operand), sizeof slab.nesting);
  return slab_add(plan, &slab, out_slab);
}

static size_t scratch_take(sdg_plan_t *plan, size_t bytes) {
  size_t offset = plan->scratch_bytes;
  plan->scratch_bytes += sdg_plan_aligned(bytes);
  return offset;
}

// Whether dimension a lies inside b. Of two equal strides one belongs to a
// dimension of extent 1 in `like`. If it has extent 1 in the box, too, it is
// the inner one, so that packing a packed box changes no stride.
static bool is_inside(const sdg_box_t *box, const int64_t *like, int a, int b) {
  if (like[a] != like[b])
    return like[a] < like[b];
  bool one_a = box->dim[a].hi - box->dim[a].lo == 1;
  bool one_b = box->dim[b].hi - box->dim[b].lo == 1;
  return one_a != one_b ? one_a : a > b;
}

void sdg_slab_pack(const sdg_box_t *box, const int64_t *like,
                   int64_t *out_stride) {
  int order[SDG_DIMS_MAX]; // outermost first
  for (int d = 0; d < box->dims; d++) {
    int i = d;
    for (; i > 0 && is_inside(box, like, order[i - 1], d); i--)
      order[i] = order[i - 1];
    order[i] = d;
  }
  int64_t stride = 1;
  for (int i = box->dims - 1; i >= 0; i--) {
    out_stride[order[i]] = stride;
    stride *= box->dim[order[i]].hi - box->dim[order[i]].lo;
  }
}

sdg_status_t sdg_plan_scratch(sdg_plan_t *plan, const sdg_box_t *box, int like,
                              int *out_slab) {
  return sdg_plan_scratch_of(plan, box, plan->slab[like].elem_bytes, like,
                             out_slab);
}

sdg_status_t sdg_plan_hold(sdg_plan_t *plan, const sdg_box_t *box, int like,
                           const sdg_held_t *held, int *out_slab) {
  sdg_slab_t slab = plan->slab[like];
  if (plan->helds == SDG_HELD_MAX)
    return sdg_fail(SDG_E_INTERNAL,
                    "a plan holds more than %d pieces of memory", plan->helds);
  plan->held[plan->helds] = *held;
  plan->held[plan->helds].own = like;
  plan->held[plan->helds].bytes =
      (size_t)sdg_box_count(box) * (size_t)slab.elem_bytes;
  slab.operand = SDG_SLAB_HELD - plan->helds++;
  slab.offset_bytes = 0;
  slab.box = *box;
  sdg_slab_pack(box, plan->slab[like].nesting, slab.stride);
  return slab_add(plan, &slab, out_slab);
}

sdg_status_t sdg_plan_scratch_of(sdg_plan_t *plan, const sdg_box_t *box,
                                 int elem_bytes, int like, int *out_slab) {
  // A copy: adding a slab may move the array.
  const sdg_slab_t model = plan->slab[like];
  return sdg_plan_packed(plan, box, model.nesting, elem_bytes, out_slab);
}

sdg_status_t sdg_plan_packed(sdg_plan_t *plan, const sdg_box_t *box,
                             const int64_t *like, int elem_bytes,
                             int *out_slab) {
  int64_t stride[SDG_DIMS_MAX];
  sdg_slab_pack(box, like, stride);
  return sdg_plan_strided(plan, box, stride, like, elem_bytes, out_slab);
}

sdg_status_t sdg_plan_strided(sdg_plan_t *plan, const sdg_box_t *box,
                              const int64_t *stride, const int64_t *nesting,
                              int elem_bytes, int *out_slab) {
  sdg_slab_t slab = {
      .operand = SDG_SLAB_SCRATCH, .elem_bytes = elem_bytes, .box = *box};
  memcpy(slab.nesting, nesting, sizeof slab.nesting);
  memcpy(slab.stride, stride, sizeof slab.stride);
  size_t elements = sdg_box_empty(box) ? 0 : 1, lines = 0;
  for (int d = 0; d < box->dims && elements; d++) {
    size_t extent = (size_t)(box->dim[d].hi - box->dim[d].lo);
    size_t span = extent * (size_t)stride[d];
    elements += (extent - 1) * (size_t)stride[d];
    lines = extent > 1 && span > lines ? span : lines;
  }
  // Whoever works there may write all of the last line, with its gap.
  elements = lines > elements ? lines : elements;
  slab.offset_bytes = scratch_take(plan, elements * (size_t)elem_bytes);
  return slab_add(plan, &slab, out_slab);
}

sdg_status_t sdg_plan_within(sdg_plan_t *plan, int within, size_t offset_bytes,
                             const sdg_box_t *box, int like, int *out_slab) {
  sdg_slab_t slab = plan->slab[like];
  slab.operand = SDG_SLAB_SCRATCH;
  slab.offset_bytes = plan->slab[within].offset_bytes + offset_bytes;
  slab.box = *box;
  sdg_slab_pack(box, plan->slab[like].nesting, slab.stride);
  return slab_add(plan, &slab, out_slab);
}

sdg_status_t sdg_plan_workspace(sdg_plan_t *plan, size_t bytes, int *out_slab) {
  sdg_slab_t slab = {.operand = SDG_SLAB_SCRATCH, .elem_bytes = 1};
  slab.offset_bytes = scratch_take(plan, bytes);
  return slab_add(plan, &slab, out_slab);
}

sdg_status_t sdg_plan_zero(sdg_plan_t *plan, sdg_lane_t lane, int slab,
                           const sdg_box_t *box) {
  sdg_step_t step = {.kind = SDG_STEP_ZERO, .lane = lane, .slab = slab};
  step.box = sdg_box_intersect(box, &plan->slab[slab].box);
  return sdg_box_empty(&step.box) ? SDG_OK : step_add(plan, &step);
}

sdg_status_t sdg_plan_copy(sdg_plan_t *plan, sdg_lane_t lane, int from, int to,
                           const int64_t *shift, const sdg_box_t *box,
                           sdg_copy_kind_t kind) {
  static const int64_t none[SDG_DIMS_MAX];
  const sdg_slab_t *source = &plan->slab[from];
  sdg_step_t step = {.kind = SDG_STEP_COPY,
                     .lane = lane,
                     .slab = from,
                     .to = to,
                     .copy = kind};
  int64_t back[SDG_DIMS_MAX];
  for (int d = 0; d < SDG_DIMS_MAX; d++) {
    step.shift[d] = shift ? shift[d] : none[d];
    back[d] = -step.shift[d];
  }
  sdg_box_t moved = sdg_box_shift(&source->box, step.shift);
  sdg_box_t common = sdg_box_intersect(&moved, &plan->slab[to].box);
  if (box)
    common = sdg_box_intersect(&common, box);
  if (sdg_box_empty(&common))
    return SDG_OK;
  step.box = sdg_box_shift(&common, back);
  plan->copied_bytes[kind] += sdg_box_count(&common) * source->elem_bytes;
  return step_add(plan, &step);
}

sdg_status_t sdg_plan_call(sdg_plan_t *plan, int index) {
  sdg_step_t step = {
      .kind = SDG_STEP_CALL, .lane = SDG_LANE_MAIN, .slab = index};
  return step_add(plan, &step);
}

sdg_status_t sdg_plan_join(sdg_plan_t *plan, sdg_lane_t lane) {
  sdg_step_t step = {.kind = SDG_STEP_JOIN, .lane = lane};
  return step_add(plan, &step);
}

void sdg_plan_rehome(sdg_plan_t *plan, int operand, int into) {
  for (int i = 0; i < plan->slabs; i++) {
    sdg_slab_t *slab = &plan->slab[i];
    if (slab->operand != operand)
      continue;
    slab->operand = SDG_SLAB_SCRATCH;
    slab->offset_bytes += plan->slab[into].offset_bytes;
  }
}

sdg_status_t sdg_plan_advance(sdg_plan_t *plan, int first) {
  size_t bytes = sizeof *plan->step;
  size_t ahead = (size_t)first, moved = (size_t)(plan->steps - first);
  sdg_step_t *kept = malloc((ahead + 1) * bytes);
  if (!kept)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  if (ahead > 0 && moved > 0) {
    memcpy(kept, plan->step, ahead * bytes);
    memmove(plan->step, plan->step + ahead, moved * bytes);
    memcpy(plan->step + moved, kept, ahead * bytes);
  }
  free(kept);
  sdg_plan_group_copies(plan);
  return SDG_OK;
}

// Returns true if `box` of the slab is one contiguous run of memory whose
// dimensions nest in `order`; then sets *out_offset_bytes.
static bool box_contiguous(const sdg_slab_t *slab, const sdg_box_t *box,
                           const int64_t *order, size_t *out_offset_bytes) {
  int64_t packed[SDG_DIMS_MAX];
  sdg_slab_pack(box, order, packed);
  int64_t offset = 0;
  for (int d = 0; d < box->dims; d++) {
    int64_t extent = box->dim[d].hi - box->dim[d].lo;
    if (extent > 1 && packed[d] != slab->stride[d])
      return false;
    offset += (box->dim[d].lo - slab->box.dim[d].lo) * slab->stride[d];
  }
  *out_offset_bytes = (size_t)(offset * slab->elem_bytes);
  return true;
}

static sdg_status_t parcel_add(sdg_plan_t *plan, bool is_send, int peer,
                               int slab, size_t offset_bytes, size_t bytes) {
  SDG_TRY(
      array_grow((void **)&plan->parcel, plan->parcels, sizeof *plan->parcel));
  plan->parcel[plan->parcels++] =
      (sdg_parcel_t){is_send, peer, slab, offset_bytes, bytes};
  return SDG_OK;
}

// The order of a message's elements.
typedef struct form {
  const int64_t *order;
  int elem_bytes;
} form_t;

// A message is sent in place if its elements are contiguous in memory and stay
// as they are; otherwise it is packed first.
static sdg_status_t send_add(sdg_plan_t *plan, const sdg_message_t *message,
                             int from, const form_t *form) {
  size_t offset;
  size_t bytes =
      (size_t)sdg_box_count(&message->box) * (size_t)form->elem_bytes;
  if (!plan->packs &&
      box_contiguous(&plan->slab[from], &message->box, form->order, &offset))
    return parcel_add(plan, true, message->peer, from, offset, bytes);
  int packed;
  SDG_TRY(sdg_plan_packed(plan, &message->box, form->order, form->elem_bytes,
                          &packed));
  SDG_TRY(sdg_plan_copy(plan, SDG_LANE_COMM, from, packed, NULL, NULL,
                        SDG_COPY_HALO));
  return parcel_add(plan, true, message->peer, packed, 0, bytes);
}

// Returns the one slab of `into` in which a received box is contiguous; -1 if
// no slab is, or if another slab also needs a part of the box.
static int place_find(const sdg_plan_t *plan, const sdg_box_t *box,
                      const int *into, int intos, const form_t *form,
                      size_t *out_offset_bytes) {
  int place = -1, wanted = 0;
  for (int i = 0; i < intos; i++) {
    const sdg_slab_t *slab = &plan->slab[into[i]];
    sdg_box_t common = sdg_box_intersect(&slab->box, box);
    if (sdg_box_empty(&common))
      continue;
    wanted++;
    if (sdg_box_contains(&slab->box, box) &&
        box_contiguous(slab, box, form->order, out_offset_bytes))
      place = into[i];
  }
  return wanted == 1 ? place : -1;
}

static sdg_status_t recv_add(sdg_plan_t *plan, const sdg_message_t *message,
                             const form_t *form, const int *into, int intos,
                             int *out_slab) {
  sdg_box_t box = sdg_box_shift(&message->box, message->shift);
  size_t bytes = (size_t)sdg_box_count(&box) * (size_t)form->elem_bytes;
  plan->received_bytes += (int64_t)bytes;
  size_t offset;
  int place = place_find(plan, &box, into, intos, form, &offset);
  *out_slab = -1;
  if (place >= 0)
    return parcel_add(plan, false, message->peer, place, offset, bytes);
  SDG_TRY(sdg_plan_packed(plan, &box, form->order, form->elem_bytes, out_slab));
  return parcel_add(plan, false, message->peer, *out_slab, 0, bytes);
}

sdg_status_t sdg_plan_messages(sdg_plan_t *plan, const sdg_transfer_t *transfer,
                               int from, const int *into, int intos,
                               int *out_slabs) {
  // A copy: adding a slab may move the array.
  const sdg_slab_t own = plan->slab[from];
  const form_t form = {own.nesting, own.elem_bytes};
  for (int i = 0; i < transfer->sends; i++)
    SDG_TRY(send_add(plan, &transfer->send[i], from, &form));
  for (int i = 0; i < transfer->recvs; i++)
    SDG_TRY(
        recv_add(plan, &transfer->recv[i], &form, into, intos, &out_slabs[i]));
  return SDG_OK;
}

sdg_status_t sdg_plan_exchange(sdg_plan_t *plan) {
  sdg_step_t step = {
      .kind = SDG_STEP_EXCHANGE, .lane = SDG_LANE_COMM, .axes = plan->axes};
  for (int i = 0; i < plan->steps; i++)
    step.parcel += plan->step[i].parcels;
  step.parcels = plan->parcels - step.parcel;
  return plan->axes ? step_add(plan, &step) : SDG_OK;
}

bool sdg_plan_is_packed(const sdg_plan_t *plan, int index) {
  const sdg_slab_t *slab = &plan->slab[index];
  size_t offset;
  return sdg_box_empty(&slab->box) ||
         box_contiguous(slab, &slab->box, slab->stride, &offset);
}

sdg_status_t sdg_plan_reduce(sdg_plan_t *plan, int slab, sdg_type_t type,
                             sdg_combine_t combine) {
  sdg_step_t step = {.kind = SDG_STEP_REDUCE,
                     .lane = SDG_LANE_MAIN,
                     .slab = slab,
                     .box = plan->slab[slab].box,
                     .combine = combine,
                     .type = type,
                     .axes = plan->reduce_axes};
  ncclDataType_t as;
  if (!sdg_plan_is_packed(plan, slab))
    return sdg_fail(SDG_E_INTERNAL, "a reduction of a slab with gaps");
  if (!sdg_combine_type(type, &as))
    return sdg_fail(SDG_E_TENSOR_TYPE, "type %d in a sum over ranks", type);
  if (!plan->reduce_axes)
    return SDG_OK;
  return step_add(plan, &step); // the executor joins both lanes
}
