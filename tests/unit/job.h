/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a test's body on the ranks of a job, and replaces functions of vendor
 * libraries.
 * */
#ifndef SDG_TESTS_UNIT_JOB_H
#define SDG_TESTS_UNIT_JOB_H

#include "src/geometry/mesh.h"

/* Forks a job of the mesh's ranks, runs `body` on each joined as that rank, and
 * fails the test where one does; then it ends the others. `axes` are those that
 * some split names. */
void job_run(const char *mesh, sdg_axes_t axes, const char *timeout_s,
             void (*body)(int rank));

/* One function of a vendor's library, as the test has it. */
typedef struct job_fake {
  const char *name;
  void (*function)(void);
} job_fake_t;
#define JOB_FAKE(name, function)                                               \
  { #name, (void (*)(void))function }

/* What a finder (src/base/vendor.h) returns; a function that is not in the
 * table aborts when called. */
void *job_fake_find(const job_fake_t *table, int count, const char *name);

#endif
