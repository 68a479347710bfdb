// SPDX-License-Identifier: Apache-2.0
// Whether this rank's op of a number is the other ranks' op of that number.
#include "rules/instep.h"

#include <cudnn.h>
#include <string.h>

#include "src/control.h"
#include "src/job.h"
#include "src/report.h"

enum { TEXT_BYTES = 1024 };
#define FNV_BASE 2166136261u

static uint32_t mix(uint32_t hash, const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) // FNV-1a
    hash = (hash ^ ((const unsigned char *)data)[i]) * 16777619u;
  return hash;
}

uint32_t sdg_instep_hash(const sdg_call_t *call, const sdg_rule_t *rule,
                         const sdg_tagging_t *tagging) {
  char text[TEXT_BYTES] = "";
  uint32_t hash = mix(FNV_BASE, call->entry_name, strlen(call->entry_name));
  // What it cannot describe is refused elsewhere.
  if (rule->describe(call, text, sizeof text) == SDG_OK)
    hash = mix(hash, text, strlen(text));
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    const sdg_placement_t *placement = &tagging->placement[i];
    hash = mix(hash, &operand->role, sizeof operand->role);
    for (int d = 0; d < operand->dims; d++) {
      int64_t extent = placement->dims ? sdg_placement_extent(placement, d)
                                       : operand->extent[d];
      hash = mix(hash, &extent, sizeof extent);
    }
  }
  return hash;
}

double sdg_rule_scalar(const sdg_call_t *call, const void *scalar) {
  if (!scalar)
    return 0;
  return call->operand[0].type == CUDNN_DATA_DOUBLE ? *(const double *)scalar
                                                    : *(const float *)scalar;
}

// The ops of this rank so far, and one hash of them all. Atomic: a process may
// finish while its thread is in a call.
static _Atomic(uint32_t) number, total = FNV_BASE;

static sdg_status_t step(const sdg_call_t *call, uint32_t hash) {
  const sdg_group_t *group = sdg_job_group();
  if (group->count < 2)
    return SDG_OK;
  total = mix(total, &hash, sizeof hash);
  // Neighbours are enough: where any two ranks differ, two neighbours do.
  const int peers[2] = {
      group->rank[(group->me + 1) % group->count],
      group->rank[(group->me + group->count - 1) % group->count]};
  sdg_control_t *control = sdg_job_control();
  int other = sdg_control_step(control, 0, ++number, hash, peers, 2);
  if (other < 0)
    return SDG_OK;
  char at[96];
  uint64_t calls = sdg_control_count_of(control, 0, other, at, sizeof at);
  return sdg_job_fail(sdg_fail(
      SDG_E_DIVERGED,
      "op %u of rank %d is %s; that of rank %d, now at call %llu %s, was "
      "another, or had other extents, parameters or scalars",
      number, sdg_job_rank(), call->entry_name, other,
      (unsigned long long)calls, at));
}

sdg_status_t sdg_instep_check(const sdg_call_t *call, const sdg_rule_t *rule,
                              uint32_t hash) {
  double scalar[SDG_RULE_SCALARS];
  int count = rule->scalars(call, scalar);
  return step(call, mix(hash, scalar, (size_t)count * sizeof *scalar));
}

sdg_status_t sdg_instep_refused(const sdg_call_t *call) {
  static const char word[] = "refused";
  return step(call, mix(mix(FNV_BASE, word, sizeof word), call->entry_name,
                        strlen(call->entry_name)));
}

void sdg_instep_finish(void) {
  if (!sdg_job_joined() || sdg_job_failed() || sdg_job_group()->count < 2)
    return;
  const sdg_group_t *group = sdg_job_group();
  uint32_t theirs;
  int other = sdg_control_steps_end(sdg_job_control(), 0, number, total,
                                    group->rank, group->count, &theirs);
  if (other < 0)
    return;
  if (theirs == number)
    (void)sdg_fail(SDG_E_DIVERGED,
                   "ranks %d and %d made %u tagged calls each, but not the "
                   "same ones",
                   sdg_job_rank(), other, number);
  else
    (void)sdg_fail(SDG_E_DIVERGED,
                   "at its end rank %d has made %u tagged calls, rank %d %u",
                   sdg_job_rank(), number, other, theirs);
  sdg_report_fail();
}
