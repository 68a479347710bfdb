// SPDX-License-Identifier: Apache-2.0
// Checks the words of a command line against the table of the command's
// options.
#include "tools/mistakes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/words.h"

enum { OPTIONS_MOST = 64 };

typedef struct table {
  int count;
  const struct argp_option *option[OPTIONS_MOST];
} table_t;

static void table_add(table_t *table, const struct argp *argp) {
  const struct argp_option *o = argp->options;
  for (; o && (o->name || o->key || o->doc); o++)
    if (table->count < OPTIONS_MOST)
      table->option[table->count++] = o;
  for (const struct argp_child *c = argp->children; c && c->argp; c++)
    table_add(table, c->argp);
}

// Finds a long option by its name or a unique prefix: "--spl" is --split.
// Returns NULL if no option or several match.
static const struct argp_option *long_find(const table_t *table,
                                           const char *word, size_t length) {
  const struct argp_option *found = NULL;
  for (int i = 0; i < table->count; i++) {
    const char *name = table->option[i]->name;
    if (!name || strncmp(name, word, length) != 0)
      continue;
    if (strlen(name) == length)
      return table->option[i];
    found = table->option[i];
  }
  return found;
}

static const struct argp_option *short_find(const table_t *table, int key) {
  for (int i = 0; i < table->count; i++)
    if (table->option[i]->key == key)
      return table->option[i];
  return NULL;
}

static bool is_help(const char *word, size_t length) {
  return strncmp("help", word, length) == 0 ||
         strncmp("usage", word, length) == 0;
}

static bool nearest_say(const char *as, const table_t *table, const char *word,
                        size_t length) {
  const char *names[OPTIONS_MOST + 2] = {"help", "usage"};
  char text[64];
  int count = 2;
  snprintf(text, sizeof text, "%.*s", (int)length, word);
  for (int i = 0; i < table->count; i++)
    if (table->option[i]->name)
      names[count++] = table->option[i]->name;
  fprintf(stderr, "%s: no option '--%s'; nearest: --%s (see %s --help)\n", as,
          text, sdg_word_nearest(text, names, count), as);
  return true;
}

// Refuses an empty name of a file or folder.
static bool value_check(const char *as, const struct argp_option *option,
                        const char *value) {
  static const char *const names[] = {"FILE", "DIR", "FOLDER", "PATTERN",
                                      "DIM"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (value && !*value &&
        strncmp(option->arg, names[i], strlen(names[i])) == 0) {
      fprintf(stderr, "%s: --%s takes %s, but its value is empty\n", as,
              option->name, option->arg);
      return true;
    }
  return false;
}

// Checks the option at argv[*io_at], and its value if that is the next word.
static bool option_check(const char *as, const table_t *table, int argc,
                         char **argv, int *io_at) {
  const char *word = argv[*io_at], *value = NULL;
  const struct argp_option *option = NULL;
  if (word[1] == '-') {
    size_t length = strcspn(word + 2, "=");
    option = long_find(table, word + 2, length);
    if (!option)
      return !is_help(word + 2, length) &&
             nearest_say(as, table, word + 2, length);
    if (word[2 + length])
      value = word + 3 + length;
  } else {
    const char *c = word + 1;
    while (*c && (option = short_find(table, *c)) && !option->arg)
      c++;
    if (!*c || !option)
      return false; // argp reports an unknown option
    value = c[1] ? c + 1 : NULL;
  }
  if (!option->arg)
    return false;
  if (!value && *io_at + 1 < argc && !(option->flags & OPTION_ARG_OPTIONAL))
    value = argv[++*io_at];
  return value_check(as, option, value);
}

static bool is_asked(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strncmp(argv[i], "--spl", 5) == 0 || strncmp(argv[i], "--ru", 4) == 0)
      return true;
  return getenv("SUNDOG_SPLIT") || getenv("SUNDOG_RULES");
}

// Refuses `sundog run solver --split H`: the program would get the option. The
// check applies without "--" and if no other option asks for a split.
static bool behind_check(const char *as, int program, int argc, char **argv) {
  static const char *const ours[] = {"--split", "--rules", "--mesh"};
  if (is_asked(program, argv))
    return false;
  for (int i = program + 1; i < argc; i++)
    for (size_t k = 0; k < sizeof ours / sizeof *ours; k++) {
      size_t length = strlen(ours[k]);
      if (strncmp(argv[i], ours[k], length) != 0 ||
          (argv[i][length] && argv[i][length] != '='))
        continue;
      fprintf(stderr,
              "%s: %s comes after the program '%s', so the program would get "
              "it; write '%s %s ... -- %s ...' if it is for sundog, or '%s -- "
              "%s ... %s ...' if it is for the program\n",
              as, ours[k], argv[program], as, ours[k], argv[program], as,
              argv[program], ours[k]);
      return true;
    }
  return false;
}

bool mistakes_find(const command_t *command, int argc, char **argv) {
  table_t table = {.count = 0};
  const char *as = command->as, *words = command->argp->args_doc;
  bool runs = words && strstr(words, "PROGRAM") && words[0] == '-';
  table_add(&table, command->argp);
  for (int i = 1; i < argc; i++) {
    bool ends = strcmp(argv[i], "--") == 0;
    if (!ends && argv[i][0] == '-' && argv[i][1]) {
      if (option_check(as, &table, argc, argv, &i))
        return true;
      continue;
    }
    if (ends && ++i == argc)
      return false;
    if (!*argv[i]) {
      fprintf(stderr,
              "%s: argument %d is empty, but must be a %s (is a variable of "
              "the shell unset?)\n",
              as, i, runs ? "program" : "name");
      return true;
    }
    if (!words) {
      fprintf(stderr, "%s: takes no arguments, but got '%s' (see %s --help)\n",
              as, argv[i], as);
      return true;
    }
    if (runs)
      return !ends && behind_check(as, i, argc, argv);
    if (ends) // only names follow
      return false;
  }
  return false;
}
