// SPDX-License-Identifier: Apache-2.0
// The rule for neighbourhood attention, and its call from the program.
#include "rules/neighborhood.h"

#include <cudnn.h>
#include <stdio.h>
#include <string.h>

#include "rules/label.h"
#include "rules/neighborplan.h"
#include "rules/registry.h"
#include "rules/setup.h"
#include "rules/tensor.h"
#include "rules/values.h"
#include "rules/vendor.h"
#include "src/job.h"
#include "src/tag.h"

static bool neighborhood_knows(const sdg_call_t *call) {
  (void)call;
  return true;
}

static sdg_status_t neighborhood_describe(const sdg_call_t *call, char *out,
                                          size_t out_bytes) {
  const sundog_neighborhood_t *how = call->args;
  int used = snprintf(out, out_bytes, "%d heads, scale %a, %s windows",
                      how->heads, how->scale, how->cut ? "cut" : "shifted");
  for (int d = 0; d < how->dims; d++)
    used += snprintf(out + used, out_bytes - (size_t)used, "%s%d dilated %d%s",
                     d ? " x " : " of ", how->kernel[d], how->dilation[d],
                     how->causal[d] ? " causal" : "");
  return SDG_OK;
}

// sdg_neighborhood_check keeps kernels and dilations below 2^20.
static int neighborhood_key(const sdg_call_t *call, uint64_t *out) {
  const sundog_neighborhood_t *how = call->args;
  out[0] = out[1] = 0;
  out[2] = (uint64_t)how->heads << 8 | (uint64_t)how->dims << 4 |
           (uint64_t)(how->cut != 0) << 3;
  for (int d = 0; d < how->dims; d++) {
    out[0] |= (uint64_t)how->kernel[d] << 20 * d;
    out[1] |= (uint64_t)how->dilation[d] << 20 * d;
    out[2] |= (uint64_t)(how->causal[d] != 0) << d;
  }
  memcpy(&out[3], &how->scale, sizeof out[3]);
  return 4;
}

static int neighborhood_scalars(const sdg_call_t *call, double *out) {
  (void)call;
  (void)out;
  return 0;
}

const sdg_rule_t sdg_rule_neighborhood = {
    .family = SDG_FAMILY_NEIGHBORHOOD,
    .windowed = true,
    .knows = neighborhood_knows,
    .describe = neighborhood_describe,
    .key = neighborhood_key,
    .scalars = neighborhood_scalars,
    .meet = sdg_neighborhood_meet,
    .plan = sdg_neighborhood_plan,
    .share = sdg_neighborhood_share,
};

// ---- the call --------------------------------------------------------------

// A descriptor has no extent of 0: no data says so, of the dimensions that may
// be split.
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

// What the descriptor was before is what the other ranks know of it.
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
      return sdg_fail(SDG_E_TAG,
                      "%s of %s is empty in one place and not in another: set "
                      "the descriptor again",
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
        .role = backward && i == SDG_NEIGHBOR_O ? SDG_ROLE_DO : roles[i],
        .is_output = backward ? i >= SDG_NEIGHBOR_DQ : i == SDG_NEIGHBOR_O,
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

// Whole view: what is read where the ranks do not share the call.
static void touch_make(const sdg_call_t *call, sdg_touch_t *out) {
  *out = (sdg_touch_t){.name = call->entry_name,
                       .stream_kind = SDG_STREAM_CUDNN,
                       .stream = call->handle};
  for (int i = 0; i < call->operands; i++) {
    bool writes = call->operand[i].is_output;
    out->access[out->accesses++] =
        sdg_operand_access(&call->operand[i], !writes, writes);
  }
}

static sdg_status_t by_rules(sdg_call_t *call, bool *out_done) {
  sdg_touch_t touch;
  for (int i = 0; i < call->operands; i++) {
    if (call->operand[i].generation == 0)
      return sdg_fail(SDG_E_DESCRIPTOR, "%s of %s",
                      sdg_role_name(call->operand[i].role), call->entry_name);
    if (!call->operand[i].data)
      SDG_TRY(piece_empty(call, &call->operand[i]));
  }
  SDG_TRY(pieces_check(call));
  touch_make(call, &touch);
  call->touch = &touch;
  sdg_status_t status = sdg_registry_carry_out(call, out_done);
  call->touch = NULL;
  // Another process of this rank joined first: this one is no rank.
  return sdg_job_disarmed() ? SDG_OK : status;
}

static sdg_status_t carry_out(sdg_call_t *call) {
  bool done = false;
  if (sdg_job_asked() && !sdg_job_disarmed())
    SDG_TRY(by_rules(call, &done));
  if (!done && sdg_values_wanted_of(call))
    sdg_values_expect(call, NULL);
  if (!done)
    SDG_TRY(sdg_neighborhood_alone(call));
  return call->result == 0
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL, "%s: %s", call->entry_name,
                        sdg_cudnn_get()->cudnnGetErrorString(
                            (cudnnStatus_t)call->result));
}

// One of the calls whose outputs are kept.
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
  // What does not count is the same for all.
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
