// SPDX-License-Identifier: Apache-2.0
// Quotes texts for JSON.
#include "src/base/json_text.h"

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
