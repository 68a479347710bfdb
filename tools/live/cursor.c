// SPDX-License-Identifier: Apache-2.0
// Reads text and its escape sequences (ECMA-48) for what moves the cursor.
#include "tools/live/cursor.h"

#include <string.h>

static void text_follow(cursor_t *cursor, unsigned char c) {
  if (c == '\n')
    cursor->in_line = false;
  else if (c == '\x1b')
    cursor->at = CURSOR_ESCAPE;
  else if (c >= ' ' || c == '\t')
    cursor->in_line = true;
}

static void escape_follow(cursor_t *cursor, unsigned char c) {
  cursor->at = CURSOR_TEXT;
  if (c == '[')
    cursor->at = CURSOR_CONTROL;
  else if (c == ']')
    cursor->at = CURSOR_TITLE;
  else if (c >= '(' && c <= '+') // `tput sgr0` names a set
    cursor->at = CURSOR_LETTERS;
  else if (c != '\\') // the end of a title
    cursor->taken = true;
}

static void control_follow(cursor_t *cursor, unsigned char c) {
  if (c < '@') // parameters
    return;
  cursor->at = CURSOR_TEXT;
  if (c != 'm' && c != 'K')
    cursor->taken = true;
}

void cursor_follow(cursor_t *cursor, const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    unsigned char c = (unsigned char)text[i];
    switch (cursor->at) {
    case CURSOR_TEXT:
      text_follow(cursor, c);
      break;
    case CURSOR_ESCAPE:
      escape_follow(cursor, c);
      break;
    case CURSOR_CONTROL:
      control_follow(cursor, c);
      break;
    case CURSOR_LETTERS: // one byte is the name
      cursor->at = CURSOR_TEXT;
      break;
    case CURSOR_TITLE:
      if (c == '\a' || c == '\x1b')
        cursor->at = c == '\a' ? CURSOR_TEXT : CURSOR_ESCAPE;
      break;
    }
  }
}

bool cursor_is_busy(const cursor_t *cursor) {
  return cursor->in_line || cursor->taken || cursor->at != CURSOR_TEXT;
}
