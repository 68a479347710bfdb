/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a command line: lists of them, and files that they name. */
#ifndef SDG_TOOLS_LAUNCH_ARGUMENT_H
#define SDG_TOOLS_LAUNCH_ARGUMENT_H

enum { ARGUMENTS_MAX = 256 };

/* A command line while it is put together. Initialise it with zeros. */
typedef struct arguments {
  int count, owned;
  const char *at[ARGUMENTS_MAX + 1];
  char *own[2 * ARGUMENTS_MAX];
} arguments_t;

/* Adds texts; the last parameter is NULL. The list is full if `count` is
 * ARGUMENTS_MAX afterwards; it drops what does not fit. */
__attribute__((sentinel)) void arguments_add(arguments_t *arguments, ...);

/* Makes arguments_fini() free the text. Returns the text, or "" for NULL. */
const char *arguments_own(arguments_t *arguments, char *text);
void arguments_fini(arguments_t *arguments);

/* Returns where the argument names FILE: its start, or the text after its
 * first '='. NULL if it does not name the file. Two names are of one file if
 * they are links to it, or spell one path, as "out.npy" and ".//out.npy" do. */
const char *argument_place(const char *argument, const char *file);

/* Returns the argument with `name` in place of FILE, owned; NULL if it does not
 * name the file, or memory runs out. */
char *argument_replace(const char *argument, const char *file,
                       const char *name);

/* Says so if one of the program's words names, with {rank}, a file of the last
 * rank and one of a rank that does not run: the files may be pieces for more
 * ranks. */
void argument_pieces_say(char *const *program, int ranks);

#endif
