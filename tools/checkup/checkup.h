/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of `sundog doctor`. */
#ifndef SDG_TOOLS_CHECKUP_CHECKUP_H
#define SDG_TOOLS_CHECKUP_CHECKUP_H

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
/* Prints the remedy for the line before. */
void checkup_remedy(const char *text);

/* Checks the machine: tracing, shared memory, limits. `gpu`: also checks what
 * ranks on GPUs need. */
void checkup_machine(checkup_t *checkup, int gpu);
/* Checks rank and size from the launcher, how its ranks would meet, and the
 * folder of a run. `pmix`: path of sundog-pmix. */
void checkup_ranks(checkup_t *checkup, const char *pmix);
/* Checks whether sundog can see a program's calls. */
void checkup_program(checkup_t *checkup, const char *name);
/* Checks the libraries that the dynamic linker finds. This process must have
 * the environment of a rank; the function starts the program `helper`
 * (interpose/helper/libraries.c) in it. */
void checkup_libraries(checkup_t *checkup, const char *helper, int gpu);

#endif
