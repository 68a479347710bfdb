// SPDX-License-Identifier: Apache-2.0
// Shard view: finds products whose sizes fit two sections, with a different
// product by each.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rules/place/place.h"
#include "rules/place/product_sizes.h"
#include "rules/vendor/product.h"
#include "src/call/tag.h"
#include "src/job/job.h"

// How a section reads the sizes: which of them add up over the ranks.
typedef struct reading {
  const sdg_section_t *section;
  sdg_split_t split[SDG_DIMS_MAX];
} reading_t;

static const sdg_operand_t *product_of(const sdg_call_t *call) {
  return &call->operand[sdg_call_operand(call, SDG_ROLE_PRODUCT)];
}

static const sdg_tag_vector_t *vector_of(const sdg_call_t *call) {
  return sdg_tag_vector(product_of(call)->descriptor,
                        product_of(call)->generation);
}

// Whether calls of cuBLAS state sizes, which `sizes =` explains; the sizes of a
// graph are those of the rank's pieces.
static bool is_stated(const sdg_call_t *call) {
  return sdg_family_is(call->family, SDG_FAMILY_STATED);
}

// Whether the ranks' sizes make one product by this reading. For a [local]
// section each rank has its own product.
static sdg_status_t makes_one(const sdg_call_t *call, const reading_t *reading,
                              bool *out) {
  sdg_placement_t placement;
  *out = true;
  if (reading->section->is_local)
    return SDG_OK;
  SDG_TRY(
      sdg_place_vector(call, vector_of(call), reading->split, out, &placement));
  if (*out)
    sdg_placement_fini(&placement);
  return SDG_OK;
}

static bool all_match(const sdg_call_t *call, const reading_t *reading) {
  int index = sdg_call_operand(call, SDG_ROLE_PRODUCT);
  return sdg_place_would(call, index, reading->section, reading->split).no < 0;
}

// Whether the call fits the section on every rank; the reading by which it
// does.
static sdg_status_t fits(const sdg_call_t *call, const sdg_section_t *section,
                         reading_t *out, bool *out_fits) {
  static const sdg_sizes_t unsaid[] = {SDG_SIZES_PIECE, SDG_SIZES_WHOLE};
  int dims = product_of(call)->dims, readings = is_stated(call) ? 2 : 1;
  *out = (reading_t){.section = section};
  *out_fits = false;
  // Also tells whether the product has the dimensions that are split.
  if (!section->is_local &&
      !sdg_place_splits(section, call->family, dims, out->split))
    return SDG_OK;
  for (int i = 0; i < readings && !*out_fits; i++) {
    if (is_stated(call))
      memset(out->split, 0, sizeof out->split);
    if (is_stated(call) && !section->is_local)
      sdg_sizes_added(section, dims, unsaid[i], out->split);
    if (all_match(call, out))
      SDG_TRY(makes_one(call, out, out_fits));
  }
  return SDG_OK;
}

// Whether the pattern limits the size of this dimension.
static bool names(const sdg_section_t *section, int dim) {
  for (int i = 0; i < section->terms; i++)
    if (section->term[i].compare != SDG_COMPARE_ANY &&
        (section->listed
             ? i
             : sdg_dim_index(SDG_FAMILY_MATMUL, section->term[i].dim,
                             SDG_PRODUCT_DIMS)) == dim)
      return true;
  return false;
}

// The axes over which the results are added.
static sdg_axes_t added_over(const sdg_call_t *call, const reading_t *reading) {
  int k = sdg_dim_index(call->family, SDG_DIM_K, product_of(call)->dims);
  return reading->section->is_local
             ? 0
             : reading->section->sum_axes &
                   sdg_split_all_axes(&reading->split[k]);
}

// Whether the later pattern names a dimension in which the readings differ, and
// so does the first one if it is that of a [local] section.
static bool are_two(const sdg_call_t *call, const reading_t *first,
                    const reading_t *later) {
  const sdg_tag_vector_t *vector = vector_of(call);
  bool by_first = !first->section->is_local, by_later = false;
  // Of a graph's M, N and BATCH a wrong reading computes what is asked for.
  if (!is_stated(call) && added_over(call, first) == added_over(call, later))
    return false;
  for (int r = 0; r < vector->ranks; r++) {
    int64_t a[SDG_DIMS_MAX], b[SDG_DIMS_MAX];
    sdg_place_extents(vector, first->split, r, a);
    sdg_place_extents(vector, later->split, r, b);
    for (int d = 0; d < vector->dims; d++)
      if (a[d] != b[d]) {
        by_first |= names(first->section, d);
        by_later |= names(later->section, d);
      }
  }
  return by_first && by_later;
}

// "M 16, N 60, K 32 = 16+16", or, by no reading, as it is stated.
static void sizes_format(const sdg_call_t *call, const sdg_split_t *split,
                         char *out, size_t out_bytes) {
  const sdg_tag_vector_t *vector = vector_of(call);
  int64_t extent[SDG_DIMS_MAX];
  size_t used = 0;
  sdg_place_extents(vector, split, 0, extent);
  for (int d = 0; d < vector->dims && used < out_bytes; d++) {
    char parts[96] = "";
    sdg_part_t part;
    if (split[d].axes > 0 &&
        sdg_sizes_part(call, d, sdg_split_all_axes(&split[d]), &part) ==
            SDG_OK) {
      sdg_part_format(&part, parts, sizeof parts);
      sdg_part_fini(&part);
    }
    used += (size_t)snprintf(
        out + used, out_bytes - used, "%s%s %" PRId64 "%s%s", d ? ", " : "",
        sdg_dim_name(sdg_dim_at(SDG_FAMILY_MATMUL, d, vector->dims)), extent[d],
        *parts ? " = " : "", parts);
  }
}

static sdg_status_t two_fail(const sdg_call_t *call, const reading_t *first,
                             const reading_t *later) {
  const sdg_split_t none[SDG_DIMS_MAX] = {{0}};
  const sdg_section_t *a = first->section, *b = later->section;
  char stated[96], text[2][256];
  sizes_format(call, none, stated, sizeof stated);
  sizes_format(call, first->split, text[0], sizeof text[0]);
  sizes_format(call, later->split, text[1], sizeof text[1]);
  return sdg_fail(
      SDG_E_PRODUCT_TWICE,
      "%s with %s on rank %d is %s according to [%s %s] (line %d), and %s "
      "according to [%s %s] (line %d). Write 'match', 'op' or 'sizes' so that "
      "only one section fits, or call sundog_tag_range() in the program",
      call->entry_name, stated, sdg_job_group()->rank[0], text[0],
      a->is_local ? "local" : "shard", a->name, a->line, text[1],
      b->is_local ? "local" : "shard", b->name, b->line);
}

sdg_status_t sdg_sizes_once(const sdg_call_t *call, const sdg_rules_t *rules,
                            const sdg_section_t *section) {
  const sdg_section_t *end = rules->section + rules->sections;
  reading_t first, later;
  bool fit;
  if (section + 1 == end)
    return SDG_OK;
  SDG_TRY(fits(call, section, &first, &fit));
  if (!fit) // which is an error of its own
    return SDG_OK;
  for (const sdg_section_t *s = section + 1; s < end; s++) {
    SDG_TRY(fits(call, s, &later, &fit));
    if (fit && are_two(call, &first, &later))
      return two_fail(call, &first, &later);
  }
  return SDG_OK;
}

sdg_status_t sdg_sizes_everywhere(const sdg_call_t *call,
                                  const sdg_rules_t *rules,
                                  const sdg_section_t **io_section,
                                  sdg_seen_t *io_seen) {
  const sdg_section_t *end = rules->section + rules->sections;
  reading_t reading;
  bool fit = false;
  if (io_seen->no < 0 || (*io_section)->is_local)
    return SDG_OK;
  // By its other reading, if it does not say what sizes are.
  SDG_TRY(fits(call, *io_section, &reading, &fit));
  if (fit)
    return SDG_OK;
  for (const sdg_section_t *s = *io_section + 1; s < end && !fit; s++) {
    SDG_TRY(fits(call, s, &reading, &fit));
    if (fit)
      *io_section = s;
  }
  if (fit)
    io_seen->no = -1;
  return SDG_OK;
}
