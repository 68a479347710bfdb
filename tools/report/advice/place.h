/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run's sections are written: in a rules file, or as --split. */
#ifndef SDG_TOOLS_REPORT_ADVICE_PLACE_H
#define SDG_TOOLS_REPORT_ADVICE_PLACE_H

#include "tools/record/recorded.h"

enum { PLACE_SECTIONS = 32 };

typedef struct place {
  const recorded_t *run;
  const char *option; /* the value of --split; NULL: a rules file */
  int sections;       /* of the rules file, which calls of the run used */
  int64_t line[PLACE_SECTIONS]; /* of the section's head, from 1 */
} place_t;

/* Whether a plan's section is meant. */
typedef bool place_test_t(const json_t *plan);

/* Finds the sections of the plans that pass the test. Returns false if no text
 * of theirs is known: the program has tagged its tensors itself. */
bool place_find(const recorded_t *run, place_test_t *test, place_t *out);

/* Finds all [shard] sections, those included that only queries, or no calls,
 * used: whoever cuts tensors otherwise has to change all of them. Returns
 * false, too, if they do not split alike. */
bool place_find_all(const recorded_t *run, place_t *out);

/* Returns what section `index` says for the key, which the caller frees; NULL
 * if it does not say it. With --split there is one section, of index 0. */
char *place_value(const place_t *place, int index, const char *key);

/* Whether sizes of pieces, or their borders, are prescribed: by `parts`, or by
 * SUNDOG_PARTS. */
bool place_prescribes(const place_t *place);

/* The line with which the sections say the key: "keep = x", "--split 'H; keep =
 * x'", "--split W", "--parts 3,4". The caller frees it. */
char *place_line(const place_t *place, const char *key, const char *value);

/* A sentence that says where that line goes: "In the section [shard field] of
 * r.rules, line 3, in place of `split = H`." The caller frees it. */
char *place_where(const place_t *place, const char *key);

/* A new list of the sections: {"head": "[shard field]", "line": 3}; empty with
 * --split. */
json_t *place_sections(const place_t *place);

/* Whether the text of the rules has a section of that kind, as "mesh". */
bool place_has(const char *text, const char *kind);

/* The value of an option that was set, for the first rank at least; NULL: it
 * has its default. */
const char *place_option(const recorded_t *run, const char *name);

/* "-n 2", or "-n 2 --mesh y=2" where the run has been given a mesh: its first
 * axis gets all ranks. The caller frees it. */
char *place_ranks_line(const recorded_t *run, int ranks);

/* A sentence that says where that line goes, with `more` at its end: `sundog
 * run`, or the launcher. The caller frees it. */
char *place_ranks_where(const recorded_t *run, const char *more);

#endif
