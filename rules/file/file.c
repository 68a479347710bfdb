// SPDX-License-Identifier: Apache-2.0
// From sections of text to rules: first the mesh, then the values.
#include "rules/file/file.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/read.h"
#include "src/base/hash.h"

// The axes that splits name, if no mesh was given.
typedef struct axis_names {
  int count; // distinct
  char name[SDG_AXIS_NAME_MAX];
} axis_names_t;

static void axis_collect(void *user, sdg_word_t axis) {
  axis_names_t *names = user;
  if (names->count > 0 && sdg_word_is(axis, names->name))
    return;
  if (names->count++ == 0)
    snprintf(names->name, sizeof names->name, "%.*s", axis.length, axis.at);
}

sdg_status_t sdg_drafts_mesh(const sdg_drafts_t *drafts,
                             const sdg_options_t *options, int ranks,
                             sdg_mesh_t *out_mesh) {
  sdg_location_t location = {drafts->source, drafts->mesh_line};
  const char *text = drafts->mesh;
  char single[SDG_AXIS_NAME_MAX + 16];
  if (options->origin[SDG_OPTION_MESH] != SDG_ORIGIN_DEFAULT) {
    text = options->mesh;
    location = (sdg_location_t){"SUNDOG_MESH", 0};
  } else if (*text == '\0') {
    axis_names_t names = {.count = 0};
    for (int i = 0; i < drafts->count; i++)
      if (drafts->draft[i].value[SDG_KEY_SPLIT])
        sdg_split_axes(drafts->draft[i].value[SDG_KEY_SPLIT], axis_collect,
                       &names);
    if (names.count > 1)
      return sdg_location_fail(
          &location, SDG_E_RULES_MESH,
          "several axes are named: [mesh] or SUNDOG_MESH must give the number "
          "of ranks of each, as in %s=%d",
          names.name, ranks);
    if (names.count == 1) {
      snprintf(single, sizeof single, "%s=%d", names.name, ranks);
      text = single;
    }
  }
  // Checks the product first, because that message can name the line.
  if (*text && sdg_mesh_product(text) != ranks)
    return sdg_location_fail(&location, SDG_E_RULES_MESH,
                             "the mesh %s does not have %d ranks", text, ranks);
  return sdg_mesh_parse(text, ranks, out_mesh);
}

// A key's value and its location: the section, or the option that is the
// default for sections that do not say it.
static const char *value_of(const sdg_drafts_t *drafts,
                            const sdg_draft_t *draft, sdg_rules_key_t key,
                            const char *option, const char *option_value,
                            sdg_location_t *out_location) {
  if (draft->value[key]) {
    *out_location = (sdg_location_t){drafts->source, draft->line[key]};
    return draft->value[key];
  }
  *out_location = (sdg_location_t){option, 0};
  return option_value;
}

static sdg_status_t view_parse(const sdg_drafts_t *drafts,
                               const sdg_draft_t *draft,
                               const sdg_options_t *options,
                               sdg_section_t *section, sdg_rules_t *rules) {
  sdg_location_t location = {"SUNDOG_VIEW", 0};
  section->view = (sdg_view_t)options->view;
  if (draft->value[SDG_KEY_VIEW]) {
    int view;
    location = (sdg_location_t){drafts->source, draft->line[SDG_KEY_VIEW]};
    SDG_TRY(sdg_key_choose(&location, draft->value[SDG_KEY_VIEW], SDG_KEY_VIEW,
                           SDG_OPTION_VIEW, "value of view", &view));
    section->view = (sdg_view_t)view;
  }
  if (section->view == SDG_VIEW_UNSAID) {
    location = (sdg_location_t){drafts->source, section->line};
    return sdg_location_fail(
        &location, SDG_E_VIEW_UNSAID,
        "write --view shard or --view whole (SUNDOG_VIEW), or add 'view = "
        "shard' or 'view = whole' to the section");
  }
  if (rules->view == SDG_VIEW_UNSAID)
    rules->view = section->view;
  if (rules->view != section->view)
    return sdg_location_fail(
        &location, SDG_E_RULES_VALUE,
        "section '%s' has another view than the sections before it",
        section->name);
  if (section->view == SDG_VIEW_WHOLE &&
      section->sum_axes != sdg_section_axes(section))
    return sdg_location_fail(&location, SDG_E_VIEW_WHOLE,
                             "the key 'sum' in section '%s'", section->name);
  if (section->view == SDG_VIEW_WHOLE && (section->matrix[SDG_MATRIX_A].said ||
                                          section->matrix[SDG_MATRIX_B].said))
    return sdg_location_fail(&location, SDG_E_VIEW_WHOLE,
                             "the keys 'a' and 'b' in section '%s'",
                             section->name);
  for (int d = 0; d < SDG_SIZES_DIMS; d++)
    if (section->view == SDG_VIEW_WHOLE && section->sizes[d] == SDG_SIZES_PIECE)
      return sdg_location_fail(&location, SDG_E_VIEW_WHOLE,
                               "'sizes = piece' in section '%s'",
                               section->name);
  return SDG_OK;
}

// A strategy is for windows, for one kind of them, or for attention; other ops
// choose by themselves.
static void strategy_set(sdg_section_t *section, sdg_strategy_t strategy) {
  bool attention = strategy > SDG_STRATEGY_ADJOINT;
  section->adjoint = strategy == SDG_STRATEGY_ADJOINT;
  section->strategy =
      strategy > SDG_STRATEGY_EXTEND ? SDG_STRATEGY_AUTO : strategy;
  section->attention = attention ? strategy : SDG_STRATEGY_AUTO;
}

static sdg_status_t shard_parse(const sdg_drafts_t *drafts, sdg_draft_t *draft,
                                const sdg_options_t *options,
                                sdg_rules_t *rules) {
  sdg_section_t *section = &draft->section;
  sdg_location_t location = {drafts->source, section->line};
  int strategy = options->strategy;
  if (!draft->value[SDG_KEY_SPLIT])
    return sdg_location_fail(&location, SDG_E_RULES_EMPTY,
                             "section '%s' has no 'split =' line",
                             section->name);
  const char *text = value_of(drafts, draft, SDG_KEY_SPLIT, "", "", &location);
  SDG_TRY(sdg_split_parse(&location, text, &rules->mesh, section));
  if (section->splits == 0)
    return sdg_location_fail(&location, SDG_E_RULES_EMPTY, "nothing is split");
  for (int m = 0; m < SDG_MATRICES; m++)
    if (draft->value[SDG_KEY_A + m]) {
      text = value_of(drafts, draft, (sdg_rules_key_t)(SDG_KEY_A + m), "", "",
                      &location);
      SDG_TRY(sdg_matrix_parse(&location, text, &rules->mesh, m, section));
    }
  text = value_of(drafts, draft, SDG_KEY_SIZES, "", NULL, &location);
  if (text)
    SDG_TRY(sdg_sizes_parse(&location, text, section));
  text = value_of(drafts, draft, SDG_KEY_PARTS, "SUNDOG_PARTS", options->parts,
                  &location);
  SDG_TRY(sdg_parts_parse(&location, text, section));
  text = value_of(drafts, draft, SDG_KEY_SUM, "", "yes", &location);
  SDG_TRY(sdg_sum_parse(&location, text, &rules->mesh, section));
  if (section->matrix[SDG_MATRIX_C].splits > 0 && !section->sum_axes)
    return sdg_location_fail(&location, SDG_E_RULES_VALUE,
                             "'c' says which rank has which sums over K, but "
                             "'sum = no' leaves the sums to the program");
  text = value_of(drafts, draft, SDG_KEY_KEEP, "", "no", &location);
  SDG_TRY(sdg_key_check(&location, text, SDG_KEY_KEEP, "value of keep"));
  section->keeps_dy = strstr(text, "dy") != NULL;
  section->keeps_x = strchr(text, 'x') != NULL;
  section->values = (sdg_piece_values_t)options->piece_values;
  text = value_of(drafts, draft, SDG_KEY_VALUES, "", NULL, &location);
  if (text)
    SDG_TRY(sdg_piece_values_parse(&location, text, section));
  text = value_of(drafts, draft, SDG_KEY_WRAP, "SUNDOG_WRAP", options->wrap,
                  &location);
  SDG_TRY(sdg_wrap_parse(&location, text, section));
  SDG_TRY(view_parse(drafts, draft, options, section, rules));
  text = value_of(drafts, draft, SDG_KEY_STRATEGY, "", NULL, &location);
  if (text)
    SDG_TRY(sdg_key_choose(&location, text, SDG_KEY_STRATEGY,
                           SDG_OPTION_STRATEGY, "value of strategy",
                           &strategy));
  strategy_set(section, (sdg_strategy_t)strategy);
  text = value_of(drafts, draft, SDG_KEY_WINDOW, "SUNDOG_WINDOW",
                  options->window, &location);
  if (*text || draft->value[SDG_KEY_WINDOW])
    SDG_TRY(sdg_window_parse(&location, text, section));
  text = value_of(drafts, draft, SDG_KEY_LENGTHS, "", NULL, &location);
  return text ? sdg_lengths_parse(&location, text, section) : SDG_OK;
}

// SUNDOG_SPLIT=tags: the program says what is split, over any axes.
static sdg_status_t tags_parse(const sdg_options_t *options,
                               sdg_rules_t *rules) {
  sdg_location_t location = {"SUNDOG_SPLIT", 0};
  sdg_drafts_t none = {.source = location.source};
  sdg_draft_t draft = {.section = {.line = 0}};
  SDG_TRY(view_parse(&none, &draft, options, &draft.section, rules));
  if (rules->view == SDG_VIEW_WHOLE)
    return sdg_location_fail(&location, SDG_E_VIEW_WHOLE,
                             "tags need the shard view");
  for (int a = 0; a < rules->mesh.axes; a++)
    rules->axes |= (sdg_axes_t)1 << a;
  return SDG_OK;
}

static bool drafts_declare(const void *user, const char *glob) {
  const sdg_drafts_t *drafts = user;
  for (int f = 0; f < drafts->functions; f++)
    if (fnmatch(glob, drafts->function[f].name, 0) == 0)
      return true;
  return false;
}

sdg_status_t sdg_draft_parse(const sdg_drafts_t *drafts, sdg_draft_t *draft,
                             const sdg_options_t *options, sdg_rules_t *rules) {
  sdg_location_t location = {drafts->source, 0};
  sdg_section_t *section = &draft->section;
  const char *text = value_of(drafts, draft, SDG_KEY_MATCH, "", "", &location);
  SDG_TRY(sdg_match_parse(&location, text, &drafts->extents, section));
  text = value_of(drafts, draft, SDG_KEY_OP, "", "", &location);
  SDG_TRY(sdg_op_parse(&location, text, drafts_declare, drafts, section));
  section->op_line = draft->line[SDG_KEY_OP];
  if (section->is_local)
    return SDG_OK;
  SDG_TRY(shard_parse(drafts, draft, options, rules));
  for (int k = 0; k < section->splits; k++)
    rules->axes |= section->split[k].axes;
  return SDG_OK;
}

static bool concerns(const sdg_section_t *section,
                     const sdg_function_t *function) {
  bool found = section->globs == 0;
  for (int g = 0; g < section->globs && !found; g++)
    found = fnmatch(section->glob[g], sdg_family_name(SDG_FAMILY_FUNCTION),
                    0) == 0 ||
            fnmatch(section->glob[g], function->name, 0) == 0;
  return found && !section->is_local && !sdg_section_multiplies(section);
}

static sdg_status_t splits_check(const sdg_section_t *section,
                                 const sdg_location_t *location,
                                 const sdg_function_t *function) {
  for (int k = 0; k < section->splits && concerns(section, function); k++)
    SDG_TRY(sdg_function_check_split(location, function, section->name,
                                     section->view, section->split[k].dim));
  return SDG_OK;
}

sdg_status_t sdg_drafts_function(const sdg_drafts_t *drafts, int index,
                                 sdg_rules_t *rules) {
  if (!rules->function)
    SDG_TRY(SDG_ALLOCATE(rules->function, drafts->functions, "for the rules"));
  sdg_function_t *function = &rules->function[rules->functions];
  SDG_TRY(sdg_function_parse(&drafts->function[index], function));
  sdg_location_t location = {drafts->source, function->line};
  for (int i = 0; i < rules->functions; i++)
    if (rules->function[i].is_kernel == function->is_kernel &&
        strcmp(rules->function[i].symbol, function->symbol) == 0)
      return sdg_location_fail(&location, SDG_E_RULES_TWICE,
                               "symbol '%s' is already in line %d",
                               function->symbol, rules->function[i].line);
  rules->functions++;
  for (int i = 0; i < drafts->count; i++)
    SDG_TRY(splits_check(&drafts->draft[i].section, &location, function));
  return SDG_OK;
}

static sdg_status_t defined_check(const sdg_location_t *location,
                                  const sdg_rules_t *rules,
                                  const sdg_function_t *function) {
  for (int i = 0; i < rules->functions; i++)
    if (strcmp(rules->function[i].name, function->name) == 0 ||
        strcmp(rules->function[i].symbol, function->symbol) == 0)
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "function '%s' is already in line %d of %s",
                               rules->function[i].name, rules->function[i].line,
                               rules->source);
  for (int i = 0; i < rules->sections; i++)
    SDG_TRY(splits_check(&rules->section[i], location, function));
  return SDG_OK;
}

sdg_status_t sdg_rules_define(const sdg_rules_t *rules, const char *name,
                              const char *text, sdg_function_t *out) {
  sdg_drafts_t drafts;
  char source[SDG_FUNCTION_NAME_BYTES + 16];
  snprintf(source, sizeof source, "sundog_define %.100s", name);
  sdg_location_t location = {source, 0};
  SDG_TRY(sdg_drafts_function_text(source, name, text, &drafts));
  sdg_status_t status = sdg_function_parse(&drafts.function[0], out);
  if (status == SDG_OK)
    status = defined_check(&location, rules, out);
  out->text = sdg_hash_text(SDG_HASH_SEED, text);
  sdg_drafts_fini(&drafts);
  return status;
}

sdg_status_t sdg_drafts_check(const sdg_drafts_t *drafts,
                              const sdg_options_t *options,
                              sdg_rules_t *rules) {
  sdg_location_t location = {drafts->source, 0};
  location.line = drafts->same_line;
  SDG_TRY(sdg_same_parse(&location, drafts->same, &rules->mesh, rules->axes,
                         &rules->same));
  rules->axes |= rules->same;
  location.line = 0;
  if (drafts->by_program)
    return tags_parse(options, rules);
  if (drafts->by_nobody)
    return SDG_OK;
  for (int i = 0; i < drafts->count; i++)
    if (!drafts->draft[i].section.is_local)
      return SDG_OK;
  return sdg_location_fail(&location, SDG_E_RULES_EMPTY, "no [shard] section");
}

sdg_status_t sdg_drafts_open(const sdg_options_t *options, bool thorough,
                             sdg_drafts_t *out_drafts) {
  if (*options->rules)
    return sdg_drafts_read(options->rules, thorough, out_drafts);
  if (*options->split)
    return sdg_drafts_short(options->split, out_drafts);
  return sdg_fail(SDG_E_OPTION_CONFLICT,
                  "neither SUNDOG_RULES nor SUNDOG_SPLIT is set");
}

sdg_status_t sdg_drafts_close(sdg_drafts_t *drafts, sdg_status_t status,
                              sdg_rules_t *rules, sdg_rules_t *out_rules) {
  // The sections' memory moves to the result also after a fault, and is freed
  // there.
  rules->source = strdup(drafts->source);
  rules->section = calloc((size_t)drafts->count + 1, sizeof *rules->section);
  if (rules->section) {
    rules->sections = drafts->count;
    for (int i = 0; i < drafts->count; i++)
      rules->section[i] = drafts->draft[i].section;
  }
  if (status == SDG_OK && (!rules->source || !rules->section))
    status = sdg_fail(SDG_E_NO_MEMORY, "for the rules");
  sdg_drafts_fini(drafts);
  if (status == SDG_OK)
    *out_rules = *rules;
  else
    sdg_rules_fini(rules);
  return status;
}

sdg_status_t sdg_rules_load(const sdg_options_t *options, int ranks,
                            sdg_rules_t *out_rules) {
  sdg_drafts_t drafts;
  sdg_rules_t rules = {.source = NULL};
  SDG_TRY(sdg_drafts_open(options, false, &drafts));
  sdg_status_t status = sdg_drafts_mesh(&drafts, options, ranks, &rules.mesh);
  for (int i = 0; i < drafts.count && status == SDG_OK; i++)
    status = sdg_draft_parse(&drafts, &drafts.draft[i], options, &rules);
  for (int f = 0; f < drafts.functions && status == SDG_OK; f++)
    status = sdg_drafts_function(&drafts, f, &rules);
  if (status == SDG_OK)
    status = sdg_drafts_check(&drafts, options, &rules);
  if (status == SDG_OK)
    rules.digest = sdg_drafts_digest(&drafts, options, &rules);
  return sdg_drafts_close(&drafts, status, &rules, out_rules);
}

sdg_status_t sdg_rules_label(const sdg_rules_t *rules,
                             const sdg_options_t *options, const char *text,
                             sdg_section_t *out_section) {
  sdg_location_t location = {"sundog_tag", 0};
  sdg_section_t *section = out_section;
  *section = (sdg_section_t){.is_local = strcmp(text, "local") == 0};
  snprintf(section->name, sizeof section->name, "tag %.40s", text);
  if (rules->view == SDG_VIEW_WHOLE)
    return sdg_location_fail(&location, SDG_E_VIEW_WHOLE,
                             "tags need the shard view");
  if (section->is_local)
    return SDG_OK;
  section->view = SDG_VIEW_SHARD;
  section->values = (sdg_piece_values_t)options->piece_values;
  strategy_set(section, (sdg_strategy_t)options->strategy);
  if (strcmp(text, "replicated") != 0)
    SDG_TRY(sdg_label_parse(&location, text, &rules->mesh, section));
  SDG_TRY(sdg_parts_parse(&location, "agree", section));
  SDG_TRY(sdg_sum_parse(&location, "yes", &rules->mesh, section));
  return sdg_wrap_parse(&location, options->wrap, section);
}

void sdg_section_fini(sdg_section_t *section) {
  for (int i = 0; i < section->splits; i++)
    free(section->split[i].parts);
  section->splits = 0;
  for (int m = 0; m < SDG_MATRICES; m++) {
    for (int i = 0; i < section->matrix[m].splits; i++)
      free(section->matrix[m].split[i].parts);
    section->matrix[m].splits = 0;
  }
}

void sdg_rules_fini(sdg_rules_t *rules) {
  for (int s = 0; rules->section && s < rules->sections; s++)
    sdg_section_fini(&rules->section[s]);
  free(rules->section);
  free(rules->function);
  free((void *)(uintptr_t)rules->source);
  *rules = (sdg_rules_t){.source = NULL};
}

static bool names_function(const sdg_rules_t *rules, const char *glob) {
  for (int f = 0; f < rules->functions; f++)
    if (fnmatch(glob, rules->function[f].name, 0) == 0)
      return true;
  return false;
}

sdg_status_t sdg_rules_check_glob(const sdg_rules_t *rules,
                                  const sdg_section_t *section,
                                  const char *glob, const char *const *names,
                                  int count) {
  bool found = sdg_glob_names_product(glob) || names_function(rules, glob);
  for (int f = 0; f < SDG_FAMILY_OTHER && !found; f++)
    found = fnmatch(glob, sdg_family_name((sdg_family_t)f), 0) == 0;
  for (int n = 0; n < count && !found; n++)
    found = fnmatch(glob, names[n], 0) == 0;
  if (found)
    return SDG_OK;
  sdg_location_t location = {rules->source, section->op_line};
  return sdg_word_fail(&location, (sdg_word_t){glob, (int)strlen(glob)}, "op",
                       names, count);
}

sdg_status_t sdg_rules_check_entries(const sdg_rules_t *rules,
                                     const char *const *names, int count) {
  for (int s = 0; s < rules->sections; s++)
    for (int g = 0; g < rules->section[s].globs; g++)
      SDG_TRY(sdg_rules_check_glob(rules, &rules->section[s],
                                   rules->section[s].glob[g], names, count));
  return SDG_OK;
}
