// SPDX-License-Identifier: Apache-2.0
// What rules say, as a number. It is made of what was understood, wherever it
// was written, so that ranks with other texts for the same rules are alike.
#include "rules/file/read.h"
#include "src/base/hash.h"

static void number_add(uint64_t *io_hash, int64_t number) {
  *io_hash = sdg_hash_word(*io_hash, (uint64_t)number);
}

// Of a text that is missing nothing is hashed but that.
static void text_add(uint64_t *io_hash, const char *text) {
  number_add(io_hash, text != NULL);
  if (text)
    *io_hash = sdg_hash_word(sdg_hash_text(*io_hash, text), '\n');
}

static void mesh_add(uint64_t *io_hash, const sdg_mesh_t *mesh) {
  number_add(io_hash, mesh->axes);
  for (int a = 0; a < mesh->axes; a++) {
    text_add(io_hash, mesh->name[a]);
    number_add(io_hash, mesh->size[a]);
  }
}

static void splits_add(uint64_t *io_hash, const sdg_rules_split_t *split,
                       int count) {
  number_add(io_hash, count);
  for (int i = 0; i < count; i++) {
    number_add(io_hash, split[i].dim);
    number_add(io_hash, split[i].axes);
    text_add(io_hash, split[i].parts);
  }
}

static void match_add(uint64_t *io_hash, const sdg_section_t *section) {
  number_add(io_hash, section->is_local);
  number_add(io_hash, section->listed);
  number_add(io_hash, section->terms);
  for (int t = 0; t < section->terms; t++) {
    number_add(io_hash, section->term[t].dim);
    number_add(io_hash, section->term[t].compare);
    number_add(io_hash, section->term[t].value);
  }
  number_add(io_hash, section->globs);
  for (int g = 0; g < section->globs; g++)
    text_add(io_hash, section->glob[g]);
}

// All but the strategies.
static void section_add(uint64_t *io_hash, const sdg_section_t *section) {
  match_add(io_hash, section);
  splits_add(io_hash, section->split, section->splits);
  for (int m = 0; m < SDG_MATRICES; m++) {
    number_add(io_hash, section->matrix[m].said);
    splits_add(io_hash, section->matrix[m].split, section->matrix[m].splits);
  }
  for (int d = 0; d < SDG_SIZES_DIMS; d++)
    number_add(io_hash, section->sizes[d]);
  const int64_t numbers[] = {
      section->view,    section->sum_axes,    section->keeps_dy,
      section->keeps_x, section->values,      section->wrap,
      section->window,  section->window_left, section->window_right,
      section->lengths,
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    number_add(io_hash, numbers[i]);
}

uint64_t sdg_drafts_digest(const sdg_drafts_t *drafts,
                           const sdg_options_t *options,
                           const sdg_rules_t *rules) {
  uint64_t hash = SDG_HASH_SEED;
  mesh_add(&hash, &rules->mesh);
  number_add(&hash, rules->same);
  number_add(&hash, rules->view);
  for (int i = 0; i < drafts->count; i++)
    section_add(&hash, &drafts->draft[i].section);
  // These hold for what the program tags.
  if (drafts->by_program) {
    text_add(&hash, options->wrap);
    number_add(&hash, options->piece_values);
  }
  // A library may have another file name on another machine.
  for (int f = 0; f < drafts->functions; f++)
    for (int key = 0; key < SDG_FUNCTION_KEY_COUNT; key++)
      if (key != SDG_FUNCTION_LIBRARY)
        text_add(&hash, drafts->function[f].value[key]);
  return hash;
}
