// SPDX-License-Identifier: Apache-2.0
// Closes descriptors in forked children that only the parent may hold.
#include "src/host/nccl/net/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/fd.h"

static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t guard_once = PTHREAD_ONCE_INIT;
static int *guarded; // guarded by guard_lock
static int guarded_count;
static int guarded_room;
static atomic_uint generation;

static void before_fork(void) {
  pthread_mutex_lock(&guard_lock);
}

static void after_fork_parent(void) {
  pthread_mutex_unlock(&guard_lock);
}

static void after_fork_child(void) {
  for (int i = 0; i < guarded_count; i++)
    close(guarded[i]);
  guarded_count = 0;
  atomic_fetch_add(&generation, 1);
  pthread_mutex_unlock(&guard_lock);
}

static void watch_forks(void) {
  pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

int host_fork_guard(int fd) {
  fd = sdg_fd_raise(fd);
  if (fd < 0)
    return -1;
  pthread_once(&guard_once, watch_forks);
  pthread_mutex_lock(&guard_lock);
  if (guarded_count == guarded_room) {
    int room = guarded_room == 0 ? 16 : 2 * guarded_room;
    int *grown = realloc(guarded, (size_t)room * sizeof *grown);
    if (!grown) {
      pthread_mutex_unlock(&guard_lock);
      close(fd);
      return -1;
    }
    guarded = grown;
    guarded_room = room;
  }
  guarded[guarded_count++] = fd;
  pthread_mutex_unlock(&guard_lock);
  return fd;
}

void host_fork_close(int fd) {
  if (fd < 0)
    return;
  pthread_mutex_lock(&guard_lock);
  for (int i = 0; i < guarded_count; i++)
    if (guarded[i] == fd) {
      guarded[i] = guarded[--guarded_count];
      // Closed under the lock: otherwise a child forked in between could close
      // another file's descriptor.
      close(fd);
      break;
    }
  pthread_mutex_unlock(&guard_lock);
}

unsigned host_fork_generation(void) {
  return atomic_load(&generation);
}
