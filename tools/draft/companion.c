// SPDX-License-Identifier: Apache-2.0
// Finds the tensors and products that have the tokens of attention as a
// dimension, by comparing extents.
#include "tools/draft/companion.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rules/attention/call/band.h"

static bool is_among(const extents_t *tokens, int64_t extent) {
  for (int i = 0; i < tokens->count; i++)
    if (tokens->extent[i] == extent)
      return true;
  return false;
}

void companion_extents(const calls_t *calls, extents_t *out) {
  *out = (extents_t){.count = 0};
  for (int i = 0; i < calls->count; i++) {
    const seen_call_t *call = &calls->call[i];
    for (int k = 0; k < call->operands; k++) {
      const seen_operand_t *operand = &call->operand[k];
      int d = sdg_dim_index(call->family, SDG_DIM_SEQ, operand->dims);
      if (call->is_query || !operand->is_activation || d < 0 ||
          operand->extent[d] < 2 || is_among(out, operand->extent[d]) ||
          out->count == (int)(sizeof out->extent / sizeof *out->extent))
        continue;
      out->extent[out->count++] = operand->extent[d];
    }
  }
}

// Does not add a section whose pattern the list already has: only the first
// section with a pattern would apply.
static void section_add(candidate_t *out, const seen_call_t *call,
                        const companion_t *section) {
  for (int i = 0; i < out->companions; i++) {
    const companion_t *other = &out->companion[i];
    if (strcmp(other->match, section->match) != 0)
      continue;
    if (strcmp(other->split, section->split) != 0 ||
        strcmp(other->window, section->window) != 0)
      candidate_fault(out,
                      "%s: what matches '%s' would be split as %s%s%s here, "
                      "but elsewhere as %s%s%s; sections must distinguish them",
                      call->entry, section->match, section->split,
                      *section->window ? ", window " : "", section->window,
                      other->split, *other->window ? ", window " : "",
                      other->window);
    return;
  }
  if (out->companions == CANDIDATE_COMPANIONS_MAX)
    candidate_fault(out, "more than %d sections: the later ones are left out",
                    CANDIDATE_COMPANIONS_MAX);
  else
    out->companion[out->companions++] = *section;
}

// Counts the rows of keys that all ranks receive if the pieces are even.
static sdg_status_t rows_received(const sdg_band_t *band, int64_t extent,
                                  int ranks, int64_t *out_rows) {
  sdg_part_t part;
  *out_rows = 0;
  SDG_TRY(sdg_part_divide(extent, ranks, SDG_PART_EVEN, 1, &part));
  for (int r = 0; r < ranks; r++) {
    sdg_range_t own = {part.offset[r], part.offset[r + 1]};
    sdg_range_t need = sdg_band_need(band, own, extent);
    if (own.hi > own.lo)
      *out_rows += need.hi - need.lo - (own.hi - own.lo);
  }
  sdg_part_fini(&part);
  return SDG_OK;
}

static int64_t bytes_of(const seen_operand_t *operand) {
  int64_t bytes = operand->bytes;
  for (int d = 0; d < operand->dims; d++)
    bytes *= operand->extent[d];
  return bytes;
}

// Counts the bytes of keys and values in the ranks' windows, once if keys and
// values are one tensor; a data gradient also sends their gradients back.
static sdg_status_t attention_bytes(const seen_call_t *call,
                                    const companion_t *section, int64_t steps,
                                    candidate_t *out) {
  const seen_operand_t *k = call_operand(call, "k"),
                       *v = call_operand(call, "v");
  int64_t rows;
  sdg_band_t band = {section->left < 0 ? SDG_BAND_UNBOUND : section->left,
                     section->right < 0 ? SDG_BAND_UNBOUND : section->right};
  int d = k ? sdg_dim_index(call->family, SDG_DIM_SEQ, k->dims) : -1;
  if (!v || d < 0 || v->dims != k->dims)
    return SDG_OK;
  SDG_TRY(rows_received(&band, k->extent[d], out->split[0].pieces, &rows));
  int64_t both = bytes_of(k) + bytes_of(v);
  int64_t bytes = call->one_tensor ? bytes_of(k) : both;
  if (call_operand(call, "dk"))
    bytes += both;
  candidate_bytes(out, call, rows * (bytes / k->extent[d]), steps);
  return SDG_OK;
}

// Finds the section of a parameter gradient: that of the forward call, which
// has the windows.
static const companion_t *section_find(const candidate_t *candidate,
                                       const char *match) {
  for (int i = 0; i < candidate->companions; i++)
    if (strcmp(candidate->companion[i].match, match) == 0)
      return &candidate->companion[i];
  return NULL;
}

static void window_text(const seen_call_t *call, int64_t keys, char *out,
                        size_t bytes) {
  if (call->left < 0 && call->right < 0)
    snprintf(out, bytes, "global");
  else // at most the number of keys
    snprintf(out, bytes, "%" PRId64 ",%" PRId64,
             call->left < 0 ? keys : call->left,
             call->right < 0 ? keys : call->right);
}

// The legacy function states windows of the rank's piece, so that the section
// says those of the whole; a graph states masks of the whole.
static sdg_status_t attention_judge(const seen_call_t *call, int64_t steps,
                                    candidate_t *out) {
  const seen_operand_t *q = call_operand(call, "q"),
                       *k = call_operand(call, "k");
  bool is_graph = sdg_family_dims(call->family) == SDG_FAMILY_HEADS;
  companion_t section = {.split = "SEQ",
                         .left = call->left,
                         .right = call->right,
                         .is_graph = is_graph};
  int d = q ? sdg_dim_index(call->family, SDG_DIM_SEQ, q->dims) : -1;
  if (d < 0 || !k || k->dims != q->dims)
    return SDG_OK;
  if (q->extent[d] != k->extent[d]) {
    candidate_fault(out,
                    "%s: %" PRId64 " queries see %" PRId64
                    " keys; write the sections for both yourself",
                    call->entry, q->extent[d], k->extent[d]);
    return SDG_OK;
  }
  if (call->is_ragged && out->view == SDG_VIEW_SHARD)
    candidate_fault(out,
                    is_graph ? "%s: which keys its queries see depends on "
                               "lengths in device memory (SDG-630)"
                             : "%s: its windows do not have a fixed number of "
                               "keys before and after each query (SDG-631)",
                    call->entry);
  if (is_graph && call_operand(call, "lengths"))
    candidate_doubt(out,
                    "%s: its section needs 'lengths = piece' or 'lengths = "
                    "whole' (SDG-630)",
                    call->entry);
  snprintf(section.match, sizeof section.match,
           is_graph ? "BATCH HEADS SEQ=%" PRId64 " HEAD"
                    : "SEQ=%" PRId64 " BATCH",
           q->extent[d]);
  // In the whole view the call itself has the windows.
  if (out->view == SDG_VIEW_SHARD && !is_graph)
    window_text(call, q->extent[d], section.window, sizeof section.window);
  if (call->has_windows)
    section_add(out, call, &section);
  const companion_t *of =
      is_graph ? &section : section_find(out, section.match);
  return of ? attention_bytes(call, of, steps, out) : SDG_OK;
}

// Returns the only dimension with as many elements as there are tokens; -1 if
// no dimension has, -2 if several have.
static int tokens_index(const seen_operand_t *operand,
                        const extents_t *tokens) {
  int found = -1;
  for (int d = 0; d < operand->dims; d++)
    if (operand->extent[d] > 1 && is_among(tokens, operand->extent[d]))
      found = found == -1 ? d : -2;
  return found;
}

static bool is_ambiguous(const seen_call_t *call, const seen_operand_t *operand,
                         int d, candidate_t *out) {
  char text[160];
  if (d == -2)
    candidate_fault(out,
                    "%s: several dimensions of %s %s are as long as the split "
                    "one; write its section yourself",
                    call->entry, operand->role,
                    extents_text(operand, text, sizeof text));
  return d == -2;
}

static const char *dim_name(const seen_call_t *call,
                            const seen_operand_t *operand, int d) {
  return sdg_dim_name(sdg_dim_at(call->family, d, operand->dims));
}

static void product_judge(const seen_call_t *call, const extents_t *tokens,
                          int64_t steps, candidate_t *out) {
  const seen_operand_t *product = call_operand(call, "product");
  const seen_operand_t *d_matrix = call_operand(call, "d");
  const seen_operand_t *result = d_matrix ? d_matrix : call_operand(call, "c");
  companion_t section = {.window = "", .is_product = true};
  int d = product ? tokens_index(product, tokens) : -1;
  size_t used = 0;
  if (product &&
      (is_ambiguous(call, product, d, out) || product->dims > SDG_SIZES_DIMS))
    return;
  if (d < 0 || !call->has_rule) {
    if (out->view == SDG_VIEW_SHARD)
      candidate_fault(
          out,
          call->has_rule ? "%s: none of its dimensions is as long as the split "
                           "one: it would be computed from each rank's part"
                         : "%s: this version has no rule for it (SDG-600)",
          call->entry);
    else
      out->in_full++;
    return;
  }
  for (int i = 0; i < product->dims && used < sizeof section.match; i++)
    used += (size_t)snprintf(section.match + used, sizeof section.match - used,
                             "%s%s=%" PRId64, i ? " " : "",
                             dim_name(call, product, i), product->extent[i]);
  snprintf(section.split, sizeof section.split, "%s",
           dim_name(call, product, d));
  section_add(out, call, &section);
  bool sums = sdg_dim_at(call->family, d, product->dims) == SDG_DIM_K;
  if (sums && result) // they are scattered and gathered
    candidate_bytes(out, call,
                    2 * (out->split[0].pieces - 1) * bytes_of(result), steps);
}

// Whether the places of an image are tokens: H times W, say.
static bool has_places(const seen_operand_t *operand, const extents_t *tokens) {
  int64_t places = 1;
  for (int d = 2; d < operand->dims; d++)
    places *= operand->extent[d];
  return operand->is_activation && operand->dims > 2 &&
         is_among(tokens, places);
}

// A call with a window whose tensors have no dimension of tokens: each rank's
// own, unless their places are tokens.
static void window_judge(const seen_call_t *call, const extents_t *tokens,
                         candidate_t *out) {
  char text[160];
  for (int i = 0; i < call->operands; i++)
    if (has_places(&call->operand[i], tokens)) {
      candidate_fault(out,
                      "%s: %s %s has as many places as there are tokens; write "
                      "its section yourself",
                      call->entry, call->operand[i].role,
                      extents_text(&call->operand[i], text, sizeof text));
      return;
    }
  out->has_local = true;
}

static void tensors_judge(const seen_call_t *call, const extents_t *tokens,
                          candidate_t *out) {
  bool any = false;
  for (int i = 0; i < call->operands; i++) {
    const seen_operand_t *operand = &call->operand[i];
    int d = operand->is_activation ? tokens_index(operand, tokens) : -1;
    companion_t section = {.window = ""};
    if (is_ambiguous(call, operand, d, out) || d < 0)
      continue;
    sdg_dim_t dim = sdg_dim_at(call->family, d, operand->dims);
    if (dim == SDG_DIM_COUNT)
      continue;
    any = true;
    snprintf(section.split, sizeof section.split, "%s", sdg_dim_name(dim));
    snprintf(section.match, sizeof section.match, "%s=%" PRId64, section.split,
             operand->extent[d]);
    section_add(out, call, &section);
  }
  if (any && !call->has_rule && out->view == SDG_VIEW_SHARD)
    candidate_fault(out, "%s: this version has no rule for it (SDG-600)",
                    call->entry);
  else if (any && !call->has_rule)
    out->in_full++;
  if (!any && out->view == SDG_VIEW_SHARD && call->spatial > 0)
    window_judge(call, tokens, out);
}

sdg_status_t companion_judge(const seen_call_t *call, const extents_t *tokens,
                             int64_t steps, candidate_t *out) {
  switch (sdg_family_dims(call->family)) {
  case SDG_FAMILY_SEQUENCE:
  case SDG_FAMILY_HEADS:
    return attention_judge(call, steps, out);
  case SDG_FAMILY_PRODUCT:
    product_judge(call, tokens, steps, out);
    break;
  case SDG_FAMILY_IMAGE:
    tensors_judge(call, tokens, out);
    break;
  }
  return SDG_OK;
}
