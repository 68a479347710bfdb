/* SPDX-License-Identifier: Apache-2.0 */
/* What was found about functions that were called in pieces. */
#ifndef SDG_TOOLS_VERIFY_CUT_H
#define SDG_TOOLS_VERIFY_CUT_H

#include <stdbool.h>

#include "rules/file/file.h"
#include "src/base/status.h"

/* Prints a line for each function of the rules, from the record in the folder
 * of a run that tried them (rules/cut), and the error SDG_E_CUT for each that
 * differs. ended: the run did not end well, perhaps because of a call in
 * pieces. out_tried: how many functions were tried. *out_ended: such a call was
 * the last of which there is a record. SDG_E_NO_MEMORY. */
sdg_status_t cuts_print(const char *folder, int ranks, bool ended,
                        const sdg_rules_t *rules, int *out_tried,
                        bool *out_differs, bool *out_ended) SDG_MUST_CHECK;

#endif
