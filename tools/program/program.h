/* SPDX-License-Identifier: Apache-2.0 */
/* What a program's file says about whether sundog can reach its calls. */
#ifndef SDG_TOOLS_PROGRAM_PROGRAM_H
#define SDG_TOOLS_PROGRAM_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "src/base/status.h"

enum { PROGRAM_NEEDED_MAX = 64, PROGRAM_NAME_BYTES = 128 };

typedef struct program {
  char path[PATH_MAX];        /* found as execvp(3) would */
  char interpreter[PATH_MAX]; /* of a script; "" if it is none */
  bool is_elf;                /* of 64 bits and this byte order */
  bool is_static;             /* no dynamic linker: nothing is preloaded */
  bool is_privileged; /* setuid, setgid or file capabilities: the dynamic
                         linker ignores LD_PRELOAD */
  bool static_cudart, static_cudnn; /* linked in; their calls are not seen */
  bool opens;                       /* uses dlopen */
  int needed; /* libraries by name; those of its libraries not included */
  char needed_name[PROGRAM_NEEDED_MAX][PROGRAM_NAME_BYTES];
} program_t;

/* Examines the file that `name` would start. SDG_E_START if there is none or
 * it cannot be read. */
sdg_status_t program_examine(const char *name,
                             program_t *out_program) SDG_MUST_CHECK;

/* Prints a line for what in the file that `name` would start keeps sundog from
 * seeing its calls, with the remedy. Nothing if there is nothing. */
void program_advise(const char *name);

/* The first needed library whose name starts so, NULL if none does. */
const char *program_needs(const program_t *program, const char *stem);

/* True if there is a file that `name` would start and that can be read. Says
 * nothing. */
bool program_readable(const char *name);

#endif
