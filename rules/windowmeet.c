// SPDX-License-Identifier: Apache-2.0
// The input and the output of a windowed op that are cut in different places.
#include "rules/windowmeet.h"

// The output of an input with these extents; 0: there is none.
static int64_t outputs(const sdg_window_spec_t *spec, const sdg_placement_t *x,
                       int d) {
  if (d == 1 && spec->y_channels > 0)
    return spec->y_channels;
  return sdg_window_outputs(&spec->window[d], sdg_placement_extent(x, d));
}

// Every channel of the one sees all of the other.
static bool mixes(const sdg_window_spec_t *spec, int d) {
  return d == 1 && spec->y_channels > 0;
}

// Dimension d of `out` is cut where the windows have it beside `lead`.
static sdg_status_t dimension_cut(const sdg_meet_t *meet,
                                  const sdg_window_spec_t *spec,
                                  const sdg_placement_t *lead, bool of_x, int d,
                                  sdg_placement_t *out) {
  int64_t extent = sdg_placement_extent(out, d);
  sdg_part_t part;
  if (lead->split[d].axes == 0 || spec->everyones[d])
    return SDG_OK;
  SDG_TRY(of_x
              ? sdg_window_part(&spec->window[d], &lead->part[d], extent, &part)
              : sdg_window_part_adjoint(&spec->window[d], &lead->part[d],
                                        extent, &part));
  sdg_status_t status =
      sdg_placement_split(out, meet->tagging.mesh, d, &lead->split[d], &part);
  sdg_part_fini(&part);
  return status;
}

static sdg_status_t follow(sdg_meet_t *meet, const sdg_window_spec_t *spec,
                           int lead, int index, const int64_t *extent) {
  const sdg_placement_t *of = sdg_meet_at(meet, lead);
  sdg_placement_t want;
  SDG_TRY(sdg_placement_init(of->dims, extent, &want));
  sdg_status_t status = SDG_OK;
  for (int d = 0; d < of->dims && status == SDG_OK; d++)
    status = dimension_cut(meet, spec, of, lead == spec->x, d, &want);
  if (status == SDG_OK)
    status = sdg_meet_follow(meet, index, &want, true);
  sdg_placement_fini(&want);
  return status;
}

static sdg_status_t y_follow(sdg_meet_t *meet, const sdg_window_spec_t *spec) {
  const sdg_placement_t *x = sdg_meet_at(meet, spec->x);
  int64_t extent[SDG_DIMS_MAX];
  for (int d = 0; d < x->dims; d++) {
    extent[d] = outputs(spec, x, d);
    meet->fits &= extent[d] > 0;
  }
  return meet->fits ? follow(meet, spec, spec->x, spec->y, extent) : SDG_OK;
}

// Inputs of several extents have the same output.
static sdg_status_t x_follow(sdg_meet_t *meet, const sdg_window_spec_t *spec) {
  const sdg_placement_t *y = sdg_meet_at(meet, spec->y);
  for (int k = 0; k < meet->places[spec->x]; k++) {
    const sdg_placement_t *x = &meet->place[spec->x][k].placement;
    int64_t extent[SDG_DIMS_MAX];
    bool fits = x->dims == y->dims;
    for (int d = 0; fits && d < x->dims; d++) {
      extent[d] = sdg_placement_extent(x, d);
      fits = outputs(spec, x, d) == sdg_placement_extent(y, d);
    }
    if (fits)
      return follow(meet, spec, spec->y, spec->x, extent);
  }
  meet->fits = false;
  return SDG_OK;
}

sdg_status_t sdg_window_meet(sdg_meet_t *meet, const sdg_window_spec_t *spec,
                             int lead) {
  const sdg_placement_t *of = sdg_meet_at(meet, lead);
  for (int d = 0; d < of->dims; d++)
    meet->fits &= !mixes(spec, d) || of->split[d].axes == 0;
  if (!meet->fits)
    return SDG_OK;
  return lead == spec->x ? y_follow(meet, spec) : x_follow(meet, spec);
}
