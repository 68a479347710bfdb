/* SPDX-License-Identifier: Apache-2.0 */
/* Writes texts into the JSON files that the sundog command reads. */
#ifndef SDG_SRC_BASE_JSON_TEXT_H
#define SDG_SRC_BASE_JSON_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* Writes `text` in quotes, with characters escaped as JSON requires. */
void sdg_json_text(FILE *file, const char *text);

/* Lines that calls write while a program runs are put together without printf,
 * which takes ten times as long. Both return the end of what they have written
 * at `out`; no zero follows it. */
enum { SDG_JSON_NUMBER_BYTES = 20 };             /* the most of a number */
char *sdg_json_put(char *out, const char *text); /* as it is */
char *sdg_json_number(char *out, int64_t number);

#endif
