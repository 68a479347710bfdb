/* SPDX-License-Identifier: Apache-2.0 */
/* Options that a command sets for the programs that it starts. */
#ifndef SDG_TOOLS_PROGRAM_SETTING_H
#define SDG_TOOLS_PROGRAM_SETTING_H

#include "src/base/options.h"

/* Sets the variable of an option, and notes in SUNDOG_ORIGINS where the value
 * comes from: SDG_ORIGIN_ARGUMENT or SDG_ORIGIN_COMMAND. */
sdg_status_t setting_make(const char *variable, const char *value,
                          sdg_origin_t origin) SDG_MUST_CHECK;

#endif
