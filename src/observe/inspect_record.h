/* SPDX-License-Identifier: Apache-2.0 */
/* SUNDOG_INSPECT: counts distinct lines, in one file per process. */
#ifndef SDG_SRC_OBSERVE_INSPECT_RECORD_H
#define SDG_SRC_OBSERVE_INSPECT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* True if the option is set. */
bool sdg_inspect_record_wanted(void);

/* A line while it is written. What does not fit is left out. Begin with
 * {.used = 0}. */
typedef struct sdg_inspect_text {
  size_t used;
  char bytes[8192];
} sdg_inspect_text_t;
void sdg_inspect_put(sdg_inspect_text_t *io, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Counts `text`, a JSON object. A new text is written to
 * <SUNDOG_INSPECT>/calls-PID at once, so that it survives a crash; after 12288
 * texts it writes {"dropped":true} instead. Any thread. */
void sdg_inspect_record_count(const char *text);

/* Writes a line of another kind. Any thread. */
void sdg_inspect_record_line(const char *line);

/* At exit: writes {"counts":[...]}, in the order of the lines, and
 * {"libraries":[...]}, the files of NVIDIA's libraries in this process. */
void sdg_inspect_record_finish(void);
/* Writes these files to `to`, as a list of JSON. */
void sdg_inspect_libraries(FILE *to);
/* In a child made by fork: drops the record, which belongs to the parent. Does
 * not allocate or wait. */
void sdg_inspect_record_drop(void);

#endif
