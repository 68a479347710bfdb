// SPDX-License-Identifier: Apache-2.0
// Shard view: checks that the ranks' memory agrees with the placements that the
// rules state for a product's matrices.
#include "rules/product/check.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "src/base/log.h"
#include "src/base/options.h"

// Whether sundog assumes even parts for dimension d of a matrix, because
// neither `parts =` nor the sizes of the ranks' calls tell the parts.
static bool is_assumed(const sdg_product_check_t *c, int matrix, int d) {
  const sdg_section_t *section = c->m->tagging->section;
  const sdg_matrix_t *of = &c->m->product.matrix[matrix];
  sdg_axes_t axes = sdg_split_all_axes(&c->m->matrix[matrix].split[d]);
  int dim = of->dim[d];
  bool by_matrix;
  if (sdg_sizes_pieces(axes) < 2 ||
      (section->sizes[dim] == SDG_SIZES_PIECE &&
       sdg_sizes_cut(section, dim, &by_matrix) == axes))
    return false;
  for (int m = -1; m < SDG_MATRICES; m++) {
    const sdg_rules_split_t *split =
        m < 0 ? section->split : section->matrix[m].split;
    int splits = m < 0 ? section->splits : section->matrix[m].splits;
    for (int i = 0; i < splits; i++)
      if (split[i].axes == axes &&
          sdg_dim_index(SDG_FAMILY_MATMUL, split[i].dim, SDG_PRODUCT_DIMS) ==
              dim &&
          strcmp(split[i].parts, "agree") != 0)
        return false;
  }
  return true;
}

static void assumed_write(const sdg_product_check_t *c,
                          sdg_product_text_t *text, int matrix, int d) {
  char parts[96];
  const sdg_placement_t *placed = &c->m->matrix[matrix];
  sdg_part_format(&placed->part[d], parts, sizeof parts);
  sdg_product_text_add(
      text, "%s %" PRId64 " = %s over ",
      sdg_product_text_dim(c->m->product.matrix[matrix].dim[d]),
      sdg_placement_extent(placed, d), parts);
  for (int a = 0; a < placed->split[d].axes; a++)
    sdg_product_text_add(text, "%s%s", a ? "," : "",
                         sdg_job_mesh()->name[placed->split[d].axis[a]]);
}

// The largest extent of dimension d that fits in a rank's memory, if the other
// extents are those in `extent`.
static int64_t room_along(const sdg_product_check_t *c, int matrix, int member,
                          const int64_t *extent, int d) {
  int64_t at[3] = {extent[0], extent[1], extent[2]}, lo = 0, hi = INT32_MAX;
  sdg_product_room_t room = sdg_product_room_of(c->m, matrix, member);
  while (lo < hi) {
    at[d] = lo + (hi - lo + 1) / 2;
    if (sdg_product_room_holds(&room, &c->m->product.matrix[matrix], at, true))
      lo = at[d];
    else
      hi = at[d] - 1;
  }
  return lo;
}

static sdg_status_t small_fail(const sdg_product_check_t *c, int matrix,
                               int member, const int64_t *extent) {
  const sdg_matrix_t *of = &c->m->product.matrix[matrix];
  sdg_product_room_t room = sdg_product_room_of(c->m, matrix, member);
  sdg_product_text_t text = {.used = 0}, assumed = {.used = 0};
  sdg_product_text_t there = {.used = 0};
  sdg_product_text_extents(&text, of, extent);
  if (room.elements < 0)
    sdg_product_text_add(&there, "its rows or columns are longer than that");
  else
    sdg_product_text_add(&there, "%" PRId64 " elements are allocated there",
                         room.elements);
  for (int d = 0; d < of->dims; d++)
    if (c->m->matrix[matrix].split[d].axes > 0 && is_assumed(c, matrix, d)) {
      sdg_product_text_add(&assumed, "%s", assumed.used ? "; " : "");
      assumed_write(c, &assumed, matrix, d);
    }
  return sdg_fail(
      assumed.used ? SDG_E_PRODUCT_PARTS : SDG_E_PRODUCT_MATRIX,
      "%s by section '%s': %s of rank %d would be %s, with a leading dimension "
      "of %" PRId64 ", but %s%s%s%s",
      c->m->call->entry_name, c->m->tagging->section->name,
      sdg_role_name(of->role), c->group->rank[member], text.at,
      room.stride[of->outer], there.at,
      assumed.used ? "; its parts are assumed (" : "", assumed.at,
      assumed.used ? "): write the true ones with 'parts ='" : "");
}

// Whether the leading dimension has room for a line of the matrix.
static bool lines_hold(const sdg_product_room_t *room,
                       const sdg_matrix_t *matrix, const int64_t *extent) {
  return matrix->inner < 0 || extent[matrix->outer] == 0 ||
         room->stride[matrix->outer] >= extent[matrix->inner];
}

// Checks that every rank's memory has room for what the rules say it has.
static sdg_status_t rooms_check(const sdg_product_check_t *c) {
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++)
    for (int r = 0; c->m->product.matrix[i].there && r < c->vector->ranks;
         r++) {
      int64_t extent[3] = {0};
      sdg_product_room_t room = sdg_product_room_of(c->m, i, r);
      sdg_product_check_extents(c, NULL, i, r, extent);
      if (!lines_hold(&room, &c->m->product.matrix[i], extent) ||
          !sdg_product_room_holds(&room, &c->m->product.matrix[i], extent,
                                  false))
        return small_fail(c, i, r, extent);
    }
  return SDG_OK;
}

// Checks that no rank writes more than its call describes.
static sdg_status_t result_check(const sdg_product_check_t *c) {
  const sdg_matrix_t *result = &c->m->product.matrix[SDG_RESULT];
  for (int r = 0; r < c->vector->ranks; r++) {
    sdg_box_t box = sdg_placement_box(&c->m->matrix[SDG_RESULT],
                                      c->m->tagging->mesh, c->group->rank[r]);
    for (int d = 0; d < result->dims; d++) {
      int dim = result->dim[d];
      int64_t has = sdg_product_check_stated(c, r, dim);
      if (sdg_box_length(&box, d) <= has)
        continue;
      return sdg_fail(
          SDG_E_PRODUCT_MATRIX,
          "%s by section '%s': C of rank %d would have %s %" PRId64
          ", but the call states %" PRId64
          ", its piece by 'sizes ='. A call that computes all of %s states the "
          "whole, and the section says so: 'sizes = ... %s:whole'",
          c->m->call->entry_name, c->m->tagging->section->name,
          c->group->rank[r], sdg_product_text_dim(dim), sdg_box_length(&box, d),
          has, sdg_product_text_dim(dim), sdg_product_text_dim(dim));
    }
  }
  return SDG_OK;
}

// Whether memory confirms the parts: every rank has room for exactly its part.
static bool is_shown(const sdg_product_check_t *c, int matrix, int d) {
  for (int r = 0; r < c->vector->ranks; r++) {
    int64_t extent[3] = {0};
    sdg_product_check_extents(c, NULL, matrix, r, extent);
    if (extent[d] > 0 && room_along(c, matrix, r, extent, d) != extent[d])
      return false;
  }
  return true;
}

// Logs that memory confirms assumed parts, once for each dimension of a
// section.
static void assumed_report(const sdg_product_check_t *c, int matrix, int d) {
  static _Atomic(const void *) said[64];
  const void *key =
      &c->m->tagging->section->sizes[c->m->product.matrix[matrix].dim[d]];
  sdg_product_text_t text = {.used = 0};
  if (sdg_job_rank() != 0 || !*sdg_options_get()->report)
    return;
  for (int i = 0; i < 64; i++) {
    const void *none = NULL;
    if (atomic_compare_exchange_strong(&said[i], &none, key)) {
      assumed_write(c, &text, matrix, d);
      sdg_log("%s of %s, section '%s': assumed, and every rank's memory is "
              "that large",
              text.at, sdg_role_name(c->m->product.matrix[matrix].role),
              c->m->tagging->section->name);
      return;
    }
    if (none == key)
      return;
  }
}

// Fails if the parts of some dimension are assumed, and no matrix confirms
// them.
static sdg_status_t parts_check(const sdg_product_check_t *c) {
  static const int order[] = {SDG_FACTOR_1, SDG_FACTOR_2, SDG_RESULT,
                              SDG_ADDEND};
  int open[SDG_PRODUCT_DIMS][2], opened = 0;
  bool shown[SDG_PRODUCT_DIMS] = {false}, assumed[SDG_PRODUCT_DIMS] = {false};
  for (int i = 0; i < 4; i++) {
    const sdg_matrix_t *matrix = &c->m->product.matrix[order[i]];
    for (int d = 0; matrix->there && d < matrix->dims; d++) {
      int dim = matrix->dim[d];
      if (c->m->matrix[order[i]].split[d].axes == 0 ||
          !is_assumed(c, order[i], d))
        continue;
      if (is_shown(c, order[i], d)) {
        shown[dim] = true;
        assumed_report(c, order[i], d);
      } else if (!assumed[dim]) {
        open[dim][0] = order[i];
        open[dim][1] = d;
        assumed[dim] = true;
        opened++;
      }
    }
  }
  for (int dim = 0; opened && dim < SDG_PRODUCT_DIMS; dim++) {
    sdg_product_text_t text = {.used = 0};
    if (!assumed[dim] || shown[dim])
      continue;
    assumed_write(c, &text, open[dim][0], open[dim][1]);
    return sdg_fail(
        SDG_E_PRODUCT_PARTS,
        "%s by section '%s': %s of %s is assumed, and the ranks' memory does "
        "not confirm it: it has more room, or is unknown. Write 'parts = "
        "%s:even', or the sizes that the ranks have, as in 'parts = %s:3,2,2'",
        c->m->call->entry_name, c->m->tagging->section->name, text.at,
        sdg_role_name(c->m->product.matrix[open[dim][0]].role),
        sdg_product_text_dim(dim), sdg_product_text_dim(dim));
  }
  return SDG_OK;
}

// Whether, on every rank, all elements of the matrix that the rank's call
// states have different addresses.
static bool lies_apart(const sdg_product_check_t *c, int matrix) {
  const sdg_matrix_t *of = &c->m->product.matrix[matrix];
  for (int r = 0; r < c->vector->ranks; r++) {
    sdg_product_room_t room = sdg_product_room_of(c->m, matrix, r);
    int64_t extent[3];
    for (int d = 0; d < of->dims; d++)
      extent[d] = sdg_product_check_stated(c, r, of->dim[d]);
    room.elements = INT64_MAX;
    if (!sdg_product_room_holds(&room, of, extent, true))
      return false;
  }
  return true;
}

sdg_status_t sdg_product_check(const sdg_product_parts_t *m) {
  sdg_product_check_t c = {.m = m,
                           .group = sdg_job_group(),
                           .vector =
                               sdg_tag_vector(m->call->operand[0].descriptor,
                                              m->call->operand[0].generation)};
  if (m->tagging->ranks < 2)
    return SDG_OK;
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++)
    c.apart[i] = m->product.matrix[i].there && lies_apart(&c, i);
  SDG_TRY(result_check(&c));
  SDG_TRY(sdg_product_check_factors(&c));
  SDG_TRY(rooms_check(&c));
  return parts_check(&c);
}
