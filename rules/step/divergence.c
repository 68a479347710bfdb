// SPDX-License-Identifier: Apache-2.0
// Numbers this rank's ops, and compares each with the neighbours' op of the
// same number.
#include "rules/step/divergence.h"

#include <cudnn.h>
#include <string.h>

#include "rules/step/step.h"
#include "rules/vendor/argument.h"
#include "src/control/control.h"
#include "src/control/thread_name.h"
#include "src/job/job.h"
#include "src/job/thread.h"
#include "src/observe/report.h"

enum { TEXT_BYTES = 1024, TENSOR_BITS = 4 };
#define FNV_BASE 2166136261u

static uint32_t mix(uint32_t hash, const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) // FNV-1a
    hash = (hash ^ ((const unsigned char *)data)[i]) * 16777619u;
  return hash;
}

uint32_t sdg_divergence_hash(const sdg_call_t *call, const sdg_op_t *op,
                             const sdg_tagging_t *tagging) {
  char text[TEXT_BYTES] = "";
  uint32_t hash = mix(FNV_BASE, call->entry_name, strlen(call->entry_name));
  // A call that the op cannot describe is refused elsewhere.
  if (sdg_op_knows(op, call) && op->describe(call, text, sizeof text) == SDG_OK)
    hash = mix(hash, text, strlen(text));
  bool lacks = sdg_step_null_operand(call, op);
  hash = mix(hash, &lacks, sizeof lacks);
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    const sdg_placement_t *placement = &tagging->placement[i];
    hash = mix(hash, &operand->role, sizeof operand->role);
    hash = mix(hash, &operand->type, sizeof operand->type);
    for (int d = 0; d < operand->dims; d++) {
      // In the whole view messages are copied from memory as it lies, so
      // strides must be equal. In the shard view layouts were agreed on, and
      // strides depend on the piece.
      if (tagging->section->view == SDG_VIEW_WHOLE && operand->extent[d] > 1)
        hash = mix(hash, &operand->stride[d], sizeof operand->stride[d]);
      int64_t extent = placement->dims ? sdg_placement_extent(placement, d)
                                       : operand->extent[d];
      hash = mix(hash, &extent, sizeof extent);
    }
  }
  return hash;
}

// The number of ops so far and one hash of them all, by the calling thread's
// channel. Atomic, because a process may finish while a thread is in a call.
static struct {
  _Atomic(uint32_t) number, total; // total ^ FNV_BASE, so that none is 0
} ops[SDG_CHANNEL_THREADS];

static uint32_t load(const _Atomic(uint32_t) *word) {
  return atomic_load_explicit(word, memory_order_relaxed);
}

// One thread writes at a time.
static void store(_Atomic(uint32_t) *word, uint32_t value) {
  atomic_store_explicit(word, value, memory_order_relaxed);
}

static atomic_bool second; // a second thread touches shared tensors

void sdg_divergence_say_second(void) {
  atomic_store(&second, true);
}

// Publishes this rank's next op; a half of the hash that is 0 equals any.
// Returns the first
// neighbouring rank whose op of this number differs; -1: none.
static int publish(uint32_t hash, uint32_t *out_number) {
  const sdg_group_t *group = sdg_job_group();
  int channel = sdg_channel_get();
  uint32_t number = load(&ops[channel].number) + 1;
  store(&ops[channel].number, number);
  // Neighbours are enough: where any two ranks differ, two neighbours do.
  const int peers[2] = {
      group->rank[(group->me + 1) % group->count],
      group->rank[(group->me + group->count - 1) % group->count]};
  *out_number = number;
  return sdg_control_step(sdg_job_control(), channel, number, hash, peers, 2);
}

static int step_take(uint32_t hash, uint32_t *out_number) {
  if (sdg_job_group()->count < 2)
    return -1;
  int channel = sdg_channel_get();
  uint32_t total = load(&ops[channel].total) ^ FNV_BASE;
  store(&ops[channel].total, mix(total, &hash, sizeof hash) ^ FNV_BASE);
  hash |= !(hash & 0xffff);
  hash |= (uint32_t) !(hash >> 16) << 16;
  return publish(hash, out_number);
}

// `was`: what the op of the other rank was, or had.
static sdg_status_t differ(sdg_status_t code, const char *entry_name,
                           uint32_t number, int other, const char *was) {
  sdg_control_t *control = sdg_job_control();
  int channel = sdg_channel_get();
  char at[96], label[64];
  sdg_thread_name_label(control, channel, label, sizeof label);
  uint64_t calls = sdg_control_count_of(control, channel, other, at, sizeof at);
  return sdg_job_fail(sdg_fail(
      code,
      "op %u%s of rank %d is %s; the op of this number on rank %d, which is "
      "now at call %llu %s, %s%s",
      number, label, sdg_job_rank(), entry_name, other,
      (unsigned long long)calls, at, was,
      atomic_load(&second)
          ? "; a second thread copies, frees or passes on tensors of the "
            "first, which it may do only while the first waits for it"
          : ""));
}

static sdg_status_t step(const char *entry_name, uint32_t hash) {
  uint32_t number;
  int other = step_take(hash, &number);
  return other < 0 ? SDG_OK
                   : differ(SDG_E_DIVERGED, entry_name, number, other,
                            "was another call, or had other extents, "
                            "parameters, scalars or tensors, or was captured "
                            "into a CUDA graph");
}

static sdg_status_t captured_step(const char *entry_name, uint32_t hash) {
  uint32_t number;
  int other = step_take(hash, &number);
  return other < 0 ? SDG_OK
                   : differ(SDG_E_CAPTURE_DIFFERS, entry_name, number, other,
                            "was not captured into a CUDA graph, as it is "
                            "here, or was another call, or had other extents, "
                            "parameters, scalars or tensors");
}

sdg_status_t sdg_divergence_check(const sdg_call_t *call, const sdg_op_t *op,
                                  uint32_t hash, bool captured) {
  double scalar[SDG_CALL_SCALARS];
  int count = 0;
  if (sdg_op_knows(op, call))
    count = op->numbers && op->numbers->scalars
                ? op->numbers->scalars(call, scalar)
                : sdg_call_scalars(call, scalar);
  hash = mix(hash, scalar, (size_t)count * sizeof *scalar);
  return captured ? captured_step(call->entry_name, hash)
                  : step(call->entry_name, hash);
}

sdg_status_t sdg_divergence_refused(const sdg_call_t *call) {
  static const char word[] = "refused";
  return step(call->entry_name,
              mix(mix(FNV_BASE, word, sizeof word), call->entry_name,
                  strlen(call->entry_name)));
}

sdg_status_t sdg_divergence_update(const char *entry_name, uint64_t what) {
  uint32_t hash = mix(FNV_BASE, entry_name, strlen(entry_name));
  return step(entry_name, mix(hash, &what, sizeof what));
}

uint64_t sdg_divergence_tensor(int index) {
  int channel = sdg_channel_get();
  uint64_t number = (uint64_t)channel << 32 | load(&ops[channel].number);
  return (number << TENSOR_BITS | (uint64_t)index) + 1;
}

uint32_t sdg_divergence_fold(uint64_t hash) {
  return (uint32_t)(hash ^ hash >> 32);
}

// Half of a step's hash; 0 only for 0.
static uint32_t half_of(uint64_t contents) {
  uint32_t folded = sdg_divergence_fold(contents);
  uint32_t half = (folded ^ folded >> 16) & 0xffff;
  return contents && !half ? 1 : half;
}

sdg_status_t sdg_divergence_contents(const char *entry_name,
                                     const uint64_t *contents, int count) {
  if (sdg_job_group()->count < 2)
    return SDG_OK;
  for (int i = 0; i < count; i += 2) {
    uint32_t number, hash = half_of(contents[i]);
    if (i + 1 < count)
      hash |= half_of(contents[i + 1]) << 16;
    int other = publish(hash, &number);
    if (other >= 0)
      return differ(SDG_E_DIVERGED, entry_name, number, other,
                    "was another call, or read other tensors: other calls had "
                    "last written or read them");
  }
  return SDG_OK;
}

sdg_status_t sdg_divergence_values(const char *entry_name, const char *role,
                                   uint64_t digest) {
  uint32_t number, hash = mix(FNV_BASE, entry_name, strlen(entry_name));
  int other = step_take(mix(hash, &digest, sizeof digest), &number);
  return other < 0
             ? SDG_OK
             : sdg_job_fail(sdg_fail(
                   SDG_E_INPUTS_DIFFER,
                   "values of %s of %s, copied from the host, differ: rank %d "
                   "read another input than rank %d. In the whole view every "
                   "rank must read the same, whole input. Is {rank} in the "
                   "program's words? Are random numbers seeded by the rank or "
                   "the clock? SUNDOG_COMPARE=off compares nothing",
                   role, entry_name, other, sdg_job_rank()));
}

static bool finish_check(const sdg_group_t *group, int channel) {
  uint32_t theirs, number = load(&ops[channel].number);
  uint32_t total = load(&ops[channel].total) ^ FNV_BASE;
  int other = sdg_control_steps_end(sdg_job_control(), channel, number, total,
                                    group->rank, group->count, &theirs);
  if (other < 0)
    return true;
  char label[64];
  sdg_thread_name_label(sdg_job_control(), channel, label, sizeof label);
  if (theirs == number)
    (void)sdg_fail(SDG_E_DIVERGED,
                   "ranks %d and %d made %u ops%s each, but not the same ops",
                   sdg_job_rank(), other, number, label);
  else {
    int longer = number > theirs ? sdg_job_rank() : other;
    char what[96];
    uint64_t call = sdg_control_count_of(sdg_job_control(), channel, longer,
                                         what, sizeof what);
    (void)sdg_fail(SDG_E_DIVERGED,
                   "rank %d ended after %u ops%s, rank %d made %u; "
                   "rank %d was last at call %llu %s",
                   sdg_job_rank(), number, label, other, theirs, longer,
                   (unsigned long long)call, what);
  }
  return false;
}

void sdg_divergence_finish(void) {
  if (!sdg_job_joined() || sdg_job_failed() || sdg_job_group()->count < 2)
    return;
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    if (!finish_check(sdg_job_group(), channel))
      sdg_report_fail();
}
