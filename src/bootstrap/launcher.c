// SPDX-License-Identifier: Apache-2.0
// Reads rank and size from the launchers' environment variables.
#include "src/bootstrap/launcher.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/options.h"
#include "src/bootstrap/process.h"
#include "src/bootstrap/rendezvous.h"

typedef struct launcher {
  const char *origin, *who;
  const char *rank, *size, *size_else;
  const char *local_rank, *local_rank_else;
  const char *local_size; // number of ranks on this machine
  const char *machines;   // or number of machines
  bool size_alone;        // also set in processes that are not ranks
  bool numbers_itself;    // may run inside another launcher's ranks
} launcher_t;

// Highest authority first.
static const launcher_t launchers[] = {
    {.origin = "SUNDOG_RANK/SUNDOG_SIZE",
     .who = "sundog run",
     .rank = "SUNDOG_RANK",
     .size = "SUNDOG_SIZE",
     .local_rank = "SUNDOG_LOCAL_RANK",
     .numbers_itself = true},
    {.origin = "RANK/WORLD_SIZE",
     .who = "torchrun",
     .rank = "RANK",
     .size = "WORLD_SIZE",
     .local_rank = "LOCAL_RANK",
     .local_size = "LOCAL_WORLD_SIZE",
     .numbers_itself = true},
    {.origin = "OMPI_COMM_WORLD_RANK/SIZE",
     .who = "Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .size = "OMPI_COMM_WORLD_SIZE",
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE"},
    // PALS can start ranks with or without PMI; with PMI, the size is PMI's.
    {.origin = "PMI_RANK/PMI_SIZE",
     .who = "PMI",
     .rank = "PMI_RANK",
     .size = "PMI_SIZE",
     .local_rank = "MPI_LOCALRANKID",
     .local_rank_else = "PMI_LOCAL_RANK",
     .local_size = "MPI_LOCALNRANKS",
     .size_alone = true},
    {.origin = "PALS_RANKID/PMI_SIZE",
     .who = "PALS",
     .rank = "PALS_RANKID",
     .size = "PMI_SIZE",
     .size_else = "PALS_SIZE",
     .local_rank = "PALS_LOCAL_RANKID",
     .local_size = "PALS_LOCAL_SIZE",
     .size_alone = true},
    {.origin = "FLUX_TASK_RANK/FLUX_JOB_SIZE",
     .who = "Flux",
     .rank = "FLUX_TASK_RANK",
     .size = "FLUX_JOB_SIZE",
     .local_rank = "FLUX_TASK_LOCAL_ID",
     .machines = "FLUX_JOB_NNODES",
     .size_alone = true},
    // PMIx gives the size only through a function; under Slurm a variable has
    // it.
    {.origin = "PMIX_RANK/SLURM_NTASKS",
     .who = "PMIx under Slurm",
     .rank = "PMIX_RANK",
     .size = "SLURM_STEP_NUM_TASKS",
     .size_else = "SLURM_NTASKS",
     .local_rank = "SLURM_LOCALID",
     .machines = "SLURM_STEP_NUM_NODES",
     .size_alone = true},
    {.origin = "SLURM_PROCID/SLURM_NTASKS",
     .who = "Slurm",
     .rank = "SLURM_PROCID",
     .size = "SLURM_STEP_NUM_TASKS",
     .size_else = "SLURM_NTASKS",
     .local_rank = "SLURM_LOCALID",
     .machines = "SLURM_STEP_NUM_NODES",
     .size_alone = true},
};
enum { LAUNCHERS = sizeof launchers / sizeof launchers[0] };

// The environment at the time this library was loaded.
static struct {
  bool loaded;
  int count;
  struct {
    const char *name;
    char value[1024];
  } of[64];
} kept;

static const char *kept_value(const char *name) {
  for (int i = 0; i < kept.count; i++)
    if (strcmp(kept.of[i].name, name) == 0)
      return kept.of[i].value;
  return NULL;
}

static void value_keep(const char *name) {
  const char *value = name && !kept_value(name) ? getenv(name) : NULL;
  if (!value || kept.count == sizeof kept.of / sizeof kept.of[0])
    return;
  kept.of[kept.count].name = name;
  snprintf(kept.of[kept.count].value, sizeof kept.of[0].value, "%s", value);
  kept.count++;
}

void sdg_launcher_load(void) {
  kept.count = 0;
  for (int i = 0; i < LAUNCHERS; i++) {
    const launcher_t *from = &launchers[i];
    const char *const names[] = {from->rank,
                                 from->size,
                                 from->size_else,
                                 from->local_rank,
                                 from->local_rank_else,
                                 from->local_size,
                                 from->machines};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
      value_keep(names[k]);
  }
  for (int i = 0; i < SDG_LAUNCH_NAMES; i++)
    value_keep(sdg_launch_names[i].name);
  value_keep("XDG_RUNTIME_DIR");
  kept.loaded = true;
}

const char *sdg_launcher_value(const char *name) {
  const char *value = NULL;
  if (name)
    value = kept.loaded ? kept_value(name) : getenv(name);
  return value && *value ? value : NULL;
}

static sdg_status_t number_of(const char *name, const char *text,
                              int *out_number) {
  char *end;
  errno = 0;
  long number = strtol(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end || errno || number > INT_MAX)
    return sdg_fail(SDG_E_RANK_UNKNOWN, "%s=%.80s is not a number from 0 up",
                    name, text);
  *out_number = (int)number;
  return SDG_OK;
}

// Returns the name of the variable that holds the size, set or not.
static const char *size_of(const launcher_t *from) {
  return !sdg_launcher_value(from->size) && sdg_launcher_value(from->size_else)
             ? from->size_else
             : from->size;
}

// Returns the row of the launcher that gives, or should give, this process's
// rank; NULL if none does.
static const launcher_t *launcher_find(void) {
  for (int i = 0; i < LAUNCHERS; i++)
    if (sdg_launcher_value(launchers[i].rank) ||
        (sdg_launcher_value(launchers[i].size) && !launchers[i].size_alone))
      return &launchers[i];
  return NULL;
}

bool sdg_launcher_is_users(void) {
  return launcher_find() == &launchers[0];
}

static const char *local_rank_of(const launcher_t *from) {
  return sdg_launcher_value(from->local_rank) ? from->local_rank
                                              : from->local_rank_else;
}

static const char *local_size_of(const launcher_t *from) {
  return from->local_size;
}

static const char *machines_of(const launcher_t *from) {
  return from->machines;
}

// Returns the name of a variable that is set, either this launcher's or one of
// a launcher with the same rank and size: Flux and PALS use PMI, which does
// not hold all they know. NULL if no such variable is set.
static const char *detail_of(const launcher_t *from, const char *rank,
                             const char *size,
                             const char *(*get)(const launcher_t *)) {
  const char *own = get(from);
  if (sdg_launcher_value(own))
    return own;
  for (int i = 0; i < LAUNCHERS; i++) {
    const char *name = get(&launchers[i]);
    const char *other_rank = sdg_launcher_value(launchers[i].rank);
    const char *other_size = sdg_launcher_value(size_of(&launchers[i]));
    if (sdg_launcher_value(name) && other_rank && other_size &&
        strcmp(other_rank, rank) == 0 && strcmp(other_size, size) == 0)
      return name;
  }
  return NULL;
}

sdg_status_t sdg_rank_detect(int *out_rank, int *out_size, int *out_local_rank,
                             const char **out_origin) {
  const launcher_t *from = launcher_find();
  if (!from) {
    *out_rank = 0;
    *out_size = 1;
    *out_local_rank = 0;
    *out_origin = NULL;
    return SDG_OK;
  }
  const char *size_name = size_of(from);
  const char *rank_text = sdg_launcher_value(from->rank),
             *size_text = sdg_launcher_value(size_name);
  if (!rank_text || !size_text)
    return sdg_fail(SDG_E_RANK_UNKNOWN, "%s=%.80s without %s%s%s",
                    rank_text ? from->rank : size_name,
                    rank_text ? rank_text : size_text,
                    rank_text ? from->size : from->rank,
                    rank_text && from->size_else ? " or " : "",
                    rank_text && from->size_else ? from->size_else : "");
  int rank, size, local_rank;
  SDG_TRY(number_of(from->rank, rank_text, &rank));
  SDG_TRY(number_of(size_name, size_text, &size));
  if (rank >= size)
    return sdg_fail(SDG_E_RANK_UNKNOWN, "%s=%d is not below %s=%d", from->rank,
                    rank, size_name, size);
  const char *local_name = detail_of(from, rank_text, size_text, local_rank_of);
  local_rank = rank;
  if (local_name)
    SDG_TRY(number_of(local_name, sdg_launcher_value(local_name), &local_rank));
  if (local_rank >= size)
    return sdg_fail(SDG_E_RANK_UNKNOWN, "%s=%d is not below %s=%d", local_name,
                    local_rank, size_name, size);
  *out_rank = rank;
  *out_size = size;
  *out_local_rank = local_rank;
  *out_origin = from->origin;
  return SDG_OK;
}

void sdg_launch_alone(char *out, size_t bytes) {
  size_t used = (size_t)snprintf(out, bytes, "alone");
  for (int i = 0; i < LAUNCHERS; i++) {
    const launcher_t *from = &launchers[i];
    const char *rank = sdg_launcher_value(from->rank);
    const char *size = sdg_launcher_value(size_of(from));
    if (rank && size && strcmp(size, "1") != 0 && used < bytes)
      used +=
          (size_t)snprintf(out + used, bytes - used, ", %s=%.20s of %s=%.20s",
                           from->rank, rank, size_of(from), size);
  }
}

// Reports a process that is one rank alone although a launcher started
// several: numbers left over in a shell would make each of them rank 0 of 1.
static sdg_status_t alone_check(int size, const char *origin) {
  char seen[256];
  sdg_launch_alone(seen, sizeof seen);
  if (size > 1 || strcmp(seen, "alone") == 0 ||
      strcmp(seen, sdg_options_get()->launch) == 0)
    return SDG_OK;
  return sdg_fail(
      SDG_E_RANK_UNKNOWN,
      "%s says that this is the only rank, but the environment has %s", origin,
      seen + strlen("alone, "));
}

sdg_status_t sdg_rank_require(int *out_rank, int *out_size, int *out_local_rank,
                              const char **out_origin) {
  SDG_TRY(sdg_rank_detect(out_rank, out_size, out_local_rank, out_origin));
  if (*out_origin)
    return alone_check(*out_size, *out_origin);
  char looked[1024];
  size_t used = 0;
  looked[0] = '\0';
  for (int i = 0; i < LAUNCHERS && used < sizeof looked; i++) {
    const launcher_t *from = &launchers[i];
    int n = snprintf(looked + used, sizeof looked - used,
                     "%s%s with %s%s%s (%s)", used ? ", " : "", from->rank,
                     from->size, from->size_else ? " or " : "",
                     from->size_else ? from->size_else : "", from->who);
    used += n < 0 ? 0 : (size_t)n;
  }
  return sdg_fail(SDG_E_RANK_UNSAID, "none of these is set: %s", looked);
}

bool sdg_launcher_has_pmix(void) {
  const launcher_t *from = launcher_find();
  const char *rank_text = from ? sdg_launcher_value(from->rank) : NULL;
  const char *client = sdg_launcher_value("PMIX_RANK");
  return rank_text && client && !from->numbers_itself &&
         sdg_launcher_value("PMIX_NAMESPACE") && strcmp(rank_text, client) == 0;
}

int sdg_launcher_pmi(void) {
  const launcher_t *from = launcher_find();
  const char *rank = sdg_launcher_value("PMI_RANK");
  const char *flux = sdg_launcher_value("FLUX_TASK_RANK");
  const char *text = sdg_launcher_value("PMI_FD");
  struct stat found;
  char *end;
  if (!from || !rank || !text || strcmp(from->rank, "PMI_RANK") != 0 ||
      !(sdg_launcher_value("MPI_LOCALNRANKS") ||
        (flux && strcmp(flux, rank) == 0)))
    return -1;
  long fd = strtol(text, &end, 10);
  return *end == '\0' && fd > STDERR_FILENO && fd <= INT_MAX &&
                 fstat((int)fd, &found) == 0 && S_ISSOCK(found.st_mode)
             ? (int)fd
             : -1;
}

// Whether the process is this rank, or a script of it. A launcher may have such
// numbers, too, in a container whose environment numbers the machines, but no
// rank on its machine; and a script may have changed that.
static bool is_of_rank(int32_t pid, const launcher_t *from, const char *rank,
                       const char *size) {
  const char *local = from->local_rank;
  if (local && !sdg_launcher_value(local))
    local = NULL;
  return sdg_process_began_with(pid, from->rank, rank) &&
         sdg_process_began_with(pid, size_of(from), size) &&
         (!local || sdg_process_began_with(pid, local, NULL));
}

int32_t sdg_launcher_process(void) {
  const launcher_t *from = launcher_find();
  const char *rank = from ? sdg_launcher_value(from->rank) : NULL;
  const char *size = from ? sdg_launcher_value(size_of(from)) : NULL;
  int fd = sdg_launcher_pmi();
  struct ucred peer = {.pid = 0};
  socklen_t bytes = sizeof peer;
  // hydra gives its jobs no name, and a job within a rank may have the same
  // numbers.
  if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
      peer.pid > 0)
    return (int32_t)peer.pid;
  int32_t pid = (int32_t)getppid();
  while (rank && size && pid > 1 && is_of_rank(pid, from, rank, size))
    pid = sdg_process_parent(pid);
  return pid;
}

bool sdg_launcher_lacks_size(void) {
  const launcher_t *from = launcher_find();
  return from && sdg_launcher_value(from->rank) &&
         !sdg_launcher_value(size_of(from));
}

// Where the ranks are, and the variable that says so, with its value.
typedef struct spread {
  sdg_spread_t spread;
  const char *name;
  int count; // of machines, or of ranks on this one
  bool machines;
} spread_t;

static spread_t spread_find(int size) {
  spread_t found = {SDG_SPREAD_UNKNOWN, NULL, 0, false};
  const launcher_t *from = launcher_find();
  const char *rank_text = from ? sdg_launcher_value(from->rank) : NULL;
  const char *size_text = from ? sdg_launcher_value(size_of(from)) : NULL;
  if (!rank_text || !size_text)
    return found;
  const char *here = detail_of(from, rank_text, size_text, local_size_of);
  const char *machines = detail_of(from, rank_text, size_text, machines_of);
  const char *value = sdg_launcher_value(here);
  if (value && number_of(here, value, &found.count) == SDG_OK) {
    found.name = here;
    found.spread = found.count < size ? SDG_SPREAD_SEVERAL : SDG_SPREAD_ONE;
  }
  value = sdg_launcher_value(machines);
  if (found.spread != SDG_SPREAD_SEVERAL && value &&
      number_of(machines, value, &found.count) == SDG_OK) {
    found.name = machines;
    found.machines = true;
    found.spread = found.count > 1 ? SDG_SPREAD_SEVERAL : SDG_SPREAD_ONE;
  }
  return found;
}

sdg_spread_t sdg_launcher_spread(int size, const char **out_name) {
  spread_t found = spread_find(size);
  *out_name = found.name;
  return found.spread;
}

sdg_status_t sdg_rendezvous_check(const char *rendezvous, int size) {
  static const char remedy[] =
      "start them by a launcher with PMIx or PMI (srun --mpi=pmix, mpirun of "
      "Open MPI, MPICH or Intel MPI), or set "
      "SUNDOG_RENDEZVOUS=tcp://HOST:PORT with the host of rank "
      "0, and SUNDOG_SECRET, for all ranks";
  spread_t found = {SDG_SPREAD_UNKNOWN, NULL, 0, false};
  if (size > 1 && !*rendezvous)
    found = spread_find(size);
  if (found.spread != SDG_SPREAD_SEVERAL)
    return SDG_OK;
  if (found.machines)
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "the %d ranks are on %d machines (%s): %s", size,
                    found.count, found.name, remedy);
  return sdg_fail(SDG_E_RENDEZVOUS,
                  "%d of the %d ranks are on this machine (%s): %s",
                  found.count, size, found.name, remedy);
}
