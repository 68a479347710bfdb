/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from launchers' environment variables this process's rank, the number
 * of ranks, and the launch they belong to. */
#ifndef SDG_SRC_BOOTSTRAP_LAUNCHER_H
#define SDG_SRC_BOOTSTRAP_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"

/* Copies the environment as it is now, because a program may clear or
 * overwrite it later. Call once, before there are threads. If it was not
 * called, each function below reads the environment itself, and no other
 * thread may change it meanwhile. */
void sdg_launcher_load(void);

/* Returns the value of a variable that launchers set (or XDG_RUNTIME_DIR);
 * NULL if it is not set or empty. */
const char *sdg_launcher_value(const char *name);

/* Finds rank, size and rank within the node from SUNDOG_*, torchrun, Open MPI,
 * PMI, PALS, Flux, PMIx, Slurm, in this order. *out_origin names the variables
 * used ("SUNDOG_RANK/SUNDOG_SIZE"); if no launcher set any, it is NULL, and
 * the result is rank 0 of 1. An empty variable counts as not set.
 * SDG_E_RANK_UNKNOWN for incomplete or contradictory values. */
sdg_status_t sdg_rank_detect(int *out_rank, int *out_size, int *out_local_rank,
                             const char **out_origin) SDG_MUST_CHECK;
/* The same for a process that must be a rank: SDG_E_RANK_UNSAID, listing every
 * variable that was tried, if no launcher set any; SDG_E_RANK_UNKNOWN if one
 * launcher says one rank and another says several, unless SUNDOG_LAUNCH says
 * that this is intended. */
sdg_status_t sdg_rank_require(int *out_rank, int *out_size, int *out_local_rank,
                              const char **out_origin) SDG_MUST_CHECK;
/* Writes the value of SUNDOG_LAUNCH for a rank that is intended to be alone.
 * It names the launcher variables that say this process is one of several
 * ranks; they are then ignored. If a launcher started from that rank sets
 * other values, they count. */
void sdg_launch_alone(char *out, size_t bytes);
/* Returns true if rank and size come from SUNDOG_RANK and SUNDOG_SIZE. */
bool sdg_launcher_is_users(void);

/* Returns true if a PMIx server of the launcher knows this process as the rank
 * that the variables name. */
bool sdg_launcher_has_pmix(void);
/* Returns the descriptor of the launcher's PMI (version 1) if the rank's
 * program can still use it after another process of the rank has; -1 if not.
 * True of the launcher of MPICH and Intel MPI (hydra) and of Flux; Slurm's PMI
 * takes one process per rank. */
int sdg_launcher_pmi(void);
/* Returns true if a variable holds the rank and none the number of ranks. */
bool sdg_launcher_lacks_size(void);

/* Returns the process that started this rank, through whatever scripts: the
 * other end of the launcher's PMI, otherwise the nearest ancestor that was not
 * started with this rank's numbers. */
int32_t sdg_launcher_process(void);

/* On how many machines the ranks are, as far as variables tell. */
typedef enum sdg_spread {
  SDG_SPREAD_UNKNOWN,
  SDG_SPREAD_ONE,
  SDG_SPREAD_SEVERAL,
} sdg_spread_t;
/* *out_name is the variable that tells; NULL if none does. */
sdg_spread_t sdg_launcher_spread(int size, const char **out_name);

/* A variable that identifies a launch: equal in all ranks of a launch,
 * different between launches. */
typedef struct sdg_launch_name {
  const char *name;
  bool alone; /* identifies a launch even without the parent process */
} sdg_launch_name_t;
enum { SDG_LAUNCH_NAMES = 8, SDG_LAUNCH_BYTES = 128 };
extern const sdg_launch_name_t sdg_launch_names[SDG_LAUNCH_NAMES];

/* Writes "SLURM_JOB_ID=7 SLURM_STEP_ID=1". If that is too long, it is cut, but
 * still differs from every other launch's. "" if no variable identifies the
 * launch, or if the user numbered the ranks, which may then come from several
 * launches. */
void sdg_launch_name(char *out, size_t bytes);
/* Returns true if `other` (SDG_LAUNCH_BYTES bytes from another process) names
 * another launch than this process's, which *out_own receives. Terminates
 * `other` with a NUL first. */
bool sdg_launch_differs(char *other, char *out_own, size_t own_bytes);

#endif
