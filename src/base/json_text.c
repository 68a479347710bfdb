// SPDX-License-Identifier: Apache-2.0
// Quotes texts for JSON.
#include "src/base/json_text.h"

#include <string.h>

char *sdg_json_put(char *out, const char *text) {
  size_t bytes = strlen(text);
  return (char *)memcpy(out, text, bytes) + bytes;
}

char *sdg_json_number(char *out, int64_t number) {
  char digits[SDG_JSON_NUMBER_BYTES], *at = digits + sizeof digits;
  uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  if (number < 0)
    *out++ = '-';
  do
    *--at = (char)('0' + left % 10);
  while (left /= 10);
  size_t bytes = (size_t)(digits + sizeof digits - at);
  return (char *)memcpy(out, at, bytes) + bytes;
}

void sdg_json_text(FILE *file, const char *text) {
  fputc('"', file);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      fprintf(file, "\\%c", *text);
    else if ((unsigned char)*text < 0x20)
      fprintf(file, "\\u%04x", (unsigned char)*text);
    else
      fputc(*text, file);
  }
  fputc('"', file);
}
