// SPDX-License-Identifier: Apache-2.0
// The labels that a program gives its tensors, one per distinct text.
#include "rules/place/label.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/setup.h"
#include "src/base/options.h"
#include "src/call/range.h"
#include "src/job/job.h"

// Lives as long as the process: plans and reports point to its section.
typedef struct entry {
  sdg_tag_label_t label; // first member: a label's address is its entry's
  sdg_section_t section;
  bool product; // made by sdg_label_set_range
  struct entry *next;
} entry_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry_t *entries;
static atomic_bool splits;
atomic_bool sdg_label_memory;

static sdg_status_t section_check(const sdg_rules_t *rules,
                                  const sdg_section_t *section) {
  if (section->pending & ~rules->axes)
    return sdg_fail(SDG_E_TAG,
                    "the tag names partial sums over an axis that no 'split =' "
                    "of the rules names; the ranks along such an axis do not "
                    "agree on their calls");
  for (int i = 0; i < section->splits; i++) {
    const sdg_rules_split_t *split = &section->split[i];
    if (split->axes & ~rules->axes)
      return sdg_fail(
          SDG_E_TAG,
          "the tag splits %s over an axis that no 'split =' of the rules "
          "names; the ranks along such an axis do not agree on their calls",
          sdg_dim_name(split->dim));
  }
  return SDG_OK;
}

static sdg_status_t entry_make(const sdg_rules_t *rules, const char *text,
                               bool product, entry_t **out_entry) {
  entry_t *entry;
  SDG_TRY(SDG_ALLOCATE(entry, 1, "a tag"));
  entry->product = product;
  sdg_status_t status = (product ? sdg_rules_product : sdg_rules_label)(
      rules, sdg_options_get(), text, &entry->section);
  if (status == SDG_OK)
    status = section_check(rules, &entry->section);
  if (status != SDG_OK) {
    sdg_section_fini(&entry->section);
    free(entry);
    return status;
  }
  snprintf(entry->label.text, sizeof entry->label.text, "%s", text);
  entry->label.is_local = entry->section.is_local;
  if (entry->section.splits > 0)
    atomic_store(&splits, true);
  *out_entry = entry;
  return SDG_OK;
}

static sdg_status_t entry_get(const sdg_rules_t *rules, const char *text,
                              bool product, entry_t **out_entry) {
  sdg_status_t status = SDG_OK;
  if (strlen(text) >= SDG_TAG_LABEL_BYTES)
    return sdg_fail(SDG_E_TAG, "'%.32s...' is longer than %d characters", text,
                    SDG_TAG_LABEL_BYTES - 1);
  pthread_mutex_lock(&lock);
  entry_t *entry = entries;
  while (entry &&
         (entry->product != product || strcmp(entry->label.text, text) != 0))
    entry = entry->next;
  if (!entry) {
    status = entry_make(rules, text, product, &entry);
    if (status == SDG_OK) {
      entry->next = entries;
      entries = entry;
    }
  }
  pthread_mutex_unlock(&lock);
  *out_entry = entry;
  return status;
}

sdg_status_t sdg_label_set(const void *descriptor, const char *text) {
  const sdg_rules_t *rules;
  if (!sdg_job_asked() || sdg_job_disarmed())
    return SDG_OK;
  SDG_TRY(sdg_setup_rules(&rules));
  if (sdg_tag_generation(descriptor) == 0)
    return sdg_fail(SDG_E_DESCRIPTOR,
                    "the descriptor %p, which the program tags", descriptor);
  if (!text)
    return sdg_tag_set_label(descriptor, NULL);
  entry_t *entry;
  SDG_TRY(entry_get(rules, text, false, &entry));
  const sdg_section_t *section = &entry->section;
  if (section->pending || (section->splits == 0 && !section->is_local))
    return sdg_fail(SDG_E_TAG, "only sundog_redistribute() takes '%s'", text);
  return sdg_tag_set_label(descriptor, &entry->label);
}

sdg_status_t sdg_label_placement(const char *text,
                                 const sdg_tag_label_t **out_label) {
  const sdg_rules_t *rules;
  entry_t *entry;
  SDG_TRY(sdg_setup_rules(&rules));
  SDG_TRY(entry_get(rules, text, false, &entry));
  *out_label = &entry->label;
  return entry->label.is_local
             ? sdg_fail(SDG_E_TAG,
                        "'local' does not say where a tensor's pieces are")
             : SDG_OK;
}

bool sdg_label_pends(const sdg_tag_label_t *label) {
  return ((const entry_t *)label)->section.pending != 0;
}

// Whether a tag of memory may be about a product of matrices. "N:y" and "local"
// may, and may be about a graph's tensor, too.
static bool may_multiply(const char *text) {
  return strchr(text, ';') || strpbrk(text, "MK") || !strpbrk(text, "CDHW");
}

const sdg_tag_label_t *sdg_label_at(const void *at) {
  const sdg_rules_t *rules;
  entry_t *entry;
  const sdg_tag_label_t *label =
      sdg_label_any_at() ? sdg_range_label(at) : NULL;
  if (!label || strchr(label->text, ';'))
    return NULL;
  if (!((const entry_t *)label)->product)
    return label;
  return sdg_setup_rules(&rules) == SDG_OK &&
                 entry_get(rules, label->text, false, &entry) == SDG_OK
             ? &entry->label
             : NULL;
}

sdg_status_t sdg_label_set_range(const void *at, size_t bytes,
                                 const char *text) {
  const sdg_rules_t *rules;
  entry_t *entry;
  if (!sdg_job_asked() || sdg_job_disarmed())
    return SDG_OK;
  if (!text)
    return sdg_range_set(at, bytes, NULL);
  SDG_TRY(sdg_setup_rules(&rules));
  SDG_TRY(entry_get(rules, text, may_multiply(text), &entry));
  SDG_TRY(sdg_range_set(at, bytes, &entry->label));
  if (!strchr(text, ';'))
    atomic_store(&sdg_label_memory, true);
  return SDG_OK;
}

const sdg_section_t *sdg_label_section(const sdg_operand_t *operand) {
  return operand->label ? &((const entry_t *)operand->label)->section : NULL;
}

sdg_status_t sdg_label_check(const sdg_call_t *call,
                             const sdg_operand_t *operand) {
  const sdg_section_t *section = sdg_label_section(operand);
  const char *role = sdg_role_name(operand->role);
  if (!sdg_role_is_activation(operand->role)) {
    if (section->is_local)
      return SDG_OK;
    return sdg_fail(
        SDG_E_TAG,
        "%s of %s has the tag %s, but only activations can be tagged", role,
        call->entry_name, operand->label->text);
  }
  for (int i = 0; i < section->splits; i++)
    if (sdg_dim_index(call->family, section->split[i].dim, operand->dims) < 0)
      return sdg_fail(SDG_E_TAG, "%s of %s has the tag %s, but no dimension %s",
                      role, call->entry_name, operand->label->text,
                      sdg_dim_name(section->split[i].dim));
  return SDG_OK;
}

sdg_status_t sdg_label_find(const sdg_call_t *call, int *out_index) {
  int first = -1;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!operand->label)
      continue;
    SDG_TRY(sdg_label_check(call, operand));
    if (!sdg_role_is_activation(operand->role))
      continue;
    if (first < 0 ||
        (call->operand[first].label->is_local && !operand->label->is_local))
      first = i;
  }
  *out_index = first;
  return SDG_OK;
}

bool sdg_label_splits(void) {
  return atomic_load_explicit(&splits, memory_order_relaxed);
}
