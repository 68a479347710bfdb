/* SPDX-License-Identifier: Apache-2.0 */
/* Finds files of the shard view that all ranks have written over each other,
 * because their program was given one name for all. */
#ifndef SDG_TOOLS_OUTPUTS_OUTPUTS_H
#define SDG_TOOLS_OUTPUTS_OUTPUTS_H

#include <stdint.h>
#include <sys/stat.h>

#include "src/geometry/mesh.h"
#include "tools/launch/launch.h"

/* A word of the program without the rank, as it names a file, or might. */
typedef struct outputs_name {
  int word;        /* of the program */
  int at;          /* where the name begins in the word: after "--out=" */
  struct stat was; /* before the run; st_nlink is 0 if there was no file */
  uint64_t head;   /* hash of its first bytes */
} outputs_name_t;

typedef struct outputs {
  const launch_t *launch;
  int size;
  char **word; /* the program's words of rank 0; NULL: nothing is looked for */
  int names;
  outputs_name_t *name;
  struct timespec begun;
  int64_t wrote_bytes[SDG_RANKS_MAX]; /* of all files; launch.h */
} outputs_t;

/* Before the ranks start: notes the files that the program's words name. */
void outputs_note(const launch_t *launch, int size, outputs_t *out);

/* When the ranks have ended without a failure: reports SDG_E_OUTPUT_SHARED for
 * each file that
 *
 * - a word names that has no {rank}, and that was written during the run;
 * - has no more bytes than some rank has written, and each rank has written
 *   half as many, apart from files whose names have its rank; and
 * - is no text that was appended to, as far as its content tells.
 *
 * Says nothing if the program can know its rank, because then it may write the
 * file on one rank alone: a word has the rank and names no file, or the program
 * or a script mentions ranks. */
void outputs_say(const outputs_t *outputs);

void outputs_fini(outputs_t *outputs);

#endif
