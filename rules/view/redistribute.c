// SPDX-License-Identifier: Apache-2.0
// Makes a call from the arguments of sundog_redistribute, and carries it out.
#include "rules/view/redistribute.h"

#include <cudnn.h>

#include "rules/place/label.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"
#include "rules/view/registry.h"
#include "src/call/tag.h"
#include "src/job/job.h"

// A descriptor cannot have an extent of 0. An empty piece has data NULL.
static void piece_empty(const sdg_call_t *call, sdg_operand_t *operand) {
  const sdg_section_t *section = sdg_label_section(operand);
  for (int i = 0; i < section->splits; i++) {
    int d = sdg_dim_index(call->family, section->split[i].dim, operand->dims);
    if (d >= 0)
      operand->extent[d] = 0;
  }
}

static sdg_status_t side_read(const sdg_side_t *side, sdg_call_t *call,
                              sdg_role_t role) {
  sdg_operand_t *operand = &call->operand[call->operands++];
  *operand = (sdg_operand_t){
      .role = role,
      .is_output = role == SDG_ROLE_Y,
      .descriptor = side->descriptor,
      .generation = sdg_tag_generation(side->descriptor),
      .data = side->data,
  };
  if (operand->generation == 0 || !sdg_tensor_get(operand))
    return sdg_fail(SDG_E_DESCRIPTOR, "%s of %s", sdg_role_name(role),
                    call->entry_name);
  SDG_TRY(sdg_label_placement(side->placement, &operand->label));
  if (!side->data)
    piece_empty(call, operand);
  // The other ranks know the extents that were agreed on before.
  const sdg_tag_vector_t *agreed =
      sdg_tag_vector(side->descriptor, operand->generation);
  for (int d = 0; agreed && d < operand->dims; d++)
    if (agreed->extent[sdg_job_group()->me * agreed->dims + d] !=
        operand->extent[d])
      return sdg_fail(
          SDG_E_TAG,
          "%s of %s has elements in one call with its descriptor and none in "
          "another: set the descriptor again when that changes",
          sdg_role_name(role), call->entry_name);
  return SDG_OK;
}

// Without a split: every rank has the whole tensor on both sides.
static sdg_status_t copy(const void *handle, const sdg_side_t *x,
                         const sdg_side_t *y) {
  static const double one_zero[2] = {1, 0};
  static const float single[2] = {1, 0};
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  sdg_operand_t to = {.descriptor = y->descriptor};
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  if (!sdg_tensor_get(&to))
    return sdg_fail(SDG_E_DESCRIPTOR, "y of sundog_redistribute");
  bool twice = to.type == CUDNN_DATA_DOUBLE;
  const void *alpha = twice ? (const void *)&one_zero[0] : &single[0];
  const void *beta = twice ? (const void *)&one_zero[1] : &single[1];
  cudnnStatus_t got = cudnn->cudnnTransformTensor(
      (cudnnHandle_t)(uintptr_t)handle, alpha,
      (cudnnTensorDescriptor_t)(uintptr_t)x->descriptor, x->data, beta,
      (cudnnTensorDescriptor_t)(uintptr_t)y->descriptor, y->data);
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL, "cudnnTransformTensor: status %d",
                        (int)got);
}

sdg_status_t sdg_redistribute(const void *handle, const sdg_side_t *x,
                              const sdg_side_t *y) {
  if (!sdg_job_asked() || sdg_job_disarmed())
    return copy(handle, x, y);
  sdg_call_t call = {
      .entry = -1,
      .entry_name = "sundog_redistribute",
      .family = SDG_FAMILY_REDISTRIBUTE,
      .handle = handle,
      .stream_kind = SDG_STREAM_CUDNN,
  };
  SDG_TRY(side_read(x, &call, SDG_ROLE_X));
  SDG_TRY(side_read(y, &call, SDG_ROLE_Y));
  bool done; // always: its operands have labels
  return sdg_registry_carry_out(&call, &done);
}
