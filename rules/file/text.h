/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a rules file. Inside this folder only. */
#ifndef SDG_RULES_FILE_TEXT_H
#define SDG_RULES_FILE_TEXT_H

#include <stddef.h>

#include "src/base/status.h"

/* Reads all of a regular file; the caller frees the text, which has no
 * terminating zero. SDG_E_RULES_FILE. */
sdg_status_t sdg_text_read(const char *path, char **out_text,
                           size_t *out_bytes) SDG_MUST_CHECK;

#endif
