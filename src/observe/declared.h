/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the functions that the rules declare: written at exit, so that
 * `sundog run` can tell of a name that is misspelt. */
#ifndef SDG_SRC_OBSERVE_DECLARED_H
#define SDG_SRC_OBSERVE_DECLARED_H

typedef enum sdg_declared {
  SDG_DECLARED_ABSENT, /* no loaded library has it */
  SDG_DECLARED_UNUSED, /* no call of it was seen */
  SDG_DECLARED_CALLED,
  SDG_DECLARED_COUNT,
} sdg_declared_t;

/* The words of these states. */
extern const char *const sdg_declared_name[SDG_DECLARED_COUNT];

/* Writes a line "WORD NAME" to <SUNDOG_REPORT>/functions-PID, if the option is
 * set. Returns nothing: a report that cannot be written is missed by others. */
void sdg_declared_write(const char *name, sdg_declared_t is);

#endif
