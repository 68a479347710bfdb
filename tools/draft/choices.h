/* SPDX-License-Identifier: Apache-2.0 */
/* The splits that `sundog inspect` considers, and the tables that it prints
 * about them. */
#ifndef SDG_TOOLS_DRAFT_CHOICES_H
#define SDG_TOOLS_DRAFT_CHOICES_H

#include "src/geometry/mesh.h"
#include "tools/draft/candidate.h"

/* What the user asks for. */
typedef struct wish {
  int ranks;       /* 0: 2, 4 and 8 */
  sdg_mesh_t mesh; /* .axes 0: one axis with all ranks */
  bool is_fixed;   /* `of_axis` says which dimension each axis divides */
  sdg_dim_t of_axis[SDG_AXES_MAX]; /* SDG_DIM_COUNT: none */
  sdg_dim_t dim;                   /* SDG_DIM_COUNT: any */
  sdg_view_t view;                 /* SDG_VIEW_UNSAID: any */
} wish_t;

/* The candidates of both views, one view after the other. */
typedef struct choices {
  int count, of_view,
      sizes; /* sizes: so many candidates in a row differ only in their ranks */
  bool has_mesh;
  candidate_t *candidate; /* owned */
} choices_t;

/* Gets the index-th dimension that can be split. Returns false past the last
 * one. */
bool choices_dim(int index, sdg_dim_t *out_dim);

/* Parses --split of a mesh: "H", "N:data,H:y". SDG_E_USAGE lists the possible
 * values. */
sdg_status_t choices_wish(const char *text, wish_t *wish) SDG_MUST_CHECK;

sdg_status_t choices_judge(const calls_t *calls, const wish_t *wish,
                           int64_t steps,
                           choices_t *out_choices) SDG_MUST_CHECK;
void choices_fini(choices_t *choices);

/* Prints the tables of splits and their conflicts. */
void choices_print(const choices_t *choices, int64_t steps);
/* Prints what each axis of the mesh does in the chosen split, and the calls
 * that gain nothing from it. */
void choices_axes_print(const calls_t *calls, const sdg_mesh_t *mesh,
                        const candidate_t *chosen);

#endif
