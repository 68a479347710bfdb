// SPDX-License-Identifier: Apache-2.0
// Reads rules to the end in spite of faults, to report all of them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/file.h"
#include "rules/file/read.h"

// The key with the last fault; SDG_KEY_COUNT: none.
static sdg_rules_key_t key_at_fault(const sdg_drafts_t *drafts,
                                    const sdg_draft_t *draft,
                                    sdg_status_t status) {
  static const struct {
    const char *source;
    sdg_rules_key_t key;
  } options[] = {{"SUNDOG_SPLIT", SDG_KEY_SPLIT},
                 {"SUNDOG_PARTS", SDG_KEY_PARTS},
                 {"SUNDOG_WRAP", SDG_KEY_WRAP},
                 {"SUNDOG_STRATEGY", SDG_KEY_STRATEGY},
                 {"SUNDOG_VIEW", SDG_KEY_VIEW}};
  sdg_location_t location = sdg_location_last();
  if (status == SDG_E_VIEW_UNSAID)
    return SDG_KEY_VIEW;
  if (status == SDG_E_RULES_EMPTY)
    return SDG_KEY_SPLIT;
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    if (strcmp(location.source, options[i].source) == 0)
      return options[i].key;
  int key = 0;
  while (key < SDG_KEY_COUNT &&
         !(strcmp(location.source, drafts->source) == 0 && location.line > 0 &&
           draft->line[key] == location.line))
    key++;
  return (sdg_rules_key_t)key;
}

static sdg_status_t value_set(sdg_draft_t *draft, int key, const char *text) {
  free(draft->value[key]);
  draft->value[key] = *text ? strdup(text) : NULL;
  return !*text || draft->value[key] ? SDG_OK
                                     : sdg_fail(SDG_E_NO_MEMORY, "a value");
}

// Replaces a faulty value by one that causes no further faults in the section.
static sdg_status_t value_repair(sdg_draft_t *draft, sdg_rules_key_t key,
                                 const sdg_rules_t *rules) {
  char split[SDG_AXIS_NAME_MAX + 2];
  switch (key) {
  case SDG_KEY_VIEW:
    return value_set(draft, key,
                     rules->view == SDG_VIEW_WHOLE ? "whole" : "shard");
  case SDG_KEY_PARTS:
    return value_set(draft, key, "agree");
  case SDG_KEY_STRATEGY:
    return value_set(draft, key, "auto");
  case SDG_KEY_SPLIT:
    // Faults that follow from this one are not reported.
    for (int k = 0; k < SDG_KEY_COUNT; k++)
      if (k != SDG_KEY_MATCH && k != SDG_KEY_OP && k != SDG_KEY_VIEW &&
          k != SDG_KEY_WRAP && k != SDG_KEY_STRATEGY && k != SDG_KEY_KEEP)
        SDG_TRY(value_set(draft, k, ""));
    SDG_TRY(value_set(draft, SDG_KEY_PARTS, "agree"));
    snprintf(split, sizeof split, "N:%s", rules->mesh.name[0]);
    return value_set(draft, key, split);
  default:
    return value_set(draft, key, "");
  }
}

static void fault_count(sdg_drafts_t *drafts, sdg_status_t status) {
  if (drafts->faults++ == 0)
    drafts->first = status;
}

// Reports all faults of a section: replaces each faulty value and reads the
// section again.
static sdg_status_t section_review(sdg_drafts_t *drafts, sdg_draft_t *draft,
                                   const sdg_options_t *options,
                                   sdg_rules_t *rules) {
  const sdg_section_t unread = draft->section;
  unsigned repaired = 0;
  for (;;) {
    sdg_status_t status = sdg_draft_parse(drafts, draft, options, rules);
    if (status == SDG_OK || status == SDG_E_NO_MEMORY)
      return status;
    fault_count(drafts, status);
    sdg_rules_key_t key = key_at_fault(drafts, draft, status);
    if (key == SDG_KEY_COUNT || repaired >> key & 1)
      return SDG_OK;
    repaired |= 1u << key;
    SDG_TRY(value_repair(draft, key, rules));
    sdg_section_fini(&draft->section);
    draft->section = unread;
  }
}

// The number of ranks that the rules themselves imply.
static int ranks_said(const sdg_drafts_t *drafts,
                      const sdg_options_t *options) {
  const char *mesh = *options->mesh ? options->mesh : drafts->mesh;
  long product = *mesh && !drafts->mesh_faulty ? sdg_mesh_product(mesh) : 0;
  for (int i = 0; i < drafts->count && product == 0; i++) {
    const char *parts = drafts->draft[i].value[SDG_KEY_PARTS];
    parts = parts ? parts : options->parts;
    for (const char *c = strchr(parts, ','); c && !strchr(parts, ':');
         c = strchr(c + 1, ','))
      product += product ? 1 : 2;
  }
  return product > 0 && product <= SDG_RANKS_MAX ? (int)product : 2;
}

// Sets the mesh: if the given one does not fit, that of the rules.
static sdg_status_t mesh_review(sdg_drafts_t *drafts,
                                const sdg_options_t *options, int ranks,
                                sdg_mesh_t *out_mesh) {
  if (drafts->mesh_faulty)
    ranks = (int)sdg_mesh_product(drafts->mesh);
  sdg_status_t status = sdg_drafts_mesh(drafts, options, ranks, out_mesh);
  if (status == SDG_OK)
    return SDG_OK;
  fault_count(drafts, status);
  drafts->mesh_faulty = true;
  const char *text = *options->mesh ? options->mesh : drafts->mesh;
  long product = sdg_mesh_product(text);
  return *text && product >= 1 && product <= SDG_RANKS_MAX
             ? sdg_mesh_parse(text, (int)product, out_mesh)
             : status;
}

static void sections_review(sdg_drafts_t *drafts, const sdg_options_t *options,
                            const sdg_review_t *review, sdg_rules_t *rules) {
  sdg_status_t status = SDG_OK;
  for (int i = 0; i < drafts->count && status == SDG_OK; i++) {
    sdg_draft_t *draft = &drafts->draft[i];
    if (drafts->mesh_faulty) // the number of parts is unknown
      status = value_set(draft, SDG_KEY_PARTS,
                         draft->value[SDG_KEY_PARTS] ? "agree" : "");
    if (status == SDG_OK)
      status = section_review(drafts, draft, options, rules);
  }
  for (int f = 0; f < drafts->functions && status != SDG_E_NO_MEMORY; f++) {
    sdg_status_t fault = sdg_drafts_function(drafts, f, rules);
    if (fault == SDG_E_NO_MEMORY)
      status = fault;
    else if (fault != SDG_OK)
      fault_count(drafts, fault);
  }
  for (int i = 0; i < drafts->count; i++) {
    const sdg_section_t *section = &drafts->draft[i].section;
    const sdg_rules_t location = {.source = drafts->source,
                                  .functions = rules->functions,
                                  .function = rules->function};
    for (int g = 0; g < section->globs; g++) {
      sdg_status_t fault = sdg_rules_check_glob(
          &location, section, section->glob[g], review->names, review->count);
      if (fault != SDG_OK)
        fault_count(drafts, fault);
    }
  }
  if (status == SDG_OK && drafts->faults == 0)
    status = sdg_drafts_check(drafts, options, rules);
  if (status != SDG_OK)
    fault_count(drafts, status);
}

sdg_status_t sdg_rules_review(const sdg_options_t *options,
                              sdg_review_t *review, sdg_rules_t *out_rules) {
  sdg_drafts_t drafts;
  sdg_rules_t rules = {.source = NULL};
  review->faults = 1;
  SDG_TRY(sdg_drafts_open(options, true, &drafts));
  if (review->ranks == 0)
    review->ranks = ranks_said(&drafts, options);
  if (mesh_review(&drafts, options, review->ranks, &rules.mesh) == SDG_OK)
    sections_review(&drafts, options, review, &rules);
  review->faults = drafts.faults;
  return sdg_drafts_close(&drafts, drafts.faults ? drafts.first : SDG_OK,
                          &rules, out_rules);
}
