/* SPDX-License-Identifier: Apache-2.0 */
/* One piece of advice, as the page and the JSON have it. */
#ifndef SDG_TOOLS_REPORT_ADVICE_SAID_H
#define SDG_TOOLS_REPORT_ADVICE_SAID_H

#include <jansson.h>
#include <stdint.h>

/* Returns text like printf does, which the caller frees; NULL if memory runs
 * out. */
char *said_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What to change. Texts are owned, and freed by said_add(). */
typedef struct said {
  const char *about;
  char *text;         /* what is so now, and what to do */
  char *line, *where; /* what to write, and where; "": nothing can be written */
  char *command;      /* what to run before the next run; NULL: nothing */
  char *effect;
  json_t *sections; /* that get the line (place.h); owned, or NULL */
} said_t;

/* Adds the advice to the list, and returns it for further members, borrowed;
 * NULL if memory has run out. */
json_t *said_add(json_t *list, said_t *said);

/* Adds what all ranks receive in the run now, and what they will. */
void said_bytes(json_t *advice, int64_t received_bytes,
                int64_t predicted_bytes);

/* "All ranks receive THEN bytes in this run instead of NOW." */
char *said_bytes_effect(int64_t now, int64_t then);

#endif
