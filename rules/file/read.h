/* SPDX-License-Identifier: Apache-2.0 */
/* Rules after reading: sections of keys and texts with their locations. Inside
 * rules/ only. */
#ifndef SDG_RULES_FILE_READ_H
#define SDG_RULES_FILE_READ_H

#include "rules/file/file.h"
#include "rules/file/function/function.h"
#include "rules/file/word.h"
#include "rules/file/value.h"

/* A section before its values are parsed, which requires the mesh. `section`
 * has is_local, name and line set. */
typedef struct sdg_draft {
  sdg_section_t section;
  char *value[SDG_KEY_COUNT]; /* owned; NULL: not given, or empty */
  int line[SDG_KEY_COUNT];    /* 0: not given */
} sdg_draft_t;

typedef struct sdg_drafts {
  const char *source; /* the file, or "SUNDOG_SPLIT"; borrowed */
  int mesh_line;      /* of [mesh], 0 without */
  char mesh[512];     /* "y=4,x=2", "" without */
  int same_line;      /* of `same` there, 0 without */
  char same[512];     /* its axes */
  int extents_line;   /* of [extents], 0 without */
  sdg_extents_t extents;
  bool by_program;    /* SUNDOG_SPLIT=tags: no section */
  bool by_nobody;     /* SUNDOG_SPLIT=replicated: no section */
  bool mesh_faulty;   /* the sizes in `mesh` are made up after a fault */
  int faults;         /* reported faults in lines that were left out */
  sdg_status_t first; /* the status of the first of them */
  int count;
  sdg_draft_t *draft; /* owned */
  int functions;
  sdg_function_draft_t *function; /* owned */
} sdg_drafts_t;

/* Reads a file; `path` must live as long as the result. Reports the first fault
 * with its location: SDG_E_RULES_FILE, _SYNTAX, _WORD, _VALUE, _TWICE.
 * `thorough`: reports every faulty line and leaves it out, and fails only if
 * the file cannot be read. */
sdg_status_t sdg_drafts_read(const char *path, bool thorough,
                             sdg_drafts_t *out_drafts) SDG_MUST_CHECK;
/* Makes one [function] section, of lines as a file has them. `source` stands in
 * messages, and must live as long as the result. */
sdg_status_t sdg_drafts_function_text(const char *source, const char *name,
                                      const char *text,
                                      sdg_drafts_t *out_drafts) SDG_MUST_CHECK;
/* Makes one section of SUNDOG_SPLIT's text: the value of `split` and, after
 * semicolons, other keys, as in "K:y; sizes = piece". Makes none for "tags",
 * which leaves it to the program, and none for "replicated". */
sdg_status_t sdg_drafts_short(const char *split,
                              sdg_drafts_t *out_drafts) SDG_MUST_CHECK;
void sdg_drafts_fini(sdg_drafts_t *drafts);

/* ---- from drafts to rules (file.c) --------------------------------------- */

/* Reads what the options ask for, a file or the short form. */
sdg_status_t sdg_drafts_open(const sdg_options_t *options, bool thorough,
                             sdg_drafts_t *out_drafts) SDG_MUST_CHECK;
sdg_status_t sdg_drafts_mesh(const sdg_drafts_t *drafts,
                             const sdg_options_t *options, int ranks,
                             sdg_mesh_t *out_mesh) SDG_MUST_CHECK;
/* Reads the values of one section, for the mesh of `rules`; updates the view
 * and axes of `rules`. */
sdg_status_t sdg_draft_parse(const sdg_drafts_t *drafts, sdg_draft_t *draft,
                             const sdg_options_t *options,
                             sdg_rules_t *rules) SDG_MUST_CHECK;
/* Reads one function, after all sections. */
sdg_status_t sdg_drafts_function(const sdg_drafts_t *drafts, int index,
                                 sdg_rules_t *rules) SDG_MUST_CHECK;
/* Checks that need all sections. */
sdg_status_t sdg_drafts_check(const sdg_drafts_t *drafts,
                              const sdg_options_t *options,
                              sdg_rules_t *rules) SDG_MUST_CHECK;
/* The number of what they say: rules->digest. The sections have been parsed. */
uint64_t sdg_drafts_digest(const sdg_drafts_t *drafts,
                           const sdg_options_t *options,
                           const sdg_rules_t *rules);
/* Frees the drafts. Moves their sections to the result or, if `status` is a
 * fault, frees them too and returns it. */
sdg_status_t sdg_drafts_close(sdg_drafts_t *drafts, sdg_status_t status,
                              sdg_rules_t *rules,
                              sdg_rules_t *out_rules) SDG_MUST_CHECK;
/* Checks one word of a section's `op`: reports it unless it matches a family or
 * one of the names. */
sdg_status_t sdg_rules_check_glob(const sdg_rules_t *rules,
                                  const sdg_section_t *section,
                                  const char *glob, const char *const *names,
                                  int count) SDG_MUST_CHECK;

#endif
