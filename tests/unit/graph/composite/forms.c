// SPDX-License-Identifier: Apache-2.0
// Recorded graphs of attention, and what is recognised in them.
#include "tests/unit/graph/composite/forms.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"

static char *part(char **rest) {
  char *text = strsep(rest, "\t\n");
  REQUIRE_MSG(text && *rest, "a line of forms is cut");
  return text;
}

int forms_read(const char *path, form_t form[FORMS_MAX]) {
  FILE *file = fopen(path, "re");
  char *line = NULL; // also if getline finds the end
  size_t room = 0;
  int forms = 0;
  REQUIRE_MSG(file, "%s cannot be read", path);
  for (; getline(&line, &room, file) > 0; line = NULL) {
    sdg_graph_config_t config;
    char *rest = line;
    REQUIRE(forms < FORMS_MAX);
    form_t *at = &form[forms++];
    *at = (form_t){.line = line};
    room = 0;
    at->version = part(&rest);
    at->name = part(&rest);
    at->expected = part(&rest);
    const char *text = part(&rest);
    REQUIRE_MSG(sdg_graph_read(text, (int64_t)strlen(text), &at->graph,
                               &config) == SDG_GRAPH_READ,
                "%s %s cannot be read", at->version, at->name);
  }
  free(line);
  fclose(file);
  return forms;
}

void forms_free(form_t *form, int forms) {
  for (int i = 0; i < forms; i++) {
    sdg_graph_release(form[i].graph);
    free(form[i].line);
  }
}

const char *form_summary(const sdg_graph_t *graph, char text[512]) {
  static const struct {
    sdg_composite_role_t role;
    const char *name;
  } roles[] = {{SDG_COMPOSITE_Q, "q"},
               {SDG_COMPOSITE_K, "k"},
               {SDG_COMPOSITE_V, "v"},
               {SDG_COMPOSITE_O, "o"},
               {SDG_COMPOSITE_STATS, "stats"},
               {SDG_COMPOSITE_BIAS, "bias"},
               {SDG_COMPOSITE_LENGTH_Q, "length_q"},
               {SDG_COMPOSITE_LENGTH_KV, "length_kv"},
               {SDG_COMPOSITE_DO, "do"},
               {SDG_COMPOSITE_DQ, "dq"},
               {SDG_COMPOSITE_DK, "dk"},
               {SDG_COMPOSITE_DV, "dv"}};
  sdg_composite_t c;
  bool is;
  const char *lacks = sdg_composite_read(graph, &is, &c);
  if (lacks) {
    snprintf(text, 512, "%s%s", is ? "lacks " : "none", is ? lacks : "");
    return text;
  }
  int at = snprintf(text, 512, "%s",
                    c.backward  ? "backward"
                    : c.unified ? "unified"
                                : "forward");
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    if (c.tensor[roles[i].role] >= 0)
      at += snprintf(text + at, 512 - (size_t)at, " %s=%d", roles[i].name,
                     (int)graph->tensor[c.tensor[roles[i].role]].uid);
  snprintf(text + at, 512 - (size_t)at, "%s%s%s%s%s%s%s%s",
           c.scale < 0 ? "" : " scale", c.right ? " right" : "",
           c.right_bound < 0 ? "" : "+", c.left ? " left" : "",
           c.left_bound < 0 ? "" : "+", c.bottom_right ? " bottom_right" : "",
           !c.bottom_right ? ""
           : c.by_lengths  ? " by_lengths"
                           : " by_sizes",
           c.left_folded ? " folded" : "");
  return text;
}
