/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a recorded run, and where their values come from. */
#ifndef SDG_TOOLS_REPORT_OPTIONS_H
#define SDG_TOOLS_REPORT_OPTIONS_H

#include "tools/record/recorded.h"

/* Returns a list of {name, value, origin, line, section, ranks}, NULL if memory
 * runs out. Keys of the rules' sections that do an option's work are in it,
 * with the line of the file. A value of some ranks only has their list. */
json_t *options_make(const recorded_t *run);

#endif
