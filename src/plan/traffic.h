/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes a plan brings a rank along each axis of the mesh. Pure. */
#ifndef SDG_SRC_PLAN_TRAFFIC_H
#define SDG_SRC_PLAN_TRAFFIC_H

#include "src/geometry/mesh.h"
#include "src/plan/plan.h"

/* Fills plan->axis_bytes, plan->sum_axis_bytes, the same of reductions alone,
 * and plan->sum_bytes, the bytes of reductions' results, each once, for `rank`
 * of the mesh. A message counts along every axis along which sender and
 * receiver differ, a reduction once along every one of its axes, by the bytes
 * of its result. Axes of size 1 bring nothing. Example: data=2,y=4, rank 5 =
 * (1,1): 100 bytes from rank 4 = (1,0) count along y; a sum of 40 bytes over
 * data and y counts 40 along each. */
void sdg_traffic_count(sdg_plan_t *plan, const sdg_mesh_t *mesh, int rank);

#endif
