// SPDX-License-Identifier: Apache-2.0
// Makes a call from the arguments of sundog_neighborhood_*, and carries it out.
#include "rules/view/neighborhood.h"

#include <cudnn.h>

#include "rules/file/setup.h"
#include "rules/neighborhood/plan.h"
#include "rules/observe/values.h"
#include "rules/place/label.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"
#include "rules/view/registry.h"
#include "rules/view/whole/full.h"
#include "src/call/tag.h"
#include "src/job/job.h"

// A descriptor cannot have an extent of 0. An empty piece has data NULL; its
// extents in dimensions that may be split are then 0.
static sdg_status_t piece_empty(const sdg_call_t *call,
                                sdg_operand_t *operand) {
  const sdg_rules_t *rules;
  SDG_TRY(sdg_setup_rules(&rules));
  for (int i = -1; i < call->operands; i++) { // first its own
    const sdg_section_t *said =
        sdg_label_section(i < 0 ? operand : &call->operand[i]);
    for (int s = 0; said && s < said->splits; s++) {
      int d = sdg_dim_index(call->family, said->split[s].dim, operand->dims);
      if (d >= 0)
        operand->extent[d] = 0;
    }
    if (said)
      return SDG_OK;
  }
  for (int r = 0; r < rules->sections; r++)
    for (int s = 0; s < rules->section[r].splits; s++) {
      int d = sdg_dim_index(call->family, rules->section[r].split[s].dim,
                            operand->dims);
      if (d >= 0 && !rules->section[r].is_local)
        operand->extent[d] = 0;
    }
  return SDG_OK;
}

// The other ranks know the extents that were agreed on before.
static sdg_status_t pieces_check(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    const sdg_tag_vector_t *agreed =
        sdg_tag_vector(operand->descriptor, operand->generation);
    bool same = true;
    for (int d = 0; agreed && d < operand->dims; d++)
      same &= agreed->extent[sdg_job_group()->me * agreed->dims + d] ==
              operand->extent[d];
    for (int j = 0; j < i; j++)
      same &= operand->descriptor != call->operand[j].descriptor ||
              !operand->data == !call->operand[j].data;
    if (!same)
      return sdg_fail(
          SDG_E_TAG,
          "%s of %s has elements at one use of its descriptor and none at "
          "another: set the descriptor again when that changes",
          sdg_role_name(operand->role), call->entry_name);
  }
  return SDG_OK;
}

static sdg_status_t pieces_read(const sdg_piece_t *piece, int pieces,
                                sdg_call_t *call) {
  static const sdg_role_t roles[] = {SDG_ROLE_Q, SDG_ROLE_K,  SDG_ROLE_V,
                                     SDG_ROLE_O, SDG_ROLE_DQ, SDG_ROLE_DK,
                                     SDG_ROLE_DV};
  bool backward = pieces == SDG_NEIGHBORHOOD_BACKWARD;
  for (; call->operands < pieces; call->operands++) {
    int i = call->operands;
    sdg_operand_t *operand = &call->operand[i];
    *operand = (sdg_operand_t){
        .role = backward && i == SDG_NEIGHBORHOOD_O ? SDG_ROLE_DO : roles[i],
        .is_output =
            backward ? i >= SDG_NEIGHBORHOOD_DQ : i == SDG_NEIGHBORHOOD_O,
        .descriptor = piece[i].descriptor,
        .generation = sdg_tag_generation(piece[i].descriptor),
        .label = sdg_tag_label(piece[i].descriptor,
                               sdg_tag_generation(piece[i].descriptor)),
        .data = piece[i].data,
    };
    if (!piece[i].descriptor || !sdg_tensor_get(operand))
      return sdg_fail(SDG_E_DESCRIPTOR, "%s of %s",
                      sdg_role_name(operand->role), call->entry_name);
  }
  return SDG_OK;
}

// ---- carried out -----------------------------------------------------------

// Whole view: the memory that a call uses which every rank computes in full.
static void touch_make(const sdg_call_t *call, sdg_memory_access_t *out) {
  *out = (sdg_memory_access_t){.name = call->entry_name,
                               .stream_kind = SDG_STREAM_CUDNN,
                               .stream = call->handle};
  for (int i = 0; i < call->operands; i++) {
    bool writes = call->operand[i].is_output;
    out->access[out->accesses++] =
        sdg_operand_access(&call->operand[i], !writes, writes);
  }
}

static sdg_status_t by_rules(sdg_call_t *call, bool *out_done) {
  sdg_memory_access_t memory;
  for (int i = 0; i < call->operands; i++) {
    if (call->operand[i].generation == 0)
      return sdg_fail(SDG_E_DESCRIPTOR, "%s of %s",
                      sdg_role_name(call->operand[i].role), call->entry_name);
    if (!call->operand[i].data)
      SDG_TRY(piece_empty(call, &call->operand[i]));
  }
  SDG_TRY(pieces_check(call));
  touch_make(call, &memory);
  call->memory = &memory;
  sdg_status_t status = sdg_registry_carry_out(call, out_done);
  call->memory = NULL;
  // Another process of this rank joined first, so this one is not a rank.
  return sdg_job_disarmed() ? SDG_OK : status;
}

static sdg_status_t carry_out(sdg_call_t *call) {
  bool done = false;
  if (sdg_job_asked() && !sdg_job_disarmed())
    SDG_TRY(by_rules(call, &done));
  if (!done && sdg_values_wanted_of(call))
    sdg_values_expect(call, NULL);
  sdg_status_t status = done ? SDG_OK : sdg_neighborhood_alone(call);
  sdg_full_end();
  SDG_TRY(status);
  return call->result == 0
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL, "%s: %s", call->entry_name,
                        sdg_cudnn_get()->cudnnGetErrorString(
                            (cudnnStatus_t)call->result));
}

// A call whose outputs are kept (`sundog verify`).
static sdg_status_t kept(sdg_call_t *call) {
  if (sdg_values_wanted_of(call))
    sdg_values_begin(call);
  sdg_status_t status = carry_out(call);
  if (sdg_values_expected() && status == SDG_OK)
    sdg_values_take();
  else if (sdg_values_expected())
    sdg_values_forget();
  return status;
}

sdg_status_t sdg_neighborhood(const void *handle,
                              const sundog_neighborhood_t *how, int pieces,
                              const sdg_piece_t *piece) {
  SDG_TRY(sdg_neighborhood_check(how));
  // Members without effect are 0, so that equal calls have equal bytes.
  sundog_neighborhood_t clean = {.dims = how->dims,
                                 .cut = how->cut != 0,
                                 .heads = how->heads,
                                 .scale = how->scale};
  for (int d = 0; d < how->dims; d++) {
    clean.kernel[d] = how->kernel[d];
    clean.dilation[d] = how->dilation[d];
    clean.causal[d] = how->causal[d] != 0;
  }
  sdg_call_t call = {
      .entry = -1,
      .entry_name = pieces == SDG_NEIGHBORHOOD_FORWARD
                        ? "sundog_neighborhood_attention"
                        : "sundog_neighborhood_attention_backward",
      .family = SDG_FAMILY_NEIGHBORHOOD,
      .handle = handle,
      .stream_kind = SDG_STREAM_CUDNN,
      .args = &clean,
  };
  SDG_TRY(pieces_read(piece, pieces, &call));
  return kept(&call);
}
