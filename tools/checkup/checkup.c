// SPDX-License-Identifier: Apache-2.0
// Checks of `sundog doctor` that need no NVIDIA library: the machine, the
// ranks, the program.
#include "tools/checkup/checkup.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/options.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/launcher.h"
#include "src/bootstrap/rendezvous.h"
#include "src/bootstrap/secret.h"
#include "tools/launch/folder.h"
#include "tools/meeting/client.h"
#include "tools/meeting/meeting.h"
#include "tools/program/program.h"

void checkup_say(checkup_t *checkup, checkup_grade_t grade, const char *topic,
                 const char *format, ...) {
  static const char *const words[] = {"ok", "warn", "fail"};
  va_list args;
  va_start(args, format);
  printf("%-5s %s: ", words[grade], topic);
  vprintf(format, args);
  printf("\n");
  va_end(args);
  checkup->count[grade]++;
}

void checkup_remedy(const char *text) {
  printf("      -> %s\n", text);
}

// Reads the number in a file of /proc. Returns `fallback` if it cannot.
static long file_number(const char *path, long fallback) {
  FILE *file = fopen(path, "re");
  long number = fallback;
  if (file && fscanf(file, "%ld", &number) != 1)
    number = fallback;
  if (file)
    fclose(file);
  return number;
}

static void ptrace_check(checkup_t *checkup, int gpu) {
  long scope = file_number("/proc/sys/kernel/yama/ptrace_scope", 0);
  if (scope < 2 || !gpu) {
    checkup_say(checkup, CHECKUP_OK, "ptrace",
                "scope %ld; sundog itself traces no process", scope);
    return;
  }
  checkup_say(checkup, CHECKUP_WARN, "ptrace",
              "kernel.yama.ptrace_scope is %ld: GPUs of two processes may be "
              "unable to share memory directly",
              scope);
  checkup_remedy("sysctl kernel.yama.ptrace_scope=1 if NCCL_DEBUG=WARN shows "
                 "a failure to import memory");
}

static void shm_check(checkup_t *checkup, int gpu) {
  const unsigned long long wanted = 512ULL << 20;
  struct statvfs info;
  if (statvfs("/dev/shm", &info) != 0 || access("/dev/shm", W_OK) != 0) {
    checkup_say(checkup, gpu ? CHECKUP_FAIL : CHECKUP_OK, "shared memory",
                "/dev/shm is missing or not writable%s",
                gpu ? "" : "; the host device does not need it");
    if (gpu)
      checkup_remedy("mount a tmpfs there; NCCL needs it between processes "
                     "without peer access");
    return;
  }
  unsigned long long size = (unsigned long long)info.f_blocks * info.f_frsize;
  unsigned long long left = (unsigned long long)info.f_bavail * info.f_frsize;
  int little = gpu && left < wanted;
  checkup_say(checkup, little ? CHECKUP_WARN : CHECKUP_OK, "shared memory",
              "/dev/shm has %llu MiB free of %llu", left >> 20, size >> 20);
  if (little)
    checkup_remedy("NCCL may run out of it: give containers --shm-size=1g, or "
                   "--ipc=host");
}

static void limit_text(rlim_t limit, char *out, size_t bytes) {
  if (limit == RLIM_INFINITY)
    snprintf(out, bytes, "unlimited");
  else
    snprintf(out, bytes, "%llu", (unsigned long long)limit);
}

static void limits_check(checkup_t *checkup, int gpu) {
  struct rlimit memlock, files;
  char text[32];
  if (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0) {
    int fabric = gpu && access("/dev/infiniband", F_OK) == 0 &&
                 memlock.rlim_cur != RLIM_INFINITY;
    limit_text(memlock.rlim_cur, text, sizeof text);
    checkup_say(checkup, fabric ? CHECKUP_WARN : CHECKUP_OK, "locked memory",
                "%s bytes per process (ulimit -l)", text);
    if (fabric)
      checkup_remedy("ulimit -l unlimited: InfiniBand locks its buffers");
  }
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    int few = files.rlim_cur < 1024;
    limit_text(files.rlim_cur, text, sizeof text);
    checkup_say(checkup, few ? CHECKUP_WARN : CHECKUP_OK, "open files",
                "%s per process (ulimit -n)", text);
    if (few)
      checkup_remedy("ulimit -n 4096: each rank holds connections to others");
  }
}

void checkup_machine(checkup_t *checkup, int gpu) {
  ptrace_check(checkup, gpu);
  shm_check(checkup, gpu);
  limits_check(checkup, gpu);
}

// Returns false if the launcher is at fault, so that nothing is known of ranks.
static bool launcher_check(checkup_t *checkup) {
  int rank, size, local_rank;
  const char *origin;
  if (meeting_size_is_hidden())
    checkup_say(checkup, CHECKUP_OK, "launcher",
                "rank %s of a number that PMIx knows",
                sdg_launcher_value("PMIX_RANK"));
  else if (sdg_rank_detect(&rank, &size, &local_rank, &origin) != SDG_OK) {
    checkup_say(checkup, CHECKUP_FAIL, "launcher", "%s", sdg_last_error());
    checkup_remedy("unset the variables that were left over, or start through "
                   "the launcher");
    return false;
  } else if (origin)
    checkup_say(checkup, CHECKUP_OK, "launcher",
                "rank %d of %d, %d on this machine, from %s", rank, size,
                local_rank, origin);
  else
    checkup_say(checkup, CHECKUP_OK, "launcher",
                "none found; `sundog run` starts the ranks itself");
  return true;
}

static sdg_status_t given_check(checkup_t *checkup) {
  const sdg_options_t *options = sdg_options_get();
  const char *given = options->rendezvous, *path;
  sdg_meeting_point_t point;
  sdg_secret_t secret;
  if (sdg_rendezvous_is_tcp(given)) {
    SDG_TRY(sdg_address_find(given, &point));
    SDG_TRY(sdg_secret_find(options->secret, options->secret_file, &secret));
  } else {
    SDG_TRY(sdg_rendezvous_path(given, &path));
  }
  checkup_say(checkup, CHECKUP_OK, "rendezvous",
              "%s, as SUNDOG_RENDEZVOUS says", given);
  return SDG_OK;
}

// Says in which way the ranks would meet.
static sdg_status_t place_check(checkup_t *checkup, meeting_way_t way,
                                const char *pmix) {
  char place[PATH_MAX];
  client_t client;
  if (*sdg_options_get()->rendezvous)
    return given_check(checkup);
  if (way == MEETING_PMI) {
    checkup_say(checkup, CHECKUP_OK, "rendezvous",
                "by the launcher's PMI (PMI_FD=%s); its server is not asked",
                sdg_launcher_value("PMI_FD"));
    return SDG_OK;
  }
  if (way == MEETING_PMIX) {
    if (!client_library(pmix, &client))
      return sdg_fail(SDG_E_PMIX, "%s", client.text);
    checkup_say(checkup, CHECKUP_OK, "rendezvous",
                "by PMIx %s (%s), job %s; its server is not asked",
                client.version, client.library,
                sdg_launcher_value("PMIX_NAMESPACE"));
    return SDG_OK;
  }
  SDG_TRY(sdg_rendezvous_default(place, sizeof place));
  checkup_say(checkup, CHECKUP_OK, "rendezvous",
              way == MEETING_ALONE ? "none for one rank; %s for ranks on this "
                                     "machine"
                                   : "%s, on this machine",
              place);
  return SDG_OK;
}

static const char *place_remedy(sdg_status_t status) {
  int rank, size, local_rank;
  const char *name;
  if (status == SDG_E_PMIX)
    return "install libpmix2, or put libpmix.so.2 into LD_LIBRARY_PATH";
  if (status == SDG_E_SECRET)
    return "export SUNDOG_SECRET=$(openssl rand -hex 32), once for all ranks";
  // The message has the remedy.
  if (sdg_rank_detect(&rank, &size, &local_rank, &name) == SDG_OK &&
      sdg_launcher_spread(size, &name) == SDG_SPREAD_SEVERAL)
    return NULL;
  return "set SUNDOG_RENDEZVOUS=file:/PATH, in a folder of your own with mode "
         "0700, if all ranks are on one machine";
}

void checkup_ranks(checkup_t *checkup, const char *pmix) {
  char folder[PATH_MAX];
  meeting_way_t way = MEETING_ALONE;
  sdg_status_t status =
      launcher_check(checkup) ? meeting_way_find(&way) : SDG_OK;
  if (status == SDG_OK)
    status = place_check(checkup, way, pmix);
  if (status != SDG_OK) {
    checkup_say(checkup, CHECKUP_FAIL, "rendezvous", "%s", sdg_last_error());
    const char *remedy = place_remedy(status);
    if (remedy)
      checkup_remedy(remedy);
  }
  if (folder_create(folder, sizeof folder) == SDG_OK) {
    folder_remove(folder);
    checkup_say(checkup, CHECKUP_OK, "folder of a run", "%s", folder);
  } else {
    checkup_say(checkup, CHECKUP_FAIL, "folder of a run", "%s",
                sdg_last_error());
    checkup_remedy("set TMPDIR to a writable folder with a short name");
  }
}

void checkup_program(checkup_t *checkup, const char *name) {
  program_t program;
  int before = checkup->count[CHECKUP_FAIL];
  if (program_examine(name, &program) != SDG_OK) {
    checkup_say(checkup, CHECKUP_FAIL, "program", "%s", sdg_last_error());
    return;
  }
  if (program.is_privileged) {
    checkup_say(checkup, CHECKUP_FAIL, "program",
                "%s is setuid, setgid or has capabilities: nothing is "
                "preloaded into it",
                program.path);
    checkup_remedy("run a copy of it without these: cp makes one");
  }
  if (program.is_elf && program.is_static) {
    checkup_say(checkup, CHECKUP_FAIL, "program",
                "%s is linked statically: nothing is preloaded into it",
                program.path);
    checkup_remedy("link it dynamically");
  }
  if (program.static_cudnn) {
    checkup_say(checkup, CHECKUP_FAIL, "program",
                "%s has cuDNN linked in: its calls cannot be seen",
                program.path);
    checkup_remedy("link it with -lcudnn instead of libcudnn_*_static.a");
  }
  if (program.static_cudart) {
    checkup_say(checkup, CHECKUP_FAIL, "program",
                "%s has the CUDA runtime linked in, nvcc's default: sundog "
                "refuses its calls (SDG-733)",
                program.path);
    checkup_remedy("compile it with nvcc --cudart shared");
  }
  if (checkup->count[CHECKUP_FAIL] > before)
    return;
  if (*program.interpreter)
    checkup_say(checkup, CHECKUP_OK, "program", "%s is a script of %s",
                program.path, program.interpreter);
  else if (program_needs(&program, "libcudnn"))
    checkup_say(checkup, CHECKUP_OK, "program", "%s needs %s", program.path,
                program_needs(&program, "libcudnn"));
  else
    checkup_say(checkup, CHECKUP_OK, "program",
                "%s does not name cuDNN itself%s", program.path,
                program.opens ? "; it loads libraries with dlopen" : "");
}
