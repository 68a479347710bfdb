// SPDX-License-Identifier: Apache-2.0
// Which rank computes which heads, where each computes whole sequences.
#include "rules/graph/attention/attention.h"

enum { HEADS = SDG_HEADED_HEADS, SEQ = SDG_HEADED_SEQ };

static int64_t heads_of(const sdg_placement_t *placement) {
  return sdg_placement_extent(placement, HEADS);
}

const char *sdg_graph_attention_heads_obstacle(const sdg_graph_attention_t *a) {
  if (a->queries->part[SEQ].pieces < 2)
    return "the queries' sequence is in one piece";
  if (a->queries->split[HEADS].axes > 0)
    return "the queries' heads are in pieces already";
  return heads_of(a->side[SDG_KEYS]) != heads_of(a->side[SDG_VALUES])
             ? "keys and values have different numbers of heads"
             : NULL;
}

// Even sizes. With at least as many groups as ranks each rank has whole groups;
// otherwise each has some heads of one group.
void sdg_graph_attention_heads_sizes(int64_t heads, int64_t groups, int pieces,
                                     int64_t *out) {
  int64_t each = heads / groups, at = 0;
  for (int i = 0; i < pieces; i++) {
    int64_t next = (i + 1) * heads / pieces;
    if (groups >= pieces)
      next = (i + 1) * groups / pieces * each;
    else if (at % each + (next - at) > each)
      next = (at / each + 1) * each; // ends with the group
    out[i] = next - at;
    at = next;
  }
  // Ending with groups may leave heads over: then all ranks have whole ones.
  for (int i = 0; i < pieces && at < heads; i++)
    out[i] = ((i + 1) * groups / pieces - i * groups / pieces) * each;
}

sdg_status_t sdg_graph_attention_by_heads(sdg_graph_attention_t *a) {
  int64_t extent[SDG_HEADED_DIMS], size[SDG_RANKS_MAX];
  int from[SDG_HEADED_DIMS] = {SDG_HEADED_BATCH, -1, -1, -1};
  const sdg_split_t *split = &a->queries->split[SEQ];
  int pieces = a->queries->part[SEQ].pieces;
  sdg_part_t part;
  for (int d = 0; d < SDG_HEADED_DIMS; d++)
    extent[d] = sdg_placement_extent(a->queries, d);
  sdg_graph_attention_heads_sizes(extent[HEADS], heads_of(a->side[SDG_KEYS]),
                                  pieces, size);
  SDG_TRY(sdg_placement_like(SDG_HEADED_DIMS, extent, a->tagging->mesh,
                             a->queries, from, &a->by_heads));
  SDG_TRY(sdg_part_from_sizes(pieces, size, &part));
  SDG_TRY(
      sdg_placement_take(&a->by_heads, a->tagging->mesh, HEADS, split, &part));
  a->work = &a->by_heads;
  return SDG_OK;
}
