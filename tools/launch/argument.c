// SPDX-License-Identifier: Apache-2.0
// Puts command lines together, and finds the files that their arguments name.
#include "tools/launch/argument.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/log.h"
#include "tools/launch/launch.h"

void arguments_add(arguments_t *arguments, ...) {
  va_list list;
  va_start(list, arguments);
  for (const char *text; (text = va_arg(list, const char *));)
    if (arguments->count < ARGUMENTS_MAX)
      arguments->at[arguments->count++] = text;
  va_end(list);
}

const char *arguments_own(arguments_t *arguments, char *text) {
  const int room = (int)(sizeof arguments->own / sizeof *arguments->own);
  if (text && arguments->owned < room)
    arguments->own[arguments->owned++] = text;
  return text ? text : "";
}

void arguments_fini(arguments_t *arguments) {
  for (int i = 0; i < arguments->owned; i++)
    free(arguments->own[i]);
}

// Finds the next component of a path, past slashes and dots. Returns its
// length; 0 at the end.
static size_t component_next(const char **path) {
  for (;;) {
    *path += strspn(*path, "/");
    size_t n = strcspn(*path, "/");
    if (n != 1 || **path != '.')
      return n;
    *path += n;
  }
}

static bool same_file(const char *a, const char *b) {
  struct stat of_a, of_b;
  if (stat(a, &of_a) == 0 && stat(b, &of_b) == 0 &&
      of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino)
    return true;
  char *folder = realpath(".", NULL);
  size_t in_folder = folder ? strlen(folder) : 0;
  // Makes absolute names relative to the current folder.
  const char *from[2] = {a, b};
  for (int i = 0; i < 2 && in_folder > 1; i++)
    if (strncmp(from[i], folder, in_folder) == 0 && from[i][in_folder] == '/')
      from[i] += in_folder + 1;
  free(folder);
  if ((*from[0] == '/') != (*from[1] == '/') || !*a || !*b)
    return false;
  for (;;) {
    size_t n = component_next(&from[0]), m = component_next(&from[1]);
    if (n != m || memcmp(from[0], from[1], n) != 0)
      return false;
    if (n == 0)
      return true;
    from[0] += n;
    from[1] += n;
  }
}

const char *argument_place(const char *argument, const char *file) {
  const char *value = strchr(argument, '=');
  if (same_file(argument, file))
    return argument;
  return value && same_file(value + 1, file) ? value + 1 : NULL;
}

char *argument_replace(const char *argument, const char *file,
                       const char *name) {
  const char *at = argument_place(argument, file);
  char *replaced;
  if (!at ||
      asprintf(&replaced, "%.*s%s", (int)(at - argument), argument, name) < 0)
    return NULL;
  return replaced;
}

static bool is_file(const char *argument) {
  const char *value = strchr(argument, '=');
  struct stat is;
  return (stat(argument, &is) == 0 || (value && stat(value + 1, &is) == 0)) &&
         S_ISREG(is.st_mode);
}

static void words_free(char **words) {
  for (size_t i = 0; words && words[i]; i++)
    free(words[i]);
  free(words);
}

void argument_pieces_say(char *const *program, int ranks) {
  char **last = launch_arguments(program, ranks - 1, ranks, ranks - 1),
       **further = launch_arguments(program, ranks, ranks, ranks - 1);
  for (size_t i = 1; last && further && program[0] && program[i]; i++)
    if (strstr(program[i], "{rank}") && is_file(last[i]) &&
        is_file(further[i])) {
      sdg_log(
          "%s exists, but the last rank is %d of %d: if the pieces were cut "
          "for more ranks, a part of the domain is left out; otherwise "
          "remove what is left of an earlier run",
          further[i], ranks - 1, ranks);
      break;
    }
  words_free(last);
  words_free(further);
}
