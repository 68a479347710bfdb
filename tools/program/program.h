/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from a program's file whether sundog can see its calls. */
#ifndef SDG_TOOLS_PROGRAM_PROGRAM_H
#define SDG_TOOLS_PROGRAM_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "src/base/status.h"

enum { PROGRAM_NEEDED_MAX = 64, PROGRAM_NAME_BYTES = 128 };

typedef struct program {
  char path[PATH_MAX];        /* as execvp(3) finds it */
  char interpreter[PATH_MAX]; /* of a script; "" for other files */
  bool is_elf;                /* of 64 bits and this byte order */
  bool is_static;             /* no dynamic linker: nothing is preloaded */
  bool is_privileged; /* setuid, setgid or file capabilities: the dynamic
                         linker ignores LD_PRELOAD */
  bool static_cudart,
      static_cudnn; /* linked statically; sundog does not see their calls */
  bool opens;       /* uses dlopen */
  int needed; /* number of needed libraries, without the libraries' own needs */
  char needed_name[PROGRAM_NEEDED_MAX][PROGRAM_NAME_BYTES];
} program_t;

/* Examines the file that the command `name` starts. SDG_E_START if the file is
 * missing or cannot be read. */
sdg_status_t program_examine(const char *name,
                             program_t *out_program) SDG_MUST_CHECK;

/* Prints each property of the program `name` that hides its calls from sundog,
 * with the remedy. Prints nothing if it finds none. */
void program_advise(const char *name);

/* Returns the first needed library whose name starts with `stem`; NULL if none
 * does. */
const char *program_needs(const program_t *program, const char *stem);

/* Returns true if the command `name` starts a file that can be read. Prints
 * nothing. */
bool program_readable(const char *name);

#endif
