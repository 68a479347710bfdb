/* SPDX-License-Identifier: Apache-2.0 */
/* Where the cursor of a terminal is after a program's text. */
#ifndef SDG_TOOLS_LIVE_CURSOR_H
#define SDG_TOOLS_LIVE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cursor {
  bool in_line; /* a line has begun and not ended: a prompt, a bar */
  bool taken;   /* the program moves the cursor itself: editors, full screens */
  enum {
    CURSOR_TEXT,
    CURSOR_ESCAPE,
    CURSOR_CONTROL,
    CURSOR_TITLE,
    CURSOR_LETTERS,
  } at;
} cursor_t;

/* Follows the next part of the text, which may end anywhere. Colours, titles,
 * sets of letters and the erasing of the rest of a line move nothing. */
void cursor_follow(cursor_t *cursor, const char *text, size_t bytes);

/* Returns true if text put where the cursor is would mix with the program's. */
bool cursor_is_busy(const cursor_t *cursor);

#endif
