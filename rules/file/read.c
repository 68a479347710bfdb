// SPDX-License-Identifier: Apache-2.0
// Reads the rules file line by line into sections of keys and texts.
#include "rules/file/read.h"

#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/text.h"
#include "src/base/words.h"

// Limits of inih as distributions build it; it would cut longer lines silently.
enum { INI_LINE_MAX = 196, INI_NAME_MAX = 47 };

static const char *const key_names[SDG_KEY_COUNT] = {
#define SDG_RULES_KEY(name, key, kind, value, otherwise, view, example,        \
                      meaning)                                                 \
  [SDG_KEY_##name] = key,
#include "rules/file/keys.def"
};

enum {
#define SDG_RULES_KIND(name, word, head, meaning) KIND_##name,
#include "rules/file/keys.def"
  KIND_COUNT,
};
static const char *const kind_names[KIND_COUNT] = {
#define SDG_RULES_KIND(name, word, head, meaning) [KIND_##name] = word,
#include "rules/file/keys.def"
};

// Whether a key may stand in [local].
static bool key_is_local(int key) {
  static const int kind[SDG_KEY_COUNT] = {
#define SDG_RULES_KEY(name, key, kind, value, otherwise, view, example,        \
                      meaning)                                                 \
  [SDG_KEY_##name] = KIND_##kind,
#include "rules/file/keys.def"
  };
  return kind[key] == KIND_LOCAL;
}

typedef struct reader {
  sdg_location_t location; // of the line being read
  const char *at, *end;
  sdg_status_t status; // the first fault, which was reported
  int kind;            // of the section being read, or one of those below
  bool thorough;       // continues after a fault
  sdg_drafts_t *drafts;
} reader_t;
enum {
  KIND_NONE = -1,
  KIND_SKIPPED = -2
}; // before a section; in a section that is skipped

// Reports a faulty line. The reader ends there, or continues without it.
static void reader_fault(reader_t *reader, sdg_status_t status) {
  if (!reader->thorough || status == SDG_E_NO_MEMORY) {
    reader->status = status;
    return;
  }
  if (reader->drafts->faults++ == 0)
    reader->drafts->first = status;
}

static sdg_status_t length_fail(const reader_t *reader, const char *what,
                                int limit) {
  return sdg_location_fail(&reader->location, SDG_E_RULES_SYNTAX,
                           "%s is longer than %d characters", what, limit);
}

// The kind of a section from its first word. If the reader continues after a
// fault, the nearest kind.
static sdg_status_t kind_parse(reader_t *reader, const char *word) {
  sdg_status_t status =
      sdg_choice_parse(&reader->location, word, "kind of section", kind_names,
                       KIND_COUNT, &reader->kind);
  if (status == SDG_OK || !reader->thorough)
    return status;
  const char *nearest = sdg_word_nearest(word, kind_names, KIND_COUNT);
  for (int kind = 0; kind < KIND_COUNT; kind++)
    if (strcmp(kind_names[kind], nearest) == 0)
      reader->kind = kind;
  reader_fault(reader, status);
  return SDG_OK;
}

// The head of a [function] or [kernel] section.
static sdg_status_t function_begin(reader_t *reader, int kind,
                                   sdg_word_t name) {
  const sdg_location_t *location = &reader->location;
  sdg_drafts_t *drafts = reader->drafts;
  if (!name.length)
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             kind == KIND_KERNEL
                                 ? "write a pattern of the kernel's name: "
                                   "[kernel *NAME*]"
                                 : "write the function's name: [function "
                                   "NAME]");
  if (drafts->functions == SDG_SECTIONS_MAX)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "more than %d functions", SDG_SECTIONS_MAX);
  for (int i = 0; i < drafts->functions; i++)
    if (drafts->function[i].is_kernel == (kind == KIND_KERNEL) &&
        sdg_word_is(name, drafts->function[i].name))
      return sdg_location_fail(
          location, SDG_E_RULES_TWICE, "%s '%.*s' is already in line %d",
          kind_names[kind], name.length, name.at, drafts->function[i].head);
  sdg_function_draft_t *draft = &drafts->function[drafts->functions++];
  draft->source = drafts->source;
  draft->head = location->line;
  draft->is_kernel = kind == KIND_KERNEL;
  snprintf(draft->name, sizeof draft->name, "%.*s", name.length, name.at);
  reader->kind = kind;
  return SDG_OK;
}

// A line of such a section.
static sdg_status_t function_add(reader_t *reader, const char *name,
                                 const char *value) {
  sdg_drafts_t *drafts = reader->drafts;
  int key;
  SDG_TRY(sdg_choice_parse(&reader->location, name, "key of a function",
                           sdg_function_key_name, SDG_FUNCTION_KEY_COUNT,
                           &key));
  return sdg_function_draft_add(
      &reader->location, &drafts->function[drafts->functions - 1], key, value);
}

// A line "[kind name]".
static sdg_status_t section_begin(reader_t *reader, const char *line) {
  const sdg_location_t *location = &reader->location;
  const char *close = strchr(line, ']');
  reader->kind = KIND_SKIPPED; // if the head is faulty
  if (!close)
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             "the line '%s' needs a ]", line);
  const char *after = close + 1;
  while (isspace((unsigned char)*after))
    after++;
  if (*after && *after != ';' && *after != '#')
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             "'%s' must not follow [section] on its line",
                             after);
  if (close - line - 1 > INI_NAME_MAX)
    return length_fail(reader, "the text between [ and ]", INI_NAME_MAX);
  char head[INI_NAME_MAX + 1];
  snprintf(head, sizeof head, "%.*s", (int)(close - line - 1), line + 1);
  const char *rest = head;
  sdg_word_t kind = {head, 0}, name = {head, 0}, more;
  if (sdg_word_next(&rest, " \t", &kind) &&
      sdg_word_next(&rest, " \t", &name) && sdg_word_next(&rest, " \t", &more))
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             "the name of a section must be one word");
  char word[INI_NAME_MAX + 1];
  snprintf(word, sizeof word, "%.*s", kind.length, kind.at);
  SDG_TRY(kind_parse(reader, word));
  int section = reader->kind;
  reader->kind = KIND_SKIPPED;
  if (section == KIND_MESH || section == KIND_EXTENTS) {
    int *first = section == KIND_MESH ? &reader->drafts->mesh_line
                                      : &reader->drafts->extents_line;
    if (*first)
      return sdg_location_fail(location, SDG_E_RULES_TWICE,
                               "[%s] is already in line %d", word, *first);
    if (name.length)
      return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                               "[%s] cannot have a name", word);
    reader->kind = section;
    *first = location->line;
    return SDG_OK;
  }
  if (section == KIND_FUNCTION || section == KIND_KERNEL)
    return function_begin(reader, section, name);
  if (reader->drafts->count == SDG_SECTIONS_MAX)
    return sdg_location_fail(location, SDG_E_RULES_VALUE,
                             "more than %d sections", SDG_SECTIONS_MAX);
  for (int i = 0; name.length && i < reader->drafts->count; i++)
    if (sdg_word_is(name, reader->drafts->draft[i].section.name))
      return sdg_location_fail(
          location, SDG_E_RULES_TWICE, "section '%.*s' is already in line %d",
          name.length, name.at, reader->drafts->draft[i].section.line);
  reader->kind = section;
  sdg_draft_t *draft = &reader->drafts->draft[reader->drafts->count++];
  draft->section.is_local = reader->kind == KIND_LOCAL;
  draft->section.line = location->line;
  if (name.length)
    snprintf(draft->section.name, sizeof draft->section.name, "%.*s",
             name.length, name.at);
  else
    snprintf(draft->section.name, sizeof draft->section.name, "line %d",
             location->line);
  return SDG_OK;
}

// Refuses what inih would cut or misread.
static sdg_status_t line_check(reader_t *reader, const char *line) {
  const sdg_location_t *location = &reader->location;
  if (*line == '\0' || *line == ';' || *line == '#')
    return SDG_OK;
  if (*line == '[')
    return section_begin(reader, line);
  size_t name = strcspn(line, "=:");
  if (line[name] == '\0')
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             "'%s' is neither [section] nor name = value",
                             line);
  if (name > INI_NAME_MAX)
    return length_fail(reader, "the name", INI_NAME_MAX);
  if (reader->kind == KIND_NONE)
    return sdg_location_fail(location, SDG_E_RULES_SYNTAX,
                             "'%s' is before the first section", line);
  return SDG_OK;
}

// Takes the next line, without indentation, which would make it a continuation
// of the one before.
static sdg_status_t line_take(reader_t *reader, char *out, int bytes) {
  reader->location.line++;
  const char *line = reader->at;
  size_t left = (size_t)(reader->end - line);
  const char *newline = memchr(line, '\n', left);
  const char *stop = newline ? newline : reader->end;
  reader->at = newline ? newline + 1 : reader->end;
  if (memchr(line, '\0', (size_t)(stop - line)))
    return sdg_location_fail(&reader->location, SDG_E_RULES_SYNTAX,
                             "the line has a NUL byte");
  while (line < stop && isspace((unsigned char)*line))
    line++;
  while (stop > line && isspace((unsigned char)stop[-1]))
    stop--;
  if (stop - line > INI_LINE_MAX || stop - line + 2 > bytes)
    return length_fail(reader, "the line", INI_LINE_MAX);
  memcpy(out, line, (size_t)(stop - line));
  out[stop - line] = '\0';
  return line_check(reader, out);
}

// Reads a line for inih. If the reader continues after a fault, inih gets an
// empty line instead.
static char *line_next(char *out, int bytes, void *user) {
  reader_t *reader = user;
  if (reader->status != SDG_OK || reader->at == reader->end)
    return NULL;
  sdg_status_t status = line_take(reader, out, bytes);
  if (status != SDG_OK) {
    reader_fault(reader, status);
    *out = '\0';
  }
  if (reader->status != SDG_OK)
    return NULL;
  strcat(out, "\n");
  return out;
}

static sdg_status_t axis_add(reader_t *reader, const char *name,
                             const char *value) {
  size_t used = strlen(reader->drafts->mesh);
  char *end;
  long size = strtol(value, &end, 10);
  sdg_status_t status = SDG_OK;
  if (end == value || *end || size < 1 || size > SDG_RANKS_MAX) {
    status = sdg_location_fail(
        &reader->location, SDG_E_RULES_VALUE,
        "axis %s = %s: it needs a number of ranks from 1 to %d", name, value,
        SDG_RANKS_MAX);
    reader->drafts->mesh_faulty = true;
    size = 1; // lets later lines use the axis
  }
  if ((size_t)snprintf(reader->drafts->mesh + used,
                       sizeof reader->drafts->mesh - used, "%s%s=%ld",
                       used ? "," : "", name,
                       size) >= sizeof reader->drafts->mesh - used)
    return sdg_location_fail(&reader->location, SDG_E_RULES_VALUE,
                             "too many axes");
  return status;
}

// A line of [mesh]: an axis, or `same`.
static sdg_status_t mesh_add(reader_t *reader, const char *name,
                             const char *value) {
  sdg_drafts_t *drafts = reader->drafts;
  if (strcmp(name, "same") != 0)
    return axis_add(reader, name, value);
  if (drafts->same_line)
    return sdg_location_fail(&reader->location, SDG_E_RULES_TWICE,
                             "'same' is already in line %d", drafts->same_line);
  drafts->same_line = reader->location.line;
  snprintf(drafts->same, sizeof drafts->same, "%s", value);
  return SDG_OK;
}

static sdg_status_t key_add(reader_t *reader, const char *name,
                            const char *value) {
  const sdg_location_t *location = &reader->location;
  sdg_draft_t *draft = &reader->drafts->draft[reader->drafts->count - 1];
  int key;
  sdg_status_t status = sdg_choice_parse(location, name, "key of a section",
                                         key_names, SDG_KEY_COUNT, &key);
  if (status != SDG_OK && reader->thorough) {
    // The value may be faulty, too, or be what the section needs.
    const char *nearest = sdg_word_nearest(name, key_names, SDG_KEY_COUNT);
    for (key = 0; key_names[key] != nearest;)
      key++;
    reader_fault(reader, status);
    if (draft->line[key] || (reader->kind == KIND_LOCAL && !key_is_local(key)))
      return SDG_OK;
  } else if (status != SDG_OK) {
    return status;
  }
  if (reader->kind == KIND_LOCAL && !key_is_local(key))
    return sdg_location_fail(
        location, SDG_E_RULES_VALUE,
        "'%s' is a key of [shard]; [local] sections have only match and op",
        name);
  if (draft->value[key] && !location->line)
    return sdg_location_fail(location, SDG_E_RULES_TWICE, "'%s' is given twice",
                             name);
  if (draft->line[key])
    return sdg_location_fail(location, SDG_E_RULES_TWICE,
                             "'%s' is already in line %d", name,
                             draft->line[key]);
  draft->line[key] = location->line;
  if (*value == '\0')
    return SDG_OK; // as if it were not there
  draft->value[key] = strdup(value);
  if (!draft->value[key])
    return sdg_fail(SDG_E_NO_MEMORY, "for the rules");
  return SDG_OK;
}

static int pair_read(void *user, const char *section, const char *name,
                     const char *value) {
  (void)section; // line_check() has it in full
  reader_t *reader = user;
  if (reader->status != SDG_OK || reader->kind == KIND_SKIPPED)
    return reader->status == SDG_OK;
  sdg_status_t status =
      reader->kind == KIND_MESH ? mesh_add(reader, name, value)
      : reader->kind == KIND_FUNCTION || reader->kind == KIND_KERNEL
          ? function_add(reader, name, value)
      : reader->kind == KIND_EXTENTS
          ? sdg_extents_add(&reader->location, name, value,
                            &reader->drafts->extents)
          : key_add(reader, name, value);
  if (status != SDG_OK)
    reader_fault(reader, status);
  return reader->status == SDG_OK;
}

static sdg_status_t text_parse(reader_t *reader, const char *text,
                               size_t bytes) {
  static const char bom[] = "\xEF\xBB\xBF";
  reader->at = text;
  reader->end = text + bytes;
  if (bytes >= 3 && memcmp(text, bom, 3) == 0)
    reader->at += 3;
  int line = ini_parse_stream(line_next, reader, pair_read, reader);
  if (line != 0 && reader->status == SDG_OK) {
    reader->location.line = line > 0 ? line : 0;
    reader_fault(reader,
                 sdg_location_fail(&reader->location, SDG_E_RULES_SYNTAX,
                                   "not name = value"));
  }
  return reader->status;
}

static sdg_status_t file_parse(reader_t *reader) {
  char *text = NULL;
  size_t bytes = 0;
  SDG_TRY(sdg_text_read(reader->location.source, &text, &bytes));
  sdg_status_t status = text_parse(reader, text, bytes);
  free(text);
  return status;
}

static sdg_status_t drafts_init(const char *source, sdg_drafts_t *drafts) {
  *drafts = (sdg_drafts_t){.source = source};
  drafts->draft = calloc(SDG_SECTIONS_MAX, sizeof *drafts->draft);
  drafts->function = calloc(SDG_SECTIONS_MAX, sizeof *drafts->function);
  if (drafts->draft && drafts->function)
    return SDG_OK;
  sdg_drafts_fini(drafts);
  return sdg_fail(SDG_E_NO_MEMORY, "for the rules");
}

sdg_status_t sdg_drafts_read(const char *path, bool thorough,
                             sdg_drafts_t *out_drafts) {
  sdg_drafts_t drafts;
  SDG_TRY(drafts_init(path, &drafts));
  reader_t reader = {.location.source = path,
                     .kind = KIND_NONE,
                     .thorough = thorough,
                     .drafts = &drafts};
  sdg_status_t status = file_parse(&reader);
  if (status == SDG_OK)
    *out_drafts = drafts;
  else
    sdg_drafts_fini(&drafts);
  return status;
}

// "K:y; sizes = piece": a split, and after semicolons other keys of a section.
static sdg_status_t short_read(reader_t *reader, const char *text) {
  char key[INI_LINE_MAX], value[INI_LINE_MAX];
  sdg_word_t item, name;
  for (bool first = true; sdg_word_next(&text, ";", &item); first = false) {
    const char *rest = item.at, *end = item.at + item.length;
    const char *equals = memchr(item.at, '=', (size_t)item.length);
    name = first ? (sdg_word_t){"split", 5} : (sdg_word_t){item.at, 0};
    if (!first) {
      if (!equals)
        return sdg_location_fail(&reader->location, SDG_E_RULES_SYNTAX,
                                 "'%.*s' should be like 'sizes = piece'",
                                 item.length, item.at);
      for (rest = equals + 1; rest < end && isspace((unsigned char)*rest);)
        rest++;
      name.length = (int)(equals - item.at);
      while (name.length > 0 &&
             isspace((unsigned char)name.at[name.length - 1]))
        name.length--;
    }
    int bytes = (int)(end - rest);
    if (bytes >= (int)sizeof value || name.length >= (int)sizeof key)
      return sdg_location_fail(&reader->location, SDG_E_RULES_SYNTAX,
                               "'%.*s' is longer than %d characters",
                               item.length, item.at, INI_LINE_MAX - 1);
    snprintf(key, sizeof key, "%.*s", name.length, name.at);
    snprintf(value, sizeof value, "%.*s", bytes, rest);
    SDG_TRY(key_add(reader, key, value));
  }
  return SDG_OK;
}

sdg_status_t sdg_drafts_function_text(const char *source, const char *name,
                                      const char *text,
                                      sdg_drafts_t *out_drafts) {
  sdg_drafts_t drafts;
  char head[256];
  SDG_TRY(drafts_init(source, &drafts));
  reader_t reader = {
      .location.source = source, .kind = KIND_NONE, .drafts = &drafts};
  snprintf(head, sizeof head, "[function %s]", name);
  sdg_status_t status = section_begin(&reader, head);
  if (status == SDG_OK)
    status = text_parse(&reader, text, strlen(text));
  if (status == SDG_OK && (drafts.functions != 1 || drafts.count > 0 ||
                           drafts.mesh_line || drafts.extents_line))
    status = sdg_location_fail(&reader.location, SDG_E_RULES_SYNTAX,
                               "the text has a section of its own");
  if (status == SDG_OK)
    *out_drafts = drafts;
  else
    sdg_drafts_fini(&drafts);
  return status;
}

sdg_status_t sdg_drafts_short(const char *split, sdg_drafts_t *out_drafts) {
  sdg_drafts_t drafts;
  SDG_TRY(drafts_init("SUNDOG_SPLIT", &drafts));
  reader_t reader = {
      .location.source = drafts.source, .kind = KIND_SHARD, .drafts = &drafts};
  drafts.by_program = strcmp(split, "tags") == 0;
  drafts.by_nobody = strcmp(split, "replicated") == 0;
  if (drafts.by_program || drafts.by_nobody) {
    *out_drafts = drafts;
    return SDG_OK;
  }
  drafts.count = 1;
  snprintf(drafts.draft[0].section.name, SDG_SECTION_NAME_BYTES, "split");
  sdg_status_t status = short_read(&reader, split);
  if (status == SDG_OK)
    *out_drafts = drafts;
  else
    sdg_drafts_fini(&drafts);
  return status;
}

void sdg_drafts_fini(sdg_drafts_t *drafts) {
  for (int i = 0; drafts->draft && i < drafts->count; i++)
    for (int key = 0; key < SDG_KEY_COUNT; key++)
      free(drafts->draft[i].value[key]);
  free(drafts->draft);
  for (int i = 0; drafts->function && i < drafts->functions; i++)
    sdg_function_draft_fini(&drafts->function[i]);
  free(drafts->function);
  *drafts = (sdg_drafts_t){.source = NULL};
}
