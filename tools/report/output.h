/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the report of a recorded run as a file. */
#ifndef SDG_TOOLS_REPORT_OUTPUT_H
#define SDG_TOOLS_REPORT_OUTPUT_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"

enum { OUTPUT_EVENTS = 400000 }; /* as many as a page draws fluidly */

/* How to write a report. */
typedef enum output_form {
  OUTPUT_PAGE,  /* HTML, for people */
  OUTPUT_JSON,  /* doc/report.md */
  OUTPUT_TRACE, /* all events, for Perfetto */
} output_form_t;

/* Reads the record in `folder` and writes its report to the file `path`, "-":
 * standard output. `events` is as in document_write(). `says_faults`: prints
 * what the record lacks. A file that could not be written completely, or has
 * been empty, is removed. SDG_E_FILE_IO, SDG_E_NO_MEMORY; SDG_E_OVERWRITE if
 * the file is one of the record. */
sdg_status_t output_write(const char *folder, output_form_t form,
                          int64_t events, const char *path,
                          bool says_faults) SDG_MUST_CHECK;

/* Removes the empty file that output_check() made, if no report was written. */
void output_drop(const char *path);

/* Loads the report of a recorded run: `path` is the folder of its record, or a
 * page or JSON of output_write(). SDG_E_FILE_IO, SDG_E_NO_MEMORY. */
sdg_status_t output_load(const char *path, json_t **out) SDG_MUST_CHECK;

/* Before a run that this command records alone: finds the folder of its record,
 * "" if there is none. That of SUNDOG_RECORD, which the command holds (hold.h),
 * loses the record of an earlier run; otherwise, if there will be a report, one
 * is made in `folder`, and SUNDOG_RECORD names it. SDG_E_FOLDER,
 * SDG_E_NO_MEMORY. */
sdg_status_t output_record_set(const char *report, const char *folder,
                               char out_record[PATH_MAX]) SDG_MUST_CHECK;

/* Checks that the file `path` can be written, before a run that is recorded in
 * `folder` and whose report goes there: makes an empty file if there is none.
 * SDG_E_FILE_IO, SDG_E_OVERWRITE. */
sdg_status_t output_check(const char *folder, const char *path) SDG_MUST_CHECK;

#endif
