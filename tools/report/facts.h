/* SPDX-License-Identifier: Apache-2.0 */
/* The report's facts: command, versions, options, rules, warnings. */
#ifndef SDG_TOOLS_REPORT_FACTS_H
#define SDG_TOOLS_REPORT_FACTS_H

#include "tools/record/recorded.h"

/* Returns a new object; NULL if memory runs out. */
json_t *facts_make(const recorded_t *run);

/* What the record lacks, or has of another run or version: faults that make a
 * report of it incomplete or wrong. Returns a new array of texts, empty if the
 * record is whole; NULL if memory runs out. */
json_t *facts_faults(const recorded_t *run);

/* Prints the texts of an array, each with `name` before it. */
void facts_faults_print(const char *name, const json_t *faults);

#endif
