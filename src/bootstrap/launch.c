// SPDX-License-Identifier: Apache-2.0
// Identifies the launch, and derives paths from its name.
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/hash.h"
#include "src/base/options.h"
#include "src/bootstrap/launcher.h"
#include "src/bootstrap/process.h"
#include "src/bootstrap/rendezvous.h"

// Variables that identify a launch: equal in all its ranks, different between
// launches.
const sdg_launch_name_t sdg_launch_names[SDG_LAUNCH_NAMES] = {
    {"SLURM_JOB_ID", false},
    {"SLURM_STEP_ID", true},
    {"OMPI_MCA_ess_base_jobid", true},
    {"PMIX_NAMESPACE", true},
    {"FLUX_JOB_ID", true},
    {"PALS_APID", true},
    {"TORCHELASTIC_RUN_ID", true},
    {"TORCHELASTIC_RESTART_COUNT", false},
};

static uint64_t hash_text(uint64_t hash, const char *text) {
  return sdg_hash_word(sdg_hash_text(hash, text), 0xff); // marks its end
}

bool sdg_launch_differs(char *other, char *out_own, size_t own_bytes) {
  other[SDG_LAUNCH_BYTES - 1] = '\0';
  sdg_launch_name(out_own, own_bytes);
  return *other && *out_own && strcmp(other, out_own) != 0;
}

void sdg_launch_name(char *out, size_t bytes) {
  const char *given = sdg_options_get()->launch;
  if (*given) {
    snprintf(out, bytes, "%s", given);
    return;
  }
  size_t used = 0;
  bool alone = false;
  uint64_t hash = SDG_HASH_SEED;
  out[0] = '\0';
  for (int i = 0; i < SDG_LAUNCH_NAMES; i++) {
    const char *value = sdg_launcher_value(sdg_launch_names[i].name);
    // torchrun's default for a run without a name.
    if (!value || strcmp(value, "none") == 0)
      continue;
    alone = alone || sdg_launch_names[i].alone;
    hash = hash_text(hash_text(hash, sdg_launch_names[i].name), value);
    if (used < bytes)
      used +=
          (size_t)snprintf(out + used, bytes - used, "%s%s=%.80s",
                           used ? " " : "", sdg_launch_names[i].name, value);
  }
  // If the user numbered the ranks, they may come from several launches.
  if (!alone || sdg_launcher_is_users())
    out[0] = '\0';
  else if (used >= bytes) // if the name was cut, a hash keeps it distinct
    snprintf(out + bytes - 18, 18, "#%016llx", (unsigned long long)hash);
}

// Hashes the launcher's process and its start time, because process numbers are
// reused.
static uint64_t hash_process(uint64_t hash) {
  char text[1024] = "";
  int process = (int)sdg_launcher_process();
  snprintf(text, sizeof text, "/proc/%d/stat", process);
  FILE *stat_file = fopen(text, "re");
  size_t n = 0;
  if (stat_file) {
    n = fread(text, 1, sizeof text - 1, stat_file);
    fclose(stat_file);
  }
  text[n] = '\0';
  // Field 22. The second field is the program's name in parentheses, which may
  // contain spaces and parentheses.
  char *field = strrchr(text, ')');
  for (int i = 2; field && i < 22; i++)
    field = strchr(field + 1, ' ');
  if (field && field[1])
    field[1 + strcspn(field + 1, " ")] = '\0';
  hash = hash_text(hash, field ? field : "");
  snprintf(text, sizeof text, "%d", process);
  return hash_text(hash, text);
}

// Equal in all ranks of one launch; different between launches if a variable
// identifies them (*out_alone).
static uint64_t ids_hash(int *out_alone) {
  uint64_t hash = SDG_HASH_SEED;
  int alone = 0;
  for (int i = 0; i < SDG_LAUNCH_NAMES; i++) {
    const char *value = sdg_launcher_value(sdg_launch_names[i].name);
    hash = hash_text(hash, value ? value : "");
    // torchrun's default for a run without a name.
    if (value && sdg_launch_names[i].alone && strcmp(value, "none") != 0)
      alone = 1;
  }
  *out_alone = alone;
  return hash;
}

// Equal in all ranks of one launch, different between launches.
static uint64_t launch_hash(void) {
  int alone;
  uint64_t hash = ids_hash(&alone);
  return alone ? hash : hash_process(hash);
}

// Returns NULL if `folder` is a directory that only this user can access;
// otherwise the reason.
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

// Writes $XDG_RUNTIME_DIR/sundog or /tmp/sundog-UID.
static sdg_status_t folder_name(char *out, size_t bytes) {
  const char *runtime = sdg_launcher_value("XDG_RUNTIME_DIR");
  int n;
  if (runtime && runtime[0] == '/' && strlen(runtime) < PATH_MAX / 2 &&
      !folder_fault(runtime) && access(runtime, W_OK) == 0)
    n = snprintf(out, bytes, "%s/sundog", runtime);
  else
    n = snprintf(out, bytes, "/tmp/sundog-%u", (unsigned)geteuid());
  if (n < 0 || (size_t)n >= bytes)
    return sdg_fail(SDG_E_RENDEZVOUS, "the default folder's name is too long");
  return SDG_OK;
}

// Writes the path of a persistent folder that only this user can access,
// created if needed. SDG_E_RENDEZVOUS if it belongs to another user.
static sdg_status_t private_folder(char *out, size_t bytes) {
  SDG_TRY(folder_name(out, bytes));
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
  SDG_TRY(private_folder(folder, sizeof folder));
  // The launcher is not hashed: a child of a rank must find the lock of its
  // parent.
  uint64_t hash = hash_text(ids_hash(&alone), rendezvous);
  hash = sdg_hash_bytes(hash, secret->key, sizeof secret->key);
  int n =
      snprintf(out, bytes, "%s/tcp-%016llx", folder, (unsigned long long)hash);
  if (n < 0 || (size_t)n >= bytes)
    return sdg_fail(SDG_E_INTERNAL, "%zu bytes for a lock", bytes);
  return SDG_OK;
}

sdg_status_t sdg_rendezvous_default(char *out, size_t bytes) {
  char folder[PATH_MAX];
  SDG_TRY(private_folder(folder, sizeof folder));
  int n = snprintf(out, bytes, "file:%s/job-%016llx", folder,
                   (unsigned long long)launch_hash());
  if (n < 0 || (size_t)n >= bytes)
    return sdg_fail(SDG_E_INTERNAL, "%zu bytes for a rendezvous", bytes);
  return SDG_OK;
}

void sdg_rendezvous_sweep(void) {
  static const char end[] = ".lock";
  char folder[PATH_MAX], path[PATH_MAX];
  if (folder_name(folder, sizeof folder) != SDG_OK || folder_fault(folder))
    return;
  DIR *all = opendir(folder);
  for (struct dirent *entry; all && (entry = readdir(all));) {
    size_t length = strlen(entry->d_name);
    if (length < sizeof end ||
        strcmp(entry->d_name + length - strlen(end), end) != 0)
      continue;
    int n = snprintf(path, sizeof path, "%s/%.*s", folder,
                     (int)(length - strlen(end)), entry->d_name);
    if (n > 0 && (size_t)n < sizeof path)
      (void)sdg_rank_lock_sweep(path);
  }
  if (all)
    closedir(all);
}
