// SPDX-License-Identifier: Apache-2.0
// Finds the bytes of a text that are no UTF-8.
#include "tools/record/line.h"

#include <stdbool.h>
#include <stdint.h>

// Returns the bytes of the character at `c`; 0 if they are no UTF-8.
static int character_bytes(const unsigned char *c) {
  if (*c < 0x80)
    return 1;
  int bytes = *c >= 0xF0 ? 4 : *c >= 0xE0 ? 3 : 2;
  if (*c < 0xC2 || *c > 0xF4)
    return 0;
  uint32_t code = *c & (0xFFu >> (bytes + 1));
  for (int i = 1; i < bytes; i++) {
    if ((c[i] & 0xC0) != 0x80)
      return 0;
    code = code << 6 | (c[i] & 0x3Fu);
  }
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < least[bytes] || code > 0x10FFFF || surrogate ? 0 : bytes;
}

void line_mend(char *text) {
  for (unsigned char *c = (unsigned char *)text; *c;) {
    int bytes = character_bytes(c);
    if (bytes == 0)
      *c = '?';
    c += bytes ? bytes : 1;
  }
}
