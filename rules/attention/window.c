// SPDX-License-Identifier: Apache-2.0
// The meaning of attention windows in the shard view, where the program states
// the windows of its own pieces.
#include <stdio.h>

#include "rules/attention/plan.h"
#include "rules/place/tagging.h"
#include "src/base/log.h"
#include "src/job/job.h"

// The rank's own elements along the sequence. For an operand that moves to be
// colocated with another one it is the whole sequence, because then the program
// states the windows of all queries.
static sdg_range_t own_range(const sdg_attention_maker_t *m, int index) {
  const sdg_placement_t *p = &m->tagging->placement[index];
  if (m->call->operand[index].is_colocated)
    return (sdg_range_t){0, sdg_placement_extent(p, SDG_SEQUENCE_TIME)};
  return sdg_tagging_own(m->tagging, p).dim[SDG_SEQUENCE_TIME];
}

// Writes which line of the rules would agree with the program's windows, as far
// as this rank's piece shows. Where windows end only at the end of the piece,
// their true size on that side is unknown.
static void line_write(const sdg_attention_maker_t *m,
                       const sdg_windows_t *windows, sdg_range_t queries,
                       sdg_range_t own, char *out, size_t out_bytes) {
  int64_t keys = own.hi - own.lo;
  sdg_band_t band = m->band;
  const char *name = m->section->name;
  bool none = m->a.kind == SDG_ATTENTION_WEIGHTS || queries.lo != own.lo ||
              !sdg_windows_band(windows, keys, &band);
  bool before = band.left < SDG_BAND_UNBOUND,
       after = band.right < SDG_BAND_UNBOUND;
  if (none || (!before && !after))
    snprintf(out, out_bytes,
             "write into [shard %s] window = BEFORE,AFTER (the number of keys "
             "that a query sees before and after its own), window = global "
             "(all), or window = local (only those of its own piece)",
             name);
  else if (before && after)
    snprintf(out, out_bytes,
             "for the windows that the program states, [shard %s] needs window "
             "= %lld,%lld",
             name, (long long)band.left, (long long)band.right);
  else
    snprintf(
        out, out_bytes,
        "the program's windows reach %lld keys %s each query, and on the other "
        "side beyond the %lld of the piece: [shard %s] needs window = %s%lld%s",
        (long long)(before ? band.left : band.right),
        before ? "before" : "after", (long long)keys, name,
        before ? "" : "BEFORE,", (long long)(before ? band.left : band.right),
        before ? ",AFTER" : "");
}

// Warns that the rules' window cannot be compared with the program's, if no
// piece is large enough for a window to end inside it. Example: a piece of 10
// elements shows windows that reach at most 8 elements before the query.
static void unseen_warn(const sdg_attention_maker_t *m) {
  const sdg_part_t *part =
      &m->tagging->placement[m->a.k].part[SDG_SEQUENCE_TIME];
  int64_t max = 0;
  for (int p = 0; p < part->pieces; p++)
    max = sdg_part_size(part, p) > max ? sdg_part_size(part, p) : max;
  bool before = m->band.left + 1 >= max, after = m->band.right + 1 >= max;
  if (!(before || after) || m->section->window != SDG_WINDOW_SIZES ||
      sdg_job_rank() != 0)
    return;
  sdg_log_once("SEQ %lld is in pieces of at most %lld, in which windows of "
               "%lld,%lld ([shard %s]) do not end%s, so the windows that the "
               "program states there cannot be compared",
               (long long)sdg_part_extent(part), (long long)max,
               (long long)m->section->window_left,
               (long long)m->section->window_right, m->section->name,
               before && after ? ""
               : before        ? " before the query"
                               : " after the query");
}

static sdg_status_t windows_compare(const sdg_attention_maker_t *m,
                                    bool in_pieces) {
  const sdg_attention_t *a = &m->a;
  sdg_windows_t windows = a->windows;
  char line[320];
  if (a->kind == SDG_ATTENTION_WEIGHTS || m->local)
    return SDG_OK;
  sdg_range_t queries = own_range(m, a->q), keys = own_range(m, a->k);
  windows.count = queries.hi - queries.lo;
  int64_t t = sdg_windows_differ(&windows, &m->band, queries.lo, keys);
  if (t < 0 && in_pieces)
    unseen_warn(m);
  if (t < 0)
    return SDG_OK;
  line_write(m, &windows, queries, keys, line, sizeof line);
  sdg_range_t should = sdg_band_among(&m->band, queries.lo + t, keys);
  return sdg_fail(SDG_E_ATTENTION_WINDOW,
                  "%s: query %lld of the shard sees keys [%d, %d) of %lld, but "
                  "the rule gives [%lld, %lld); %s",
                  m->call->entry_name, (long long)t, windows.lo[t],
                  windows.hi[t], (long long)(keys.hi - keys.lo),
                  (long long)should.lo, (long long)should.hi, line);
}

static sdg_status_t window_missing(const sdg_attention_maker_t *m) {
  char line[320];
  sdg_windows_t windows = m->a.windows;
  sdg_range_t queries = own_range(m, m->a.q), keys = own_range(m, m->a.k);
  windows.count = queries.hi - queries.lo;
  line_write(m, &windows, queries, keys, line, sizeof line);
  return sdg_fail(SDG_E_ATTENTION_WINDOW,
                  "%s: SEQ is split and section '%s' has no window; %s",
                  m->call->entry_name, m->section->name, line);
}

// Checks the placements for `window = local`, where queries see only the keys
// of their own rank. Ranks with the same queries must have the same keys, cut
// along the batch like the queries.
static sdg_status_t local_check(const sdg_attention_maker_t *m) {
  const sdg_placement_t *p = m->tagging->placement;
  const int own[] = {m->a.k, m->a.v};
  for (int i = 0; i < 2; i++)
    if (sdg_placement_splits(&p[own[i]], SDG_SEQUENCE_VECTOR) ||
        sdg_placement_axes(&p[own[i]]) & ~sdg_placement_axes(m->rows) ||
        !sdg_part_equal(&p[own[i]].part[SDG_SEQUENCE_TIME],
                        &p[m->a.k].part[SDG_SEQUENCE_TIME]) ||
        !sdg_part_equal(&p[own[i]].part[SDG_SEQUENCE_BATCH],
                        &p[m->a.q].part[SDG_SEQUENCE_BATCH]))
      return sdg_tagging_differ(m->call, m->tagging, own[i], m->a.q);
  return SDG_OK;
}

// A window of sizes counts queries and keys from the same element. That is
// clear if there are equally many of both, or if one of them is not split.
// Otherwise only a window without limits is accepted.
sdg_status_t sdg_attention_maker_windows(sdg_attention_maker_t *m) {
  const sdg_section_t *section = m->section;
  const sdg_placement_t *p = m->tagging->placement;
  int64_t queries = sdg_placement_extent(&p[m->a.q], SDG_SEQUENCE_TIME);
  int64_t keys = sdg_placement_extent(&p[m->a.k], SDG_SEQUENCE_TIME);
  m->band = (sdg_band_t){SDG_BAND_UNBOUND, SDG_BAND_UNBOUND};
  switch (section->window) {
  case SDG_WINDOW_UNSAID:
    return window_missing(m);
  case SDG_WINDOW_GLOBAL:
    break;
  case SDG_WINDOW_LOCAL:
    m->local = true;
    return local_check(m);
  case SDG_WINDOW_SIZES:
    m->band = (sdg_band_t){section->window_left, section->window_right};
    break;
  }
  bool in_pieces = sdg_placement_splits(&p[m->a.q], SDG_SEQUENCE_TIME) &&
                   sdg_placement_splits(&p[m->a.k], SDG_SEQUENCE_TIME);
  if (in_pieces && queries != keys && !sdg_band_is_all(&m->band, queries, keys))
    return sdg_tagging_differ(m->call, m->tagging, m->a.k, m->a.q);
  return windows_compare(m, in_pieces);
}
