// SPDX-License-Identifier: Apache-2.0
// Lists the splits of a mesh's axes over dimensions, and prints them as tables.
#include "tools/draft/choices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/draft/draft.h"

enum { VIEWS = 2, DIMS = 6, SIZES = 3, SAID_MOST = 4 };

static const sdg_view_t views[VIEWS] = {SDG_VIEW_SHARD, SDG_VIEW_WHOLE};
// The last one, SEQ, can only be split alone.
static const sdg_dim_t dims[DIMS] = {SDG_DIM_N, SDG_DIM_D,     SDG_DIM_H,
                                     SDG_DIM_W, SDG_DIM_HEADS, SDG_DIM_SEQ};

bool choices_dim(int index, sdg_dim_t *out_dim) {
  if (index < 0 || index >= DIMS)
    return false;
  *out_dim = dims[index];
  return true;
}

// ---- what the user asks for ------------------------------------------------

// Parses axes such as "data+y" for one dimension.
static sdg_status_t axes_take(const char *item, const char *colon,
                              sdg_dim_t dim, wish_t *wish) {
  char copy[CANDIDATE_AXES_BYTES], *rest;
  snprintf(copy, sizeof copy, "%s", colon ? colon + 1 : "");
  for (char *name = strtok_r(copy, "+", &rest); name;
       name = strtok_r(NULL, "+", &rest)) {
    int axis = sdg_mesh_axis(&wish->mesh, name);
    if (axis < 0)
      return sdg_fail(SDG_E_USAGE, "--split %s: the mesh has no axis '%s'",
                      item, name);
    if (wish->of_axis[axis] != SDG_DIM_COUNT)
      return sdg_fail(SDG_E_USAGE, "--split %s: axis '%s' is named twice", item,
                      name);
    wish->of_axis[axis] = dim;
  }
  if (colon && colon[1])
    return SDG_OK;
  for (int a = 0; a < wish->mesh.axes; a++)
    wish->of_axis[a] = dim;
  return SDG_OK;
}

sdg_status_t choices_wish(const char *text, wish_t *wish) {
  char copy[256], *rest;
  int items = 0, all = 0;
  unsigned seen = 0;
  snprintf(copy, sizeof copy, "%s", text);
  wish->is_fixed = true;
  for (int a = 0; a < SDG_AXES_MAX; a++)
    wish->of_axis[a] = SDG_DIM_COUNT;
  for (char *item = strtok_r(copy, ", ", &rest); item;
       item = strtok_r(NULL, ", ", &rest), items++) {
    const char *colon = strchr(item, ':');
    size_t length = colon ? (size_t)(colon - item) : strlen(item);
    sdg_dim_t dim = SDG_DIM_COUNT;
    for (int i = 0; i < DIMS; i++) {
      const char *name = sdg_dim_name(dims[i]);
      if (strlen(name) == length && strncmp(name, item, length) == 0)
        dim = dims[i];
    }
    if (dim == SDG_DIM_COUNT)
      return sdg_fail(
          SDG_E_USAGE,
          "--split takes N, D, H, W, HEADS or SEQ, with --mesh also "
          "N:AXIS,H:AXIS, not '%s'",
          text);
    if (seen >> dim & 1)
      return sdg_fail(SDG_E_USAGE,
                      "--split %s names %s twice; over two axes it is "
                      "%s:AXIS+AXIS",
                      text, sdg_dim_name(dim), sdg_dim_name(dim));
    seen |= 1u << dim;
    all += !colon;
    SDG_TRY(axes_take(item, colon, dim, wish));
  }
  if (items == 0 || (items > 1 && all))
    return sdg_fail(SDG_E_USAGE,
                    "--split '%s': say the axis of each dimension, "
                    "as in N:%s,H:%s",
                    text, wish->mesh.name[0],
                    wish->mesh.name[wish->mesh.axes > 1]);
  if (items > 1 && (seen >> SDG_DIM_SEQ & 1))
    return sdg_fail(SDG_E_USAGE,
                    "--split %s: SEQ is split alone, as in "
                    "SEQ:%s",
                    text, wish->mesh.name[0]);
  return SDG_OK;
}

// ---- the candidates --------------------------------------------------------

// Returns the dimension that the name of an axis suggests.
static sdg_dim_t dim_meant(const char *axis) {
  static const struct {
    const char *name;
    sdg_dim_t dim;
  } names[] = {
      {"n", SDG_DIM_N},      {"batch", SDG_DIM_N},    {"data", SDG_DIM_N},
      {"dp", SDG_DIM_N},     {"d", SDG_DIM_D},        {"z", SDG_DIM_D},
      {"depth", SDG_DIM_D},  {"h", SDG_DIM_H},        {"y", SDG_DIM_H},
      {"height", SDG_DIM_H}, {"w", SDG_DIM_W},        {"x", SDG_DIM_W},
      {"width", SDG_DIM_W},  {"seq", SDG_DIM_SEQ},    {"cp", SDG_DIM_SEQ},
      {"sp", SDG_DIM_SEQ},   {"tokens", SDG_DIM_SEQ}, {"heads", SDG_DIM_HEADS},
      {"tp", SDG_DIM_HEADS}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcasecmp(axis, names[i].name) == 0)
      return names[i].dim;
  return SDG_DIM_COUNT;
}

// Makes the splits from the dimension of each axis. Returns their number.
static int splits_of(const sdg_mesh_t *mesh, const sdg_dim_t *of_axis,
                     candidate_split_t *out) {
  int count = 0;
  for (int a = 0; a < mesh->axes; a++) {
    int i = 0;
    if (of_axis[a] == SDG_DIM_COUNT)
      continue;
    while (i < count && out[i].dim != of_axis[a])
      i++;
    if (i == count)
      out[count++] = (candidate_split_t){.dim = of_axis[a], .pieces = 1};
    size_t used = strlen(out[i].axes);
    snprintf(out[i].axes + used, sizeof out[i].axes - used, "%s%s",
             used ? "+" : "", mesh->name[a]);
    out[i].pieces *= mesh->size[a];
    out[i].of |= 1u << a;
  }
  return count;
}

// Returns whether some tensor is long enough for all pieces.
static bool reaches(const candidate_t *candidate) {
  for (int i = 0; i < candidate->splits; i++)
    if (candidate->split[i].longest < candidate->split[i].pieces)
      return false;
  return true;
}

static sdg_status_t mesh_candidate(const calls_t *calls, sdg_view_t view,
                                   const sdg_mesh_t *mesh,
                                   const sdg_dim_t *of_axis, int64_t steps,
                                   candidate_t *out) {
  candidate_split_t splits[SDG_AXES_MAX];
  int count = splits_of(mesh, of_axis, splits);
  SDG_TRY(candidate_judge_all(calls, view, splits, count, sdg_mesh_ranks(mesh),
                              steps, out));
  for (int a = 0; a < mesh->axes; a++) {
    out->unused += of_axis[a] == SDG_DIM_COUNT;
    out->named +=
        of_axis[a] != SDG_DIM_COUNT && dim_meant(mesh->name[a]) == of_axis[a];
  }
  out->possible &= reaches(out);
  return SDG_OK;
}

// Decodes one assignment of dimensions to axes: each digit of `code` is one
// axis' dimension, 0 for none. Returns false if no axis has a dimension, or SEQ
// is mixed with others.
static bool code_read(const sdg_mesh_t *mesh, int code, sdg_dim_t *of_axis) {
  bool any = false, seq = false, other = false;
  for (int a = mesh->axes - 1; a >= 0; a--, code /= DIMS + 1) {
    int digit = code % (DIMS + 1);
    of_axis[a] = digit ? dims[digit - 1] : SDG_DIM_COUNT;
    any |= digit > 0;
    seq |= of_axis[a] == SDG_DIM_SEQ;
    other |= digit > 0 && of_axis[a] != SDG_DIM_SEQ;
  }
  return any && !(seq && other);
}

static sdg_status_t mesh_judge(const calls_t *calls, const wish_t *wish,
                               int64_t steps, choices_t *out) {
  sdg_dim_t of_axis[SDG_AXES_MAX];
  int codes = 1, used = 0;
  for (int a = 0; a < wish->mesh.axes; a++)
    codes *= DIMS + 1;
  for (int v = 0; v < VIEWS; v++) {
    for (int code = 1; code < (wish->is_fixed ? 2 : codes); code++) {
      if (!wish->is_fixed && !code_read(&wish->mesh, code, of_axis))
        continue;
      // An impossible candidate's place is used again.
      candidate_t *room =
          realloc(out->candidate, (size_t)(used + 1) * sizeof *room);
      if (!room)
        return sdg_fail(SDG_E_NO_MEMORY, "for the splits");
      out->candidate = room;
      SDG_TRY(mesh_candidate(calls, views[v], &wish->mesh,
                             wish->is_fixed ? wish->of_axis : of_axis, steps,
                             &room[used]));
      used += room[used].possible || wish->is_fixed;
    }
    out->of_view = v == 0 ? used : out->of_view;
  }
  out->count = used;
  return SDG_OK;
}

sdg_status_t choices_judge(const calls_t *calls, const wish_t *wish,
                           int64_t steps, choices_t *out) {
  static const int usual[SIZES] = {2, 4, 8};
  const int *sizes = wish->ranks ? &wish->ranks : usual;
  *out = (choices_t){.sizes = wish->ranks ? 1 : SIZES,
                     .has_mesh = wish->mesh.axes > 0};
  if (out->has_mesh)
    return mesh_judge(calls, wish, steps, out);
  out->of_view = DIMS * out->sizes;
  out->count = VIEWS * out->of_view;
  out->candidate = calloc((size_t)out->count, sizeof *out->candidate);
  if (!out->candidate)
    return sdg_fail(SDG_E_NO_MEMORY, "for the splits");
  for (int i = 0; i < out->count; i++)
    SDG_TRY(candidate_judge(calls, views[i / out->of_view],
                            dims[i / out->sizes % DIMS], sizes[i % out->sizes],
                            steps, &out->candidate[i]));
  return SDG_OK;
}

void choices_fini(choices_t *choices) {
  free(choices->candidate);
  *choices = (choices_t){.count = 0};
}

// ---- what is printed -------------------------------------------------------

// Writes the parts that fit: "any" or "even/8"; for several dimensions
// "H:even/8 W:any".
static void parts_text(const candidate_t *c, char *out, size_t bytes) {
  size_t used = 0;
  for (int i = 0; i < c->splits && used < bytes; i++) {
    used += (size_t)snprintf(out + used, bytes - used, "%s", i ? " " : "");
    if (c->splits > 1 && used < bytes)
      used += (size_t)snprintf(out + used, bytes - used,
                               "%s:", sdg_dim_name(c->split[i].dim));
    if (used < bytes)
      used += (size_t)snprintf(out + used, bytes - used,
                               c->split[i].align > 1 ? "even/%" PRId64 : "any",
                               c->split[i].align);
  }
}

// A split that leaves an axis out is shown only if no split uses all axes.
static bool is_shown(const choices_t *choices, const candidate_t *candidate) {
  int least = SDG_AXES_MAX;
  for (int i = 0; i < choices->count; i++)
    if (candidate_is_useful(&choices->candidate[i]) &&
        choices->candidate[i].unused < least)
      least = choices->candidate[i].unused;
  return candidate->possible && candidate->unused <= least;
}

static void view_print(const choices_t *choices, const candidate_t *of_view,
                       int count) {
  char name[CANDIDATE_NAME_BYTES], parts[128];
  int width = 6;
  for (int i = 0; i < count; i++)
    if (is_shown(choices, &of_view[i])) {
      int length = (int)strlen(candidate_name(&of_view[i], name, sizeof name));
      width = length > width ? length : width;
    }
  printf("%-*s %5s %14s %14s %8s  %s\n", width, "SPLIT", "RANKS", "HALO B/STEP",
         "HALO B/RUN", "LEAST", "PARTS");
  for (int i = 0; i < count; i++) {
    const candidate_t *c = &of_view[i];
    char least[64];
    size_t used = 0;
    if (!is_shown(choices, c))
      continue;
    for (int k = 0; k < c->splits && used < sizeof least; k++)
      used += (size_t)snprintf(least + used, sizeof least - used, "%s%" PRId64,
                               k ? "x" : "", c->split[k].smallest);
    parts_text(c, parts, sizeof parts);
    printf("%-*s %5d %14" PRId64 " %14" PRId64 " %8s  %s%s\n", width,
           candidate_name(c, name, sizeof name), c->ranks, c->step_bytes,
           c->run_bytes, least, parts, c->faults ? "  conflicts" : "");
  }
}

static bool has_fault(const candidate_t *candidate, const char *text) {
  for (int f = 0; f < candidate->faults; f++)
    if (strcmp(candidate->fault[f], text) == 0)
      return true;
  return false;
}

// Prints each conflict once, with the candidates that have it: their numbers of
// ranks if one dimension is split, their splits if a mesh is given.
static void conflicts_print(const choices_t *choices, const candidate_t *of,
                            int count) {
  char name[CANDIDATE_NAME_BYTES];
  for (int i = 0; i < count; i++)
    for (int f = 0; is_shown(choices, &of[i]) && f < of[i].faults; f++) {
      const char *text = of[i].fault[f];
      bool said = false;
      for (int k = 0; k < i; k++)
        said |= is_shown(choices, &of[k]) && has_fault(&of[k], text);
      if (said)
        continue;
      printf("conflict of %s", candidate_name(&of[i], name, sizeof name));
      if (!choices->has_mesh)
        printf(" over %d", of[i].ranks);
      for (int k = i + 1; k < count; k++) {
        if (!is_shown(choices, &of[k]) || !has_fault(&of[k], text))
          continue;
        if (choices->has_mesh)
          printf("; %s", candidate_name(&of[k], name, sizeof name));
        else
          printf(", %d", of[k].ranks);
      }
      printf(": %s\n", text);
    }
}

void choices_print(const choices_t *choices, int64_t steps) {
  for (int v = 0, at = 0; v < VIEWS; v++) {
    int count = v ? choices->count - choices->of_view : choices->of_view;
    const candidate_t *of_view = choices->candidate + at;
    printf("\nsplits in the %s view, %" PRId64 " steps:\n", view_name(views[v]),
           steps);
    view_print(choices, of_view, count);
    int group = choices->has_mesh ? count : choices->sizes;
    for (int k = 0; k < count; k += group)
      conflicts_print(choices, of_view + k, group);
    at += count;
  }
}

// Prints the calls that would gain from a split but are not divided by this
// one.
static void undivided_print(const calls_t *calls, const candidate_t *chosen,
                            const candidate_split_t *split) {
  char text[160];
  int left = 0;
  for (int i = 0; i < calls->count; i++) {
    const seen_call_t *call = &calls->call[i];
    bool gains = false;
    for (int k = 0; k < chosen->splits; k++)
      gains |= candidate_gains(call, chosen->split[k].dim);
    if (!gains || candidate_gains(call, split->dim) || left++ >= SAID_MOST)
      continue;
    printf("    gains nothing: %s on %s\n", call->entry,
           extents_text(&call->operand[0], text, sizeof text));
  }
  if (left > SAID_MOST)
    printf("    gains nothing: %d more calls\n", left - SAID_MOST);
}

void choices_axes_print(const calls_t *calls, const sdg_mesh_t *mesh,
                        const candidate_t *chosen) {
  for (int a = 0; a < mesh->axes; a++) {
    const candidate_split_t *split = NULL;
    for (int k = 0; k < chosen->splits; k++)
      if (chosen->split[k].of >> a & 1)
        split = &chosen->split[k];
    if (!split) {
      printf("  axis %s=%d: no section splits over it; its ranks compute the "
             "same\n",
             mesh->name[a], mesh->size[a]);
      continue;
    }
    printf("  axis %s=%d: %s, %d distinct call%s gain%s\n", mesh->name[a],
           mesh->size[a], sdg_dim_name(split->dim), split->gains,
           split->gains == 1 ? "" : "s", split->gains == 1 ? "s" : "");
    undivided_print(calls, chosen, split);
  }
}
