// SPDX-License-Identifier: Apache-2.0
// What launchers say in the environment: rank, size, and what names the job.
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/rendezvous.h"

typedef struct launcher {
  const char *origin;
  const char *rank, *size, *size_else, *local_rank;
  const char *local_size; // ranks of this machine
  const char *machines;   // or that
} launcher_t;

// In order of authority.
static const launcher_t launchers[] = {
    {"SUNDOG_RANK/SUNDOG_SIZE", "SUNDOG_RANK", "SUNDOG_SIZE", NULL,
     "SUNDOG_LOCAL_RANK", NULL, NULL},
    {"RANK/WORLD_SIZE", "RANK", "WORLD_SIZE", NULL, "LOCAL_RANK",
     "LOCAL_WORLD_SIZE", NULL},
    {"OMPI_COMM_WORLD_RANK/SIZE", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE", NULL, "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
    {"PMI_RANK/PMI_SIZE", "PMI_RANK", "PMI_SIZE", NULL, "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS", NULL},
    // PMIx says the size by a call only; under Slurm the variable has it.
    {"PMIX_RANK/SLURM_NTASKS", "PMIX_RANK", "SLURM_STEP_NUM_TASKS",
     "SLURM_NTASKS", "SLURM_LOCALID", NULL, "SLURM_STEP_NUM_NODES"},
    {"SLURM_PROCID/SLURM_NTASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
     "SLURM_NTASKS", "SLURM_LOCALID", NULL, "SLURM_STEP_NUM_NODES"},
};

static const char *value_of(const char *name) {
  const char *value = name ? getenv(name) : NULL;
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

sdg_status_t sdg_rank_detect(int *out_rank, int *out_size, int *out_local_rank,
                             const char **out_origin) {
  for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
    const launcher_t *from = &launchers[i];
    const char *size_name = from->size;
    const char *rank_text = value_of(from->rank);
    const char *size_text = value_of(size_name);
    if (!size_text && from->size_else) {
      size_name = from->size_else;
      size_text = value_of(size_name);
    }
    // Slurm says a size in places that are not a rank, e.g. salloc's shell.
    if (!rank_text && (!size_text || from->size_else))
      continue;
    if (!rank_text || !size_text)
      return sdg_fail(SDG_E_RANK_UNKNOWN, "%s=%.80s without %s",
                      rank_text ? from->rank : size_name,
                      rank_text ? rank_text : size_text,
                      rank_text ? size_name : from->rank);
    int rank, size, local_rank;
    SDG_TRY(number_of(from->rank, rank_text, &rank));
    SDG_TRY(number_of(size_name, size_text, &size));
    if (rank >= size)
      return sdg_fail(SDG_E_RANK_UNKNOWN, "%s=%d is not below %s=%d",
                      from->rank, rank, size_name, size);
    const char *local_text = value_of(from->local_rank);
    local_rank = rank;
    if (local_text)
      SDG_TRY(number_of(from->local_rank, local_text, &local_rank));
    if (local_rank >= size)
      return sdg_fail(SDG_E_RANK_UNKNOWN, "%s=%d is not below %s=%d",
                      from->local_rank, local_rank, size_name, size);
    *out_rank = rank;
    *out_size = size;
    *out_local_rank = local_rank;
    *out_origin = from->origin;
    return SDG_OK;
  }
  *out_rank = 0;
  *out_size = 1;
  *out_local_rank = 0;
  *out_origin = NULL;
  return SDG_OK;
}

// The row that says this process's rank; NULL: none does.
static const launcher_t *launcher_find(void) {
  for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++)
    if (value_of(launchers[i].rank))
      return &launchers[i];
  return NULL;
}

sdg_status_t sdg_rendezvous_check(const char *rendezvous, int size) {
  const launcher_t *from = launcher_find();
  const char *here = from ? value_of(from->local_size) : NULL;
  const char *machines = from ? value_of(from->machines) : NULL;
  if (size < 2 || *rendezvous)
    return SDG_OK;
  int count = 0;
  if (here && number_of(from->local_size, here, &count) == SDG_OK &&
      count < size)
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "%d of the %d ranks are on this machine (%s): set "
                    "SUNDOG_RENDEZVOUS=tcp://HOST:PORT with the host of rank "
                    "0, and SUNDOG_SECRET, for all ranks",
                    count, size, from->local_size);
  if (machines && number_of(from->machines, machines, &count) == SDG_OK &&
      count > 1)
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "the %d ranks are on %d machines (%s): set "
                    "SUNDOG_RENDEZVOUS=tcp://HOST:PORT with the host of rank "
                    "0, and SUNDOG_SECRET, for all ranks",
                    size, count, from->machines);
  return SDG_OK;
}

static uint64_t hash_text(uint64_t hash, const char *text) {
  for (; *text; text++) // FNV-1a
    hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return (hash ^ 0xff) * UINT64_C(1099511628211); // where a text ends
}

// The parent and when it started: numbers of processes come again.
static uint64_t hash_parent(uint64_t hash) {
  char text[1024] = "";
  int parent = (int)getppid();
  snprintf(text, sizeof text, "/proc/%d/stat", parent);
  FILE *stat_file = fopen(text, "re");
  size_t n = 0;
  if (stat_file) {
    n = fread(text, 1, sizeof text - 1, stat_file);
    fclose(stat_file);
  }
  text[n] = '\0';
  // Field 22; the second one is the name in parentheses, which may itself
  // have spaces and parentheses.
  char *field = strrchr(text, ')');
  for (int i = 2; field && i < 22; i++)
    field = strchr(field + 1, ' ');
  if (field && field[1])
    field[1 + strcspn(field + 1, " ")] = '\0';
  hash = hash_text(hash, field ? field : "");
  snprintf(text, sizeof text, "%d", parent);
  return hash_text(hash, text);
}

// Equal in all ranks of one launch; different between launches, if they have
// names (*out_alone).
static uint64_t ids_hash(int *out_alone) {
  static const struct {
    const char *name;
    int alone; // names a launch without the parent process
  } ids[] = {
      {"SLURM_JOB_ID", 0},
      {"SLURM_STEP_ID", 1},
      {"OMPI_MCA_ess_base_jobid", 1},
      {"PMIX_NAMESPACE", 1},
      {"TORCHELASTIC_RUN_ID", 1},
      {"TORCHELASTIC_RESTART_COUNT", 0},
  };
  uint64_t hash = UINT64_C(14695981039346656037);
  int alone = 0;
  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
    const char *value = value_of(ids[i].name);
    hash = hash_text(hash, value ? value : "");
    // torchrun's default for a run that was given no name.
    if (value && ids[i].alone && strcmp(value, "none") != 0)
      alone = 1;
  }
  *out_alone = alone;
  return hash;
}

// Equal in all ranks of one launch, different between launches.
static uint64_t launch_hash(void) {
  int alone;
  uint64_t hash = ids_hash(&alone);
  return alone ? hash : hash_parent(hash);
}

// 0 when `folder` is a directory of this user alone; otherwise why not.
static const char *folder_fault(const char *folder) {
  struct stat found;
  if (lstat(folder, &found) != 0)
    return strerror(errno);
  if (!S_ISDIR(found.st_mode))
    return "not a folder";
  if (found.st_uid != geteuid())
    return "another user's";
  return found.st_mode & 077 ? "open to other users (not mode 0700)" : NULL;
}

sdg_status_t sdg_private_folder(char *out, size_t bytes) {
  const char *runtime = value_of("XDG_RUNTIME_DIR");
  int n;
  if (runtime && runtime[0] == '/' && strlen(runtime) < PATH_MAX / 2 &&
      !folder_fault(runtime) && access(runtime, W_OK) == 0)
    n = snprintf(out, bytes, "%s/sundog", runtime);
  else
    n = snprintf(out, bytes, "/tmp/sundog-%u", (unsigned)geteuid());
  if (n < 0 || (size_t)n >= bytes)
    return sdg_fail(SDG_E_RENDEZVOUS, "the default folder's name is too long");
  if (mkdir(out, 0700) != 0 && errno != EEXIST)
    return sdg_fail(SDG_E_RENDEZVOUS, "cannot make %s: %s", out,
                    strerror(errno));
  const char *fault = folder_fault(out);
  if (fault)
    return sdg_fail(SDG_E_RENDEZVOUS, "folder %s is %s", out, fault);
  return SDG_OK;
}

sdg_status_t sdg_rendezvous_lock(const char *rendezvous,
                                 const sdg_secret_t *secret, char *out,
                                 size_t bytes) {
  char folder[PATH_MAX];
  int alone;
  SDG_TRY(sdg_private_folder(folder, sizeof folder));
  // Not of the parent: a child of a rank finds the lock that its parent has.
  uint64_t hash = hash_text(ids_hash(&alone), rendezvous);
  for (size_t i = 0; i < sizeof secret->key; i++)
    hash = (hash ^ secret->key[i]) * UINT64_C(1099511628211);
  int n =
      snprintf(out, bytes, "%s/tcp-%016llx", folder, (unsigned long long)hash);
  if (n < 0 || (size_t)n >= bytes)
    return sdg_fail(SDG_E_INTERNAL, "%zu bytes for a lock", bytes);
  return SDG_OK;
}

sdg_status_t sdg_rendezvous_default(char *out, size_t bytes) {
  char folder[PATH_MAX];
  SDG_TRY(sdg_private_folder(folder, sizeof folder));
  int n = snprintf(out, bytes, "file:%s/job-%016llx", folder,
                   (unsigned long long)launch_hash());
  if (n < 0 || (size_t)n >= bytes)
    return sdg_fail(SDG_E_INTERNAL, "%zu bytes for a rendezvous", bytes);
  return SDG_OK;
}
