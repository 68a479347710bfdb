/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded graphs of attention. */
#ifndef SDG_TESTS_UNIT_GRAPH_COMPOSITE_FORMS_H
#define SDG_TESTS_UNIT_GRAPH_COMPOSITE_FORMS_H

#include "rules/graph/composite/composite.h"

typedef struct form {
  char *line; /* owned; the texts are in it */
  const char *version, *name, *expected;
  sdg_graph_t *graph; /* owned */
} form_t;

enum { FORMS_MAX = 2000 };

/* Reads lines as record.py writes them; ends the test if they are not. */
int forms_read(const char *path, form_t form[FORMS_MAX]);
void forms_free(form_t *form, int forms);

/* What was recognised, in the words of record.py; "lacks ..." or "none". */
const char *form_summary(const sdg_graph_t *graph, char text[512]);

#endif
