/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of this process, read at the first captured call. */
#ifndef SDG_RULES_FILE_SETUP_H
#define SDG_RULES_FILE_SETUP_H

#include "rules/file/file.h"

/* The rules, immutable and the same from then on; or the status why there are
 * none, reported at the first call. Any thread may call it. */
sdg_status_t sdg_setup_rules(const sdg_rules_t **out_rules) SDG_MUST_CHECK;

/* The same without reading them: false if they have not been read or are
 * faulty. */
bool sdg_setup_ready(const sdg_rules_t **out_rules);

/* Whether the view is the whole view: _may_be: as far as the options say before
 * the rules are read; sdg_setup_is_whole: by all that is known now. */
bool sdg_setup_may_be_whole(void);
bool sdg_setup_is_whole(void);

/* Whether the view is the shard view; reads the rules first if needed. */
bool sdg_setup_in_pieces(void);

/* Sets the names of all entries, which globs of the rules file may match. Call
 * it before the first call is judged; the array is borrowed. */
void sdg_setup_set_entries(const char *const *names, int count);

#endif
