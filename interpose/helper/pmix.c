// SPDX-License-Identifier: Apache-2.0
// A program that `sundog exec` starts in a rank of a launcher that offers PMIx.
// It is a client of PMIx only while the ranks exchange rank 0's address:
//
//   sundog-pmix library        which libpmix the linker finds
//   sundog-pmix meet SECONDS   rank 0 publishes the line on its standard
//                              input; every rank prints it
//
// It prints one line per finding, fields separated by tabs:
//
//   library VERSION PATH
//   job RANK SIZE LOCAL_RANK LOCAL_SIZE MACHINES    -1: PMIx does not know
//   waiting                    the other ranks are late
//   met TEXT                   what rank 0 published
//   left                       it is no client any more
//   failed|late TEXT           the end
#include "interpose/helper/pmix_abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
  TEXT_BYTES = 1024,
  WARNING_S = 30,
  OLDEST_MAJOR = 3,
  NAMED_MAX = 4,
  LEAVE_NS = 250000000,
};
#define KEY_MEETING "sundog.meeting"
#define KEY_HERE    "sundog.here"

static struct {
  int (*init)(px_proc_t *, px_info_t *, size_t);
  int (*finalize)(const px_info_t *, size_t);
  int (*put)(uint8_t, const char *, px_value_t *);
  int (*commit)(void);
  int (*get)(const px_proc_t *, const char *, const px_info_t *, size_t,
             px_value_t **);
  int (*fence)(const px_proc_t *, size_t, const px_info_t *, size_t,
               px_done_t *, void *);
  const char *(*error)(int);
  const char *(*version)(void);
} pmix;

// libpmix calls this in PMIx_Finalize, once the server has answered. Open MPI's
// servers (4.1, with PMIx 4.2) note that a client has left only after they have
// sent the answer, in another thread. If the connection ends before that, they
// take the client for a failed one and do not expect its rank any more, and the
// program's MPI_Init waits for ever.
__attribute__((visibility("default"))) int shutdown(int fd, int how) {
  nanosleep(&(struct timespec){.tv_nsec = LEAVE_NS}, NULL);
  return (int)syscall(SYS_shutdown, fd, how);
}

static FILE *lines; // the findings; libraries may write to standard output

static void line_print(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(lines, format, args);
  va_end(args);
  fputc('\n', lines);
  fflush(lines);
}

static bool library_open(void) {
  const struct {
    const char *name;
    void **function;
  } all[] = {{"PMIx_Init", (void **)&pmix.init},
             {"PMIx_Finalize", (void **)&pmix.finalize},
             {"PMIx_Put", (void **)&pmix.put},
             {"PMIx_Commit", (void **)&pmix.commit},
             {"PMIx_Get", (void **)&pmix.get},
             {"PMIx_Fence_nb", (void **)&pmix.fence},
             {"PMIx_Error_string", (void **)&pmix.error},
             {"PMIx_Get_version", (void **)&pmix.version}};
  void *handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
  if (!handle) {
    line_print("failed\tthe linker finds no libpmix.so.2: %s", dlerror());
    return false;
  }
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    *all[i].function = dlsym(handle, all[i].name);
    if (!*all[i].function) {
      line_print("failed\tlibpmix.so.2 has no %s", all[i].name);
      return false;
    }
  }
  Dl_info info;
  const char *version = pmix.version();
  const char *digit = version + strcspn(version, "0123456789");
  line_print("library\t%.*s\t%s", (int)strcspn(digit, ", \t"), digit,
             dladdr((void *)pmix.init, &info) ? info.dli_fname
                                              : "libpmix.so.2");
  if (atoi(digit) >= OLDEST_MAJOR)
    return true;
  line_print("failed\tlibpmix.so.2 is version %.20s; sundog needs %d or later",
             digit, OLDEST_MAJOR);
  return false;
}

static void info_set(px_info_t *info, const char *key, uint16_t type,
                     int value) {
  memset(info, 0, sizeof *info);
  snprintf(info->key, sizeof info->key, "%s", key);
  info->value.type = type;
  if (type == PX_BOOL)
    info->value.data.flag = value != 0;
  else
    info->value.data.integer = value;
}

// Returns what the launcher says of this process or of the job; -1: nothing.
static int number_get(const px_proc_t *of, const char *key) {
  px_value_t *value = NULL;
  if (pmix.get(of, key, NULL, 0, &value) != PX_OK || !value)
    return -1;
  if (value->type == PX_UINT32)
    return (int)value->data.u32;
  return value->type == PX_UINT16 ? (int)value->data.u16 : -1;
}

static int text_put(const char *key, char *text) {
  px_value_t value = {.type = PX_STRING};
  value.data.text = text;
  return pmix.put(PX_GLOBAL, key, &value);
}

// ---- the wait for all ranks -------------------------------------------------

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool done;
  int status;
} fence = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};

static void fence_done(int status, void *data) {
  (void)data;
  pthread_mutex_lock(&fence.lock);
  fence.done = true;
  fence.status = status;
  pthread_cond_signal(&fence.changed);
  pthread_mutex_unlock(&fence.lock);
}

// Waits until the callback or the time limit. Prints a line on the way.
static int fence_wait(int limit_s) {
  int warn_s = limit_s / 2 < WARNING_S ? limit_s / 2 : WARNING_S;
  int status = PX_TIMEOUT;
  struct timespec until;
  pthread_mutex_lock(&fence.lock);
  for (int waited_s = 0; !fence.done && waited_s < limit_s; waited_s++) {
    if (waited_s == warn_s)
      line_print("waiting");
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    while (!fence.done && pthread_cond_timedwait(&fence.changed, &fence.lock,
                                                 &until) != ETIMEDOUT)
      continue;
  }
  if (fence.done)
    status = fence.status;
  pthread_mutex_unlock(&fence.lock);
  return status;
}

static int all_wait(const px_proc_t *all, int limit_s) {
  px_info_t how[2];
  info_set(&how[0], PX_COLLECT, PX_BOOL, 1);
  info_set(&how[1], PX_TIME_LIMIT, PX_INT, limit_s);
  int status = pmix.fence(all, 1, how, 2, fence_done, NULL);
  return status == PX_OK ? fence_wait(limit_s + 1) : status;
}

// Reports the ranks that have not published that they are here.
static void missing_print(const px_proc_t *self, int size, int limit_s) {
  char names[128] = "";
  size_t used = 0;
  int count = 0;
  px_info_t how;
  px_proc_t other = *self;
  px_value_t *value;
  info_set(&how, PX_TIME_LIMIT, PX_INT, 1);
  for (int r = 0; r < size && count <= NAMED_MAX; r++) {
    other.rank = (uint32_t)r;
    if (other.rank == self->rank ||
        pmix.get(&other, KEY_HERE, &how, 1, &value) == PX_OK)
      continue;
    used += (size_t)snprintf(names + used, sizeof names - used,
                             count < NAMED_MAX ? "%s%d" : "%s...",
                             used ? ", " : "", r);
    count++;
  }
  line_print("late\trank%s %s of %d did not start `sundog exec` within %d s",
             count == 1 ? "" : "s", count ? names : "unknown", size, limit_s);
}

static bool fault(const char *function, int status) {
  line_print("failed\t%s: %s", function, pmix.error(status));
  return false;
}

static bool meet(px_proc_t *self, char *publish, int limit_s) {
  px_proc_t all = *self, first = *self;
  px_value_t *value = NULL;
  char here[] = "yes";
  all.rank = PX_RANK_ALL;
  first.rank = 0;
  int size = number_get(&all, PX_JOB_SIZE);
  line_print("job\t%u\t%d\t%d\t%d\t%d", self->rank, size,
             number_get(self, PX_LOCAL_RANK), number_get(&all, PX_LOCAL_SIZE),
             number_get(&all, PX_NODES));
  int status = text_put(KEY_HERE, here);
  if (status == PX_OK && self->rank == 0)
    status = text_put(KEY_MEETING, publish);
  if (status == PX_OK)
    status = pmix.commit();
  if (status != PX_OK)
    return fault("PMIx_Put", status);
  status = all_wait(&all, limit_s);
  if (status == PX_TIMEOUT) {
    missing_print(self, size, limit_s);
    return false;
  }
  if (status != PX_OK && status != PX_PARTIAL)
    return fault("PMIx_Fence", status);
  status = pmix.get(&first, KEY_MEETING, NULL, 0, &value);
  if (status != PX_OK || value->type != PX_STRING)
    return fault("PMIx_Get", status);
  line_print("met\t%s", value->data.text);
  return true;
}

int main(int argc, char **argv) {
  char text[TEXT_BYTES] = "";
  px_proc_t self;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int out = dup(STDOUT_FILENO);
  lines = out < 0 ? NULL : fdopen(out, "w");
  if (!lines || argc < 2 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return EXIT_FAILURE;
  // The program that follows is another client of the same rank. The way of
  // PMIx 4 to hand out data in shared memory serves a rank's first client only.
  setenv("PMIX_MCA_gds", "hash", 0);
  if (!library_open())
    return EXIT_FAILURE;
  if (argc < 3 || strcmp(argv[1], "meet") != 0)
    return EXIT_SUCCESS;
  if (fgets(text, sizeof text, stdin))
    text[strcspn(text, "\n")] = '\0';
  int status = pmix.init(&self, NULL, 0);
  if (status != PX_OK) {
    (void)fault("PMIx_Init", status);
    return EXIT_FAILURE;
  }
  bool met = meet(&self, text, atoi(argv[2]));
  // A client that ends without it may end the job.
  status = pmix.finalize(NULL, 0);
  if (met && status != PX_OK)
    return fault("PMIx_Finalize", status), EXIT_FAILURE;
  if (met)
    line_print("left");
  return met ? EXIT_SUCCESS : EXIT_FAILURE;
}
