// SPDX-License-Identifier: Apache-2.0
// Samples the ranks' pieces of a tensor, and compares the samples.
#include "rules/step/uncut.h"

#include <stdatomic.h>
#include <string.h>

#include "rules/step/compare.h"
#include "src/base/hash.h"
#include "src/base/log.h"
#include "src/exchange/tensor_digest.h"
#include "src/job/job.h"

// At most so many elements of a piece are read: 4 MiB of floats.
enum { SAMPLE = 1 << 20 };

static bool is_even(const sdg_part_t *part) {
  for (int p = 1; p < part->pieces; p++)
    if (sdg_part_size(part, p) != sdg_part_size(part, 0))
      return false;
  return true;
}

bool sdg_uncut_can(const sdg_call_t *call, int index,
                   const sdg_placement_t *placement, int *out_dim) {
  const sdg_operand_t *operand = &call->operand[index];
  *out_dim = -1;
  if (operand->kind != SDG_OPERAND_TENSOR || !sdg_compare_reads(operand) ||
      !sdg_role_is_activation(operand->role) ||
      placement->dims != operand->dims ||
      sdg_family_is(call->family, SDG_FAMILY_STATED))
    return false;
  for (int d = 0; d < placement->dims; d++) {
    if (placement->split[d].axes == 0)
      continue;
    if (!is_even(&placement->part[d]))
      return false;
    if (sdg_part_size(&placement->part[d], 0) > 1)
      *out_dim = d;
  }
  return *out_dim >= 0;
}

static int64_t elements_of(const sdg_layout_t *layout) {
  int64_t count = 1;
  for (int d = 0; d < layout->dims; d++)
    count *= layout->extent[d];
  return count;
}

// Takes every second index of the longest dimension until few elements are
// left, so that the sample is from everywhere. The innermost dimension is last,
// because its elements are read in one piece.
static void sample_take(sdg_layout_t *layout) {
  while (elements_of(layout) > SAMPLE) {
    int longest = -1;
    for (int d = 0; d < layout->dims; d++)
      if (layout->extent[d] > 1 &&
          (longest < 0 || layout->stride[longest] == 1 ||
           (layout->stride[d] != 1 &&
            layout->extent[d] > layout->extent[longest])))
        longest = d;
    layout->extent[longest] = (layout->extent[longest] + 1) / 2;
    layout->stride[longest] *= 2;
  }
}

sdg_status_t sdg_uncut_digest(const sdg_operand_t *operand, int dim,
                              cudaStream_t stream, bool *out_varies,
                              uint64_t *out_digest, int64_t *io_bytes) {
  sdg_layout_t half = sdg_operand_layout(operand);
  uint64_t of[2];
  int64_t step = half.extent[dim] / 2 * half.stride[dim];
  *out_varies = false;
  *out_digest = 0;
  half.extent[dim] /= 2;
  sample_take(&half);
  for (int i = 0; i < 2; i++) {
    bool can;
    const char *at = (const char *)operand->data + i * step * half.elem_bytes;
    SDG_TRY(sdg_tensor_digest(at, &half, stream, &can, &of[i], io_bytes));
    if (!can)
      return SDG_OK;
  }
  sdg_digest_t both;
  sdg_digest_init(&both);
  sdg_digest_add(&both, of, sizeof of);
  *out_digest = sdg_digest_value(&both);
  *out_varies = of[0] != of[1];
  return SDG_OK;
}

bool sdg_uncut_judge(const sdg_call_t *call, int index,
                     const sdg_digests_t *all, sdg_axes_t axes) {
  static atomic_bool said;
  int count = sdg_job_group()->count, varying = 0;
  for (int r = 0; r < count; r++)
    varying += all[r].read >> index & 1;
  if (varying < count || sdg_digests_differ(all, index, axes) >= 0)
    return varying > 0;
  if (sdg_job_rank() != 0 || atomic_exchange(&said, true))
    return true;
  char extents[128];
  sdg_compare_extents(&call->operand[index], extents, sizeof extents);
  sdg_log("all ranks have the same values in their pieces of %s [%s] of %s: if "
          "each has read the whole input, the result is wrong. In the shard "
          "view a rank reads its own piece: cut the input with `sundog split` "
          "and write {rank} into its name, or run with --view whole",
          sdg_role_name(call->operand[index].role), extents, call->entry_name);
  return true;
}
