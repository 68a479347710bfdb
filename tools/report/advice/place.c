// SPDX-License-Identifier: Apache-2.0
// Finds sections and keys in the text of the rules.
#include "tools/report/advice/place.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/launch/launch.h"
#include "tools/report/advice/said.h"

// NULL: not set. The first rank lists defaults, too; records of earlier
// versions list what was set only, without an origin.
static const json_t *option_of(const recorded_t *run, const char *name) {
  size_t index;
  json_t *option;
  json_array_foreach(json_object_get(run->rank[0].facts, "options"), index,
                     option) {
    if (strcmp(recorded_text(option, "name"), name) == 0)
      return strcmp(recorded_text(option, "origin"), "default") == 0 ? NULL
                                                                     : option;
  }
  return NULL;
}

const char *place_option(const recorded_t *run, const char *name) {
  const json_t *option = option_of(run, name);
  return option ? recorded_text(option, "value") : NULL;
}

static bool section_note(place_t *place, const json_t *plan) {
  int64_t line = recorded_number(plan, "line");
  for (int i = 0; i < place->sections; i++)
    if (place->line[i] == line)
      return true;
  if (place->sections == PLACE_SECTIONS || line <= 0)
    return false;
  place->line[place->sections++] = line;
  return true;
}

bool place_find(const recorded_t *run, place_test_t *test, place_t *out) {
  *out = (place_t){.run = run};
  const json_t *facts = run->rank[0].facts;
  if (!json_object_get(facts, "rules_text"))
    out->option = place_option(run, "SUNDOG_SPLIT");
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++) {
      const json_t *plan = run->rank[r].plan[i].line;
      if (!json_object_get(plan, "strategy") || !test(plan))
        continue;
      if (out->option ? strcmp(recorded_text(plan, "source"), "SUNDOG_SPLIT")
                      : !section_note(out, plan))
        return false;
    }
  return out->option ? strcmp(out->option, "tags") != 0 : out->sections > 0;
}

// ---- keys ------------------------------------------------------------------

static const char *line_at(const char *text, int64_t line) {
  for (; line > 1 && text; line--) {
    text = strchr(text, '\n');
    text = text ? text + 1 : NULL;
  }
  return text;
}

// "  keep = x ; why" has the value "x", and so has "keep: x".
static char *value_of(const char *line, size_t bytes, const char *key) {
  size_t at = strspn(line, " \t"), length = strlen(key);
  if (at + length > bytes || strncmp(line + at, key, length) != 0)
    return NULL;
  at += length;
  at += strspn(line + at, " \t");
  if (at >= bytes || (line[at] != '=' && line[at] != ':'))
    return NULL;
  at++;
  size_t end = at;
  // A comment begins with ; behind a blank.
  while (end < bytes &&
         !(line[end] == ';' && isblank((unsigned char)line[end - 1])))
    end++;
  while (at < end && isspace((unsigned char)line[at]))
    at++;
  while (end > at && isspace((unsigned char)line[end - 1]))
    end--;
  return end > at ? strndup(line + at, end - at) : NULL;
}

// The option "H:y; keep = x" has split = H:y, and keep = x.
static char *option_value(const char *option, const char *key) {
  bool first = true;
  for (const char *at = option; at; first = false) {
    const char *end = strchr(at, ';');
    size_t bytes = end ? (size_t)(end - at) : strlen(at);
    if (first && strcmp(key, "split") == 0) {
      char *with = said_text("split = %.*s", (int)bytes, at);
      char *value = with ? value_of(with, strlen(with), key) : NULL;
      free(with);
      return value;
    }
    char *value = first ? NULL : value_of(at, bytes, key);
    if (value)
      return value;
    at = end ? end + 1 : NULL;
  }
  return NULL;
}

char *place_value(const place_t *place, int index, const char *key) {
  if (place->option)
    return option_value(place->option, key);
  const char *line =
      line_at(recorded_text(place->run->rank[0].facts, "rules_text"),
              place->line[index] + 1);
  for (; line && line[strspn(line, " \t")] != '[';) {
    size_t bytes = strcspn(line, "\n");
    char *value = value_of(line, bytes, key);
    if (value || !line[bytes])
      return value;
    line += bytes + 1;
  }
  return NULL;
}

// The head of a section: "[shard field]".
static bool is_head(const char *line, const char *kind) {
  size_t bytes = strlen(kind);
  line += strspn(line, " \t");
  return *line == '[' && strncmp(line + 1, kind, bytes) == 0 &&
         (line[1 + bytes] == ']' || line[1 + bytes] == ' ');
}

bool place_has(const char *text, const char *kind) {
  for (const char *line = text; line; line = line_at(line, 2))
    if (is_head(line, kind))
      return true;
  return false;
}

// Whether all sections split as the first one does.
static bool split_alike(const place_t *place) {
  char *first = place_value(place, 0, "split");
  bool equal = first != NULL;
  for (int i = 1; i < place->sections && equal; i++) {
    char *other = place_value(place, i, "split");
    equal = other && strcmp(first, other) == 0;
    free(other);
  }
  free(first);
  return equal;
}

static bool any_plan(const json_t *plan) {
  (void)plan;
  return true;
}

bool place_find_all(const recorded_t *run, place_t *out) {
  if (!place_find(run, any_plan, out))
    return false;
  const char *text = recorded_text(run->rank[0].facts, "rules_text");
  int64_t number = 1;
  for (const char *line = text; line && !out->option;
       line = line_at(line, 2), number++) {
    bool known = !is_head(line, "shard");
    for (int i = 0; i < out->sections && !known; i++)
      known = out->line[i] == number;
    if (known)
      continue;
    if (out->sections == PLACE_SECTIONS)
      return false;
    out->line[out->sections++] = number;
  }
  return split_alike(out);
}

static bool is_free(const char *parts) {
  return !parts || !*parts || strcmp(parts, "agree") == 0 ||
         strcmp(parts, "even") == 0;
}

bool place_prescribes(const place_t *place) {
  const char *option = place_option(place->run, "SUNDOG_PARTS");
  int sections = place->option ? 1 : place->sections;
  for (int i = 0; i < sections; i++) {
    char *parts = place_value(place, i, "parts");
    bool good = is_free(parts ? parts : option);
    free(parts);
    if (!good)
      return true;
  }
  return false;
}

// ---- lines -----------------------------------------------------------------

// The option with the key's value replaced, or added.
static char *option_line(const char *option, const char *key,
                         const char *value) {
  size_t bytes = strlen(option) + strlen(key) + strlen(value) + 8;
  char *line = calloc(1, bytes);
  bool split = strcmp(key, "split") == 0;
  for (const char *at = option; at && line;) {
    const char *end = strchr(at, ';');
    size_t length = end ? (size_t)(end - at) : strlen(at);
    char *old = at == option ? NULL : value_of(at, length, key);
    if (at == option && split)
      strcat(line, value);
    else if (!old) {
      strcat(line, at == option ? "" : ";");
      strncat(line, at, length);
    }
    free(old);
    at = end ? end + 1 : NULL;
  }
  if (line && !split)
    strcat(strcat(strcat(strcat(line, "; "), key), " = "), value);
  const char *quote = line && line[strcspn(line, " ;,")] ? "'" : "";
  char *all = line ? said_text("--split %s%s%s", quote, line, quote) : NULL;
  free(line);
  return all;
}

// Whether the option --parts says the key: not if --split 'H; parts = 3,4'
// does.
static bool is_parts(const place_t *place, const char *key) {
  if (strcmp(key, "parts") != 0)
    return false;
  char *own = place_value(place, 0, key);
  free(own);
  return !own;
}

char *place_line(const place_t *place, const char *key, const char *value) {
  if (!place->option)
    return said_text("%s = %s", key, value);
  return is_parts(place, key) ? said_text("--parts %s", value)
                              : option_line(place->option, key, value);
}

// "[shard field]", as the file has it.
static char *head_of(const place_t *place, int index) {
  const char *text = recorded_text(place->run->rank[0].facts, "rules_text"),
             *line = line_at(text, place->line[index]);
  line = line ? line + strspn(line, " \t") : "";
  size_t bytes = strcspn(line, "]\n");
  return *line == '[' && line[bytes] == ']' ? strndup(line, bytes + 1)
                                            : strdup("[shard]");
}

// Takes `old`, and returns the sentence's end.
static char *in_place_of(const char *key, char *old) {
  char *text = old ? said_text(", in place of `%s = %s`", key, old)
                   : said_text(", as a line of its own");
  free(old);
  return text;
}

static char *section_where(const place_t *place, int index, const char *key) {
  char *head = head_of(place, index),
       *rest = in_place_of(key, place_value(place, index, key));
  char *text = head && rest ? said_text("%s (line %" PRId64 ")%s", head,
                                        place->line[index], rest)
                            : NULL;
  free(head);
  free(rest);
  return text;
}

// Where the option of a variable goes, such as --split of SUNDOG_SPLIT.
static char *option_where(const place_t *place, const char *option,
                          const char *variable) {
  const json_t *now = option_of(place->run, variable);
  if (!now)
    return said_text("On the command line, as a further option.");
  const char *value = recorded_text(now, "value");
  if (strcmp(recorded_text(now, "origin"), "environment") == 0)
    return said_text("On the command line of `sundog run` or `sundog exec`, "
                     "which goes before %s='%s' of the environment; or change "
                     "that variable.",
                     variable, value);
  return said_text("On the command line, in place of %s '%s'.", option, value);
}

char *place_where(const place_t *place, const char *key) {
  if (place->option)
    return is_parts(place, key)
               ? option_where(place, "--parts", "SUNDOG_PARTS")
               : option_where(place, "--split", "SUNDOG_SPLIT");
  const char *file = recorded_text(place->run->rank[0].facts, "rules");
  char *text = said_text("In %s, in %s", file,
                         place->sections > 1 ? "each of these sections: "
                                             : "the section ");
  for (int i = 0; i < place->sections && text; i++) {
    char *section = section_where(place, i, key), *before = text;
    text = section ? said_text("%s%s%s", before, i ? "; " : "", section) : NULL;
    free(section);
    free(before);
  }
  char *whole = text ? said_text("%s.", text) : NULL;
  free(text);
  return whole;
}

json_t *place_sections(const place_t *place) {
  json_t *sections = json_array();
  for (int i = 0; i < place->sections && sections; i++) {
    char *head = head_of(place, i);
    (void)json_array_append_new(sections,
                                json_pack("{s:s*,s:I}", "head", head, "line",
                                          (json_int_t)place->line[i]));
    free(head);
  }
  return sections;
}

// ---- the ranks -------------------------------------------------------------

static bool has_mesh(const recorded_t *run) {
  return place_option(run, "SUNDOG_MESH") ||
         place_has(recorded_text(run->rank[0].facts, "rules_text"), "mesh");
}

char *place_ranks_line(const recorded_t *run, int ranks) {
  char mesh[256] = "";
  size_t index;
  json_t *axis;
  if (!has_mesh(run))
    return said_text("-n %d", ranks);
  json_array_foreach(json_object_get(run->rank[0].facts, "mesh"), index, axis) {
    size_t used = strlen(mesh);
    snprintf(mesh + used, sizeof mesh - used, "%s%s=%d", index ? "," : "",
             recorded_text(axis, "axis"), index ? 1 : ranks);
  }
  return said_text("-n %d --mesh %s", ranks, mesh);
}

char *place_ranks_where(const recorded_t *run, const char *more) {
  const char *launch = place_option(run, "SUNDOG_LAUNCH");
  if (launch && strcmp(launch, LAUNCH_RUN) == 0)
    return said_text("On the command line of `sundog run`, in place of -n "
                     "%d%s.",
                     run->ranks, more);
  return said_text("On the command line of the launcher, which started %d "
                   "ranks%s%s.",
                   run->ranks,
                   has_mesh(run) ? "; --mesh on that of `sundog exec`" : "",
                   more);
}
