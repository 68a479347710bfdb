/* SPDX-License-Identifier: Apache-2.0 */
/* What launchers say of a process: its rank, how many there are, and which
 * launch they belong to. */
#ifndef SDG_SRC_BOOTSTRAP_LAUNCHER_H
#define SDG_SRC_BOOTSTRAP_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/status.h"

/* Keeps what the environment says now: a program may clear or overwrite it
 * later. Once, before there are threads. Without it the environment is read at
 * each of the calls below, none of which then goes together with a thread that
 * changes it. */
void sdg_launcher_load(void);

/* The value of one of the variables that launchers set (or XDG_RUNTIME_DIR);
 * NULL: not set, or empty. */
const char *sdg_launcher_value(const char *name);

/* Rank, size and rank within the node, from SUNDOG_*, torchrun, Open MPI,
 * PMI, PALS, Flux, PMIx, Slurm, in this order; *out_origin names the variables
 * that said so ("SUNDOG_RANK/SUNDOG_SIZE"), or is NULL with rank 0 of 1 when no
 * launcher did. An empty variable is one that is not set.
 * SDG_E_RANK_UNKNOWN for incomplete or contradictory values. */
sdg_status_t sdg_rank_detect(int *out_rank, int *out_size, int *out_local_rank,
                             const char **out_origin) SDG_MUST_CHECK;
/* The same of a process that is to be a rank: SDG_E_RANK_UNSAID, with every
 * variable that was looked for, when no launcher says it; SDG_E_RANK_UNKNOWN
 * where it is one rank by one launcher and one of several by another, unless
 * SUNDOG_LAUNCH says that this is meant. */
sdg_status_t sdg_rank_require(int *out_rank, int *out_size, int *out_local_rank,
                              const char **out_origin) SDG_MUST_CHECK;
/* What SUNDOG_LAUNCH is in a rank that is meant to be alone: it names the ranks
 * of several that launchers say this process is, which therefore count no more.
 * One that they start from there is another one. */
void sdg_launch_alone(char *out, size_t bytes);
/* Whether rank and size are SUNDOG_RANK and SUNDOG_SIZE. */
bool sdg_launcher_is_users(void);

/* A variable that names a launch: equal in all its ranks, different between
 * launches. */
typedef struct sdg_launch_name {
  const char *name;
  bool alone; /* names a launch without the parent process */
} sdg_launch_name_t;
enum { SDG_LAUNCH_NAMES = 8, SDG_LAUNCH_BYTES = 128 };
extern const sdg_launch_name_t sdg_launch_names[SDG_LAUNCH_NAMES];

/* "SLURM_JOB_ID=7 SLURM_STEP_ID=1", cut to the room but still different from
 * that of every other launch; "" where nothing names the launch, or the ranks
 * were numbered by the user, and may be of several. */
void sdg_launch_name(char *out, size_t bytes);
/* Whether `other`, of SDG_LAUNCH_BYTES bytes from another process, names
 * another launch than this one's, which is *out_own. It is ended by a NUL
 * first. */
bool sdg_launch_differs(char *other, char *out_own, size_t own_bytes);

#endif
