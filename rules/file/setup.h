/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that this process goes by, read at the first captured call. */
#ifndef SDG_RULES_FILE_SETUP_H
#define SDG_RULES_FILE_SETUP_H

#include "rules/file/file.h"

/* The rules, immutable and the same ever after; or why there are none, reported
 * at the first call. Any thread. */
sdg_status_t sdg_setup_rules(const sdg_rules_t **out_rules) SDG_MUST_CHECK;

/* The same without reading them: false where they are not read, or faulty. */
bool sdg_setup_ready(const sdg_rules_t **out_rules);

/* Whether the view is the whole view: as far as the options tell, before the
 * rules are read; and by all that is known now. */
bool sdg_setup_may_be_whole(void);
bool sdg_setup_is_whole(void);

/* Reads the rules if they are not read: whether the view is the shard view. */
bool sdg_setup_in_pieces(void);

/* Names of all entries, for globs of the rules file that name one. Before the
 * first judgement; the array is borrowed. */
void sdg_setup_set_entries(const char *const *names, int count);

#endif
