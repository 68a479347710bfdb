/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a plan add up to: copies that one call of the CUDA runtime
 * may carry out, and the bytes that travel. Pure. */
#ifndef SDG_SRC_PLAN_STEPS_H
#define SDG_SRC_PLAN_STEPS_H

#include "src/geometry/mesh.h"
#include "src/plan/plan.h"

/* Sets `copies` of every step. Two strips whose slabs lie one behind the other
 * have such steps: the copies of their own rows, and those of their results. */
void sdg_plan_group_copies(sdg_plan_t *plan);

/* ---- bytes along each axis ----------------------------------------------- */

/* Counts the bytes that a rank receives along each axis of the mesh when it
 * carries out the plan. Fills plan->axis_bytes, plan->sum_axis_bytes (the part
 * that reductions cause) and plan->sum_bytes (the bytes of reductions' results,
 * each counted once) for `rank` of the mesh. A message counts along every axis
 * in which the coordinates of sender and receiver differ. A reduction counts
 * the bytes of its result once along each of its axes. Axes of size 1 count
 * nothing. Example: data=2,y=4, rank 5 = (1,1): 100 bytes from rank 4 = (1,0)
 * count along y; a sum of 40 bytes over data and y counts 40 along each. */
void sdg_traffic_count(sdg_plan_t *plan, const sdg_mesh_t *mesh, int rank);

#endif
