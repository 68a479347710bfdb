// SPDX-License-Identifier: Apache-2.0
// Calls in several threads, and tags.
#include "tests/fault/actor/actor.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/sundog.h"

static void *thread_ask(void *unused) {
  (void)unused;
  actor_ask();
  pthread_testcancel();
  return NULL;
}

/* A thread of rank 0 is cancelled while it waits for the others to join. */
int act_cancel(void) {
  pthread_t thread;
  void *result;
  const struct timespec pause = {0, 300000000}, longer = {0, 600000000};
  if (actor.rank != 0) {
    nanosleep(&longer, NULL);
    return actor_ask() != CUDNN_STATUS_SUCCESS;
  }
  pthread_create(&thread, NULL, thread_ask, NULL);
  nanosleep(&pause, NULL);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  return result != PTHREAD_CANCELED;
}

static void *thread_conv(void *unused) {
  (void)unused;
  return act_conv() ? &actor : NULL;
}

static void *thread_set(void *unused) {
  (void)unused;
  return act_set() ? &actor : NULL;
}

static int thread_run(void *(*body)(void *), const char *argument) {
  pthread_t thread;
  void *result;
  pthread_create(&thread, NULL, body, (void *)(uintptr_t)argument);
  pthread_join(thread, &result);
  return result != NULL;
}

int act_thread(void) {
  return thread_run(thread_conv, NULL);
}

int act_threadset(void) {
  return thread_run(thread_set, NULL);
}

static int name_say(const char *name) {
  __typeof__(&sundog_thread) say;
  *(void **)&say = dlsym(RTLD_DEFAULT, "sundog_thread");
  return say && say(name) != 0 &&
         actor_failed("sundog_thread", name ? name : "no name");
}

static int tag(cudnnTensorDescriptor_t descriptor, const char *split) {
  __typeof__(&sundog_tag) say;
  *(void **)&say = dlsym(RTLD_DEFAULT, "sundog_tag");
  return say && say(descriptor, split) != 0 &&
         actor_failed("sundog_tag", split);
}

int act_tagh(void) {
  return tag(actor.x, "H");
}

int act_tagw(void) {
  return tag(actor.x, "W");
}

int act_tagd(void) {
  return tag(actor.x, "D");
}

int act_tagy(void) {
  return tag(actor.y, "W");
}

static void *thread_named(void *name) {
  return name_say(name) || act_conv() ? &actor : NULL;
}

static int named_run(const char *name) {
  return thread_run(thread_named, name);
}

int act_alice(void) {
  return named_run("alice");
}

/* Takes a name and gives it back: now several threads may make calls. */
int act_share(void) {
  return name_say("alice") || name_say(NULL);
}

int act_bob(void) {
  return named_run("bob");
}

int act_crowd(void) {
  int wrong = 0;
  char name[16];
  for (int i = 1; i <= 8 && !wrong; i++) {
    snprintf(name, sizeof name, "of-%d", i);
    wrong = named_run(name);
  }
  return wrong;
}

int act_misnamed(void) {
  return name_say("no name");
}

/* A second living thread takes the main thread's name. */
int act_twice(void) {
  return name_say("alice") || act_conv() || act_alice();
}

/* The main thread takes several names, one after the other. */
int act_renamed(void) {
  return name_say("alice") || act_conv() || act_bob() || name_say("bob") ||
         act_conv() || name_say(NULL) || act_conv() || act_alice();
}

/* Two threads make calls under a lock, which they get in another order on
 * rank 0 than on other ranks. */
static struct {
  pthread_mutex_t lock;
  pthread_barrier_t start;
} locked = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *thread_locked(void *name) {
  void *wrong = NULL;
  int first = (actor.rank == 0) == (strcmp(name, "alice") == 0);
  pthread_mutex_lock(&locked.lock);
  wrong = thread_named(name);
  pthread_mutex_unlock(&locked.lock);
  pthread_barrier_wait(&locked.start);
  if (!first)
    usleep(200000);
  pthread_mutex_lock(&locked.lock);
  if (!wrong && act_conv())
    wrong = &actor;
  pthread_mutex_unlock(&locked.lock);
  return wrong;
}

int act_locked(void) {
  pthread_t thread[2];
  void *result[2];
  if (act_alice() || act_bob()) // the ranks know both and their descriptors
    return 1;
  pthread_barrier_init(&locked.start, NULL, 2);
  pthread_mutex_lock(&locked.lock);
  pthread_create(&thread[0], NULL, thread_locked, (void *)"alice");
  pthread_create(&thread[1], NULL, thread_locked, (void *)"bob");
  pthread_mutex_unlock(&locked.lock);
  for (int i = 0; i < 2; i++)
    pthread_join(thread[i], &result[i]);
  return result[0] || result[1];
}

static void *thread_set_conv(void *unused) {
  (void)unused;
  if (act_set() == 0)
    while (act_conv() == 0 && act_sync() == 0)
      ;
  return NULL;
}

/* Starts a thread that still makes calls when the program ends. */
int act_runaway(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, thread_set_conv, NULL);
  return pthread_detach(thread);
}
