// SPDX-License-Identifier: Apache-2.0
// Tensors of a graph whose memory the program has tagged.
#include <pthread.h>
#include <stdlib.h>

#include "rules/graph/chain/pattern.h"

typedef struct sdg_graph_tagged {
  struct sdg_graph_tagged *next;
  const sdg_tag_label_t *label;
  int tensor;
} tagged_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const void *sdg_graph_tagged_get(sdg_graph_pattern_t *pattern, int t,
                                 const sdg_tag_label_t *label) {
  pthread_mutex_lock(&lock);
  tagged_t *tagged = pattern->tagged;
  while (tagged && (tagged->tensor != t || tagged->label != label))
    tagged = tagged->next;
  if (!tagged && (tagged = calloc(1, sizeof *tagged))) {
    *tagged = (tagged_t){pattern->tagged, label, t};
    sdg_tag_touch(tagged);
    if (sdg_tag_set_label(tagged, label) == SDG_OK) {
      pattern->tagged = tagged;
    } else {
      sdg_tag_forget(tagged);
      free(tagged);
      tagged = NULL;
    }
  }
  pthread_mutex_unlock(&lock);
  return tagged;
}

void sdg_graph_tagged_fini(sdg_graph_pattern_t *pattern) {
  while (pattern->tagged) {
    tagged_t *tagged = pattern->tagged;
    pattern->tagged = tagged->next;
    sdg_tag_forget(tagged);
    free(tagged);
  }
}
