/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of `sundog doctor`. */
#ifndef SDG_TOOLS_CHECKUP_H
#define SDG_TOOLS_CHECKUP_H

typedef enum checkup_grade {
  CHECKUP_OK,
  CHECKUP_WARN, /* works, or may work, but not as well as it could */
  CHECKUP_FAIL, /* ranks cannot run like this */
} checkup_grade_t;

typedef struct checkup {
  int count[CHECKUP_FAIL + 1];
} checkup_t;

/* Prints "ok    TOPIC: text" and counts it. */
void checkup_say(checkup_t *checkup, checkup_grade_t grade, const char *topic,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Prints what to do about the line before. */
void checkup_remedy(const char *text);

/* What the machine allows: tracing, shared memory, limits. `gpu`: for ranks on
 * GPUs, which ask for more. */
void checkup_machine(checkup_t *checkup, int gpu);
/* Rank and size as a launcher says them, where ranks meet, and the folder of
 * a run. */
void checkup_ranks(checkup_t *checkup);
/* Whether a program's calls can be reached. */
void checkup_program(checkup_t *checkup, const char *name);
/* What the dynamic linker finds in this process's environment, which is that
 * of a rank: the program `helper` (interpose/helper/libraries.c) is started
 * in it. */
void checkup_libraries(checkup_t *checkup, const char *helper, int gpu);

#endif
