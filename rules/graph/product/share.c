// SPDX-License-Identifier: Apache-2.0
// Whole view: the ranks share out M, N and BATCH of a graph's product.
#include <stdlib.h>

#include "rules/graph/product/product.h"
#include "rules/graph/plan.h"
#include "rules/place/tagging.h"

// The placement of the product without a split of K: the ranks along its axes
// compute the same.
static sdg_status_t product_place(const sdg_tagging_t *tagging, int index,
                                  sdg_tagging_t *out) {
  const sdg_placement_t *said = &tagging->placement[index];
  int64_t extent[SDG_PRODUCT_DIMS];
  int from[SDG_PRODUCT_DIMS];
  for (int d = 0; d < SDG_PRODUCT_DIMS; d++) {
    extent[d] = sdg_placement_extent(said, d);
    from[d] = d == SDG_K ? -1 : d;
  }
  *out = *tagging;
  SDG_TRY(sdg_placement_like(SDG_PRODUCT_DIMS, extent, tagging->mesh, said,
                             from, &out->placement[index]));
  sdg_tagging_span(out, sdg_placement_axes(&out->placement[index]));
  return SDG_OK;
}

static sdg_status_t product_share(sdg_graph_maker_t *m, sdg_plan_t **out_plan) {
  sdg_placement_t *c = &m->main.op.y_placement;
  m->main.pattern = sdg_graph_call_execution(m->call)->pattern;
  if (m->tagging->ranks < 2 || !sdg_graph_product_can(m->call, m->tagging))
    return SDG_OK;
  SDG_TRY(sdg_graph_product_result(m->call, m->tagging, c));
  m->main.op.dims = c->dims;
  sdg_status_t status = sdg_graph_share_make(m, out_plan);
  sdg_placement_fini(c);
  return status;
}

sdg_status_t sdg_graph_product_share(const sdg_call_t *call,
                                     const sdg_tagging_t *tagging,
                                     sdg_plan_t **out_plan) {
  struct {
    sdg_graph_maker_t maker;
    sdg_graph_product_t product;
    sdg_tagging_t placed;
  } * all;
  int index = sdg_graph_product_index(sdg_graph_call_execution(call)->pattern);
  *out_plan = NULL;
  SDG_TRY(SDG_ALLOCATE(all, 1, "a plan"));
  sdg_graph_maker_t *m = &all->maker;
  m->call = call;
  m->tagging = &all->placed;
  m->whole = true;
  m->product = &all->product;
  m->product->terms = m->product->epilogue = -1;
  sdg_status_t status = product_place(tagging, index, &all->placed);
  if (status == SDG_OK) {
    status = product_share(m, out_plan);
    sdg_placement_fini(&all->placed.placement[index]);
  }
  free(m->extents);
  free(all);
  return status;
}
