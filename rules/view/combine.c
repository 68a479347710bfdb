// SPDX-License-Identifier: Apache-2.0
// Makes a call from the arguments of sundog_combine, and carries it out.
#include "rules/view/combine.h"

#include <stdio.h>
#include <string.h>

#include "rules/combine/combine.h"
#include "rules/file/setup.h"
#include "rules/place/label.h"
#include "rules/vendor/tensor.h"
#include "rules/view/descriptor.h"
#include "rules/view/registry.h"
#include "src/job/job.h"

static const char name[] = "sundog_combine";

// What calls with the same descriptor have in common.
typedef struct kind {
  const sdg_tag_label_t *label;
  int64_t count;
  int type, op;
} kind_t;

static sdg_status_t combine_get(sundog_op_t op, sdg_combine_t *out) {
  switch (op) {
  case SUNDOG_SUM:
    *out = SDG_COMBINE_SUM;
    return SDG_OK;
  case SUNDOG_MAX:
    *out = SDG_COMBINE_MAX;
    return SDG_OK;
  case SUNDOG_MIN:
    *out = SDG_COMBINE_MIN;
    return SDG_OK;
  }
  return sdg_fail(SDG_E_HALO, "%s: the operator is %d", name, (int)op);
}

// All axes that some `split` names.
static sdg_status_t axes_all(char *out, size_t bytes) {
  const sdg_rules_t *rules;
  size_t used = 0;
  SDG_TRY(sdg_setup_rules(&rules));
  out[0] = '\0';
  for (int a = 0; a < rules->mesh.axes && used < bytes; a++)
    if (rules->axes >> a & 1)
      used += (size_t)snprintf(out + used, bytes - used, "%s%s",
                               used ? "+" : "", rules->mesh.name[a]);
  return SDG_OK;
}

static sdg_status_t label_get(const char *axes, const sdg_tag_label_t **out) {
  char all[SDG_TAG_LABEL_BYTES], text[2 * SDG_TAG_LABEL_BYTES];
  if (!axes) {
    SDG_TRY(axes_all(all, sizeof all));
    axes = all;
  }
  // Only names and signs between them: no second item of a label.
  if (!*axes || strpbrk(axes, ",;: \t"))
    return sdg_fail(SDG_E_HALO, "%s: the axes are '%.64s'", name, axes);
  snprintf(text, sizeof text, "%s%s", SDG_COMBINE_LABEL, axes);
  return sdg_label_placement(text, out);
}

static sdg_status_t call_make(const kind_t *kind, void *data,
                              const sdg_combine_t *combine, sdg_call_t *out) {
  sdg_operand_t *operand = &out->operand[0];
  out->args = combine;
  out->operands = 1;
  *operand = (sdg_operand_t){
      .role = SDG_ROLE_Y,
      .is_output = true,
      .is_updated = true,
      .label = kind->label,
      .data = data,
      .descriptor_at = SDG_NOWHERE,
      .data_at = SDG_NOWHERE,
      .type = kind->type,
      .elem_bytes = sdg_type_bytes(kind->type),
      .dims = 4,
      .extent = {1, 1, 1, kind->count},
      .stride = {kind->count, kind->count, kind->count, 1},
  };
  SDG_TRY(sdg_descriptor_get(kind, sizeof *kind, &operand->descriptor));
  operand->generation = sdg_tag_generation(operand->descriptor);
  return SDG_OK;
}

sdg_status_t sdg_combine_values(const void *stream, void *data, size_t count,
                                sundog_type_t type, sundog_op_t op,
                                const char *axes) {
  kind_t kind;
  sdg_combine_t combine;
  bool done; // always: its operand has a label
  memset(&kind, 0, sizeof kind);
  kind.count = (int64_t)count;
  kind.type = (int)type;
  kind.op = (int)op;
  SDG_TRY(combine_get(op, &combine));
  if (sdg_type_bytes(kind.type) == 0)
    return sdg_fail(SDG_E_HALO, "%s: the type is %d", name, kind.type);
  if (!data || count == 0 || count > INT32_MAX)
    return sdg_fail(SDG_E_HALO, "%s: %zu numbers at %p", name, count, data);
  if (!sdg_job_asked() || sdg_job_disarmed())
    return SDG_OK;
  SDG_TRY(label_get(axes, &kind.label));
  sdg_call_t call = {
      .entry = -1,
      .entry_name = name,
      .family = SDG_FAMILY_COMBINE,
      .stream_kind = SDG_STREAM_GIVEN,
      .stream = stream,
  };
  SDG_TRY(call_make(&kind, data, &combine, &call));
  return sdg_registry_carry_out(&call, &done);
}
