/* SPDX-License-Identifier: Apache-2.0 */
/* Families of graphs with rules of their own. Each function returns the rule
 * that the graph breaks, a sentence for the log; NULL if it breaks none, or is
 * not of the family. */
#ifndef SDG_SRC_HOST_CUDNN_PLAN_FAMILIES_H
#define SDG_SRC_HOST_CUDNN_PLAN_FAMILIES_H

#include "src/host/cudnn/plan/facts.h"

typedef struct {
  bool (*holds)(const host_facts_t *facts);
  const char *text;
} host_rule_t;

/* Pointwise operations and reductions only. */
const char *host_plain_refuses(const host_facts_t *facts);
/* A pooling with pointwise operations and reductions at most. */
const char *host_pools_refuse(const host_facts_t *facts);
/* A product of matrices with pointwise operations and reductions at most. */
const char *host_product_refuses(const host_facts_t *facts);
/* Several products with such operations, which are no attention. */
const char *host_pairs_refuse(const host_facts_t *facts);

/* The first of `count` rules that does not hold, or NULL. */
static inline const char *host_rules_broken(const host_rule_t *rules,
                                            size_t count,
                                            const host_facts_t *facts) {
  for (size_t i = 0; i < count; i++)
    if (!rules[i].holds(facts))
      return rules[i].text;
  return NULL;
}

#endif
