// SPDX-License-Identifier: Apache-2.0
// Damage to the memory that ranks share.
#include "tests/fault/actor/actor.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Damages a word of the memory that ranks share, mostly one in use: flips a bit
 * or writes another value. */
int act_scribble(void) {
  static unsigned long long state;
  char line[512];
  unsigned long long begin = 0, end = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "memfd:sundog-control"))
      sscanf(line, "%llx-%llx", &begin, &end);
  if (maps)
    fclose(maps);
  if (!begin)
    return 0; /* not joined */
  if (!state)
    state = (unsigned long long)actor_get("seed") * 2 + 1;
  unsigned long long *word = (unsigned long long *)begin, random[3];
  size_t count = (size_t)(end - begin) / sizeof *word;
  for (int i = 0; i < 3; i++) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    random[i] = state >> 33;
  }
  size_t at = (size_t)random[0] * 7919 % count;
  for (size_t i = 0; i < count && random[1] % 4; i++)
    if (word[(at + i) % count]) {
      at = (at + i) % count;
      break;
    }
  const unsigned long long values[] = {word[at] ^ 1ULL << random[2] % 64,
                                       0,
                                       ~0ULL,
                                       random[1] << 32 | random[2],
                                       word[at] + 1,
                                       word[at] - 1};
  ((volatile unsigned long long *)word)[at] =
      values[random[2] % (sizeof values / sizeof *values)];
  return 0;
}

static void *scribble_on(void *unused) {
  (void)unused;
  for (;;) {
    act_scribble();
    usleep(20);
  }
  return NULL;
}

/* Does the same all the time in a second thread. */
int act_scribbler(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, scribble_on, NULL) ||
         pthread_detach(thread);
}
