// SPDX-License-Identifier: Apache-2.0
// Colocates the input and the output of a windowed op if they are cut at
// different places.
#include "rules/window/colocate.h"

#include "rules/place/label.h"
#include "rules/place/ones.h"
#include "rules/place/tagging.h"

// The output extent for an input with these extents; 0: there is no output.
static int64_t outputs(const sdg_window_spec_t *spec, const sdg_placement_t *x,
                       int d) {
  if (d == 1 && spec->y_channels > 0)
    return spec->y_channels;
  return sdg_window_outputs(&spec->window[d], sdg_placement_extent(x, d));
}

// Whether in dimension d every element of y depends on all elements of x.
static bool mixes(const sdg_window_spec_t *spec, int d) {
  return d == 1 && spec->y_channels > 0;
}

static sdg_status_t follow(sdg_colocation_t *colocation,
                           const sdg_window_spec_t *spec, int lead, int index,
                           const int64_t *extent) {
  const sdg_placement_t *of = sdg_colocate_at(colocation, lead);
  sdg_placement_t want;
  SDG_TRY(sdg_window_op_beside(spec, of, lead == spec->x,
                               colocation->tagging.mesh, extent, &want));
  sdg_status_t status = sdg_colocate_follow(colocation, index, &want, true);
  sdg_placement_fini(&want);
  return status;
}

static sdg_status_t y_follow(sdg_colocation_t *colocation,
                             const sdg_window_spec_t *spec) {
  const sdg_placement_t *x = sdg_colocate_at(colocation, spec->x);
  int64_t extent[SDG_DIMS_MAX];
  for (int d = 0; d < x->dims; d++) {
    extent[d] = outputs(spec, x, d);
    colocation->fits &= extent[d] > 0;
  }
  return colocation->fits ? follow(colocation, spec, spec->x, spec->y, extent)
                          : SDG_OK;
}

// Places x like y demands. Inputs with different extents can have the same
// output, so this takes the extents of the first reading of x that fits.
static sdg_status_t x_follow(sdg_colocation_t *colocation,
                             const sdg_window_spec_t *spec) {
  const sdg_placement_t *y = sdg_colocate_at(colocation, spec->y);
  for (int k = 0; k < colocation->places[spec->x]; k++) {
    const sdg_placement_t *x = &colocation->place[spec->x][k].placement;
    int64_t extent[SDG_DIMS_MAX];
    bool fits = x->dims == y->dims;
    for (int d = 0; fits && d < x->dims; d++) {
      extent[d] = sdg_placement_extent(x, d);
      fits = outputs(spec, x, d) == sdg_placement_extent(y, d);
    }
    if (fits)
      return follow(colocation, spec, spec->y, spec->x, extent);
  }
  colocation->fits = false;
  return SDG_OK;
}

// Another reading of x, with other extents and the same output. Example: with
// strides, an extent of 1 may be a piece or the whole. NULL if x has only one
// reading.
static const sdg_placement_t *other_input(const sdg_colocation_t *colocation,
                                          const sdg_window_spec_t *spec) {
  const sdg_placement_t *x = sdg_colocate_at(colocation, spec->x);
  const sdg_placement_t *y = sdg_colocate_at(colocation, spec->y);
  for (int k = 0; k < colocation->places[spec->x]; k++) {
    const sdg_placement_t *is = &colocation->place[spec->x][k].placement;
    bool fits = is->dims == x->dims && is->dims == y->dims, same = true;
    for (int d = 0; d < x->dims && fits; d++) {
      int64_t extent = sdg_placement_extent(is, d);
      same &= extent == sdg_placement_extent(x, d);
      fits = mixes(spec, d)
                 ? extent == sdg_placement_extent(x, d)
                 : outputs(spec, is, d) == sdg_placement_extent(y, d);
    }
    if (fits && !same)
      return is;
  }
  return NULL;
}

// Whether the section of x's reading comes from a tag, possibly of another
// operand. A section that matches x says that extents of 1 are pieces.
static bool by_tag(const sdg_colocation_t *colocation, int x) {
  const sdg_section_t *section =
      colocation->place[x][colocation->is[x]].section;
  for (int i = 0; i < colocation->call->operands; i++)
    if (colocation->call->operand[i].label &&
        sdg_label_section(&colocation->call->operand[i]) == section)
      return true;
  return false;
}

static sdg_status_t input_check(const sdg_colocation_t *colocation,
                                const sdg_window_spec_t *spec) {
  const sdg_call_t *call = colocation->call;
  const sdg_placement_t *x = sdg_colocate_at(colocation, spec->x);
  const sdg_placement_t *other = other_input(colocation, spec);
  char text[2][256];
  if (!other || colocation->is[spec->x] < 0 || !by_tag(colocation, spec->x) ||
      sdg_ones_are_known(call, spec->x, colocation->tagging.section))
    return SDG_OK;
  const sdg_placement_t *reading[2] = {x, other};
  for (int n = 0; n < 2; n++)
    sdg_tagging_format(call->family, colocation->tagging.mesh, reading[n],
                       text[n], sizeof text[n]);
  return sdg_fail(
      SDG_E_READINGS,
      "x of %s may be %s, or %s, and y has the same size in both cases: tag x",
      call->entry_name, text[0], text[1]);
}

sdg_status_t sdg_window_colocate(sdg_colocation_t *colocation,
                                 const sdg_window_spec_t *spec, int lead) {
  const sdg_placement_t *of = sdg_colocate_at(colocation, lead);
  for (int d = 0; d < of->dims; d++)
    colocation->fits &= !mixes(spec, d) || of->split[d].axes == 0;
  if (!colocation->fits)
    return SDG_OK;
  SDG_TRY(lead == spec->x ? y_follow(colocation, spec)
                          : x_follow(colocation, spec));
  return colocation->fits ? input_check(colocation, spec) : SDG_OK;
}
