/* SPDX-License-Identifier: Apache-2.0 */
/* Samples the calling thread by a timer of its CPU time. Time in the C library
 * counts for its caller. */
#include "tests/bench/sample.h"

#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RANGES = 32, FRAMES = 48, HANDLER_FRAMES = 2 };

typedef struct range {
  uintptr_t lo, hi;
  int own;
} range_t;

static range_t range[RANGES];
static int ranges;
static volatile int own, others;
static timer_t timer;

static int library_note(struct dl_phdr_info *info, size_t size, void *unused) {
  static const char *const known[] = {"libsundog", "libcudnn", "libcudart",
                                      "libnccl", "libcublas"};
  const char *name = strrchr(info->dlpi_name, '/');
  (void)size, (void)unused;
  for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
    if (!name || !strstr(name, known[k]))
      continue;
    for (int i = 0; i < info->dlpi_phnum && ranges < RANGES; i++) {
      const ElfW(Phdr) *part = &info->dlpi_phdr[i];
      if (part->p_type == PT_LOAD && part->p_flags & PF_X)
        range[ranges++] =
            (range_t){info->dlpi_addr + part->p_vaddr,
                      info->dlpi_addr + part->p_vaddr + part->p_memsz, k == 0};
    }
  }
  return 0;
}

static void look(int signal_number) {
  void *frame[FRAMES];
  int frames = backtrace(frame, FRAMES);
  (void)signal_number;
  for (int f = HANDLER_FRAMES; f < frames; f++)
    for (int r = 0; r < ranges; r++)
      if ((uintptr_t)frame[f] >= range[r].lo &&
          (uintptr_t)frame[f] < range[r].hi) {
        if (range[r].own)
          own++;
        else
          others++;
        return;
      }
  others++;
}

int sample_start(void) {
  void *frame[FRAMES];
  struct sigaction action = {.sa_handler = look, .sa_flags = SA_RESTART};
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                           .sigev_signo = SIGPROF};
  struct itimerspec every = {{0, 1000000}, {0, 1000000}};
  event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  (void)backtrace(frame, FRAMES); /* loads what it needs */
  ranges = own = others = 0;
  dl_iterate_phdr(library_note, NULL);
  return sigaction(SIGPROF, &action, NULL) ||
         timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) ||
         timer_settime(timer, 0, &every, NULL);
}

double sample_stop(int *out_samples) {
  timer_delete(timer);
  *out_samples = own + others;
  return *out_samples ? (double)own / *out_samples : -1;
}
