/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in the files that the command reads back as JSON. */
#ifndef SDG_SRC_BASE_JSON_TEXT_H
#define SDG_SRC_BASE_JSON_TEXT_H

#include <stdio.h>

/* Writes `text` in quotes, with what has to be escaped. */
void sdg_json_text(FILE *file, const char *text);

#endif
