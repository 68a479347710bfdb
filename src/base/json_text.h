/* SPDX-License-Identifier: Apache-2.0 */
/* Writes texts into the JSON files that the sundog command reads. */
#ifndef SDG_SRC_BASE_JSON_TEXT_H
#define SDG_SRC_BASE_JSON_TEXT_H

#include <stdio.h>

/* Writes `text` in quotes, with characters escaped as JSON requires. */
void sdg_json_text(FILE *file, const char *text);

#endif
