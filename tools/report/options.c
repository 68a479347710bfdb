// SPDX-License-Identifier: Apache-2.0
// Puts together the options of all ranks, and what the rules say in their
// place.
#include "tools/report/options.h"

#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

#include "src/base/options.h"
#include "tools/record/line.h"

// Options that differ between ranks because ranks differ.
static bool is_of_rank(const char *name) {
  static const char *const names[] = {"SUNDOG_RANK", "SUNDOG_LOCAL_RANK",
                                      "SUNDOG_MESSAGES",
                                      "SUNDOG_MESSAGES_ELSE"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0)
      return true;
  return false;
}

// An option of these name, value and origin; NULL if the list has none.
static json_t *option_find(json_t *list, const json_t *like) {
  static const char *const members[] = {"name", "value", "origin"};
  size_t index;
  json_t *option;
  json_array_foreach(list, index, option) {
    bool alike = true;
    for (int i = 0; i < 3; i++)
      alike &= strcmp(recorded_text(option, members[i]),
                      recorded_text(like, members[i])) == 0;
    if (alike)
      return option;
  }
  return NULL;
}

// Adds one to the end; records of earlier versions do not tell origins.
static json_t *option_add(json_t *list, const char *name, const char *value,
                          const char *origin) {
  json_t *option = json_pack(
      "{s:s,s:s,s:o,s:n,s:n,s:[]}", "name", name, "value", value, "origin",
      *origin ? json_string(origin) : json_null(), "line", "section", "ranks");
  (void)json_array_append_new(list, option);
  return option;
}

static void rank_note(json_t *list, const recorded_rank_t *rank) {
  size_t index;
  json_t *told;
  json_array_foreach(json_object_get(rank->facts, "options"), index, told) {
    const char *name = recorded_text(told, "name");
    json_t *option = option_find(list, told);
    if (is_of_rank(name))
      continue;
    if (!option)
      option = option_add(list, name, recorded_text(told, "value"),
                          recorded_text(told, "origin"));
    (void)json_array_append_new(json_object_get(option, "ranks"),
                                json_integer(rank->rank));
  }
}

static bool is_default(const json_t *option) {
  return strcmp(recorded_text(option, "origin"), "default") == 0;
}

// Whether another entry of the list says that this rank has another value.
static bool has_other(const json_t *list, const json_t *option, int rank) {
  size_t index, at;
  json_t *other, *number;
  json_array_foreach(list, index, other) {
    if (other == option || strcmp(recorded_text(other, "name"),
                                  recorded_text(option, "name")) != 0)
      continue;
    json_array_foreach(json_object_get(other, "ranks"), at, number) {
      if (json_integer_value(number) == rank)
        return true;
    }
  }
  return false;
}

// Only the first rank of a job lists defaults, which all ranks have that do not
// list another value. What all ranks have needs no list of ranks.
static void ranks_settle(const recorded_t *run, json_t *list) {
  size_t index;
  json_t *option;
  json_array_foreach(list, index, option) {
    json_t *ranks = json_object_get(option, "ranks");
    if (is_default(option))
      (void)json_array_clear(ranks);
    for (int r = 0; r < run->found && is_default(option); r++)
      if (!has_other(list, option, run->rank[r].rank))
        (void)json_array_append_new(ranks, json_integer(run->rank[r].rank));
  }
  json_array_foreach(list, index, option) {
    if (json_array_size(json_object_get(option, "ranks")) == (size_t)run->found)
      (void)json_object_set_new(option, "ranks", json_null());
  }
}

// ---- what the rules say in place of options ---------------------------------

typedef struct rules {
  const char *at;
  int line;
  json_t *list;
  bool mesh; // [mesh] counts
  json_t *mesh_option;
} rules_t;

// Hands inih a line of the text, as fgets does.
static char *line_next(char *out, int bytes, void *user) {
  rules_t *rules = user;
  size_t length = strcspn(rules->at, "\n");
  if (!*rules->at)
    return NULL;
  snprintf(out, (size_t)bytes, "%.*s\n", (int)length, rules->at);
  line_mend(out); // a long line may be cut within a character
  rules->at += length + (rules->at[length] == '\n');
  rules->line++;
  return out;
}

static bool is_option(const char *key) {
  const sdg_option_info_t *info;
  char variable[64] = "SUNDOG_";
  for (size_t n = strlen(variable); *key && n + 1 < sizeof variable; key++)
    variable[n++] = *key == '-' ? '_' : (char)toupper((unsigned char)*key);
  for (unsigned i = 0; (info = sdg_option_at(i)); i++)
    if (strcmp(info->variable, variable) == 0)
      return true;
  return false;
}

static void place_set(const rules_t *rules, json_t *option,
                      const char *section) {
  (void)json_object_set_new(option, "line", json_integer(rules->line));
  (void)json_object_set_new(option, "section", json_string(section));
  (void)json_object_set_new(option, "ranks", json_null());
}

// The axes of [mesh] are one value, as --mesh writes it.
static void axis_add(rules_t *rules, const char *axis, const char *ranks) {
  char text[512];
  const char *before = recorded_text(rules->mesh_option, "value");
  snprintf(text, sizeof text, "%s%s%s=%s", before, *before ? "," : "", axis,
           ranks);
  if (!rules->mesh_option) {
    rules->mesh_option = option_add(rules->list, "mesh", text, "rules");
    place_set(rules, rules->mesh_option, "mesh");
  }
  (void)json_object_set_new(rules->mesh_option, "value", json_string(text));
}

static int key_take(void *user, const char *section, const char *name,
                    const char *value) {
  rules_t *rules = user;
  if (strcmp(section, "mesh") == 0 && rules->mesh)
    axis_add(rules, name, value);
  else if (strncmp(section, "shard", 5) == 0 && is_option(name))
    place_set(rules, option_add(rules->list, name, value, "rules"), section);
  return 1;
}

static void rules_note(const recorded_t *run, json_t *list) {
  rules_t rules = {.at = recorded_text(run->rank[0].facts, "rules_text"),
                   .list = list,
                   .mesh = true};
  size_t index;
  json_t *option;
  json_array_foreach(list, index, option) {
    if (strcmp(recorded_text(option, "name"), "SUNDOG_MESH") == 0 &&
        !is_default(option))
      rules.mesh = false;
  }
  (void)ini_parse_stream(line_next, &rules, key_take, &rules);
}

json_t *options_make(const recorded_t *run) {
  json_t *list = json_array();
  for (int r = 0; r < run->found; r++)
    rank_note(list, &run->rank[r]);
  ranks_settle(run, list);
  rules_note(run, list);
  return list;
}
