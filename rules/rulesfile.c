// SPDX-License-Identifier: Apache-2.0
// Reading the rules file, or the short form, into sections.
#include "rules/rulesfile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rules/rulesvalue.h"

// Of inih as distributions build it; longer ones it would cut in silence.
enum { INI_LINE_MAX = 196, INI_NAME_MAX = 47, FILE_BYTES_MAX = 1 << 20 };

typedef enum key {
  KEY_MATCH,
  KEY_OP,
  KEY_SPLIT,
  KEY_PARTS,
  KEY_VIEW,
  KEY_SUM,
  KEY_WRAP,
  KEY_STRATEGY,
  KEY_WINDOW,
  KEY_COUNT,
} section_key_t;

static const char *const key_names[KEY_COUNT] = {"match", "op",       "split",
                                                 "parts", "view",     "sum",
                                                 "wrap",  "strategy", "window"};
enum { LOCAL_KEYS = 2 }; // the first two may stand in [local]

static const char *const kind_names[] = {"mesh", "shard", "local"};
enum { KIND_MESH, KIND_SHARD, KIND_LOCAL };

// A section as it was read: values are parsed when the mesh is known.
typedef struct draft {
  sdg_section_t section;
  char *value[KEY_COUNT]; // owned; NULL: not given
  int line[KEY_COUNT];
} draft_t;

typedef struct reader {
  sdg_place_t place; // of the line being read
  const char *at, *end;
  sdg_status_t status; // the first fault, reported
  int kind;            // of the section being read; -1 before the first
  int mesh_line;       // of [mesh], 0 without
  char mesh[512];      // "y=4,x=2"
  int drafts;
  draft_t *draft; // SDG_SECTIONS_MAX
} reader_t;

static void reader_fail_char(reader_t *reader, const char *what, int limit) {
  reader->status =
      sdg_place_fail(&reader->place, SDG_E_RULES_SYNTAX,
                     "%s is longer than %d characters", what, limit);
}

// A line "[kind name]".
static sdg_status_t section_begin(reader_t *reader, const char *line) {
  const sdg_place_t *place = &reader->place;
  const char *close = strchr(line, ']');
  if (!close)
    return sdg_place_fail(place, SDG_E_RULES_SYNTAX, "no ] after '%s'", line);
  const char *after = close + 1;
  while (isspace((unsigned char)*after))
    after++;
  if (*after && *after != ';' && *after != '#')
    return sdg_place_fail(place, SDG_E_RULES_SYNTAX,
                          "'%s' after the head of a section", after);
  if (close - line - 1 > INI_NAME_MAX)
    return reader_fail_char(reader, "the head of the section", INI_NAME_MAX),
           reader->status;
  char head[INI_NAME_MAX + 1];
  snprintf(head, sizeof head, "%.*s", (int)(close - line - 1), line + 1);
  const char *rest = head;
  sdg_word_t kind = {head, 0}, name = {head, 0}, more;
  if (sdg_word_next(&rest, " \t", &kind) &&
      sdg_word_next(&rest, " \t", &name) && sdg_word_next(&rest, " \t", &more))
    return sdg_place_fail(place, SDG_E_RULES_SYNTAX,
                          "the name of a section is one word");
  char word[INI_NAME_MAX + 1];
  snprintf(word, sizeof word, "%.*s", kind.length, kind.at);
  SDG_TRY(sdg_choice_parse(place, word, "kind of section", kind_names, 3,
                           &reader->kind));
  if (reader->kind == KIND_MESH) {
    if (reader->mesh_line)
      return sdg_place_fail(place, SDG_E_RULES_TWICE,
                            "[mesh] is already in line %d", reader->mesh_line);
    if (name.length)
      return sdg_place_fail(place, SDG_E_RULES_SYNTAX, "[mesh] has no name");
    reader->mesh_line = place->line;
    return SDG_OK;
  }
  if (reader->drafts == SDG_SECTIONS_MAX)
    return sdg_place_fail(place, SDG_E_RULES_VALUE, "more than %d sections",
                          SDG_SECTIONS_MAX);
  for (int i = 0; name.length && i < reader->drafts; i++)
    if (sdg_word_is(name, reader->draft[i].section.name))
      return sdg_place_fail(place, SDG_E_RULES_TWICE,
                            "section '%.*s' is already in line %d", name.length,
                            name.at, reader->draft[i].section.line);
  draft_t *draft = &reader->draft[reader->drafts++];
  draft->section.is_local = reader->kind == KIND_LOCAL;
  draft->section.line = place->line;
  if (name.length)
    snprintf(draft->section.name, sizeof draft->section.name, "%.*s",
             name.length, name.at);
  else
    snprintf(draft->section.name, sizeof draft->section.name, "line %d",
             place->line);
  return SDG_OK;
}

// What inih would cut or take for something else.
static sdg_status_t line_check(reader_t *reader, const char *line) {
  const sdg_place_t *place = &reader->place;
  if (*line == '\0' || *line == ';' || *line == '#')
    return SDG_OK;
  if (*line == '[')
    return section_begin(reader, line);
  size_t name = strcspn(line, "=:");
  if (line[name] == '\0')
    return sdg_place_fail(place, SDG_E_RULES_SYNTAX,
                          "'%s' is neither [section] nor name = value", line);
  if (name > INI_NAME_MAX)
    return reader_fail_char(reader, "the name", INI_NAME_MAX), reader->status;
  if (reader->kind < 0)
    return sdg_place_fail(place, SDG_E_RULES_SYNTAX,
                          "'%s' stands before the first section", line);
  return SDG_OK;
}

// The reader of inih: the next line, without the indentation that would make
// it the continuation of the one before.
static char *line_next(char *out, int bytes, void *user) {
  reader_t *reader = user;
  if (reader->status != SDG_OK || reader->at == reader->end)
    return NULL;
  reader->place.line++;
  const char *line = reader->at;
  size_t left = (size_t)(reader->end - line);
  const char *newline = memchr(line, '\n', left);
  const char *stop = newline ? newline : reader->end;
  reader->at = newline ? newline + 1 : reader->end;
  if (memchr(line, '\0', (size_t)(stop - line))) {
    reader->status = sdg_place_fail(&reader->place, SDG_E_RULES_SYNTAX,
                                    "the line has a NUL byte");
    return NULL;
  }
  while (line < stop && isspace((unsigned char)*line))
    line++;
  while (stop > line && isspace((unsigned char)stop[-1]))
    stop--;
  if (stop - line > INI_LINE_MAX || stop - line + 2 > bytes) {
    reader_fail_char(reader, "the line", INI_LINE_MAX);
    return NULL;
  }
  memcpy(out, line, (size_t)(stop - line));
  out[stop - line] = '\0';
  reader->status = line_check(reader, out);
  if (reader->status != SDG_OK)
    return NULL;
  strcat(out, "\n");
  return out;
}

static sdg_status_t axis_add(reader_t *reader, const char *name,
                             const char *value) {
  size_t used = strlen(reader->mesh);
  char *end;
  long size = strtol(value, &end, 10);
  if (end == value || *end || size < 1 || size > SDG_RANKS_MAX)
    return sdg_place_fail(&reader->place, SDG_E_RULES_VALUE,
                          "axis %s = %s: it takes a number of ranks from 1 to "
                          "%d",
                          name, value, SDG_RANKS_MAX);
  if ((size_t)snprintf(reader->mesh + used, sizeof reader->mesh - used,
                       "%s%s=%ld", used ? "," : "", name,
                       size) >= sizeof reader->mesh - used)
    return sdg_place_fail(&reader->place, SDG_E_RULES_VALUE, "too many axes");
  return SDG_OK;
}

static sdg_status_t key_add(reader_t *reader, const char *name,
                            const char *value) {
  const sdg_place_t *place = &reader->place;
  draft_t *draft = &reader->draft[reader->drafts - 1];
  int key;
  SDG_TRY(sdg_choice_parse(place, name, "key of a section", key_names,
                           KEY_COUNT, &key));
  if (reader->kind == KIND_LOCAL && key >= LOCAL_KEYS)
    return sdg_place_fail(place, SDG_E_RULES_VALUE,
                          "'%s' is a key of [shard], [local] has match and op",
                          name);
  if (draft->line[key])
    return sdg_place_fail(place, SDG_E_RULES_TWICE,
                          "'%s' is already in line %d", name, draft->line[key]);
  draft->line[key] = place->line;
  if (*value == '\0')
    return SDG_OK; // as if it were not there
  draft->value[key] = strdup(value);
  if (!draft->value[key])
    return sdg_fail(SDG_E_NO_MEMORY, "for the rules");
  return SDG_OK;
}

static int pair_read(void *user, const char *section, const char *name,
                     const char *value) {
  (void)section; // line_check() knows it in full
  reader_t *reader = user;
  if (reader->status == SDG_OK)
    reader->status = reader->kind == KIND_MESH ? axis_add(reader, name, value)
                                               : key_add(reader, name, value);
  return reader->status == SDG_OK;
}

// All of a regular file, owned by the caller.
static sdg_status_t file_read(const char *path, char **out_text,
                              size_t *out_bytes) {
  sdg_status_t status = SDG_OK;
  char *text = NULL;
  size_t bytes = 0;
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return sdg_fail(SDG_E_RULES_FILE, "%s: %s", path, strerror(errno));
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    status = sdg_fail(SDG_E_RULES_FILE, "%s: not a regular file", path);
    goto close_file;
  }
  if (info.st_size > FILE_BYTES_MAX) {
    status = sdg_fail(SDG_E_RULES_FILE, "%s: larger than %d bytes", path,
                      FILE_BYTES_MAX);
    goto close_file;
  }
  text = malloc((size_t)info.st_size + 1);
  if (!text) {
    status = sdg_fail(SDG_E_NO_MEMORY, "for the rules");
    goto close_file;
  }
  while (bytes < (size_t)info.st_size) {
    ssize_t n = read(fd, text + bytes, (size_t)info.st_size - bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break; // shorter than it said: what is there counts
    bytes += (size_t)n;
  }
  *out_text = text;
  *out_bytes = bytes;
close_file:
  close(fd);
  return status;
}

static sdg_status_t file_parse(reader_t *reader) {
  static const char bom[] = "\xEF\xBB\xBF";
  char *text = NULL;
  size_t bytes = 0;
  SDG_TRY(file_read(reader->place.source, &text, &bytes));
  reader->at = text;
  reader->end = text + bytes;
  if (bytes >= 3 && memcmp(text, bom, 3) == 0)
    reader->at += 3;
  int line = ini_parse_stream(line_next, reader, pair_read, reader);
  if (line != 0 && reader->status == SDG_OK) {
    reader->place.line = line > 0 ? line : 0;
    reader->status =
        sdg_place_fail(&reader->place, SDG_E_RULES_SYNTAX, "not name = value");
  }
  free(text);
  return reader->status;
}

// The axes that splits name, for a mesh that nobody gave.
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

static sdg_status_t mesh_make(reader_t *reader, const sdg_options_t *options,
                              int ranks, sdg_mesh_t *out_mesh) {
  sdg_place_t place = {reader->place.source, reader->mesh_line};
  const char *text = reader->mesh;
  char single[SDG_AXIS_NAME_MAX + 16];
  if (options->origin[SDG_OPTION_MESH] != SDG_ORIGIN_DEFAULT) {
    text = options->mesh;
    place = (sdg_place_t){"SUNDOG_MESH", 0};
  } else if (*text == '\0') {
    axis_names_t names = {.count = 0};
    for (int i = 0; i < reader->drafts; i++)
      if (reader->draft[i].value[KEY_SPLIT])
        sdg_split_axes(reader->draft[i].value[KEY_SPLIT], axis_collect, &names);
    if (names.count > 1)
      return sdg_place_fail(&place, SDG_E_RULES_MESH,
                            "several axes are named: [mesh] or SUNDOG_MESH has "
                            "to give the ranks of each, as in %s=%d",
                            names.name, ranks);
    if (names.count == 1) {
      snprintf(single, sizeof single, "%s=%d", names.name, ranks);
      text = single;
    }
  }
  // The product first: its message can name the place.
  long product = 1;
  for (const char *c = strchr(text, '='); c && product <= SDG_RANKS_MAX;
       c = strchr(c + 1, '='))
    product *= strtol(c + 1, NULL, 10);
  if (*text && product != ranks)
    return sdg_place_fail(&place, SDG_E_RULES_MESH,
                          "the mesh %s is not one of %d ranks", text, ranks);
  return sdg_mesh_parse(text, ranks, out_mesh);
}

// A key's value and where it stands: the section, or the option that is the
// default for sections that do not say it.
static const char *value_of(const reader_t *reader, const draft_t *draft,
                            section_key_t key, const char *option,
                            const char *option_value, sdg_place_t *out_place) {
  if (draft->value[key]) {
    *out_place = (sdg_place_t){reader->place.source, draft->line[key]};
    return draft->value[key];
  }
  *out_place = (sdg_place_t){option, 0};
  return option_value;
}

static sdg_status_t view_parse(const reader_t *reader, const draft_t *draft,
                               const sdg_options_t *options,
                               sdg_section_t *section) {
  static const char *const views[] = {"shard", "whole"};
  sdg_place_t place = {"SUNDOG_VIEW", 0};
  section->view = (sdg_view_t)options->view;
  if (draft->value[KEY_VIEW]) {
    int index;
    place = (sdg_place_t){reader->place.source, draft->line[KEY_VIEW]};
    SDG_TRY(sdg_choice_parse(&place, draft->value[KEY_VIEW], "view", views, 2,
                             &index));
    section->view = index == 0 ? SDG_VIEW_SHARD : SDG_VIEW_WHOLE;
  }
  if (section->view == SDG_VIEW_UNSAID) {
    place = (sdg_place_t){reader->place.source, section->line};
    return sdg_place_fail(&place, SDG_E_VIEW_UNSAID,
                          "add 'view = shard' or set SUNDOG_VIEW=shard");
  }
  if (section->view == SDG_VIEW_WHOLE)
    return sdg_place_fail(&place, SDG_E_VIEW_WHOLE, "use shard");
  return SDG_OK;
}

static sdg_status_t shard_parse(const reader_t *reader, draft_t *draft,
                                const sdg_options_t *options,
                                const sdg_mesh_t *mesh) {
  static const char *const yes_no[] = {"yes", "no"};
  static const char *const strategies[] = {"auto", "repair", "extend"};
  sdg_section_t *section = &draft->section;
  sdg_place_t place = {reader->place.source, section->line};
  int index;
  if (!draft->value[KEY_SPLIT])
    return sdg_place_fail(&place, SDG_E_RULES_EMPTY,
                          "section '%s' has no split", section->name);
  const char *text = value_of(reader, draft, KEY_SPLIT, "", "", &place);
  SDG_TRY(sdg_split_parse(&place, text, mesh, section));
  if (section->splits == 0)
    return sdg_place_fail(&place, SDG_E_RULES_EMPTY, "nothing is split");
  text = value_of(reader, draft, KEY_PARTS, "SUNDOG_PARTS", options->parts,
                  &place);
  SDG_TRY(sdg_parts_parse(&place, text, section));
  SDG_TRY(view_parse(reader, draft, options, section));
  text = value_of(reader, draft, KEY_SUM, "", "yes", &place);
  SDG_TRY(sdg_choice_parse(&place, text, "answer", yes_no, 2, &index));
  section->sum = index == 0;
  text =
      value_of(reader, draft, KEY_WRAP, "SUNDOG_WRAP", options->wrap, &place);
  SDG_TRY(sdg_wrap_parse(&place, text, section));
  text = value_of(reader, draft, KEY_STRATEGY, "SUNDOG_STRATEGY",
                  strategies[options->strategy], &place);
  SDG_TRY(sdg_choice_parse(&place, text, "strategy", strategies, 3, &index));
  section->strategy = (sdg_strategy_t)index;
  text = value_of(reader, draft, KEY_WINDOW, "", NULL, &place);
  if (text)
    SDG_TRY(sdg_window_parse(&place, text, section));
  return SDG_OK;
}

static sdg_status_t drafts_parse(reader_t *reader, const sdg_options_t *options,
                                 int ranks, sdg_rules_t *rules) {
  sdg_place_t place = {reader->place.source, 0};
  int shards = 0;
  SDG_TRY(mesh_make(reader, options, ranks, &rules->mesh));
  for (int i = 0; i < reader->drafts; i++) {
    draft_t *draft = &reader->draft[i];
    sdg_section_t *section = &draft->section;
    const char *text = value_of(reader, draft, KEY_MATCH, "", "", &place);
    SDG_TRY(sdg_match_parse(&place, text, section));
    text = value_of(reader, draft, KEY_OP, "", "", &place);
    SDG_TRY(sdg_op_parse(&place, text, section));
    if (section->is_local)
      continue;
    shards++;
    SDG_TRY(shard_parse(reader, draft, options, &rules->mesh));
    for (int k = 0; k < section->splits; k++)
      rules->axes |= section->split[k].axes;
  }
  place = (sdg_place_t){reader->place.source, 0};
  if (shards == 0)
    return sdg_place_fail(&place, SDG_E_RULES_EMPTY, "no [shard] section");
  return SDG_OK;
}

// SUNDOG_SPLIT as the one section it stands for.
static sdg_status_t short_parse(reader_t *reader,
                                const sdg_options_t *options) {
  reader->kind = KIND_SHARD;
  reader->drafts = 1;
  snprintf(reader->draft[0].section.name, SDG_SECTION_NAME_BYTES, "split");
  return key_add(reader, "split", options->split);
}

sdg_status_t sdg_rules_load(const sdg_options_t *options, int ranks,
                            sdg_rules_t *out_rules) {
  sdg_status_t status;
  bool from_file = *options->rules != '\0';
  if (!from_file && *options->split == '\0')
    return sdg_fail(SDG_E_OPTION_CONFLICT,
                    "neither SUNDOG_RULES nor SUNDOG_SPLIT is set");
  sdg_rules_t rules = {.source = NULL};
  reader_t reader = {
      .place.source = from_file ? options->rules : "SUNDOG_SPLIT", .kind = -1};
  reader.draft = calloc(SDG_SECTIONS_MAX, sizeof *reader.draft);
  rules.source = strdup(reader.place.source);
  if (!reader.draft || !rules.source) {
    status = sdg_fail(SDG_E_NO_MEMORY, "for the rules");
    goto free_drafts;
  }
  SDG_TRY_GOTO(from_file ? file_parse(&reader) : short_parse(&reader, options),
               free_drafts);
  status = drafts_parse(&reader, options, ranks, &rules);
  rules.sections = reader.drafts;
  rules.section = calloc((size_t)reader.drafts + 1, sizeof *rules.section);
  if (rules.section)
    for (int i = 0; i < reader.drafts; i++)
      rules.section[i] = reader.draft[i].section; // takes the parts' texts
  else if (status == SDG_OK)
    status = sdg_fail(SDG_E_NO_MEMORY, "for the rules");
free_drafts:
  for (int i = 0; reader.draft && i < reader.drafts; i++)
    for (int key = 0; key < KEY_COUNT; key++)
      free(reader.draft[i].value[key]);
  free(reader.draft);
  if (status != SDG_OK)
    sdg_rules_fini(&rules);
  else
    *out_rules = rules;
  return status;
}

void sdg_rules_fini(sdg_rules_t *rules) {
  for (int s = 0; rules->section && s < rules->sections; s++)
    for (int i = 0; i < rules->section[s].splits; i++)
      free(rules->section[s].split[i].parts);
  free(rules->section);
  free((void *)(uintptr_t)rules->source);
  *rules = (sdg_rules_t){.source = NULL};
}

sdg_status_t sdg_rules_check_entries(const sdg_rules_t *rules,
                                     const char *const *names, int count) {
  for (int s = 0; s < rules->sections; s++) {
    const sdg_section_t *section = &rules->section[s];
    for (int g = 0; g < section->globs; g++) {
      bool found = false;
      for (int f = 0; f < SDG_FAMILY_OTHER && !found; f++)
        found =
            fnmatch(section->glob[g], sdg_family_name((sdg_family_t)f), 0) == 0;
      for (int n = 0; n < count && !found; n++)
        found = fnmatch(section->glob[g], names[n], 0) == 0;
      if (found)
        continue;
      sdg_place_t place = {rules->source, section->line};
      return sdg_word_fail(
          &place, (sdg_word_t){section->glob[g], (int)strlen(section->glob[g])},
          "op", names, count);
    }
  }
  return SDG_OK;
}
