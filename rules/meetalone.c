// SPDX-License-Identifier: Apache-2.0
// Whether a call is one that every rank can make by itself.
#include <string.h>

#include "rules/meet.h"
#include "rules/tagging.h"
#include "src/job.h"
#include "src/tag.h"

static const sdg_tag_vector_t *vector_of(const sdg_call_t *call, int index) {
  const sdg_operand_t *operand = &call->operand[index];
  return sdg_role_is_activation(operand->role)
             ? sdg_tag_vector(operand->descriptor, operand->generation)
             : NULL;
}

// Whether the ranks before this one have one with the same tensors.
static bool seen_before(const sdg_call_t *call, int member) {
  for (int before = 0; before < member; before++) {
    bool same = true;
    for (int i = 0; i < call->operands && same; i++) {
      const sdg_tag_vector_t *v = vector_of(call, i);
      same = !v || memcmp(v->extent + (ptrdiff_t)before * v->dims,
                          v->extent + (ptrdiff_t)member * v->dims,
                          (size_t)v->dims * sizeof *v->extent) == 0;
    }
    if (same)
      return true;
  }
  return false;
}

// One rank's tensors, each as if it were all of one.
static sdg_status_t own_places(const sdg_call_t *call, int member,
                               sdg_meet_t *meet, int *out_lead) {
  *out_lead = -1;
  for (int i = 0; i < call->operands; i++) {
    const sdg_tag_vector_t *v = vector_of(call, i);
    meet->is[i] = -1;
    if (!v)
      continue;
    SDG_TRY(sdg_placement_init(v->dims, v->extent + (ptrdiff_t)member * v->dims,
                               &meet->place[i][0].placement));
    meet->places[i] = 1;
    if (*out_lead < 0)
      *out_lead = i;
  }
  return SDG_OK;
}

static sdg_status_t member_fits(const sdg_call_t *call, const sdg_rule_t *rule,
                                const sdg_section_t *section, int member,
                                bool *out_fits) {
  sdg_meet_t meet;
  int lead;
  sdg_status_t status;
  memset(&meet, 0, sizeof meet);
  meet.call = call;
  meet.fits = true;
  SDG_TRY_GOTO(own_places(call, member, &meet, &lead), out);
  sdg_tagging_group(section, &meet.tagging);
  if (lead >= 0) {
    meet.is[lead] = 0;
    SDG_TRY_GOTO(sdg_placement_copy(&meet.place[lead][0].placement,
                                    &meet.tagging.placement[lead]),
                 out);
    SDG_TRY_GOTO(rule->meet(call, &meet, lead), out);
  }
  *out_fits = meet.fits;
  status = SDG_OK;
out:
  sdg_meet_fini(&meet);
  return status;
}

sdg_status_t sdg_meet_alone(const sdg_call_t *call, const sdg_rule_t *rule,
                            const sdg_section_t *section, bool *out_can) {
  *out_can = true;
  if (!rule || !rule->meet || !rule->knows(call) ||
      sdg_place_mixes(call->family))
    return SDG_OK;
  for (int r = 0; r < sdg_job_group()->count && *out_can; r++)
    if (!seen_before(call, r))
      SDG_TRY(member_fits(call, rule, section, r, out_can));
  return SDG_OK;
}
